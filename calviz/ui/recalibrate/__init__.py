"""The parts of the page Recalibrate: its choices, the job, the table, figures, and downloads.

``plan_choice`` draws the choices and turns them into a plan, ``comparison_job`` carries it out, ``outcome`` is the result as the
page keeps it, ``figures_computed`` computes figures from it and ``figures_shown`` shows them.

Fitting and judging are in `calviz.comparison`; the choice of rows, which other pages share, is in ``ui/widgets/fit_rows.py``.
"""
