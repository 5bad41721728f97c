"""One file for each family of formats; importing it registers its formats.

The registry imports every module of this folder; helpers that read no format belong in `data`.
"""
