"""From a table and its layout to `Predictions`: labels to class indices, repairs, and what is wrong, in sentences.

Which column is what has been decided before, in `calviz.data.recognition`; the format of the file does not matter any more.
"""
