"""The types that all other rooms build on: predictions, reductions, events, errors, limits, and progress of long work.

Nothing here computes a metric, knows the registries, or imports another room. Code that only one room needs does not
belong here, however small it is.
"""
