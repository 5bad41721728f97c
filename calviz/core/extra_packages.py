"""Packages that calviz does without, what each is for, and the sentence where one is missing."""

from __future__ import annotations

import importlib.util

from calviz.core.errors import CalvizError

#: What cannot be done without a package, by the name of its module; `pyproject.toml` has them as extras.
PURPOSES = {
    "duckdb": "the engine DuckDB needs",
    "jinja2": "HTML reports need",
    "latex2mathml": "HTML reports need",
    "mlflow": "logging to MLflow needs",
    "pandas": "tables, reports and written files need",
    "plotly": "figures and reports need",
    "pyarrow": "Parquet, Arrow and JSON Lines need",
    "streamlit": "the dashboard needs",
    "wandb": "logging to Weights & Biases needs",
}
#: All that a report is made with.
REPORT = ("pandas", "plotly", "jinja2", "latex2mathml")


class MissingPackage(CalvizError, ImportError):
    """Something was asked for that needs packages which are not installed."""

    def __init__(self, *packages: str) -> None:
        *others, last = packages
        named, verb = (f"{', '.join(others)} and {last}", "are") if others else (last, "is")
        super().__init__(
            f"{PURPOSES[packages[0]]} {named}, which {verb} not installed; "
            f"run: pip install {' '.join(packages)}."
        )


def needs(*packages: str) -> None:
    """Make sure that packages can be imported.

    Raises
    ------
    MissingPackage
        Where some cannot; one sentence, with what to install.

    Examples
    --------
    >>> needs("pandas")
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise MissingPackage(*missing)
