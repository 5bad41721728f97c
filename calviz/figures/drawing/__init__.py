"""How figures are drawn: colours, axes, shared parts, and one file per figure whose drawing is long.

A drawing function takes a computed figure and returns traces and a layout as plain dicts, from which `Figure.plot` makes a plotly
figure. It is found by the name of its file: ``figures/drawing/reliability.py`` draws the figures of ``figures/reliability.py``.
Nothing here computes what is drawn.
"""
