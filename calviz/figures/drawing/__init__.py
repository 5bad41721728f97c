"""How figures are drawn: colours, axes, shared parts, and one file per figure whose drawing is long.

A drawing takes a computed figure and returns traces and a layout as plain dicts; `Figure.plot` makes a plotly figure of them. It
is found by its name: the figures of ``figures/reliability.py`` are drawn by ``figures/drawing/reliability.py``. Nothing here computes
what is drawn.
"""
