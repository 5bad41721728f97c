"""Several answers to each question: which are the same, how far they agree, and the signals as models of one file."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy
from sklearn.metrics import roc_auc_score

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation
from calviz.core.errors import InputError, OptionError
from calviz.data import ReadingOptions, read
from calviz.data.answers import AnswerRule, agreement, normalised
from tests.inputs.command_line import run
from tests.inputs.evaluation_logs import promptfoo

LOGS = Path(__file__).parents[2] / "inputs/logs"
ANSWERS = ReadingOptions(answers="answer")

# ---- Which answers are the same


@pytest.mark.parametrize(
    "same",
    [
        ("Paris", " paris. ", "**Paris**", '"PARIS"', "Paris\n"),
        ("B", "(B)", "b.", "[B]"),
        ("1200", "1,200", "1,200.00", "$1,200", "+1200.", "01200"),
        ("0.5", ".5", "0.50"),
        ("0", "-0", "0.0"),
        ("New  York", "new york"),
    ],
)
def test_these_are_the_same(same):
    assert len({normalised(text) for text in same}) == 1


@pytest.mark.parametrize(
    "other",
    [
        ("5", "-5", "5!", "5%", "1/5", "5.5"),
        ("(0, 1)", "[0, 1]", "0, 1"),
        ("0,123", "123", "0.123"),
        ("x+1", "x-1", "x 1"),
        ("A", "A*"),
        ("yes", "no", ""),
        ("90071992547409930", "90071992547409931"),
    ],
)
def test_these_are_not(other):
    assert len({normalised(text) for text in other}) == len(other)


def test_the_answer_is_found_in_a_text():
    rule = AnswerRule()
    assert rule.of("Because.\nAnswer: **Paris**\nConfidence: 85%") == "paris"
    assert rule.of("The answer is: 7. I am 0.9 sure") == "7"
    assert rule.of("Rome, I am 0.6 sure") == rule.of("**Confidence:** 30%\nRome") == "rome"
    assert AnswerRule(exact=True).of("Rome.") == "Rome."
    options = {"answers": "answer", "answer_pattern": r"=> (\w+)", "same_answers": "exact"}
    cells = "question,answer,correct\na,so => x,1\na,or => x,1\na,=> y => z,0\n"
    data = read(cells.encode(), name="x.csv", options=ReadingOptions(**options)).models["agreement"]
    assert data.confidence.tolist() == pytest.approx([2 / 3])


# ---- How far they agree


def by_hand(table):
    """Share, entropy and correctness of the most frequent answer to each question, by pandas."""
    found = {}
    for question, rows in table.groupby("question", sort=False):
        counts = rows["answer"].value_counts(sort=False)
        most = next(a for a in rows["answer"] if counts[a] == counts.max())
        right = rows.loc[rows["answer"] == most, "correct"]
        found[question] = (
            counts.max() / len(rows),
            entropy(counts),
            right.mean() > 0.5 or (right.mean() == 0.5 and right.iloc[0] == 1),
            rows.loc[rows["answer"] == most, "confidence"].mean(),
            np.exp(rows.loc[rows["answer"] == most, "logprob"]).mean(),
        )
    return pd.DataFrame(found, index=["share", "entropy", "correct", "stated", "log"]).T


def answers(questions=60, each=5):
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "question": np.repeat([f"q{j}" for j in range(questions)], each),
            "answer": rng.choice(["one", "two", "three"], questions * each, p=(0.6, 0.3, 0.1)),
            "confidence": rng.random(questions * each).round(3),
            "logprob": -rng.exponential(size=questions * each),
            "topic": np.repeat(np.resize(["law", "art"], questions), each),
            "epoch": np.tile(np.arange(each), questions),
        }
    )
    return table.assign(correct=(table["answer"] == "one").astype(int))


def test_signals_are_those_of_pandas_scipy_and_scikit_learn(tmp_path):
    table = answers()
    mixed = table.sample(frac=1, random_state=0)  # rows of a question need not be neighbours
    for one in (table, mixed):
        one.to_csv(tmp_path / "x.csv", index=False)
        models = read(tmp_path / "x.csv", options=ANSWERS).models
        expected = by_hand(one)
        assert list(models["agreement"].ids) == list(expected.index)
        columns = {
            "agreement": expected["share"],
            "entropy": np.exp(-expected["entropy"].astype(float)),
        }
        columns |= {"stated": expected["stated"], "log-probability": expected["log"]}
        assert list(models) == list(columns)
        for name, values in columns.items():
            np.testing.assert_allclose(models[name].confidence, values.astype(float), rtol=1e-9)
            assert models[name].correct.tolist() == expected["correct"].tolist()
            assert models[name].clusters is None
            assert models[name].groups["topic"].counts() == {"law": 30, "art": 30}
    compared = calviz.compare_models(models)
    for name in models:
        area = compared[name].metrics["auroc_failure"].value
        truth, scores = expected["correct"].astype(bool), models[name].confidence
        assert area == pytest.approx(roc_auc_score(truth, scores))
    difference = compared.difference("aurc", "agreement", "stated")
    low, high = difference.interval
    assert low <= difference.value <= high


def test_ties_and_marks_that_differ_are_counted():
    # Question 1: a tie, the first given counts. 2: the same answer with three marks. 3: with even marks, the first counts.
    question = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2])
    answer = np.array([5, 6, 5, 5, 5, 8, 8, -1, -1])
    correct = np.array([0, 1, 1, 0, 1, 1, 0, 1, 1], dtype=bool)
    found = agreement(question, answer, correct)
    assert found.share.tolist() == [0.5, 1, 0.5]
    assert found.correct.tolist() == [False, True, True]
    assert found.tied.tolist() == [True, False, False]
    assert found.mixed.tolist() == [False, True, True]
    # Answers that are missing equal no other.
    assert found.entropy[2] == pytest.approx(entropy([2, 1, 1]))


def test_what_is_left_out_is_said(tmp_path):
    table = answers(4, 3).drop(columns="logprob")
    more = pd.DataFrame(
        {"question": ["alone"], "answer": ["one"], "confidence": [0.5], "correct": [1]}
    )
    pd.concat([table, more]).to_csv(tmp_path / "x.csv", index=False)
    loaded = read(tmp_path / "x.csv", options=ANSWERS)
    said = " ".join(n.message for n in loaded.notices)
    assert "1 of 5 questions with one answer left out" in said
    assert "the answers to a question differ in it: 'epoch'" in said
    assert "the most frequent of 3 answers: 4 questions" in said
    assert loaded.first.n == 4


def test_models_and_prompts_are_kept_apart_and_the_question_is_then_the_cluster():
    table = pd.concat([answers(10).assign(model=m) for m in ("a", "b")])
    loaded = read(table.to_csv(index=False).encode(), name="x.csv", options=ANSWERS)
    agreed = loaded.models["agreement"]
    assert agreed.n == 20
    assert set(agreed.clusters.counts().values()) == {2}
    assert agreed.groups["model"].counts() == {"a": 10, "b": 10}
    assert calviz.compare_models(loaded.models)["stated"].metrics["ece"].interval is not None


def test_the_right_answer_may_be_given_instead_of_a_mark():
    table = answers().assign(label=" One. ")
    marked, named = (
        read(t.to_csv(index=False).encode(), name="x.csv", options=ANSWERS).models["agreement"]
        for t in (table.drop(columns="label"), table.drop(columns="correct"))
    )
    np.testing.assert_array_equal(marked.correct, named.correct)


# ---- Logs


def test_epochs_of_inspect():
    loaded = read(LOGS / "inspect_said_zstd.eval", options=ANSWERS)
    # What the mock model was given: Paris twice; Rome, Milan; Oslo, Bergen; Bern, Zurich. The second epoch of the last states none.
    assert loaded.models["agreement"].confidence.tolist() == [1, 0.5, 0.5, 0.5]
    np.testing.assert_allclose(loaded.models["entropy"].confidence, [1, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(loaded.models["stated"].confidence, [0.925, 0.6, 0.3, 0.8])
    assert loaded.models["stated"].correct.all()
    assert "ties, of which the answer given first counts: 3" in " ".join(
        n.message for n in loaded.notices
    )
    json_form = read(LOGS / "inspect_said.json", options=ANSWERS).models
    for name, model in loaded.models.items():
        assert model.fingerprint() == json_form[name].fingerprint()


def test_log_probabilities_beside_a_stated_confidence():
    log = json.loads((LOGS / "inspect_letters.json").read_text())
    for sample in log["samples"]:
        sample["metadata"] = {"confidence": 80}
    log["samples"] += [sample | {"epoch": 2} for sample in log["samples"]]
    models = read(json.dumps(log).encode(), name="x.json", options=ANSWERS).models
    # The letters that the mock model gave, with the probabilities that it was given for them.
    np.testing.assert_allclose(models["log-probability"].confidence, [0.7, 0.5, 0.7] * 2)
    np.testing.assert_allclose(models["stated"].confidence, 0.8)


def test_repeated_tests_of_promptfoo_keep_providers_apart():
    log = promptfoo()
    rows = log["results"]["results"]
    twice = [row | {"id": f"again {row['id']}"} for row in rows]
    twice[0]["response"] = {"output": "Answer: other\nConfidence: 10%"}
    log["results"]["results"] = rows + twice
    loaded = read(json.dumps(log).encode(), name="results.json", options=ANSWERS)
    agreed = loaded.models["agreement"]
    assert agreed.confidence.tolist() == [0.5] + [1] * 39
    assert agreed.groups["model"].counts() == {"openai:some-model-0": 20, "openai:some-model-1": 20}
    assert set(agreed.clusters.counts().values()) == {2}
    with pytest.raises(InputError, match="each of the 40 questions has one answer"):
        read(json.dumps(promptfoo()).encode(), name="results.json", options=ANSWERS)


# ---- The command line, and bad input


@pytest.mark.slow
def test_the_command_prints_the_signals_side_by_side(tmp_path):
    file = tmp_path / "x.csv"
    answers().to_csv(file, index=False)
    out = run("compare-models", file, "--answers", "answer", "--json", tmp_path / "x.json")
    assert out.exit_code == 0
    assert "AUROC of failure detection" in out.stdout
    record = json.loads((tmp_path / "x.json").read_text())
    assert list(record["models"]) == ["agreement", "entropy", "stated", "log-probability"]


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"answers": "said"}, "there is no column 'said' with the answers"),
        ({"question": None}, {}, "no column says which question a row answers"),
        ({"correct": None}, {}, "nothing says whether an answer is right"),
        ({"question": "each"}, {}, "each of the 300 questions has one answer"),
        ({"correct": 0.5}, {}, "row 1, .*does not say whether the answer is right"),
    ],
)
def test_bad_input_has_one_sentence(change, options, words):
    table = answers()
    for name, value in change.items():
        table = table.drop(columns=name) if value is None else table.assign(**{name: value})
        if value == "each":
            table["question"] = [f"q{j}" for j in range(len(table))]
    with pytest.raises(InputError, match=words):
        read(
            table.to_csv(index=False).encode(),
            name="x.csv",
            options=ReadingOptions(**{"answers": "answer", **options}),
        )


def test_bad_options_have_one_sentence():
    with pytest.raises(OptionError, match="go with 'answers'"):
        ReadingOptions(answer_pattern="(a)")
    with pytest.raises(OptionError, match="must be one of normalised, exact"):
        ReadingOptions(answers="a", same_answers="loose")
    with pytest.raises(OptionError, match="answer_pattern must have the answer in parentheses"):
        read(b"a,b\n1,2\n", name="x.csv", options=ReadingOptions(answers="a", answer_pattern="x"))


CLAIMED = [s.key for s in every_simulation() if "signal" in s.key and s.required]


@pytest.mark.slow
@pytest.mark.parametrize("key", CLAIMED)
def test_sentences_about_signals_hold(key):
    one = SIMULATIONS[key]
    outcomes = one.outcomes(30, seed=1)
    assert one.holds(outcomes), np.mean(outcomes)
