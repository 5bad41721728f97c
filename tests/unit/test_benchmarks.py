"""Benchmarks and simulations."""

import gc
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

import calviz
from benchmarks.claims import Simulation
from calviz.comparison.arena_results import Experiment, MethodScore, ResultTable
from calviz.core.entry_specs import METRICS
from calviz.sample.error_bars import p_value, stream
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from tests.inputs.simulated import draw_labels

# ---- What a benchmark writes into benchmarks/results, and what it leaves there


ROOT = Path(__file__).resolve().parents[2]
RESULTS = """# Recalibrators

An introduction, with | signs.

| hot path | calviz |
| --- | --- |
| temperature, W4 (10,000 x 100) | 23.3 ms |
| vector, W4 (10,000 x 100) | 230 ms |
| temperature, W2 (1,000,000 x 10) | 1 s |
"""


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module
    for name in ("recalibrators", "loading", "_recalibrator_peers", "_harness", "_arena_tables"):
        sys.modules.pop(name, None)


@pytest.fixture
def recalibrators(benchmarks):
    return benchmarks("recalibrators")


def test_the_page_in_short_has_the_numbers_of_the_tables():
    page = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| \[.+\]\((.+)\).* \| (.+) \| (.+) \| (.+) \|$", page, re.M)
    assert len(lines) > 15
    for file, ours, others, measured in lines:
        table = (ROOT / "benchmarks" / file).read_text(encoding="utf-8")
        stated = set(re.findall(r"(?<![-.\w])\d[\d.,]*\d", f"{ours} {others}"))
        assert stated
        assert stated <= set(re.findall(r"\d[\d.,]*\d", table)), file
        assert re.fullmatch(r"\d{4}-\d\d-\d\d, [0-9a-f]{8}", measured)


def test_lines_of_another_run_stay_and_are_named(recalibrators, monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["_harness"], "RESULTS", tmp_path)
    (tmp_path / "recalibrators.md").write_text(RESULTS)
    measured = recalibrators.Comparison("temperature, W4 (10,000 x 100)")
    kept = recalibrators.unmeasured_lines("Recalibrators", [measured.title])
    assert list(kept.values()) == [
        ["| vector, W4 (10,000 x 100) | 230 ms |"],
        ["| temperature, W2 (1,000,000 x 10) | 1 s |"],
    ]
    # Of W4 some lines are new; of W2 none is.
    assert recalibrators.in_short(kept, [measured]) == ["vector, W4", "W2"]
    assert recalibrators.unmeasured_lines("Nothing", []) == {}


def test_the_lines_of_the_results_have_known_workloads(recalibrators):
    kept = recalibrators.unmeasured_lines(recalibrators.SECTION, [])
    assert kept
    assert set(recalibrators.in_short(kept, [])) <= set(recalibrators.SIZES)


def test_formats_that_are_not_measured_stay_in_their_order(benchmarks, monkeypatch, tmp_path):
    loading, harness = benchmarks("loading"), benchmarks("_harness")
    file = tmp_path / "loading.md"
    monkeypatch.setattr(harness, "RESULTS", tmp_path)

    def make(folder, n, k, key):
        path = folder / key
        path.write_bytes(b"")
        return path

    def measured(clock, *arguments):
        monkeypatch.setattr(loading, "make", make)
        monkeypatch.setattr(loading, "measure", lambda *_: {"calviz": (clock, 1.0, 0.0)})
        monkeypatch.setattr(sys, "argv", ["loading.py", "--write", *arguments])
        loading.main()
        lines = [line.split(" | ") for line in file.read_text().splitlines() if line[:2] == "| "]
        return [(line[0].split(",")[0][2:], line[2]) for line in lines[2:]]

    assert measured(1.0, "--formats", "parquet,npz") == [("npz", "1.00 s"), ("parquet", "1.00 s")]
    assert "another run" not in file.read_text()
    assert measured(2.0, "--formats", "npz") == [("npz", "2.00 s"), ("parquet", "1.00 s")]
    assert "--write`; from another run: parquet. On" in file.read_text()
    assert [name for name, _ in measured(3.0)] == ["npz", "npy", "parquet", "arrow", "csv"]


def test_the_lines_of_loading_have_known_formats(benchmarks):
    loading = benchmarks("loading")
    kept = loading.unmeasured_lines(loading.SECTION, [], name_of=loading.format_of)
    assert list(kept) == list(loading.PEERS)


# ---- `benchmarks/metrics.py` still measures what it names: its parts run on small data


@pytest.mark.slow
def test_every_part_of_the_benchmark_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import metrics as benchmark

    monkeypatch.setattr(benchmark, "memory", lambda n, k, keys: "")
    monkeypatch.setattr(benchmark, "RESAMPLES", 5)
    # Before every turn: looking through what all tests before have left takes a minute.
    monkeypatch.setattr(gc, "collect", lambda: 0)
    try:
        results = [
            *benchmark.multiclass("small", 300, 4, repeats=1),
            *benchmark.intervals(100, 3),
            benchmark.binary_ece(300, float),
            *benchmark.resampling(200),
            benchmark.classes(300, 5),
        ]
    finally:
        for name in ("metrics", "_harness"):
            sys.modules.pop(name, None)
    assert all("calviz" in result.seconds for result in results)
    assert len(results) == 12


