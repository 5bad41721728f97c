"""Words, units, errors, and the registry of entries."""

import errno
import math
import os
import re
import sys
import textwrap
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.comparison.comparison_results import ComparisonColumn
from calviz.core.entry_specs import METRICS, Interval, MetricResult, NoiseFloor
from calviz.core.errors import (
    CalvizError,
    InputError,
    OptionError,
    OutputError,
    Repair,
    reason_of,
    replacing,
    write_output,
)
from calviz.core.registry import Registry, look_in
from calviz.core.words import points_text
from calviz.figures.reliability import Reliability
from calviz.verdicts.evaluation import Evaluation, Written, name_of, remarks, value_text

# ---- How metrics are written


def test_what_is_written_in_points_or_percent_lies_within_one():
    within = [m for m in METRICS if m.unit != "plain"]
    assert len(within) > 20
    assert all(-1 <= low <= high <= 1 for low, high in (m.bounds for m in within))


def test_what_may_lie_on_both_sides_of_zero_is_best_there():
    # Written with a plus sign for that reason.
    points = [m for m in METRICS if m.unit == "points"]
    assert {m.key for m in points if m.direction == "zero"} == {
        m.key for m in points if m.bounds[0] < 0 < m.bounds[1] and m.key != "ce_l1_unbiased"
    }  # an estimate without bias may fall below 0, which is no better than 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [150, 600, 5_000, 30_000])
@pytest.mark.parametrize("power", [0.7, 0.97, 1.6])
@pytest.mark.parametrize("kind", ["top-label", "positive"])
def test_an_ece_is_written_the_same_everywhere(n, power, kind):
    rng = np.random.default_rng(n)
    p = rng.beta(2, 2, n)
    odds = (p / (1 - p)) ** power
    data = calviz.Predictions(probs=p, labels=rng.random(n) < odds / (1 + odds))
    e = calviz.evaluate(data, ["ece", "mcs"], findings=True, ci=True, reduction=kind)
    card = Written(e["ece"]).value
    (messages,) = (f.message for f in e.findings if f.code == "CAL001")
    if e.verdict.reduction == kind:
        assert f"ECE {card} points where" in messages
        matches = re.findall(r"ECE ([\d.]+) points where", e.verdict.sentence)
        assert set(matches) <= {card}
        floor = Written(e["ece"]).of(e["ece"].noise_floor.mean)
        assert f"would show {floor} on average" in messages
    assert value_text("ece", e["ece"].value) == f"{card} points"
    drawn = Reliability.compute(data, reduction=kind)
    assert points_text(drawn.ece) == f"{card} points"


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("accuracy", 1.0, "100.0 %"),
        ("ece", 0.1234, "12.3 points"),
        ("ece", 0.00039, "0.04 points"),
        ("mcs", -0.154, "−15.4 points"),
        ("nll", 1.2345, "1.234"),
        ("aurc", 0.00535, "0.00535"),
        ("nll", float("nan"), "no value"),
    ],
)
def test_values_in_sentences(metric, value, text):
    assert value_text(metric, value) == text


# ---- How results are named and written


@pytest.mark.parametrize(
    ("key", "options", "name"),
    [
        ("accuracy_at_coverage", {"coverage": 0.7}, "Accuracy at a coverage (70 %)"),
        ("coverage_at_risk", {"risk": 0.1}, "Coverage at a risk (10 %)"),
        ("coverage_at_risk", {"risk": 0.0}, "Coverage at a risk (0 %)"),
        ("ece", {"bins": 5}, "ECE"),
    ],
)
def test_names_say_at_which_point_of_a_curve(key, options, name):
    data = calviz.Predictions(probs=np.array([0.2, 0.9]), labels=np.array([0, 1]))
    assert name_of(calviz.evaluate(data, [key], **options)[key]) == name


