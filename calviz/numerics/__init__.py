"""Kernels on plain arrays that several rooms share: blocks of rows, zero floors, ties, bin edges, temperature, proportions.

They depend neither on samples nor on metrics. A kernel that only one room uses lives in that room; a summary of a sample
lives in `calviz.sample`.
"""
