"""Fit on some rows, judge on others; several models; over time; prediction sets; the arena.

The files `*_results` hold what these return, import no method that fits, and are all that figures
and JSON may import from here. Not here: pictures.
"""
