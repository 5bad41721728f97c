"""Base classes that several methods derive from, by the shape of their map, and what they share.

Nothing here registers itself. `BaseRecalibrator`, which every method derives from, is in the folder above; losses and
minimisers are in ``fitting``.
"""