@pytest.mark.parametrize(
    ("key", "values", "texts"),
    [
        ("accuracy", [0.9123, 1.0], ["91.23\u00a0%", "100.00\u00a0%"]),
        ("ece", [0.1234, 0.00561, float("nan")], ["12.34", "0.56", "–"]),
        ("mcs", [0.1, -0.002], ["+10.00", "−0.20"]),
        ("nll", [1.05, 0.3], ["1.0500", "0.3000"]),
        ("aurc", [0.07359, 0.00535], ["0.07359", "0.00535"]),
    ],
)
def test_a_column_has_the_same_decimals_everywhere(key, values, texts):
    results = [MetricResult(key, value) for value in values]
    written = Written.column(results)
    assert [written.of(r.value) for r in results] == texts


def test_a_value_alone_has_no_more_decimals_than_make_sense():
    assert Written(MetricResult("nll", 1.0049)).value == "1.005"
    assert Written(MetricResult("ece", 0.00646)).value == "0.65"
    assert Written(MetricResult("ece", 0.1234)).value == "12.3"


def test_mce_is_said_to_be_off_by_its_bin_and_not_by_a_noise_floor_that_says_otherwise():
    # The largest gap of a calibrated model may well be as large, while the bin at hand is off for its many rows.
    floor = NoiseFloor(mean=0.061, q95=0.088, p_value=0.078)
    bin_ = {"bin_low": 0.8, "bin_high": 13 / 15, "bin_rows": 218.0, "mean_score": 0.833}
    off = bin_ | {"hits_low": 0.653, "hits_high": 0.828}
    text = Written(MetricResult("mce", 0.0852, Interval(0.0, 0.1633), floor, details=off)).noise(
        tail="upper"
    )
    assert "noise" not in text
    assert text.startswith("its bin is off: 218 rows from 0.80 to 0.87, mean score 83.3")
    # 83.56 % and 59.62 % are 23.9 points apart, as the finding says of this bin: one decimal would show 24.0.
    bin_ |= {"mean_score": 0.8356, "hits_low": 0.3961, "hits_high": 0.7758}
    text = Written(MetricResult("mce", 0.2394, None, floor, details=bin_)).noise(tail="upper")
    assert "mean score 83.56 %, hits 39.6 % to 77.6 %" in text
    bin_["mean_score"] = 0.833
    within = bin_ | {"hits_low": 0.653, "hits_high": 0.838}
    text = Written(MetricResult("mce", 0.0852, Interval(0.0, 0.1633), floor, details=within))
    assert text.noise(tail="upper").startswith("within noise: 218 rows")


def test_an_mce_and_its_bin_that_part_say_why():
    bin_ = {"bin_low": 0.8, "bin_high": 13 / 15, "bin_rows": 218.0, "mean_score": 0.833}
    off, within = {"hits_low": 0.653, "hits_high": 0.828}, {"hits_low": 0.653, "hits_high": 0.838}
    floor = NoiseFloor(mean=0.061, q95=0.088, p_value=0.078)
    values = {
        (low, ends["hits_high"]): Written(
            MetricResult("mce", 0.0852, Interval(low, 0.16), floor, details=bin_ | ends)
        ).why_apart
        for low in (0.0, 0.02)
        for ends in (off, within)
    }
    assert "it reaches 0 as some bin may be that far off by chance" in values[0.0, 0.828]
    assert "the bin is judged by its own" in values[0.02, 0.838]
    assert all("whichever bin" not in values[k] for k in ((0.0, 0.838), (0.02, 0.828)))


def test_errors_that_end_their_own_intervals_say_why_once():
    at_end = [
        MetricResult(key, 0.03, Interval(0.0, 0.03), interval_method="inverted")
        for key in ("ece", "smece")
    ]
    inside = MetricResult("ks", 0.03, Interval(0.0, 0.04), interval_method="inverted")
    other = MetricResult("mce", 0.03, Interval(0.0, 0.03), interval_method="half-inverted")
    ((names, text),) = remarks([*at_end, inside, other])
    assert names == "ECE; smECE"
    assert text.startswith("noise biases the estimate upwards")


