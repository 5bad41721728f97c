"""Computations that only metrics need (and checks that test the same quantity): on arrays, and on views and samples.

Nothing here registers itself.
"""
