"""Computations that only metrics need (and the checks that test the same thing): arrays in, arrays out.

Nothing here registers itself.
"""