def test_the_brier_score_of_two_classes_is_the_one_column_form():
    p = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
    keys = ["brier_binary", "brier"]
    column, both = calviz.evaluate(calviz.Predictions(probs=p, labels=[0, 1, 1]), keys)
    # (0.1 ** 2 + 0.4 ** 2 + 0.7 ** 2) / 3
    assert (name_of(column), column.value) == ("Brier score", pytest.approx(0.22))
    assert (name_of(both), both.value) == ("Brier score (class sum)", pytest.approx(0.44))
    shown = ComparisonColumn.of("brier", {"a": both})
    assert (shown.written.heading, shown.text("a"), shown.written.scale) == (
        "Brier score",
        "0.2200",
        0.5,
    )
    wider = calviz.Predictions(probs=np.append(p, np.zeros((3, 1)), axis=1), labels=[0, 1, 1])
    names = [name_of(r) for r in calviz.evaluate(wider, keys)]
    assert names == ["Brier score (binary)", "Brier score"]


# ---- Errors: one sentence with place, rule and remedy


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("there are no rows"), "there are no rows."),
        (InputError("what is this?"), "what is this?"),
        (InputError("it is empty", file="a.csv"), "a.csv: it is empty."),
        (
            InputError(
                "NaN", file="a.csv", row=1_234, line=1_240, column="p_dog", remedy="drop it"
            ),
            "a.csv, row 1,234, line 1,240, column 'p_dog': NaN; drop it.",
        ),
        (InputError("NaN", column="p"), "column 'p': NaN."),
    ],
)
def test_the_sentence(error, sentence):
    assert str(error) == sentence
    assert isinstance(error, CalvizError)
    assert isinstance(error, ValueError)


def test_a_file_is_added_where_there_is_none():
    repair = Repair("renormalise", "divide every row by its sum")
    error = InputError("sums to 1.2", row=3, remedy="normalise", repairs=[repair])
    placed = error.in_file("a.csv")
    assert str(placed) == "a.csv, row 3: sums to 1.2; normalise."
    assert placed.repairs == (repair,)
    assert str(placed.in_file("b.csv")) == str(placed)


def test_a_copy_keeps_every_argument():
    repair = Repair("renormalise", "divide every row by its sum")
    given = {
        "file": "a.csv",
        "row": 3,
        "line": 4,
        "column": "p",
        "remedy": "normalise",
        "repairs": (repair,),
        "where": "row 3",
        "placed": True,
        "readings": (),
        "asks": True,
        "unlabelled": True,
        "further": (InputError("and 2 rows are empty"),),
        "unmatched": (("p", "q"), ("a", "b")),
    }
    error = InputError("sums to 1.2", **given)
    assert vars(error.but(row=5)) == {"what": "sums to 1.2"} | given | {"row": 5}
    assert vars(error.in_file("b.csv")) == vars(error.in_column("q")) == vars(error)
    assert error.but(further=()).in_code().remedy == 'normalise (repair="renormalise")'


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InputError("NaN", row=3), "row 3: NaN."),
        (MemoryError(), "there is not enough memory for it."),
        (ZeroDivisionError("division by zero"), "it failed: division by zero."),
        (RuntimeError(), "it failed: RuntimeError."),
    ],
)
def test_the_reason_for_no_result(error, reason):
    assert reason_of(error) == reason


# ---- Files are written whole or not at all


