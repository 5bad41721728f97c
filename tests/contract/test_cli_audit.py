"""`calviz audit`: the JSON contract, thresholds, several files and models."""

import html
import json
import math
import re
from pathlib import Path
from textwrap import wrap

import calibration
import numpy as np
import pytest
from sklearn.metrics import log_loss

import calviz
from calviz.cli.audit import Threshold
from calviz.core.entry_specs import METRICS, Interval, MetricResult
from calviz.core.errors import NotAvailable, OptionError
from calviz.verdicts.evaluation import Evaluation
from tests.inputs.borderline import FILES as BORDERLINE
from tests.inputs.command_line import run, run_successfully
from tests.inputs.simulated import draw_labels

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
KEYS = set(
    "calviz file name rows classes kind split reduction metrics classes_table findings".split()
)
CONTRACT_METRICS = set(
    """
    accuracy error nll brier brier_miscalibration brier_discrimination brier_uncertainty
    ece ece_l2 rmsce ece_equal_mass ece_sturges ece_debiased ece_sweep mce classwise_ece tace
    ks ks_signed ks_classwise kde_ece kde_ece_l2 smece skce
    mcs wsece msece cece wsmcs wsmcs_over wsmcs_under over_mcs under_mcs over_share under_share
    aurc e_aurc accuracy_at_90_coverage auroc_failure aupr_error fpr95
    spiegelhalter_z hosmer_lemeshow calibration_slope calibration_intercept ici e50 e90
    """.split()
)

#: Keys that came later: more may come, none may go.
ADDED_METRICS = set(
    """
    accuracy_at_coverage coverage_at_risk kuiper atb tcal ce_l1_unbiased
    nll_miscalibration nll_discrimination nll_uncertainty nll_calibration nll_refinement brier_calibration brier_refinement
    nll_calibration_all nll_refinement_all brier_calibration_all brier_refinement_all
    auroc somers_d auprc net_benefit oe_ratio calibration_in_the_large
    unreliability discrimination_index quality_index nagelkerke_r2 emax eci brier_skill
    """.split()
)


def strict(text: str):
    """JSON as the standard has it: without NaN and Infinity."""

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def audit(*arguments):
    return strict(run_successfully("audit", *arguments, "--json", "-"))


@pytest.mark.parametrize("kind", BORDERLINE)
def test_borderline_files_have_a_value_or_a_reason(kind, tmp_path):
    path = tmp_path / "borderline.csv"
    path.write_bytes(BORDERLINE[kind])
    result = run("audit", path, "--ci", "--resamples", 40, "--json", "-")
    assert (result.exit_code, result.stderr) == (0, "")
    for value in strict(result.stdout)["metrics"].values():
        assert (value["value"] is None) == bool(value.get("reason"))
        if value["value"] is None:
            assert value.get("interval") is None
            assert value.get("noise_floor") is None


def test_two_classes_in_one_column_or_two(tmp_path):
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    files[0].write_bytes(BORDERLINE["two classes in one column"])
    files[1].write_bytes(BORDERLINE["two classes in two columns"])
    one, two = (audit(path)["metrics"] for path in files)
    for key, value in one.items():
        assert value["value"] == pytest.approx(two[key]["value"], abs=1e-12), key


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    probs = rng.dirichlet([0.6, 0.6, 0.6], size=200).round(4)
    probs[:, 2] = 1 - probs[:, 0] - probs[:, 1]
    probs = np.abs(probs)
    return probs, draw_labels(probs / probs.sum(axis=1, keepdims=True), rng)


