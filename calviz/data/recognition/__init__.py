"""Recognise the roles of the columns of a file: names, types and first values in, a `ColumnRoles` out.

Nothing here reads a whole column or knows a file format; predictions are made from the columns in `calviz.data.building`.
"""
