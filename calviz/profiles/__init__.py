"""The profile: a summary of any number of rows that adds up, from which they are judged as if they were there.

Here are the value, how it is made of a frame of any engine (one narwhals expression), how profiles are added, and what
their file holds. Finding out which column is what, and going through folders of files, is in `calviz.data.profiling`.
"""
