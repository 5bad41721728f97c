"""One file for each family of formats; importing it registers its formats.

Each is a `Format` (`calviz.data.format`); the registry imports every module of this folder; helpers that read no format belong in `data`.
"""
