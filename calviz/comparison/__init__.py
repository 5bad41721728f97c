"""Fit on some rows, judge on others; several models; over time; prediction sets; the arena.

The files `*_results` hold what these return and import no method that fits; figures and JSON import
nothing else from here. Prediction sets fit no map, and stand with their result. Not here: pictures.
"""
