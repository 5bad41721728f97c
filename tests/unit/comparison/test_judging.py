"""A judge against people: against peers, by hand, and by simulation with known truth."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation
from benchmarks.claims.judges import questions
from benchmarks.record_judges import CASES, RECORDED, case, repeated
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.p_values import wilson
from tests.inputs.command_line import outcome, run_successfully

PEERS = json.loads(RECORDED.read_text())["values"]
Z = stats.norm.ppf(0.975)


def of_counts(tp, fn, fp, tn, yes, no):
    """Labelled rows by what people and the judge say, and others of which the judge says yes or no."""
    says = np.repeat([1, 0, 1, 0, 1, 0], [tp, fn, fp, tn, yes, no]).astype(float)
    people = np.repeat([1, 1, 0, 0, np.nan, np.nan], [tp, fn, fp, tn, yes, no])
    return says, people


# ---- Peers and closed forms


@pytest.mark.parametrize("name", CASES)
def test_ppi_is_that_of_its_authors(name):
    ppi, peer = calviz.judge(*case(name)).corrected["ppi"], PEERS[name]
    assert ppi.value == pytest.approx(peer["ppi"], abs=1e-8)
    ends = ppi.value - Z * ppi.error, ppi.value + Z * ppi.error
    assert ends == pytest.approx(tuple(peer["ppi interval"]), abs=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_kappa_is_that_of_scikit_learn(name):
    assert calviz.judge(*case(name)).kappa.value == pytest.approx(PEERS[name]["kappa"], abs=1e-8)


def test_the_error_of_kappa_is_that_of_statsmodels_with_half_a_row_in_each_cell():
    says, people = case("verdicts")
    # Twice the rows, so that the half rows are whole.
    at = ~np.isnan(people)
    twice = np.concatenate([np.repeat(says[at], 2), [1, 0, 1, 0]])
    labels = np.concatenate([np.repeat(people[at], 2), [1, 1, 0, 0]])
    doubled = calviz.judge(twice, labels).kappa
    single = calviz.judge(says, people).kappa
    assert single.interval.high < doubled.value + Z * PEERS["verdicts"]["kappa error"] * 1.1
    assert single.error == pytest.approx(PEERS["verdicts"]["kappa error"], rel=0.05)


def test_rogan_gladen_by_hand():
    judged = calviz.judge(*of_counts(40, 10, 5, 45, 390, 510))
    assert (judged.sensitivity.value, judged.specificity.value) == (0.8, 0.9)
    # (435 + 0.9 * 1,000 - 1,000) / 1,000 / (0.8 + 0.9 - 1)
    assert judged.corrected["rogan-gladen"].value == pytest.approx(0.335 / 0.7)
    assert judged.agreement.value == 0.85


def test_rogan_gladen_has_the_interval_of_the_delta_method_where_the_judge_is_good():
    tp, fn, fp, tn, yes, no = 4_500, 500, 250, 4_750, 400_000, 600_000
    found = calviz.judge(*of_counts(tp, fn, fp, tn, yes, no)).corrected["rogan-gladen"]
    m, se, sp = (tp + fp + yes) / 1_010_000, 0.9, 0.95
    rate = (m + sp - 1) / (se + sp - 1)
    spread = m * (1 - m) / 1_010_000 + rate**2 * se * (1 - se) / 5_000 + (1 - rate) ** 2 * sp * (1 - sp) / 5_000  # fmt: skip
    half = Z * spread**0.5 / (se + sp - 1)
    assert found.value == pytest.approx(rate)
    assert tuple(found.interval) == pytest.approx((rate - half, rate + half), abs=2e-4)


def test_with_all_rows_labelled_every_correction_is_the_mean_label():
    says, people = case("scores")
    rng = np.random.default_rng(0)
    labels = np.where(np.isnan(people), rng.random(people.size) < 0.4, people)
    judged = calviz.judge(says, labels)
    assert [e.value for e in judged.corrected.values()] == pytest.approx([labels.mean()] * 3)
    assert judged.needed(0.01) is None


@pytest.mark.parametrize(("hits", "rows"), [(0, 7), (3, 50), (50, 50)])
def test_wilson_is_that_of_scipy(hits, rows):
    peer = stats.binomtest(hits, rows).proportion_ci(0.9, method="wilson")
    assert wilson(hits / rows, rows, 0.9) == pytest.approx((peer.low, peer.high))


def test_bias_is_tested_by_the_exact_test_of_mcnemar():
    says, people = of_counts(30, 3, 14, 53, 100, 100)
    judged = calviz.judge(says, people, np.zeros(says.size))
    (group,) = judged.groups.values()
    assert group.p_value == pytest.approx(stats.binomtest(3, 17).pvalue)
    assert group.bias == pytest.approx(0.11)
    assert any("too much" in remark for remark in judged.remarks())


def test_error_rates_are_tested_by_permutation_as_by_the_exact_test():
    # Nothing is wrong among the rows that people call no, so that only one table tells anything.
    says, people = of_counts(40, 20, 0, 40, 50, 50)
    group = np.concatenate([np.repeat(["a", "b", "a", "b"], [25, 15, 5, 15]), np.resize(["a", "b"], 140)])  # fmt: skip
    exact = stats.fisher_exact([[25, 5], [15, 15]]).pvalue
    assert calviz.judge(says, people, group).differ == pytest.approx(exact, abs=0.006)


def test_groups_are_adjusted_by_benjamini_and_hochberg():
    rng = np.random.default_rng(3)
    group = rng.integers(6, size=3_000)
    people = rng.random(3_000) < 0.5
    says = np.where(rng.random(3_000) < 0.7 + 0.05 * (group == 0), people, True)
    groups = calviz.judge(says, np.where(rng.random(3_000) < 0.05, people, np.nan), group).groups
    peer = stats.false_discovery_control([g.p_value for g in groups.values()])
    assert [g.adjusted for g in groups.values()] == pytest.approx(peer)


def test_a_difference_has_newcombe_s_interval_where_all_is_labelled():
    a, b = of_counts(30, 10, 10, 50, 0, 0), of_counts(40, 15, 5, 40, 0, 0)
    says, people = (np.concatenate(both) for both in zip(a, b, strict=True))
    (found,) = calviz.judge(says, people, np.repeat(["a", "b"], 100)).differences
    assert (found.value, found.verdict) == (pytest.approx(-0.15), "lower")
    l1, u1 = stats.binomtest(40, 100).proportion_ci(method="wilson")
    l2, u2 = stats.binomtest(55, 100).proportion_ci(method="wilson")
    low = -0.15 - np.hypot(0.4 - l1, u2 - 0.55)
    high = -0.15 + np.hypot(u1 - 0.4, 0.55 - l2)
    assert tuple(found.interval) == pytest.approx((low, high), abs=1e-6)


def test_more_groups_are_adjusted_for_more_pairs():
    rng = np.random.default_rng(0)
    group, people = rng.integers(4, size=800), rng.random(800) < 0.5
    says = np.where(rng.random(800) < 0.8, people, ~people)
    differences = calviz.judge(says, people, group).differences
    assert len(differences) == 6
    for d in differences:
        assert d.adjusted.low < d.interval.low < d.value < d.interval.high < d.adjusted.high


# ---- Questions that are asked again, and several columns of groups


@pytest.mark.parametrize("name", [name for name in CASES if "rogan-gladen" in PEERS[name]])
def test_rogan_gladen_is_that_of_truescore(name):
    value = calviz.judge(*case(name)).corrected["rogan-gladen"].value
    assert value == pytest.approx(PEERS[name]["rogan-gladen"], abs=1e-12)


def test_questions_asked_again_are_those_of_truescore():
    says, people, question = repeated()
    judged = calviz.judge(says, people, cluster=question)
    assert judged.corrected["ppi"].value == pytest.approx(PEERS["repeated"]["ppi"], abs=1e-12)
    # Its clusters are labelled as a whole, so that it has a factor G / (G - 1) for either part.
    each, seen = judged._sums.influence, np.unique(question[~np.isnan(people)])
    parts = each[seen], np.delete(each, seen)
    variance = sum(p.size / (p.size - 1) * np.square(p).sum() for p in parts)
    assert variance**0.5 == pytest.approx(PEERS["repeated"]["ppi error"], abs=1e-12)


def test_a_question_of_its_own_for_each_row_changes_nothing():
    says, people = case("scores")
    plain, alone = calviz.judge(says, people), calviz.judge(says, people, cluster=np.arange(1_000))
    assert alone.corrected == plain.corrected
    assert (alone.kappa, alone.naive) == (plain.kappa, plain.naive)
    assert alone.width(300) == pytest.approx(plain.width(300))


def test_the_same_answer_five_times_is_worth_one():
    says, people = case("verdicts")
    once = calviz.judge(says, people)
    five = calviz.judge(
        np.repeat(says, 5), np.repeat(people, 5), cluster=np.repeat(np.arange(2_000), 5)
    )
    for key in ("ppi", "human", "rogan-gladen"):
        assert five.corrected[key].value == pytest.approx(once.corrected[key].value, abs=1e-5)
        assert five.corrected[key].width == pytest.approx(once.corrected[key].width, rel=0.03)
    for name in ("naive", "sensitivity", "specificity", "agreement", "kappa"):
        assert getattr(five, name).width == pytest.approx(getattr(once, name).width, rel=0.05)
    # Labels are counted, drawn and tested as those of items.
    assert (five.items, five.labelled, five.unlike) == (2_000, 150, pytest.approx(once.unlike))
    assert five.width(300) == pytest.approx(once.width(300), rel=0.03)
    assert five.next(40).rows.tolist() == [5 * row + j for row in once.next(40).rows for j in range(5)]  # fmt: skip
    assert five.next(40).chance[::5] == pytest.approx(once.next(40).chance)
    assert five.remarks() == once.remarks() == ()


def of_judges(tmp_path, empty=""):
    """Three judges of 300 items of 100 prompts, of which 90 have a human label on all three rows."""
    rng = np.random.default_rng(3)
    good, seen = rng.random(300) < 0.6, rng.permutation(300) < 90
    item = np.tile(np.arange(300), 3)
    right = rng.random(900) < 0.85
    words = np.array(["bad", "good"])
    columns = {"prompt_id": item // 3, "item_id": [f"i{i}" for i in item], "judge": np.repeat(["x", "y", "z"], 300)}  # fmt: skip
    columns["verdict"] = words[np.where(right, good[item], ~good[item]).astype(int)]
    columns["human"] = np.where(seen[item], words[good[item].astype(int)], empty)
    pd.DataFrame(columns).to_csv(tmp_path / "judges.csv", index=False)
    return tmp_path / "judges.csv", columns


def test_a_label_on_the_rows_of_several_judges_counts_once(tmp_path):
    file, columns = of_judges(tmp_path)
    arguments = ("judge", file, "--by", "prompt_id", "--width", ".14", "--model-column", "")
    record = json.loads(run_successfully(*arguments, "--json", "-"))
    assert (record["rows"], record["items"], record["labelled"]) == (900, 300, 90)
    assert record["cluster"] == "item_id"
    expected = calviz.judge(columns["verdict"], columns["human"], cluster=columns["item_id"])
    assert record["corrected"] == json.loads(json.dumps(expected.to_dict()["corrected"]))
    assert record["corrected"]["ppi"]["value"] > 0.5  # of 'good'
    text = run_successfully(*arguments)
    assert "corrected by 90 human labels" in text
    assert "Rows with the same 'item_id' share one human label and count as one item (--cluster '' counts each row by itself)." in text  # fmt: skip
    assert f"{record['needed'] - 90:,} more items." in text
    assert "20 of 100 groups are shown" in text
    bare = sum(group["labelled"] == 0 for group in record["groups"].values())
    assert f"and {bare - 5} more." in text
    assert "drawn alike" not in text
    alone = json.loads(run_successfully(*arguments, "--cluster", "", "--json", "-"))
    assert (alone["items"], alone["labelled"], "cluster" in alone) == (900, 270, False)
    widths = [np.ptp(r["corrected"]["human"]["interval"]) for r in (record, alone)]
    assert widths[0] > 1.5 * widths[1]
    said = calviz.judge(
        columns["verdict"], columns["human"], columns["judge"], cluster=columns["item_id"]
    )
    assert [group.labelled for group in said.groups.values()] == [90] * 3


def test_one_of_several_judges_is_chosen_as_a_model_is(tmp_path):
    file, columns = of_judges(tmp_path)
    table = pd.DataFrame(columns).sample(frac=1, random_state=0)  # judges between each other
    table.to_csv(file, index=False)
    out = tmp_path / "next.csv"
    code, _, error = outcome("judge", file)
    assert (code, error.strip()) == (2, outcome("compare", file)[2].strip())
    assert re.search("choose one with --model: ([xyz](, |; )){3}all together: --model-column ''\\.", error)  # fmt: skip
    assert "no model 'w'" in outcome("judge", file, "--model", "w")[2]
    rates = {}
    for name in "xyz":
        asked = ("judge", file, "--model", name, "--next", "40", "--out", out, "--json", "-")
        record = json.loads(run_successfully(*asked))
        mine = table["judge"] == name
        of_one = table[mine]
        alone = calviz.judge(of_one["verdict"], of_one["human"].replace("", None)).to_dict()
        assert (record["model"], record["rows"]) == (name, 300)
        assert record["corrected"] == json.loads(json.dumps(alone["corrected"]))
        rates[name] = record["corrected"]["ppi"]
        # Lines are numbers of the file, and only rows without a label are to be labelled.
        lines = pd.read_csv(out)
        assert lines["row"].tolist() == (np.flatnonzero(mine) + 1).tolist()
        assert not table["human"].iloc[lines["row"][lines["label"] == 1] - 1].any()
        assert lines["label"].sum() == 40
    assert len({rate["value"] for rate in rates.values()}) == 3
    compared = json.loads(run_successfully("judge", file, "--by", "judge", "--json", "-"))
    assert (compared["rows"], sorted(compared["groups"]), "model" in compared) == (900, ["x", "y", "z"], False)  # fmt: skip
    # What cannot be read as probabilities is judged all the same, as long as no model is named.
    unread = tmp_path / "unread.csv"
    table.assign(judge=1, human=table["human"].replace("bad", "fair")).to_csv(unread, index=False)
    assert "'fair'" in outcome("judge", unread)[2]


def test_rows_without_a_label_are_said_to_count_for_the_judge(tmp_path):
    columns = pd.read_csv(of_judges(tmp_path)[0]).assign(confidence=0.9)
    columns.to_csv(tmp_path / "t.csv", index=False)
    _, _, error = outcome("audit", tmp_path / "t.csv")
    assert "or ask to leave out the rows, which still count on the tab Judge, and for 'calviz judge FILE' (--repair drop-missing)" in error  # fmt: skip


def test_systems_are_compared_question_by_question():
    says, people, question, system = questions(np.random.default_rng(0), 1_000, 2, 200)
    (paired,) = calviz.judge(says, people, system, cluster=question).differences
    (apart,) = calviz.judge(says, people, system).differences
    assert paired.value == apart.value
    width = paired.interval.high - paired.interval.low
    assert width < 0.85 * (apart.interval.high - apart.interval.low)


def test_each_column_of_groups_is_looked_at_by_itself():
    says, people, _, system = questions(np.random.default_rng(1), 900, 2, -300)
    table = {"system": system, "task": np.resize(["a", "b", "c"], says.size)}
    both = calviz.judge(says, people, table)
    singles = {name: calviz.judge(says, people, column) for name, column in table.items()}
    assert list(both.groups) == ["system = 0", "system = 1", "task = a", "task = b", "task = c"]
    for name, one in singles.items():
        for level, group in one.groups.items():
            assert both.groups[f"{name} = {level}"].corrected == group.corrected
        assert both.differ_by[name] == one.differ
    assert both.differ == min(1, 2 * min(one.differ for one in singles.values()))
    # One pair of systems, three of tasks, all adjusted together.
    assert len(both.differences) == 4
    assert both.differences[0].interval == singles["system"].differences[0].interval
    assert both.differences[0].adjusted.low < singles["system"].differences[0].adjusted.low
    assert set(both.predictions.groups) == {"system", "task"}
    assert calviz.judge(says, people, pd.DataFrame(table)).to_dict() == both.to_dict()
    assert calviz.judge(says, people, pd.Series(system)).groups.keys() == {"0", "1"}


def test_a_blank_group_is_missing():
    says, people, _, system = questions(np.random.default_rng(1), 900, 2, -300)
    blank = np.where(system == 0, "", "b")
    one = calviz.judge(says, people, {"system": blank})
    assert list(one.groups) == ["", "b"]
    assert {"system = missing", "system = b"} < {row[0] for row in one.summary().rows}
    assert "'missing'" in one.differences[0].sentence()
    both = calviz.judge(says, people, {"system": blank, "task": np.resize(["a", ""], says.size)})
    assert {"system = missing", "task = missing"} < {row[0] for row in both.summary().rows}


def test_fractions_are_cut_to_group_by():
    says, people = case("verdicts")
    minutes = np.random.default_rng(0).random(2_000)
    groups = calviz.judge(says, people, minutes).groups
    assert len(groups) == 10
    assert [g.rows for g in groups.values()] == [200] * 10


def test_a_group_of_one_question_is_not_corrected():
    says, people = case("verdicts")
    half = np.resize([0, 1], 2_000)
    found = calviz.judge(says, people, half, cluster=np.where(half == 1, np.arange(2_000) // 10, 0))
    assert found.groups["0"].corrected is None
    assert found.groups["0"].naive.interval == (0, 1)
    assert found.groups["1"].corrected is not None
    assert found.remarks() == ()
    # Few questions that happen to be alike are not surer than as many labels.
    alike = calviz.judge(says, people, cluster=half).corrected["human"]
    assert alike.width >= calviz.judge(says, people).corrected["human"].width


def test_labels_of_one_question_do_not_tell_how_questions_differ():
    says, people = case("verdicts")
    question = np.where(np.isnan(people), 1, 0)
    with pytest.raises(InputError, match="all human labels are of one question"):
        calviz.judge(says, people, cluster=question)
    with pytest.raises(InputError, match="'cluster' has 2 values for 2,000 rows"):
        calviz.judge(says, people, cluster=[1, 2])


# ---- What a result is used for


def test_the_contract_of_the_json():
    record = calviz.judge(*case("verdicts"), np.resize(["a", "b"], 2_000)).to_dict()
    assert {key: record[key] for key in ("schema", "rows", "labelled", "recommended")} == {
        "schema": 1,
        "rows": 2_000,
        "labelled": 150,
        "recommended": "ppi",
    }
    assert list(record["corrected"]) == ["rogan-gladen", "ppi", "human"]
    for estimate in (record["naive"], record["sensitivity"], record["specificity"], record["kappa"], *record["corrected"].values()):  # fmt: skip
        low, high = estimate["interval"]
        assert low < estimate["value"] < high
    assert set(record["groups"]) == {"a", "b"}
    assert record["groups"]["a"]["rows"] == 1_000
    ppi, human = (record["corrected"][key]["interval"] for key in ("ppi", "human"))
    assert ppi[1] - ppi[0] < human[1] - human[0]


def test_labels_alone_are_recommended_where_the_judge_knows_nothing():
    rng = np.random.default_rng(1)
    says, people = rng.random(2_000) < 0.5, np.where(np.arange(2_000) < 200, rng.random(2_000) < 0.4, np.nan)  # fmt: skip
    worse = np.where(np.isnan(people), says, people != 1)
    judged = calviz.judge(worse.astype(float), people)
    assert judged.recommended == "human"
    assert "no shorter" in judged.reason()


def test_labelled_rows_are_predictions():
    judged = calviz.judge(*case("scores"), np.resize(["a", "b"], 1_000))
    at = ~np.isnan(case("scores")[1])
    assert judged.predictions.n == 200
    np.testing.assert_array_equal(judged.predictions.probs[:, 1], case("scores")[0][at])
    assert set(judged.predictions.groups) == {"group"}
    assert calviz.evaluate(judged.predictions, ["ece"])["ece"].value > 0.05


def test_a_recalibrated_judge_is_calibrated_and_corrects_alike():
    rng = np.random.default_rng(2)
    people = rng.random(4_000) < 0.3
    z = np.where(people, 1.0, -1.0) + rng.normal(size=4_000)
    says = 1 / (1 + np.exp(-5 * z))
    judged = calviz.judge(says, np.where(np.arange(4_000) < 800, people, np.nan))
    after = judged.recalibrated("platt")
    assert after.naive.value == pytest.approx(people.mean(), abs=0.03)
    assert abs(judged.naive.value - people.mean()) > 0.05
    ece = [calviz.evaluate(j.predictions, ["ece"])["ece"].value for j in (judged, after)]
    assert ece[1] < ece[0] / 2
    with pytest.raises(OptionError, match="nothing"):
        judged.recalibrated("nothing")


def test_more_labels_give_the_width_that_was_asked_for():
    rng = np.random.default_rng(4)
    people = rng.random(20_000) < 0.5
    says = np.where(rng.random(20_000) < 0.9, people, ~people).astype(float)
    order = rng.permutation(20_000)
    judged = calviz.judge(says, np.where(order < 300, people, np.nan))
    labels = judged.needed(0.05)
    more = calviz.judge(says, np.where(order < labels, people, np.nan)).corrected["ppi"]
    assert more.width == pytest.approx(0.05, rel=0.15)
    assert judged.width(labels) <= 0.05 < judged.width(labels - 1)
    assert f"About {labels:,} labels" in judged.needed_sentence(0.05)
    assert "300 labels are enough" in judged.needed_sentence(0.2)
    with pytest.raises(OptionError, match="'width'"):
        judged.needed(1.5)


def test_rows_to_label_next_are_where_judge_and_people_differ():
    # The judge is always right if it says yes, and right in half of the rows if it says no.
    rng = np.random.default_rng(5)
    says = np.resize([1.0, 0.0], 4_000)
    people = np.where(says == 1, 1.0, rng.random(4_000) < 0.5)
    human = np.where(rng.permutation(4_000) < 200, people, np.nan)
    judged = calviz.judge(says, human)
    following = judged.next(400, seed=1)
    assert following.rows.size == np.unique(following.rows).size == 400
    assert np.isnan(human[following.rows]).all()
    assert (says[following.rows] == 0).mean() > 0.6
    # In all, so many labels are expected.
    assert following.chance.sum() == pytest.approx(600, rel=0.02)
    human[following.rows] = people[following.rows]
    weighted = calviz.judge(says, human, chance=following.chance).corrected
    uniform = calviz.judge(says, np.where(rng.permutation(4_000) < 600, people, np.nan)).corrected
    assert weighted["human"].value == pytest.approx(0.75, abs=0.05)
    assert np.nanmean(human) < 0.72
    assert weighted["ppi"].width < uniform["ppi"].width
    with pytest.raises(OptionError, match="at most"):
        judged.next(4_000)


def test_labels_of_the_same_chance_need_no_chance():
    says, people = case("verdicts")
    plain, given = (calviz.judge(says, people, chance=c).corrected for c in (None, np.full(2_000, 0.075)))  # fmt: skip
    assert given["human"].value == pytest.approx(plain["human"].value)
    assert given["ppi"].value == pytest.approx(plain["ppi"].value)
    assert given["ppi"].width == pytest.approx(plain["ppi"].width, rel=0.05)


def test_labels_of_rows_that_the_judge_likes_are_found():
    says, people = of_counts(60, 10, 20, 10, 400, 600)
    (remark,) = (r for r in calviz.judge(says, people).remarks() if "alike" in r)
    assert "at random" in remark


def test_rows_without_a_verdict_do_not_count():
    says, people = case("verdicts")
    more = calviz.judge(np.append(says, [np.nan] * 5), np.append(people, [1, 0, 1, np.nan, 1]))
    assert more.corrected == calviz.judge(says, people).corrected
    assert "5 rows without a verdict" in more.remarks()[-1]
    assert np.isnan(more.next(10).chance[-5:]).all()


# ---- Columns


@pytest.mark.parametrize(
    ("no", "yes", "empty"),
    [("no", "yes", ""), ("No", "YES", None), (False, True, None), ("0", "1", "NA"), ("incorrect", "correct", "")],
)  # fmt: skip
def test_words_are_read_as_numbers(no, yes, empty):
    says, people = case("few labels")
    human = [empty if np.isnan(p) else yes if p else no for p in people]
    words = calviz.judge(says, human).corrected
    assert words == calviz.judge(says, people).corrected


def test_the_same_words_may_mean_anything_in_both_columns():
    says, people = of_counts(20, 5, 5, 20, 30, 30)
    judge = np.where(says == 1, "bad", "good")
    human = [None if np.isnan(p) else ("bad" if p else "good") for p in people]
    judged = calviz.judge(judge, human)
    assert judged.event == "good"
    assert "'good'" in judged.sentence()
    with pytest.raises(
        InputError, match="a score of 1 in column 'judge' may mean 'good' or its opposite"
    ):
        calviz.judge(says, human)


@pytest.mark.parametrize(
    ("judge", "human", "words"),
    [
        ([1, 1, 1, 1], [1, 0, np.nan, 1], "the judge says 1 of every row"),
        ([np.nan] * 4, [1, 0, np.nan, 1], "the judge says nothing"),
        ([1, 0, 1, np.nan], [np.nan, np.nan, np.nan, 1], "no row has both"),
        ([1, 0, 1, 0], [1, 1, np.nan, 1], "all 3 human labels are of one class"),
        (
            [1, 0, 85, 0],
            [1, 0, np.nan, 1],
            "row 3, column 'judge': 85 is not between 0 and 1; give scores from 0 to 1, or yes and no, such as grades >= 4",
        ),
        ([1, 0, 1, 0], [1, 0.5, np.nan, 1], "row 2, column 'human': the human label 0.5 is neither"),
        ([1, 0, 1, 0], [1, -1, np.nan, 1], "row 2, column 'human': -1 is not between 0 and 1"),
        ([1, 0, 1], [1, 0, np.nan, 1], "the judge has 3 rows, the human labels have 4"),
        (["x", "y", "x", "y"], [1, 0, np.nan, 1], "nothing says which of 'x', 'y' is yes"),
        (np.eye(4), [1, 0, np.nan, 1], "1-D"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused_in_one_sentence(judge, human, words):
    with pytest.raises(InputError, match=words) as error:
        calviz.judge(judge, human)
    assert "\n" not in str(error.value)


def test_options_out_of_range_are_refused():
    says, people = case("few labels")
    with pytest.raises(OptionError, match="'confidence'"):
        calviz.judge(says, people, confidence=95)
    with pytest.raises(InputError, match="'by' has 2 values for 500 rows"):
        calviz.judge(says, people, ["a", "b"])
    with pytest.raises(OptionError, match="at most 1,000"):
        calviz.judge(np.resize(says, 1_500), np.resize(people, 1_500), np.arange(1_500))
    with pytest.raises(InputError, match="row 2, column 'chance': the chance 0"):
        calviz.judge(says, people, chance=np.where(np.arange(500) == 1, 0, 0.5))
    few = np.where(np.arange(500) < 30, 0.0, np.nan)
    few[0] = 1
    with pytest.raises(NotAvailable, match="two human labels of each class"):
        calviz.judge(says, few).recalibrated()


# ---- The command


@pytest.fixture
def table(tmp_path):
    says, people = case("verdicts")
    lines = ["id,system,llm_judge,human"]
    for i, (s, p) in enumerate(zip(says, people, strict=True)):
        lines.append(f"{i},{'ab'[i % 2]},{'yes' if s else 'no'},{'' if np.isnan(p) else ['no', 'yes'][int(p)]}")  # fmt: skip
    path = tmp_path / "judged.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_gives_what_the_function_gives(table):
    record = json.loads(run_successfully("judge", table, "--by", "system", "--json", "-"))
    says, people = case("verdicts")
    expected = calviz.judge(says, people, np.resize(["a", "b"], 2_000)).to_dict()
    assert record["corrected"]["ppi"]["value"] == pytest.approx(expected["corrected"]["ppi"]["value"])  # fmt: skip
    assert record["groups"]["a"]["p_value"] == pytest.approx(expected["groups"]["a"]["p_value"])
    text = run_successfully("judge", table, "--width", ".05", "--method", "platt")
    assert "corrected by 150 human labels" in text
    assert "labels are needed for an interval of 5.0 points" in text


def test_the_command_reads_grades_and_says_so(tmp_path):
    says, people = case("verdicts")
    graded = np.where(says == 1, 4, 2) + np.resize([0, 1], says.size)
    pd.DataFrame({"judge": graded, "human": people}).to_csv(tmp_path / "t.csv", index=False)
    _, _, error = outcome("judge", tmp_path / "t.csv")
    assert "  4 or more is right: --class-names 3,4" in error.splitlines()
    arguments = ("judge", tmp_path / "t.csv", "--class-names", "3,4")
    record = json.loads(run_successfully(*arguments, "--json", "-"))
    assert record["corrected"] == json.loads(json.dumps(calviz.judge(says, people).to_dict()["corrected"]))  # fmt: skip
    assert record["grades"] == "'judge' is read so: 4 or more is right"
    assert f"{record['grades']}." in run_successfully(*arguments).splitlines()
    scale = json.loads(run_successfully(*arguments[:-1], "1,5", "--json", "-"))
    assert scale["naive"]["value"] == pytest.approx(np.mean((graded - 1) / 4))


def test_the_command_takes_questions_and_several_columns(tmp_path):
    says, people, question, system = questions(np.random.default_rng(2), 300, 2, 60)
    task = np.resize(["x", "y"], 300)[question]
    columns = {"judge": says, "human": people, "question": question, "system": system, "task": task, "minutes": np.linspace(0, 1, 600)}  # fmt: skip
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    arguments = ("--by", "system", "--by", "task", "--cluster", "question", "--json", "-")
    record = json.loads(run_successfully("judge", tmp_path / "t.csv", *arguments))
    expected = calviz.judge(says, people, {"system": system, "task": task}, cluster=question)
    assert record["corrected"] == json.loads(json.dumps(expected.to_dict()["corrected"]))
    assert set(record["differ"]) == {"system", "task"}
    # Elsewhere numbers are cut, as in other files.
    data = calviz.load(tmp_path / "t.csv")
    assert len(data.sliced("minutes").levels) == 10


def test_the_command_draws_the_rows_to_label_next(table, tmp_path):
    out = tmp_path / "next.csv"
    run_successfully("judge", table, "--next", 40, "--out", out)
    header, *lines = out.read_text().splitlines()
    rows = np.array([line.split(",") for line in lines], dtype=float)
    assert header == "row,label,chance"
    assert rows.shape == (2_000, 3)
    assert rows[:, 1].sum() == 40
    assert rows[:, 2].sum() == pytest.approx(190, rel=0.01)
    labelled = ~np.isnan(case("verdicts")[1])
    assert not labelled[rows[rows[:, 1] == 1, 0].astype(int) - 1].any()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--judge", "verdict"), "judged.csv: there is no column 'verdict'"),
        (("--human", "id"), "judged.csv, row 3, line 4, column 'id': 2 is not between 0 and 1"),
        (("--by", "id"), "'by' has 2,000 values, at most 1,000"),
        (("--next", "10"), "--next ROWS and --out FILE.csv go together"),
        (("--method", "nothing"), "nothing"),
        (("--confidence", "2"), "'--confidence' must lie between 0 and 1"),
    ],
)  # fmt: skip
def test_what_the_command_refuses(table, arguments, words):
    code, out, error = outcome("judge", table, *arguments)
    assert (code, out) == (2, "")
    assert words in error
    assert "Traceback" not in error


def test_a_file_without_a_judge_says_which_columns_it_has(tmp_path):
    (tmp_path / "t.csv").write_text("a,human\n1,0\n0,1\n")
    _, _, error = outcome("judge", tmp_path / "t.csv")
    assert "there is no column called 'judge' (there are a, human); say which column it is: --judge COL" in error  # fmt: skip


def test_labels_may_begin_late_in_the_file(tmp_path):
    says, people = case("verdicts")
    order = np.argsort(~np.isnan(people), kind="stable")
    lines = ["judge,human", *(f"{s:g},{'' if np.isnan(p) else int(p)}" for s, p in zip(says[order], people[order], strict=True))]  # fmt: skip
    (tmp_path / "late.csv").write_text("\n".join(lines) + "\n")
    record = json.loads(run_successfully("judge", tmp_path / "late.csv", "--json", "-"))
    assert record["labelled"] == 150


# ---- The sentences, with known truth

CLAIMED = [s.key for s in every_simulation() if s.claim.startswith("judge") and s.required]


@pytest.mark.slow
@pytest.mark.parametrize("key", CLAIMED)
def test_sentences_hold(key):
    one = SIMULATIONS[key]
    outcomes = one.outcomes(30, seed=1)
    assert one.holds(outcomes), np.mean(outcomes)
