"""The parts of the page Recalibrate: its choices, the job, the table, figures, and what is taken home.

``plan`` draws the choices and makes a plan of them, ``comparison_job`` carries it out, ``outcome`` is what the page then has,
``figures`` computes figures of it and ``pictures`` shows them.

Fitting and judging are in `calviz.comparison`; the choice of rows, which other pages show as well, is in ``ui/widgets/fit_rows.py``.
"""
