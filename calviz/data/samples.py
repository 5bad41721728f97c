"""The sample data sets that ship with calviz."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calviz.core.errors import InputError, OptionError
from calviz.data.loaded import Loaded
from calviz.data.reading import read


@dataclass(frozen=True)
class SampleSet:
    """One file of ``sample_data``.

    Attributes
    ----------
    key : str
        Stable name.
    title : str
        Title on screen.
    description : str
        What the data set holds and shows, in two or three sentences.
    file : str
        File name.
    """

    key: str
    title: str
    description: str
    file: str


#: All sample sets; the app opens with the first one.
SAMPLES: tuple[SampleSet, ...] = (
    SampleSet(
        "digits",
        "Handwritten digits, 3 models",
        "Ten classes, 6,000 held-out pictures, clean and degraded in four ways. An MLP trained to the "
        "end on clean pictures is overconfident, a strongly regularised logistic regression is "
        "underconfident, extra trees with a fitted temperature are well calibrated.",
        "digits.parquet",
    ),
    SampleSet(
        "breast_cancer",
        "Breast cancer, 5 models",
        "Two classes, 569 tumours, cross-validated predictions of naive Bayes, a support vector "
        "machine's margin, a random forest, logistic regression and boosted trees; the size of the "
        "tumour as a group.",
        "breast_cancer.parquet",
    ),
    SampleSet(
        "simulated_binary",
        "Simulated, 2 classes",
        "The two synthetic models of Zhang et al. 2020, appendix E. The true calibration error of "
        "the positive class is 7.44 % (less calibrated) and 2.35 % (better calibrated).",
        "simulated_binary.parquet",
    ),
    SampleSet(
        "simulated_100_classes",
        "Simulated, 100 classes",
        "Labels drawn from known probabilities, which are then reported too sharp. The true "
        "top-label calibration error is 10.97 %, and a temperature of 1.2 mends it exactly.",
        "simulated_100_classes.parquet",
    ),
)


def project_root() -> Path:
    """Return the folder that holds ``app.py``, ``pages`` and ``sample_data``.

    This is the root of the repository in a checkout, and ``calviz/_app`` in an installed wheel.
    """
    package = Path(__file__).resolve().parents[1]
    inside = package / "_app"
    return inside if inside.is_dir() else package.parent


def load_sample(key: str | None = None) -> Loaded:
    """Read a sample set in the same way as a user's file.

    Parameters
    ----------
    key : str, optional
        Key of one of the `SAMPLES`; the first if left out.

    Raises
    ------
    OptionError
        If there is no such set.
    InputError
        If its file is missing.
    """
    samples = {sample.key: sample for sample in SAMPLES}
    chosen = SAMPLES[0] if key is None else samples.get(key)
    if chosen is None:
        raise OptionError(f"there is no sample set '{key}'; known: {', '.join(samples)}.")
    path = project_root() / "sample_data" / chosen.file
    if not path.is_file():
        raise InputError(
            "the sample file is missing",
            file=chosen.file,
            remedy="make it again with 'python sample_data/make.py'",
        )
    return read(path)