# ---- Simulated models whose truth is known: p-values are uniform, intervals cover
#
# `benchmarks/coverage.py` is the longer study, and `docs/uncertainty.md` says what it found.


#: Representatives of the families; p-values of "brier" and after it are two-sided.
FLOORS = ("ece", "ks", "smece", "kde_ece", "classwise_ece", "brier", "mcs", "spiegelhalter_z")
RUNS = 120
#: Intervals of means and smooth functions of them, and of errors that cannot fall below 0.
LINEAR = ("mcs", "brier", "nll", "calibration_slope")
ERRORS = ("ece", "ece_l2", "ece_debiased", "mce", "ks")


def curve(n, rng, intercept, slope):
    """One column of a beta distribution, and hits by a logistic curve over it."""
    score = rng.beta(2, 2, size=n)
    hits = rng.random(n) < expit(intercept + slope * logit(score))
    return calviz.Predictions(probs=score, labels=hits)


def slack(share, runs, errors=3.5):
    """So many standard errors of a share."""
    return errors * np.sqrt(share * (1 - share) / runs)


@pytest.fixture(scope="module")
def p_values():
    """p-values of calibrated models of three classes, shape per key (RUNS,)."""
    values = {key: [] for key in FLOORS}
    for seed in range(RUNS):
        rng = np.random.default_rng([7, seed])
        probs = rng.dirichlet([2.0, 1.0, 0.5], size=150)
        labels = draw_labels(probs, rng)
        data = calviz.Predictions(probs=probs, labels=labels)
        for r in calviz.evaluate(data, FLOORS, noise_floor=True, resamples=99, seed=seed):
            values[r.key].append(r.noise_floor.p_value)
    return {key: np.array(p) for key, p in values.items()}


@pytest.mark.slow
@pytest.mark.parametrize("key", FLOORS)
def test_p_values_of_calibrated_models_are_uniform(p_values, key):
    # They are multiples of 1/100; the test allows for that.
    assert stats.kstest(p_values[key] - 0.005, "uniform").pvalue > 1e-3
    assert np.mean(p_values[key] <= 0.05) < 0.05 + slack(0.05, RUNS)


@pytest.mark.slow
def test_p_values_are_uniform_where_resamples_group_neighbouring_steps():
    runs, values = 100, []
    for seed in range(runs):
        data = curve(3_000, np.random.default_rng([8, seed]), 0, 1)
        (r,) = calviz.evaluate(
            data, ["ks"], reduction="positive", noise_floor=True, resamples=49, seed=seed
        )
        values.append(r.noise_floor.p_value)
    assert stats.kstest(np.array(values) - 0.01, "uniform").pvalue > 1e-3


@pytest.mark.slow
def test_the_p_value_of_ks_compares_the_same_steps():
    # The value looks at 9,000 places and its resamples at 2,048, where a maximum is smaller: so must
    # be the value that is compared with them.
    sample = Sample(curve(9_000, np.random.default_rng(3), 0, 1), "positive")
    view = sample.view(steps)
    drawn = view.under_calibration(stream(0, "under_calibration"), 200)
    gap = np.concatenate([np.abs(part.cumulative_gap).max(axis=1) for part in drawn.parts()])
    base = view.merged()
    coarse = np.abs(np.cumsum(base.count * base.score - base.hits)).max() / 9_000
    (r,) = calviz.evaluate(
        sample.data, ["ks"], reduction="positive", noise_floor=True, resamples=200
    )
    assert base.score.size <= 2_048 < 9_000 == view.score.size
    assert coarse < r.value
    assert r.noise_floor.p_value == p_value(gap, coarse)


@pytest.fixture(scope="module")
def coverage():
    """Shares of intervals that hold the truth, with and without miscalibration, by key."""
    # The estimands are integrals over the beta distribution.
    score = (np.arange(200_000) + 0.5) / 200_000
    weight = stats.beta(2, 2).pdf(score) / score.size
    runs, shares = 100, {}
    for intercept, slope in ((0, 1), (0.2, 0.7)):
        truth = expit(intercept + slope * logit(score))
        gap = score - truth
        bins = np.minimum((15 * score).astype(int), 14)
        per_bin = np.bincount(bins, gap * weight) / np.bincount(bins, weight)
        known = {
            "mcs": gap @ weight,
            "brier": 2 * (gap**2 + truth * (1 - truth)) @ weight,
            "nll": -(truth * np.log(score) + (1 - truth) * np.log(1 - score)) @ weight,
            "calibration_slope": slope,
            "mce": np.abs(per_bin).max(),
            "ks": np.abs(np.cumsum(gap * weight)).max(),
            "ece": np.abs(gap) @ weight,
            **dict.fromkeys(("ece_l2", "ece_debiased"), gap**2 @ weight),
        }
        inside = {key: [] for key in known}
        for seed in range(runs):
            data = curve(400, np.random.default_rng([9, seed]), intercept, slope)
            for r in calviz.evaluate(
                data,
                list(known),
                reduction="positive",
                ci=True,
                noise_floor=False,
                resamples=100,
                seed=seed,
            ):
                low, high = r.interval
                assert low <= r.value <= high
                inside[r.key].append(low <= known[r.key] + 1e-12 and known[r.key] <= high)
        shares |= {(key, slope): np.mean(value) for key, value in inside.items()}
    return runs, shares