def test_a_file_and_its_mode_are_replaced_and_a_link_stays_one(tmp_path):
    target, link = tmp_path / "a.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("a.txt")
    write_output(link, "é")
    assert link.is_symlink()
    assert target.read_bytes() == "é".encode()
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "link.txt"]


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_output(tmp_path / "new", b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
@pytest.mark.parametrize("before", [None, "old"])
def test_what_breaks_off_leaves_what_was_there(tmp_path, error, before):
    target = tmp_path / "a.csv"
    if before is not None:
        target.write_text(before)
    with pytest.raises((KeyboardInterrupt, OutputError)) as caught, replacing(target) as path:  # noqa: PT012
        path.write_text("half")
        raise error
    if isinstance(error, OSError):
        left = "nothing was written" if before is None else "what was there before is unchanged"
        assert str(caught.value) == f"a.csv: cannot be written (no space left); {left}."
    assert [p.read_text() for p in tmp_path.iterdir()] == ([] if before is None else [before])


def test_a_pipe_is_written_to_and_a_device_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_output(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    if Path("/dev/full").exists():
        with pytest.raises(OutputError, match=r"full: cannot be written \(no space"):
            write_output("/dev/full", "x")
        assert Path("/dev/full").is_char_device()


# ---- The registry: entries announce themselves, and every look-up sees all of them


@dataclass(frozen=True)
class Entry:
    key: str


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two modules, slow to import, that register one entry each."""
    folder = tmp_path / "some_entries"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from calviz.core.registry import Registry\nENTRIES = Registry('entry')\n"
    )
    for name in ("alpha", "beta"):
        (folder / f"{name}.py").write_text(
            textwrap.dedent(
                f"""
                import time
                from dataclasses import dataclass
                from some_entries import ENTRIES

                @dataclass(frozen=True)
                class Entry:
                    key: str

                time.sleep(0.05)
                ENTRIES.register(Entry("{name}"))
                """
            )
        )
    monkeypatch.syspath_prepend(tmp_path)
    look_in(entry="some_entries")
    import some_entries

    yield some_entries.ENTRIES
    for module in [m for m in sys.modules if m.startswith("some_entries")]:
        del sys.modules[module]


def test_the_modules_of_the_package_register_on_first_use(package):
    assert package.keys() == ("alpha", "beta")
    assert len(package) == 2
    assert "alpha" in package
    assert "gamma" not in package
    assert package["beta"].key == "beta"
    assert [entry.key for entry in package] == ["alpha", "beta"]


def test_threads_that_look_at_the_same_time_all_see_everything(package):
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(package.keys())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [("alpha", "beta")] * 8


def test_an_unknown_key_is_answered_with_the_known_ones(package):
    with pytest.raises(OptionError, match="there is no entry 'gamma'; known: alpha, beta"):
        package["gamma"]


def test_a_key_is_taken_once():
    registry: Registry[Entry] = Registry("entry")
    registry.register(Entry("a"))
    with pytest.raises(OptionError, match="two entrys with the key 'a'"):
        registry.register(Entry("a"))


def test_an_import_that_fails_is_reported_again(tmp_path, monkeypatch):
    folder = tmp_path / "broken_entries"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "bad.py").write_text("raise RuntimeError('no')")
    monkeypatch.syspath_prepend(tmp_path)
    look_in(entry="broken_entries")
    registry: Registry[Entry] = Registry("entry")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            registry.keys()


# ---- Results as a table


def test_the_frame_has_one_row_per_metric():
    evaluation = Evaluation(
        name="a",
        rows=3,
        n_classes=2,
        kind="probabilities",
        split=None,
        reduction="top-label",
        metrics={
            "ece": MetricResult("ece", 0.1, Interval(0.05, 0.2), NoiseFloor(0.04, 0.09, 0.01)),
            "nll": MetricResult("nll", math.nan, reason="not available."),
        },
    )
    frame = evaluation.frame()
    assert frame.index.tolist() == ["ece", "nll"]
    assert frame.loc["ece"].tolist()[:6] == [0.1, 0.05, 0.2, 0.04, 0.09, 0.01]
    assert frame.loc["nll", ["value", "low", "p_value"]].isna().all()
    assert frame.loc["nll", "reason"] == "not available."
    assert len(evaluation) == 2
    assert [r.available for r in evaluation] == [True, False]
