"""File formats, one file or folder each; each registers itself in `calviz.data.format.FORMATS`.

A format turns a file into a `Table`. Code for a single format stays in its folder; `answers.py`,
`half_precision.py` and `uneven_choices.py` serve several formats and register nothing. Which columns hold labels or scores
is decided in `calviz.data.recognition`, in the same way for all formats.
"""
