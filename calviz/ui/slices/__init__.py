"""The part of the page Slices: which slices are off, and their table and figure."""