@pytest.mark.slow
@pytest.mark.parametrize("slope", [1, 0.7])
@pytest.mark.parametrize("key", LINEAR)
def test_intervals_cover_the_truth(coverage, key, slope):
    runs, shares = coverage
    assert METRICS[key].interval == "percentile"
    assert 0.93 - slack(0.93, runs) <= shares[key, slope] <= 0.97 + slack(0.97, runs)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [1, 0.7])
@pytest.mark.parametrize("key", ERRORS)
def test_intervals_of_biased_errors_cover_the_truth(coverage, key, slope):
    # Rather too wide than too narrow: the way of the quantiles between the two simulated populations is not known.
    runs, shares = coverage
    assert METRICS[key].interval != "percentile"
    assert shares[key, slope] >= 0.93 - slack(0.93, runs)


@pytest.mark.parametrize(
    ("said", "at_most", "at_least", "drawn"),
    [
        # One of the last two may still be said: 2 of 10 are too many from then on only.
        ("0000000000", 0.1, 0, 9),
        ("0100000000", 0.1, 0, 10),
        ("0100000001", 0.1, 0, None),
        ("1111111111", 1, 0.8, 8),
        ("1110101111", 1, 0.8, 10),
        ("1110100111", 1, 0.8, None),
        # Of files without the sentence, the others count.
        ("1-------0-", 0.5, 0, 10),
        ("----------", 0.5, 0, None),
    ],
)
def test_a_simulation_ends_where_its_answer_is_known(said, at_most, at_least, drawn):
    files = iter(said)
    one = Simulation("c", "m", "a case", lambda _: {"0": False, "1": True}.get(next(files)))
    assert one.keeps_to(10, at_most=at_most, at_least=at_least) is (drawn is not None)
    assert len(list(files)) == 10 - (drawn or 10)
    values = [int(letter) for letter in said if letter != "-"]
    inside = values and at_least <= np.mean(values) <= at_most
    assert bool(inside) is (drawn is not None)


# ---- What `benchmarks/arena.py` writes into docs/arena.md


def results(sets):
    """ "a" is first in the first two thirds of the data sets, "b" in the others; "none" is always last."""
    rows = []
    for i in range(sets):
        first, second = ("a", "b") if i < 2 * sets // 3 else ("b", "a")
        scores = {first: 0.1, second: 0.2, "none": 0.3}
        played = [MethodScore(m, {"brier": v, "nll": v}, 1.0) for m, v in scores.items()]
        rows.append((Experiment("files", f"set {i:02}", "m", 100 + i, 100, 2), played))
    return ResultTable.of(rows, baseline="none")


def test_marked_text_is_replaced_and_the_rest_stays(benchmarks, tmp_path):
    write_between = benchmarks("_harness").write_between
    file = tmp_path / "page.md"
    file.write_text("before\n<!-- one -->\nold\n<!-- end of one -->\nafter\n")
    for _ in range(2):
        write_between("one", "new", file)
    assert file.read_text() == "before\n<!-- one -->\n\nnew\n\n<!-- end of one -->\nafter\n"
    with pytest.raises(ValueError, match="no place for 'two'"):
        write_between("two", "new", file)


def test_the_document_has_one_place_for_each_table():
    text = (ROOT / "docs" / "arena.md").read_text(encoding="utf-8")
    begun = re.findall(r"<!-- ((?!end of ).+?) -->", text)
    assert begun
    assert begun == re.findall(r"<!-- end of (.+?) -->", text)
    assert len(set(begun)) == len(begun)


def test_lead_by_hand(benchmarks):
    lead = benchmarks("_arena_tables").lead
    # Of two others, "a" beats two in 8 of 12 sets and one in 4: 10/12. "b": 8/12. They differ by 1/6.
    other, text = lead(results(12), "a", "brier")
    assert other == "b"
    assert text.startswith("+0.167 (")


def test_halves_are_every_other_data_set(benchmarks):
    halves = benchmarks("_arena_tables").halves
    values = {title: [e.dataset for e in part.experiments] for title, part in halves(results(5))}
    assert values == {"odd": ["set 00", "set 02", "set 04"], "even": ["set 01", "set 03"]}


def test_harm_by_hand(benchmarks):
    harm = benchmarks("_arena_tables").harm
    *_, line = harm(results(12), ["b"]).splitlines()
    # Never worse; better by 0.1 in 8 and by 0.2 in 4 experiments: the median gain is 10 points, the largest 20.
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "`b`",
        "0",
        "",
        "",
        "12",
        "10.00",
        "20.00",
    ]
