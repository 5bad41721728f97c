"""Linked brushing: the rows that are selected on any page, and what every page says about them."""
