"""How maps are fitted: losses, minimisers and the shapes of maps, on plain arrays.

The methods themselves, with their options and their export, are in the folder above.
"""
