"""The parts of the page Recalibrate: choices (``plan``), the job (``comparison_job``), table, pictures, and what is taken home.

Fitting and judging are in `calviz.comparison`; the choice of rows, which other pages show as well, is in ``ui/widgets/fit_rows.py``.
"""