@pytest.fixture(scope="module")
def file(table, tmp_path_factory) -> Path:
    probs, labels = table
    path = tmp_path_factory.mktemp("files") / "three.csv"
    rows = [
        f"{label},{','.join(f'{p:.17g}' for p in row)},{'test' if i % 2 else 'calibration'}"
        for i, (row, label) in enumerate(zip(probs, labels, strict=True))
    ]
    path.write_text("\n".join(["label,p_a,p_b,p_c,split", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def confidence_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("files") / "top.csv"
    path.write_text("confidence,correct\n0.9,1\n0.8,1\n0.7,0\n0.6,1\n")
    return path


@pytest.fixture(scope="module")
def off(tmp_path_factory) -> Path:
    """Two classes, and probabilities that are too high."""
    rng = np.random.default_rng(3)
    score = rng.uniform(0.05, 0.95, 400)
    label = rng.uniform(size=400) < score**1.6
    path = tmp_path_factory.mktemp("files") / "off.csv"
    rows = [f"{int(y)},{p:.4f}" for y, p in zip(label, score, strict=True)]
    path.write_text("\n".join(["label,p", *rows]) + "\n")
    return path


class TestRecord:
    def test_the_keys(self, file):
        record = audit(file)
        assert set(record) >= KEYS
        assert record["calviz"] == calviz.__version__
        assert record["file"] == str(file)
        assert record["name"] == "three"
        assert (record["rows"], record["classes"]) == (200, 3)
        assert record["kind"] == "probabilities"
        assert record["split"] is None
        assert record["reduction"] == "top-label"

    def test_the_ece_of_other_libraries_on_request(self, file, table):
        assert "conventions" not in audit(file)
        values = {c["key"]: c for c in audit(file, "--conventions")["conventions"]}
        peer = calibration.get_ece(table[0], table[1], num_bins=15)
        assert values["uncertainty_calibration"]["value"] == pytest.approx(peer, abs=1e-9)
        for entry in values.values():
            assert set(entry) >= {"library", "version", "call", "difference", "noise_mean", "rule"}
            assert entry["why"].endswith(".")
        text = run("audit", file, "--conventions").stdout
        assert "netcal" in text
        assert values["netcal"]["why"][:40] in text

    def test_every_metric_there_is_and_every_one_of_the_contract(self, file):
        metrics = audit(file)["metrics"]
        assert tuple(metrics) == METRICS.keys()
        assert set(metrics) >= CONTRACT_METRICS | ADDED_METRICS
        for entry in metrics.values():
            assert set(entry) >= {"value", "interval", "noise_floor", "params"}
            assert isinstance(entry["value"], float) or entry["reason"].endswith(".")
            assert entry["interval"] is None
            assert entry["noise_floor"] is None

    def test_the_values_are_fractions_and_right(self, file, table):
        probs, labels = table
        metrics = audit(file)["metrics"]
        confidence, hit = probs.max(axis=1), probs.argmax(axis=1) == labels
        cell = np.clip(np.ceil(confidence * 15) - 1, 0, 14).astype(int)
        ece = sum(
            abs(confidence[cell == m].sum() - hit[cell == m].sum()) / len(hit) for m in range(15)
        )
        assert metrics["accuracy"]["value"] == pytest.approx(hit.mean())
        assert metrics["ece"]["value"] == pytest.approx(ece)
        assert metrics["mcs"]["value"] == pytest.approx(confidence.mean() - hit.mean())
        assert metrics["nll"]["value"] == pytest.approx(log_loss(labels, probs))
        one_hot = np.eye(3)[labels]
        assert metrics["brier"]["value"] == pytest.approx(((probs - one_hot) ** 2).sum(1).mean())
        assert metrics["ece"]["params"]["bins"] == 15

    def test_intervals_and_noise_floors(self, file):
        metrics = audit(file, "--ci", "--resamples", 100)["metrics"]
        low, high = metrics["ece"]["interval"]
        assert 0 <= low <= metrics["ece"]["value"] <= high < 1
        assert metrics["ece"]["interval_method"] == "inverted"
        assert metrics["mcs"]["interval_method"] == "percentile"
        floor = metrics["ece"]["noise_floor"]
        assert set(floor) == {"mean", "q95", "p_value"}
        assert 0 < floor["mean"] < floor["q95"]
        assert 0 < floor["p_value"] <= 1

    @pytest.mark.slow
    def test_the_same_seed_gives_the_same_bytes(self, file):
        runs = [
            run("audit", file, "--ci", "--resamples", 50, "--seed", s, "--json", "-")
            for s in (1, 1, 2)
        ]
        assert runs[0].stdout == runs[1].stdout
        assert runs[0].stdout != runs[2].stdout
        assert strict(runs[2].stdout)["seed"] == 2

    def test_split_reduction_and_bins_are_obeyed_and_recorded(self, file):
        record = audit(file, "--split", "test", "--reduction", "class:b", "--bins", 7)
        assert (record["split"], record["rows"]) == ("test", 100)
        assert record["reduction"] == "class:b"
        assert record["metrics"]["ece"]["params"]["bins"] == 7
        data = calviz.load(file)
        expected = calviz.evaluate(data, ["ece"], split="test", reduction="class:b", bins=7)
        assert record["metrics"]["ece"]["value"] == expected["ece"].value

    def test_the_class_table(self, file, table):
        probs, labels = table
        rows = audit(file)["classes_table"]
        assert [row["class"] for row in rows] == ["a", "b", "c"]
        for k, row in enumerate(rows):
            assert set(row) == {"class", "rows", "accuracy", "confidence", "ece", "mcs", "ks"}
            mine = labels == k
            hit = probs[mine].argmax(axis=1) == k
            confidence = probs[mine].max(axis=1)
            assert row["rows"] == mine.sum()
            assert row["accuracy"] == pytest.approx(hit.mean())
            assert row["confidence"] == pytest.approx(confidence.mean())
            assert row["mcs"] == pytest.approx(confidence.mean() - hit.mean())
            assert row["ece"] >= abs(row["mcs"]) - 1e-12
            assert row["ks"] >= abs(row["mcs"]) - 1e-12

    def test_a_class_without_rows_is_null(self, tmp_path):
        path = tmp_path / "none.csv"
        path.write_text("label,p_a,p_b,p_c\n0,0.9,0.05,0.05\n1,0.2,0.7,0.1\n")
        row = audit(path)["classes_table"][2]
        assert row["class"] == "c"
        assert row["rows"] == 0
        assert [row[key] for key in ("accuracy", "confidence", "ece", "mcs", "ks")] == [None] * 5

    def test_findings(self, tmp_path):
        path = tmp_path / "one.csv"
        path.write_text("label,p_a,p_b\n0,0.9,0.1\n")
        findings = audit(path)["findings"]
        assert findings
        for finding in findings:
            assert set(finding) == {"code", "severity", "message"}
            assert finding["severity"] in {"info", "warning", "error"}
            assert finding["message"].endswith(".")

    def test_what_was_recognised_and_the_digest_are_there(self, file):
        record = audit(file)
        assert "200 rows" in record["recognised"]
        assert len(record["digest"]) >= 32
        assert record["verdict"].endswith(".")

    def test_what_is_not_available_is_null_with_a_reason(self, confidence_file):
        record = audit(confidence_file, "--ci")
        assert record["kind"] == "confidence"
        for key in ("nll", "brier"):
            entry = record["metrics"][key]
            assert entry["value"] is None
            assert "confidence-only" in entry["reason"]
        assert record["metrics"]["accuracy"]["value"] == 0.75
        assert "reason" not in record["metrics"]["accuracy"]

    def test_one_row(self, tmp_path):
        path = tmp_path / "one.csv"
        path.write_text("label,p_a,p_b\n0,0.9,0.1\n")
        record = audit(path, "--ci")
        assert record["rows"] == 1
        assert all(entry["interval"] is None for entry in record["metrics"].values())


class TestSeveral:
    def test_one_file_is_an_object_and_several_are_a_list(self, file, confidence_file):
        assert isinstance(audit(file), dict)
        both = audit(file, confidence_file)
        assert [record["file"] for record in both] == [str(file), str(confidence_file)]
        assert [record["kind"] for record in both] == ["probabilities", "confidence"]

    @pytest.fixture
    def models(self, tmp_path) -> Path:
        path = tmp_path / "models.csv"
        path.write_text(
            "label,net:a,net:b,tree:a,tree:b\n0,0.9,0.1,0.6,0.4\n1,0.2,0.8,0.5,0.5\n1,0.6,0.4,0.3,0.7\n"
        )
        return path

    def test_several_models_are_a_list(self, models):
        both = audit(models)
        assert [record["name"] for record in both] == ["net", "tree"]
        assert [record["file"] for record in both] == [str(models)] * 2

    @pytest.fixture
    def long(self, tmp_path) -> Path:
        path = tmp_path / "long.csv"
        path.write_text(
            "id,model,label,p_a,p_b\n1,net,a,0.9,0.1\n2,net,b,0.2,0.8\n3,net,b,0.6,0.4\n"
            "3,tree,b,0.3,0.7\n1,tree,a,0.6,0.4\n2,tree,b,0.5,0.5\n"
        )
        return path

    def test_models_that_a_column_names_are_those_of_columns(self, models, long):
        wide, named = audit(models), audit(long)
        assert [record["name"] for record in named] == ["net", "tree"]
        for one, other in zip(wide, named, strict=True):
            assert one["metrics"]["nll"]["value"] == other["metrics"]["nll"]["value"]
        assert audit(long, "--model", "tree")["name"] == "tree"
        assert audit(long, "--model-column", "")["rows"] == 6
        assert audit(long, "--by", "model")["rows"] == 6
        out = run("audit", long)
        assert "3 rows" in out.stdout
        assert "one by --model, all rows together by --model-column ''" in out.stdout
        compared = run("compare-models", long)
        assert "3 rows matched by identifier." in compared.stdout
        refused = run("compare", long)
        assert refused.exit_code == 2
        assert (
            "choose one with --model: net, tree; all together: --model-column ''" in refused.stderr
        )

    def test_a_model_with_gaps_beside_others_is_judged_and_calibrated_as_alone(self, tmp_path):
        rng = np.random.default_rng(0)
        n, score = 300, rng.uniform(0.02, 0.98, 300).round(4)
        label = rng.random(n) < score**2
        held = {"net": np.arange(n) % 20 > 0, "tree": np.arange(n) % 25 > 0}
        lines = [
            (f"c{i},{s:.4f},{y:d}", name)
            for name, own in held.items()
            for i, s, y in zip(np.arange(n)[own], score[own], label[own], strict=True)
        ]
        lines = [lines[i] for i in rng.permutation(len(lines))]
        long, alone = tmp_path / "long.csv", tmp_path / "alone.csv"
        long.write_text("\n".join(["id,p,label,model", *(f"{t},{m}" for t, m in lines)]) + "\n")
        alone.write_text("\n".join(["id,p,label", *(t for t, m in lines if m == "net")]) + "\n")
        one, other = audit(long, "--model", "net", "--ci"), audit(alone, "--ci")
        assert one["rows"] == 285
        assert one["findings"][0]["code"] == "DATA016"
        for record in (one, other):
            del record["file"], record["digest"], record["recognised"], record["findings"]
            assert record.pop("name") in ("net", "alone")
        assert one == other
        # What is written has all of its rows, too.
        fit = ("--method", "platt", "--fit-fraction", "0.5", "--save-map", tmp_path / "map.json")
        written = {}
        for path, model in ((long, ("--model", "net")), (alone, ())):
            out = tmp_path / f"{path.stem}-calibrated.csv"
            run_successfully("recalibrate", path, *model, *fit, "--out", out)
            written[path] = [line.split(",")[:2] for line in out.read_text().splitlines()]
        assert written[long] == written[alone]
        assert len(written[long]) == 286
        # Only where models are compared, rows are left out, and counted.
        said = "9 rows of 'net', 12 rows of 'tree' left out: not every model has their identifiers."
        page = tmp_path / "page.html"
        run_successfully("audit", long, "--html", page, "--json", tmp_path / "both.json")
        both = json.loads((tmp_path / "both.json").read_text())
        assert {record["name"]: record["rows"] for record in both} == {"net": 285, "tree": 288}
        compared = run_successfully("compare-models", long, "--json", tmp_path / "compared.json")
        record = json.loads((tmp_path / "compared.json").read_text())
        assert (record["rows"], said in record["notes"]) == (276, True)
        assert said in " ".join(compared.split())
        assert said in html.unescape(page.read_text()).replace("\u2019", "'")

    def test_models_without_a_common_row_are_audited_and_not_compared(self, tmp_path):
        rows = [
            f"{i},{m},{i % 2},0.{3 + 4 * (i % 2)},{'all' if i < 4 else m}"
            for m in "ab"
            for i in range(20)
        ]
        path = tmp_path / "long.csv"
        kept = [r for r in rows if r.endswith("all") or (int(r.split(",")[0]) < 12) == (",a," in r)]
        path.write_text("\n".join(["id,model,label,p,part", *kept]) + "\n")
        how = (
            "--model-column",
            "model",
            "--split-column",
            "part",
            "--html",
            tmp_path / "page.html",
        )
        out = run("audit", path, *how)
        assert out.exit_code == 0, out.stderr

    def test_a_model_that_is_chosen_is_an_object(self, models):
        record = audit(models, "--model", "tree")
        assert record["name"] == "tree"
        assert record["metrics"]["mcs"]["value"] == pytest.approx((0.4 + 0.5 + 0.7) / 3 - 2 / 3)
        assert record["reduction"] == "positive"

    def test_a_model_that_is_named_twice_is_judged_once(self, models, tmp_path):
        page = tmp_path / "page.html"
        repeated = ("--model", "net", "--model", "net", "--fail-on", "ece>1", "--fail-on", "ece>1")
        out = run("audit", models, *repeated, "--html", page, "--json", tmp_path / "out.json")
        assert (out.exit_code, out.stderr) == (0, "")
        assert strict((tmp_path / "out.json").read_text())["name"] == "net"
        assert page.stat().st_size

    def test_the_top_label_of_two_classes_on_request(self, models):
        record = audit(models, "--model", "tree", "--reduction", "top-label")
        assert record["metrics"]["mcs"]["value"] == pytest.approx((0.6 + 0.5 + 0.7) / 3 - 2 / 3)
        assert record["reduction"] == "top-label"


class TestReadingOptions:
    def test_they_reach_the_reader(self, tmp_path):
        path = tmp_path / "odd.csv"
        path.write_text(
            "truth,x1,x2,part,site,row\n2,0.1,0.9,t,n,r1\n1,0.8,0.2,c,s,r2\n2,0.7,0.3,t,n,r3\n"
        )
        record = audit(
            path,
            *("--label", "truth"),
            *("--scores", "x*"),
            *("--kind", "probabilities"),
            *("--split-column", "part"),
            *("--group", "site"),
            *("--id", "row"),
            *("--class-names", 'no,"yes, really"'),
            *("--label-base", "1"),
            *("--split", "t"),
        )
        assert record["rows"] == 2
        assert [row["class"] for row in record["classes_table"]] == ["no", "yes, really"]
        assert [row["rows"] for row in record["classes_table"]] == [0, 2]
        assert record["metrics"]["accuracy"]["value"] == 0.5
        for word in ("truth", "part", "site", "row"):
            assert word in record["recognised"]


class TestText:
    def test_it_says_what_was_recognised_then_the_verdict_then_the_numbers(self, file):
        lines = run("audit", file, "--all").stdout.splitlines()
        assert lines[0].startswith(f"{file}: CSV")
        assert "200 rows" in lines[0]
        text = "\n".join(lines)
        assert audit(file)["verdict"] in text
        for metric in METRICS:
            assert f"\n{metric.label} " in text
        assert "interval" not in text.split("metric", 1)[1].splitlines()[0]

    def test_error_bars_have_their_columns(self, file):
        text = run("audit", file, "--ci", "--resamples", 50).stdout
        header = next(line for line in text.splitlines() if line.startswith("metric"))
        assert header.split() == "metric value 95 % interval if calibrated (95 %) p".split()

    def test_what_is_not_available_says_why(self, confidence_file):
        text = run("audit", confidence_file, "--all").stdout
        reason = ": not available for confidence-only data"
        [line] = [line for line in text.splitlines() if reason in line]
        labels = line.split(reason)[0].split("; ")
        assert {"NLL", "Brier score", "SKCE"} <= set(labels)
        assert "ECE" not in labels

    def test_by_default_it_fits_a_screen(self, off):
        """24 lines of 80 characters, with error bars too; what is left out is said."""
        for options in ((), ("--ci", "--resamples", 50)):
            text = run("audit", off, *options).stdout
            lines = [part for line in text.splitlines() for part in wrap(line, 80) or [""]]
            assert len(lines) <= 24, text
            assert audit(off)["verdict"] in text
            for label in ("Accuracy", "ECE (points)", "MCS (points)", "NLL", "Brier score"):
                assert f"\n{label} " in text
            assert "warning CAL001 " in text
            assert f"--all shows {len(METRICS)} metrics" in lines[-1]
        assert len(run("audit", off, "--all").stdout.splitlines()) > 80

    def test_in_brief_it_is_the_verdict_and_five_lines_at_most(self, off):
        text = run("audit", off, "--brief").stdout
        verdict, *lines = text.splitlines()
        assert verdict == audit(off)["verdict"]
        assert 1 <= len(lines) <= 5
        assert lines[0].startswith("  Accuracy ")
        assert re.search(r", ECE [\d.]+ points, MCS −?[\d.]+ points, NLL 0", lines[0])
        both = run("audit", off, off, "--brief").stdout
        assert both.count(f"{off}: {verdict}") == 2

    def test_only_the_metrics_that_are_asked_for(self, off):
        text = run("audit", off, "--metrics", "nll,ece").stdout
        table = text[text.index("metric ") :].split("\n\n")[0].splitlines()
        assert [line.split()[0] for line in table] == ["metric", "NLL", "ECE"]
        assert audit(off)["verdict"] in text
        whole, some = audit(off), audit(off, "--metrics", "nll,ece")
        assert some.pop("metrics") == {key: whole["metrics"][key] for key in ("nll", "ece")}
        del whole["metrics"]
        assert some == whole
        gated = audit(off, "--metrics", "nll", "--fail-on", "ece>1")["metrics"]
        assert list(gated) == ["nll", "ece"]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--metrics", "acuracy"], "there is no metric 'acuracy'; did you mean 'accuracy'?"),
            (["--metrics", "ece,,nll"], "empty name"),
            (["--brief", "--all"], "give one of --all, --brief and --metrics."),
            (["--metrics", "ece", "--all"], "give one of --all, --brief and --metrics."),
        ],
    )
    def test_what_contradicts_itself_is_refused_before_the_file_is_read(self, options, words):
        result = run("audit", "nowhere.csv", *options)
        assert (result.exit_code, result.stdout) == (2, "")
        assert words in result.stderr
        assert result.stderr.count("\n") == 1


class TestThreshold:
    @pytest.mark.parametrize(
        ("text", "sign", "limit"),
        [("ece>0.05", ">", 0.05), (" ece <= 1e-3 ", "<=", 1e-3), ("ece>=.5", ">=", 0.5)],
    )
    def test_the_written_form(self, text, sign, limit):
        assert Threshold.of(text) == Threshold("ece", sign, limit)

    @pytest.mark.parametrize(
        "text", ["", "ece", "ece>", ">0.1", "ece>>0.1", "ece>5%", "ece>inf", "ece>0.1 or nll>1"]
    )
    def test_anything_else_is_refused(self, text):
        with pytest.raises(OptionError, match="not understood"):
            Threshold.of(text)

    @staticmethod
    def result(value, interval=None, reason=None) -> Evaluation:
        metric = MetricResult("ece", value, interval=interval, reason=reason)
        return Evaluation("m", 9, 2, "probabilities", None, "top-label", {"ece": metric})

    @pytest.mark.parametrize(
        ("text", "value", "interval", "crossed"),
        [
            ("ece>0.05", 0.06, None, True),
            ("ece>0.05", 0.05, None, False),
            ("ece>=0.05", 0.05, None, True),
            ("ece<0.05", 0.04, None, True),
            ("ece>0.05", 0.06, (0.051, 0.07), True),
            ("ece>0.05", 0.06, (0.049, 0.07), False),
            ("ece<0.05", 0.04, (0.03, 0.049), True),
            ("ece<0.05", 0.04, (0.03, 0.051), False),
            # The bootstrap of an ECE leans upwards: its interval may lie above the value.
            ("ece>0.05", 0.04, (0.051, 0.07), False),
        ],
    )
    def test_when_it_is_crossed(self, text, value, interval, crossed):
        evaluation = self.result(value, Interval(*interval) if interval else None)
        assert (Threshold.of(text).crossed(evaluation) is not None) == crossed

    def test_what_cannot_be_judged_does_not_pass(self):
        with pytest.raises(NotAvailable, match=r"'ece>0\.05' cannot be judged: no such"):
            Threshold.of("ece>0.05").crossed(self.result(math.nan, reason="no such thing."))

    @pytest.mark.slow
    def test_the_exit_codes(self, file, confidence_file):
        value = audit(file)["metrics"]["ece"]["value"]
        assert run("audit", file, "--fail-on", f"ece>{value + 0.001}").exit_code == 0
        crossed = run("audit", file, "--fail-on", "accuracy<0", "--fail-on", f"ece>{value - 0.001}")
        assert crossed.exit_code == 1
        assert "ece is " in crossed.stderr
        assert "accuracy" not in crossed.stderr
        with_doubt = run(
            "audit", file, "--ci", "--fail-on", f"ece>{value - 0.001}", "--resamples", 100
        )
        assert with_doubt.exit_code == 0
        unjudged = run("audit", confidence_file, "--fail-on", "nll>1")
        assert unjudged.exit_code == 2
        assert "cannot be judged" in unjudged.stderr

    def test_one_file_of_several_is_enough(self, file, confidence_file):
        result = run("audit", confidence_file, file, "--fail-on", "accuracy<0.7")
        assert result.exit_code == 1
        assert str(file) in result.stderr
        assert str(confidence_file) not in result.stderr


# Metric: (peer's entry in the reference values, further arguments).
PEERS = [
    ("accuracy", "accuracy@sklearn", ()),
    ("nll", "nll@sklearn", ()),
    ("brier", "brier@sklearn", ()),
    ("ece", "ece_top1_ew15@uncertainty-calibration", ()),
    ("ece", "ece_top1_ew25@uncertainty-calibration", ("--bins", 25)),
    ("mce", "mce_top1_ew15@spline-calibration", ()),
    ("rmsce", "rmsce_top1_ew15@uncertainty-calibration", ()),
    ("mcs", "mcs_top1_ew15@miscalibration_TS", ()),
]
FILES = {
    "netcal_cifar10_wrn16_4": "netcal_cifar/wideresnet-16-4-cifar-10.npz",
    "netcal_cifar100_wrn16_4": "netcal_cifar/wideresnet-16-4-cifar-100.npz",
    "plambda_cifar10_vgg": "verified_calibration/cifar10_vgg.npz",
}


#: One file of each kind: one-hot outcomes, one probability, no header, confidence only, many classes.
KINDS = {
    "fivethirtyeight/world_cup_matches_men.csv": (176, 3, "probabilities"),
    "fivethirtyeight/nba_games.csv": (8_886, 2, "probabilities"),
    "adult/y_and_p.csv": (16_281, 2, "probabilities"),
    "imagenet_top1/resnext101_32x8d.csv": (50_000, 1_000, "confidence"),
    "netcal_cifar/lenet-5-cifar-100.npz": (10_000, 100, "probabilities"),
}


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not beside the checkout")
@pytest.mark.parametrize("name", KINDS)
def test_real_files_give_every_metric_or_its_reason(name):
    record = audit(SHARED / "data" / name)
    assert (record["rows"], record["classes"], record["kind"]) == KINDS[name]
    assert record["metrics"].keys() >= CONTRACT_METRICS
    missing = {key for key, value in record["metrics"].items() if value["value"] is None}
    assert all(record["metrics"][key]["reason"] for key in missing)
    whole = {"nll", "brier", "skce", "classwise_ece", "tace", "ks_classwise"}
    all_classes = {key for key in record["metrics"] if key.endswith("_all")}
    # A group of scores that are all exactly 0 or 1 has no variance to divide by.
    known = {"adult/y_and_p.csv": {"hosmer_lemeshow"}}
    expected = known.get(name, set()) | (all_classes if record["classes"] == 2 else set())
    expected = whole | all_classes if record["kind"] == "confidence" else expected
    assert missing == expected
    rows = sum(row["rows"] for row in record["classes_table"])
    assert rows == record["rows"]


@pytest.mark.slow
def test_sample_data_agree_with_independent_peers():
    """As recorded by ``benchmarks/record_sample_data.py``."""
    recorded = ROOT / "tests" / "reference" / "recorded_sample_data.json"
    peers = json.loads(recorded.read_text(encoding="utf-8"))["values"]["simulated_100"]
    path = ROOT / "sample_data" / "simulated_100_classes.parquet"
    compared = [p for p in PEERS if p[1] in peers]
    assert len(compared) >= 4
    records = {arguments: audit(path, *arguments) for arguments in {p[2] for p in compared}}
    for key, entry, arguments in compared:
        value = records[arguments]["metrics"][key]["value"]
        assert value == pytest.approx(peers[entry]["value"], rel=1e-6), entry


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not beside the checkout")
@pytest.mark.parametrize("name", FILES)
def test_real_networks_agree_with_independent_peers(name):
    peers = json.loads((SHARED / "reference" / "reference.json").read_text())[name]
    path = SHARED / "data" / FILES[name]
    records = {arguments: audit(path, *arguments) for arguments in {p[2] for p in PEERS}}
    for key, entry, arguments in PEERS:
        value = records[arguments]["metrics"][key]["value"]
        assert value == pytest.approx(peers[entry]["value"], rel=1e-6), entry
    if name == "netcal_cifar10_wrn16_4":
        assert round(records[()]["metrics"]["ece"]["value"], 6) == 0.053716


def test_the_other_order_that_is_printed_turns_the_scores(tmp_path):
    """The labels are words, and the columns have numbers: the first is of 1."""
    rng = np.random.default_rng(6)
    p = rng.uniform(0.02, 0.98, 500)
    hit = rng.random(500) < p
    rows = (f"{a:.4f},{1 - a:.4f},{str(y).lower()}" for a, y in zip(p, hit, strict=True))
    file = tmp_path / "turned.csv"
    file.write_text("\n".join(["x[0].prob,x[1].prob,churned", *rows]))
    command = ["audit", str(file), "--label", "churned", "--resamples", "50"]
    before = " ".join(run_successfully(*command, "--all").split())
    assert "in reverse" in before
    option = before.partition("(--class-names ")[2].partition(", or class_names")[0]
    after = run_successfully(*command, "--all", "--class-names", option)
    assert "in reverse" not in after
