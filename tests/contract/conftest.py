"""Commands, files and documents are judged by what they say, not by the last digit of an error bar."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def _few_resamples(few_resamples: None) -> None:
    """For all modules of this folder."""
