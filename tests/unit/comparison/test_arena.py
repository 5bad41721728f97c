"""Arenas: experiments and files."""

import json
import math
import signal
import subprocess
import sys

import numpy as np
import pytest

import calviz
from calviz.comparison import arena_sources as hdf5
from calviz.comparison.arena_experiments import Rules, _interrupts_held_back, play_all
from calviz.comparison.arena_results import Experiment, MethodScore, ResultTable
from calviz.comparison.arena_sources import ArenaState, Playable, find, results_in
from calviz.comparison.fitting import Division
from calviz.comparison.leaderboards import judge
from calviz.core.blocks import Stopped
from calviz.core.errors import InputError, OptionError
from calviz.data.format import Source
from calviz.report.arena_report import arena_record
from calviz.report.json_results import to_json
from tests.inputs.simulated import draw_labels, softmax

# ---- Carrying out experiments: the same numbers as by hand, resumed, stopped, on several cores


RULES = Rules(methods=("temperature", "isotonic"))


def write(path, seed=0, n=120, k=3, *, splits=("val", "test")):
    """Predictions that are too sharp, in two splits."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for split in splits:
        logits = rng.normal(0, 1, (n, k))
        truth = softmax(logits)
        labels = draw_labels(truth, rng)
        sharp = truth**2 / (truth**2).sum(1, keepdims=True)
        arrays |= {f"{split}_probs": sharp, f"{split}_labels": labels}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return path


@pytest.fixture
def folder(tmp_path):
    for at, place in enumerate(("one/a", "one/b", "two/a")):
        write(tmp_path / "data" / f"{place}.npz", seed=at, k=2 if place == "two/a" else 3)
    return tmp_path / "data"


def test_data_sets_are_folders_and_models_are_files(folder):
    table, problems = play_all(find([folder]).playable, RULES, jobs=1)
    assert problems == ()
    assert [(e.dataset, e.model, e.classes) for e in table.experiments] == [
        ("one", "a", 3),
        ("one", "b", 3),
        ("two", "a", 2),
    ]
    assert {(e.benchmark, e.rows, e.evaluation_rows) for e in table.experiments} == {
        ("files", 120, 120)
    }
    assert table.methods == ("identity", "temperature", "isotonic")
    assert table.baseline == "identity"


def test_predictions_and_results_are_ranked_one_after_the_other(folder, tmp_path):
    state, other = tmp_path / "state.jsonl", tmp_path / "other.jsonl"
    sources = find([folder]).playable
    play_all(sources[:1], RULES, state=ArenaState.open(other), jobs=1)
    with pytest.raises(
        InputError, match=r"both predictions and results \('other\.jsonl'\).*then give FILE"
    ):
        find([folder, other])
    play_all(sources[1:], RULES, state=ArenaState.open(state), jobs=1)
    assert '"judged": 120' in state.read_text()  # the key of files, which stays
    assert len(ResultTable.of(find([state, other]).results)) == 3


def test_files_that_are_named_are_a_data_set_each_unless_their_folders_differ(folder):
    one_folder = find(sorted((folder / "one").glob("*.npz"))).playable
    assert [(p.dataset, p.model) for p in one_folder] == [("a", "a"), ("b", "b")]
    several = find(sorted(folder.glob("*/*.npz"))).playable
    assert [p.dataset for p in several] == ["one", "one", "two"]


def test_scores_are_those_of_the_test_rows_by_hand(folder):
    table, _ = play_all(find([folder]).playable, RULES, jobs=1)
    file = np.load(folder / "one" / "a.npz")
    probs, labels = file["test_probs"], file["test_labels"]
    rows = np.arange(labels.size)
    brier = ((probs - np.eye(3)[labels]) ** 2).sum(1).mean()
    assert table.scores["brier"][0, 0] == pytest.approx(brier, rel=1e-6)
    assert table.scores["nll"][0, 0] == pytest.approx(-np.log(probs[rows, labels]).mean(), rel=1e-6)
    # And those of a map that was fitted on the other rows.
    fitted = calviz.compare(
        calviz.load(folder / "one" / "a.npz"), ["temperature"], metrics=["brier", "nll"], ci=False
    )["temperature"]
    for key in ("brier", "nll"):
        assert table.scores[key][0, 1] == fitted.metrics[key].value
    assert table.seconds[0, 0] == 0
    assert table.seconds[0, 1] > 0
    # Probabilities that are too sharp by a factor of two: temperature scaling mends it.
    assert (table.scores["nll"][:, 1] < table.scores["nll"][:, 0]).all()


def test_what_fails_has_a_reason_and_beats_nobody(tmp_path):
    file = tmp_path / "confidence.csv"
    rows = "\n".join(f"{c},{int(c > 0.5)},{s}" for s in "vt" for c in np.linspace(0.2, 0.9, 30))
    file.write_text(
        "confidence,correct,split\n" + rows.replace(",v", ",val").replace(",t", ",test")
    )
    table, _ = play_all(find([file]).playable, Rules(methods=("temperature", "vector")), jobs=1)
    at = table.methods.index("vector")
    assert "confidence-only" in table.reasons[0, "vector"]
    assert math.isnan(table.scores["brier"][0, at])
    assert table.entered.all()


def test_a_file_without_splits_is_named_and_the_others_still_play(folder):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], 60)
    np.savez(folder / "plain.npz", probs=probs, labels=rng.integers(0, 2, 60))
    sources = find([folder]).playable
    table, problems = play_all(sources, RULES, jobs=1)
    assert len(table) == 3
    assert problems == (
        "'plain' has no splits; name two (--fit-split, --eval-split), or let a share of the rows fit the maps (--fit-fraction).",
    )
    half, problems = play_all(
        sources, Rules(methods=("temperature",), division=Division(fit_fraction=0.5)), jobs=1
    )
    assert (len(half), problems) == (4, ())
    with pytest.raises(InputError, match="'plain' has no splits"):
        play_all(find([folder / "plain.npz"]).playable, RULES, jobs=1)


def test_an_unknown_method_is_an_error_before_anything_is_done(folder):
    with pytest.raises(OptionError, match="nonsense"):
        play_all(find([folder]).playable, Rules(methods=("nonsense",)))


class TestState:
    def test_what_is_done_is_not_done_again(self, folder, tmp_path, monkeypatch):
        path = tmp_path / "state.jsonl"
        sources = find([folder]).playable
        first, _ = play_all(sources[:2], RULES, state=ArenaState.open(path), jobs=1)
        fitted = []
        from calviz.comparison import arena_experiments as run_experiments

        inside = run_experiments.fit_and_apply
        monkeypatch.setattr(
            run_experiments, "fit_and_apply", lambda *a: fitted.append(a[1].key) or inside(*a)
        )
        more = Rules(methods=("temperature", "isotonic", "beta"))
        table, _ = play_all(sources, more, state=ArenaState.open(path), jobs=1)
        assert sorted(fitted) == sorted(
            ["beta", "beta", "identity", "temperature", "isotonic", "beta"]
        )
        np.testing.assert_array_equal(table.scores["nll"][:2, :3], first.scores["nll"])
        np.testing.assert_array_equal(table.seconds[:2, :3], first.seconds)
        fitted.clear()
        play_all(sources, more, state=ArenaState.open(path), jobs=1)
        assert fitted == []

    def test_other_rows_or_parameters_are_another_result(self, folder, tmp_path):
        path = tmp_path / "state.jsonl"
        sources = find([folder / "one" / "a.npz"]).playable
        play_all(sources, RULES, state=ArenaState.open(path), jobs=1)
        held = len(ArenaState.open(path).done)
        options = {"temperature": {"floor": 0.01}}
        play_all(
            sources,
            Rules(methods=("temperature",), options=options),
            state=ArenaState.open(path),
            jobs=1,
        )
        assert len(ArenaState.open(path).done) == held + 1
        division = Division(fit_fraction=0.5)
        play_all(
            sources,
            Rules(methods=("temperature",), division=division),
            state=ArenaState.open(path),
            jobs=1,
        )
        assert len(ArenaState.open(path).done) == held + 3

    def test_a_line_that_was_cut_off_is_done_again(self, folder, tmp_path):
        path = tmp_path / "state.jsonl"
        sources = find([folder]).playable
        whole, _ = play_all(sources, RULES, state=ArenaState.open(path), jobs=1)
        text = path.read_bytes()
        path.write_bytes(text[:-40])
        assert len(ArenaState.open(path).done) == 6
        again, _ = play_all(sources, RULES, state=ArenaState.open(path), jobs=1)
        np.testing.assert_array_equal(again.scores["brier"], whole.scores["brier"])
        assert len(path.read_text().splitlines()) == 4

    def test_it_can_be_read_as_results(self, folder, tmp_path):
        path = tmp_path / "state.jsonl"
        table, _ = play_all(find([folder]).playable, RULES, state=ArenaState.open(path), jobs=1)
        results = find([path])
        again = ResultTable.of(results.results, baseline=results.baseline)
        assert again.experiments == table.experiments
        np.testing.assert_array_equal(again.scores["nll"], table.scores["nll"])

    @pytest.mark.parametrize(
        "text", ["label,p\n0,0.5\n", "{}\n", '{"calviz_arena": 1}\nnonsense\n{}\n']
    )
    def test_another_file_is_refused_and_unchanged(self, tmp_path, text):
        path = tmp_path / "mine.csv"
        path.write_text(text)
        with pytest.raises(InputError, match=r"mine\.csv"):
            ArenaState.open(path)
        assert path.read_text() == text

    @pytest.mark.parametrize("path", ["", "-", ".", "no/such/folder/state.jsonl"])
    def test_a_place_that_is_none(self, path):
        with pytest.raises(OptionError, match="--state"):
            ArenaState.open(path)


class TestStopping:
    def test_what_was_finished_is_given(self, folder):
        done = []
        table, _ = play_all(
            find([folder]).playable,
            RULES,
            jobs=1,
            progress=lambda *a: done.append(a[0]),
            stop=lambda: len(done) >= 2,
        )
        assert len(table) == 2

    def test_before_anything_was_finished_there_is_nothing(self, folder):
        with pytest.raises(Stopped):
            play_all(find([folder]).playable, RULES, jobs=1, stop=lambda: True)

    def test_threads_stop_too(self, folder):
        sources = [
            Playable(p.dataset, p.model, calviz.load(p.path)) for p in find([folder]).playable
        ]
        with pytest.raises(Stopped):
            play_all(sources, RULES, jobs=2, stop=lambda: True)


def test_threads_give_the_same_table(folder):
    sources = find([folder]).playable
    loaded = [Playable(p.dataset, p.model, calviz.load(p.path)) for p in sources]
    one, _ = play_all(sources, RULES, jobs=1)
    many, _ = play_all(loaded, RULES, jobs=3)
    assert many.experiments == one.experiments
    np.testing.assert_array_equal(many.scores["nll"], one.scores["nll"])


@pytest.mark.slow
def test_processes_give_the_same_table(folder):
    sources = find([folder]).playable
    seen = []
    one, _ = play_all(sources, RULES, jobs=1)
    many, _ = play_all(sources, RULES, jobs=2, progress=lambda *a: seen.append(a[1:3]))
    assert many.experiments == one.experiments
    np.testing.assert_array_equal(many.scores["nll"], one.scores["nll"])
    assert seen == [(1, 3), (2, 3), (3, 3)]


class TestJson:
    def test_it_opens_again(self, folder, tmp_path):
        table, _ = play_all(find([folder]).playable, RULES, jobs=1)
        text = to_json(arena_record(judge(table, resamples=20)))
        record = json.loads(text)
        assert record["experiments"] == 3
        entry = record["methods"]["temperature"]
        assert set(entry["winrate"]) == set(entry["interval"]) == {"brier", "nll"}
        assert 0 <= entry["worse_than_none"] <= 1
        assert entry["seconds"] > 0
        results, baseline = results_in(Source(text.encode(), "arena.json"))
        again = ResultTable.of(results, baseline=baseline)
        assert again.experiments == table.experiments
        np.testing.assert_array_equal(again.scores["brier"], table.scores["brier"])

    def test_infinite_and_missing_scores_survive(self):
        table = ResultTable.of(
            [
                (
                    Experiment("b", "d", "m", 9, 9, 2),
                    [
                        MethodScore("identity", {"brier": 0.1, "nll": math.inf}),
                        MethodScore("x", {}, reason="it failed."),
                    ],
                )
            ]
        )
        text = to_json(arena_record(judge(table)))
        results, _ = results_in(Source(text.encode(), "arena.json"))
        again = ResultTable.of(results)
        assert again.scores["nll"][0, 0] == math.inf
        assert math.isnan(again.scores["brier"][0, 1])
        assert again.reasons == {(0, "x"): "it failed."}

    @pytest.mark.parametrize(
        "text",
        [
            '{"format": "arena"',
            '{"format": "arena", "arena": []}',
            '{"format": "arena", "arena": {"experiments": [{"experiment": 3}], "baseline": null}}',
            '{"format": "arena", "arena": {"experiments": {}, "baseline": 4}}',
            '{"calviz_arena": 1}\n{"experiment": {"benchmark": 1}, "results": []}\n',
            '{"calviz_arena": 1}\n[[[[\n',
            '{"calviz_arena": 1}\n' + "[" * 100_000 + "\n",
        ],
    )
    def test_damaged_ones_are_one_sentence(self, text):
        with pytest.raises(InputError, match=r"kept\.json") as error:
            results_in(Source(text.encode(), "kept.json"))
        assert "\n" not in str(error.value)


def test_predictions_and_results_do_not_mix(folder, tmp_path):
    path = tmp_path / "state.jsonl"
    play_all(find([folder]).playable, RULES, state=ArenaState.open(path), jobs=1)
    with pytest.raises(InputError, match="predictions and results"):
        find([folder, path])


def test_a_folder_without_files(tmp_path):
    with pytest.raises(InputError, match="no files in this folder"):
        find([tmp_path])


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows cannot block a signal")
def test_worker_processes_start_with_ctrl_c_blocked():
    blocked = [
        sys.executable,
        "-c",
        "import signal as s; print(s.SIGINT in s.pthread_sigmask(s.SIG_BLOCK, []))",
    ]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with _interrupts_held_back():
        assert subprocess.check_output(blocked, text=True).strip() == "True"
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    assert subprocess.check_output(blocked, text=True).strip() == str(signal.SIGINT in before)


def test_a_state_without_results_is_no_file(tmp_path):
    assert ArenaState.open(tmp_path / "state.jsonl").done == {}
    assert not list(tmp_path.iterdir())


# ---- CalArena's HDF5 files: written here in that layout, and damaged or hostile ones


NAMES = ("probas_cal", "labels_cal", "probas_test", "labels_test")


def test_without_h5py_it_says_what_to_install(tmp_path, monkeypatch):
    file = tmp_path / "a.h5"
    file.write_bytes(hdf5.SIGNATURE + bytes(100))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"a\.h5: HDF5 files need h5py.*pip install"):
        find([file])


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py", reason="h5py is not installed")


def arrays(seed, k, n=80, dtype=np.float32):
    rng = np.random.default_rng(seed)
    values = {}
    for end in ("cal", "test"):
        probs = rng.dirichlet(np.ones(k), n).astype(dtype)
        values[f"probas_{end}"] = probs[:, 1] if k == 2 else probs
        values[f"labels_{end}"] = rng.integers(0, k, n)
    return values


@pytest.fixture
def written(h5py, tmp_path):
    """The layout of CalArena: two data sets with two models each."""

    def write(name="tabrepo.h5", k=2, change=lambda group: None):
        path = tmp_path / name
        with h5py.File(path, "w") as file:
            file.attrs["source"] = "TabRepo"
            file.attrs["problem_type"] = "binary" if k == 2 else "multiclass"
            for seed, place in enumerate(
                ("adult/CatBoost", "adult/MLP", "wine/CatBoost", "wine/MLP")
            ):
                group = file.create_group(place)
                for key, value in arrays(seed, k).items():
                    group[key] = value
            change(file)
        return path

    return write


@pytest.mark.parametrize(("k", "benchmark"), [(2, "tabrepo-binary"), (4, "tabrepo-multiclass")])
def test_every_member_is_an_experiment(written, k, benchmark):
    results = find([written(k=k)])
    table, problems = play_all(results.playable, Rules(methods=("temperature",)), jobs=1)
    assert problems == ()
    assert [
        (e.benchmark, e.dataset, e.model, e.rows, e.evaluation_rows, e.classes)
        for e in table.experiments
    ] == [
        (benchmark, dataset, model, 80, 80, k)
        for dataset in ("adult", "wine")
        for model in ("CatBoost", "MLP")
    ]
    expected = arrays(0, k)
    probs, labels = expected["probas_test"].astype(float), expected["labels_test"]
    full = np.stack([1 - probs, probs], axis=1) if k == 2 else probs
    brier = ((full - np.eye(k)[labels]) ** 2).sum(1).mean()
    assert table.scores["brier"][0, 0] == pytest.approx(brier, rel=1e-6)
    assert len(judge(table).overall) == 2


def test_the_calibration_rows_come_from_cal(written):
    data = hdf5.read_member(written(), "wine", "MLP")
    assert data.split_names == ("calibration", "test")
    expected = arrays(3, 2)
    np.testing.assert_array_equal(data.labels[:80], expected["labels_cal"])
    np.testing.assert_array_equal(data.probs[:80, 1], expected["probas_cal"])


def replaced(name, value):
    def change(file):
        del file["adult/MLP"][name]
        if value is not None:
            file["adult/MLP"][name] = value

    return change


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("probas_cal", None, "there is no array 'probas_cal'"),
        ("labels_test", np.zeros(3, int), "do not go together"),
        ("labels_cal", np.full(80, 0.5), "must be whole numbers"),
        ("labels_cal", np.full(80, 7), "label"),
        ("probas_cal", np.full(80, 1.5), "row 1"),
        ("probas_cal", np.full((80, 3), 1 / 3), "different classes"),
        ("probas_test", np.array([b"a"] * 80), "is not an array of numbers"),
        ("probas_test", 0.5, "do not go together"),
    ],
)
def test_a_bad_member_is_one_sentence_and_the_others_still_play(written, name, value, words):
    results = find([written(change=replaced(name, value))])
    table, (problem,) = play_all(results.playable, Rules(methods=("temperature",)), jobs=1)
    assert len(table) == 3
    assert words in problem
    assert "tabrepo.h5" in problem
    assert "\n" not in problem


def test_links_and_arrays_elsewhere_are_not_followed(written, h5py, tmp_path):
    other = written("other.h5")

    def linked(file):
        del file["wine/MLP"]
        file["wine/MLP"] = h5py.ExternalLink(other.name, "/adult/MLP")
        del file["adult/MLP"]["probas_cal"]
        file["adult/MLP"].create_dataset(
            "probas_cal", (80,), np.float32, external=[(str(tmp_path / "secret"), 0, 320)]
        )

    results = find([written(change=linked)])
    _, problems = play_all(results.playable, Rules(methods=("temperature",)), jobs=1)
    assert sorted("is a link" in p or "is stored in another file" in p for p in problems) == [
        True,
        True,
    ]


def test_a_huge_array_is_refused_before_it_is_read(written):
    def huge(file):
        del file["adult/MLP"]["probas_cal"]
        file["adult/MLP"].create_dataset("probas_cal", (10**12,), np.float32, chunks=(1_000,))

    results = find([written(change=huge)])
    _, (problem,) = play_all(results.playable, Rules(methods=("temperature",)), jobs=1)
    assert "above the limit" in problem


def test_another_layout(written, h5py):
    with pytest.raises(InputError, match="'flat' is not a folder of models"):
        find([written(change=lambda file: file.__setitem__("flat", np.zeros(3)))])


def test_damaged_files_are_one_sentence(written, tmp_path):
    whole = written().read_bytes()
    rng = np.random.default_rng(0)
    broken = tmp_path / "broken.h5"
    messages = []
    for at in range(60):
        content = bytearray(whole[: len(whole) // 2] if at == 0 else whole)
        for place in rng.integers(0, 3_000, 8):
            content[place] = rng.integers(256)
        broken.write_bytes(content)
        try:
            for member in find([broken]).playable:
                member.models()
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 10
    assert all(text.startswith("broken.h5") and "\n" not in text for text in messages)
