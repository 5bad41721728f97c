"""File formats, one file or folder each, which registers itself in `calviz.data.format.FORMATS`.

A format turns a file into a `Table`. What only one format needs stays in its folder; `answers.py` and
`uneven.py` serve several and register nothing. Which columns hold labels or scores
is decided in `calviz.data.recognition`, the same for all formats.
"""
