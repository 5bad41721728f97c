"""From a table and its layout to `Predictions`: labels to class indices, repairs, and messages about what is wrong.

The roles of the columns have already been decided in `calviz.data.recognition`; the format of the file no longer matters.
"""
