"""Optional packages: what each is needed for, and the error if one is missing."""

from __future__ import annotations

import importlib.util

from calviz.core.errors import CalvizError

#: What each optional package is needed for, by module name; `pyproject.toml` lists them as extras.
PURPOSES = {
    "duckdb": "the DuckDB engine needs",
    "jinja2": "HTML reports need",
    "latex2mathml": "HTML reports need",
    "mlflow": "logging to MLflow needs",
    "pandas": "tables, reports and written files need",
    "plotly": "figures and reports need",
    "pyarrow": "Parquet, Arrow and JSON Lines need",
    "streamlit": "the dashboard needs",
    "wandb": "logging to Weights & Biases needs",
}
#: All packages that a report needs.
REPORT = ("pandas", "plotly", "jinja2", "latex2mathml")


class MissingPackage(CalvizError, ImportError):
    """The request needs packages that are not installed."""

    def __init__(self, *packages: str) -> None:
        *others, last = packages
        named, verb = (f"{', '.join(others)} and {last}", "are") if others else (last, "is")
        super().__init__(
            f"{PURPOSES.get(packages[0], 'this needs')} {named}, which {verb} not installed; "
            f"run: pip install {' '.join(packages)}."
        )


def needs(*packages: str) -> None:
    """Check that packages can be imported.

    Raises
    ------
    MissingPackage
        If one of them cannot; the sentence says what to install.

    Examples
    --------
    >>> needs("pandas")
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        raise MissingPackage(*missing)
