"""Which column of a file is what: names, types and first values in, a `Layout` out.

Nothing here reads a whole column or knows a file format; what is made of the columns is in `calviz.data.building`.
"""
