"""The part of the page Slices: which slices are miscalibrated, with their table and figure."""
