"""Profiles: mergeable summaries of any number of rows, which can be evaluated like the rows themselves.

This folder holds the `Profile` class, its computation from a frame of any engine (one narwhals expression), merging, and
the file format. Recognising columns and going through folders of files is in `calviz.data.profiling`.
"""
