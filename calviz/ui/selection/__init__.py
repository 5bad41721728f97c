"""Linked brushing: the rows that are selected, on whichever page, and what every page says of them."""
