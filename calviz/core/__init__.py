"""What everything is made of: predictions, reductions, events, errors, limits, and the watcher of long work.

Nothing here computes a metric, knows what is registered, or imports another room. What only one room needs does not
belong here, however small it is.
"""
