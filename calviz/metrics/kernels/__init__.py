"""Computations that only metrics need (and checks that test the same quantity): arrays in, arrays out.

Nothing here registers itself.
"""
