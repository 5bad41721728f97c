"""What is concluded is judged by as many resamples as users have."""

import pytest


@pytest.fixture(autouse=True)
def _usual_resamples(usual_resamples: None) -> None:
    """For all modules of this folder."""
