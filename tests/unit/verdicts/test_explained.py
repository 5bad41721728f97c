"""Five sentences without a symbol, which say what the verdict says."""

import re

import numpy as np
import pytest

import calviz
from calviz.core.words import percent
from calviz.figures.hundred_squares import HundredSquares


def confidence(n, off, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.3, 0.9, n)
    return calviz.ConfidencePredictions(confidence=score, correct=rng.random(n) < score - off)


def classes(n, k):
    rng = np.random.default_rng(k)
    return calviz.Predictions(
        probs=rng.dirichlet(np.full(k, 0.3), n), labels=rng.integers(k, size=n)
    )


DATA = {
    "over": confidence(4_000, 0.1),
    "under": confidence(4_000, -0.08),
    "calibrated": confidence(4_000, 0.0),
    "blunt": confidence(80, 0.0),
    "few": confidence(20, 0.0),
    "one row": confidence(1, 0.0),
    "two classes": classes(2_000, 2),
    "many classes": classes(500, 300),
}


@pytest.mark.parametrize("name", DATA)
def test_five_sentences_that_agree_with_the_verdict(name):
    verdict, sentences = calviz.verdict(DATA[name]), calviz.explain(DATA[name])
    assert len(sentences) == 5
    assert all(re.fullmatch(r"[A-Z0-9].*\.", sentence) for sentence in sentences)
    text = " ".join(sentences)
    assert not set("%=<>≤≥±−+") & set(text)
    shown = percent(verdict.score, verdict.share_decimals)
    assert shown.removesuffix(" %") in sentences[0]
    assert shown in HundredSquares.compute(verdict).describe()
    # What is said of its size is said with the digits of the verdict.
    for size in re.findall(r"(?:by|below) (\d+\.\d+) points", verdict.sentence):
        assert f"{size} percentage points" in text
    assert ("correct them" in sentences[4]) == verdict.beyond_noise
    assert ("used as they are" in sentences[4]) == (verdict.direction == "calibrated")


def test_the_picture_has_the_numbers_of_the_verdict():
    verdict = calviz.verdict(DATA["over"])
    figure = HundredSquares.compute(verdict)
    assert figure.frame()["promised"].tolist() == [verdict.score, verdict.worst.mean_score]
    counts = {t.name: len(t.x) for t in figure.plot().data if t.xaxis == "x"}
    assert counts["came true"] == round(100 * verdict.observed)
    assert sum(counts.values()) == 100
    assert percent(verdict.observed) in figure.describe()
    # On a phone the panels stand one above the other, whatever rounding makes of their shares of the height.
    layout = figure.plot(width=350).layout
    assert layout.yaxis.domain[0] >= layout.yaxis2.domain[1] > layout.yaxis2.domain[0] >= 0


@pytest.mark.slow
def test_what_counts_differently_is_explained_as_it_is_judged():
    data = DATA["over"]
    weights = np.where(np.arange(data.n) % 2, 3.0, 0.5)
    verdict = calviz.verdict(data, sample_weight=weights)
    assert verdict.score != calviz.verdict(data).score
    assert (
        percent(verdict.score, verdict.share_decimals).removesuffix(" %")
        in calviz.explain(data, sample_weight=weights)[0]
    )


def test_shares_whose_rounded_difference_is_another_have_one_more_digit():
    # 52.86 and 50.46 differ by 2.4, 52.9 and 50.5 too; 52.94 and 50.56 by 2.38, but 52.9 and 50.6 by 2.3.
    def explanation(score, observed):
        rng = np.random.default_rng(0)
        labels = rng.permutation(np.arange(10_000) < round(10_000 * observed)).astype(int)
        return calviz.explain(calviz.Predictions(probs=np.full(10_000, score), labels=labels))

    assert "52.9 percent" in explanation(0.5286, 0.5046)[0]
    text = " ".join(explanation(0.5294, 0.5056))
    assert "by 2.4 percentage points" in text
    assert "52.94 percent" in text
    assert "50.56 percent" in text


def test_a_slight_gap_is_told_with_the_same_digits_everywhere():
    # Rare hits: two in ten thousand where twelve are promised, and a few rows that are right.
    probs = np.r_[np.full(40_000, 0.0012), np.full(2_000, 0.3)]
    labels = np.r_[np.arange(40_000) < 8, np.arange(2_000) < 600].astype(int)
    data = calviz.Predictions(probs=probs, labels=labels)
    verdict = calviz.verdict(data)
    assert abs(verdict.worst.gap) < 0.01
    [value] = [f.message for f in calviz.audit(data).findings if f.code == "CAL002"]
    sentences, figure = calviz.explain(data), HundredSquares.compute(verdict)
    for share in ("0.12", "0.02"):
        assert f"{share} %" in value.replace("\u00a0", " ")
        assert f"{share} percent" in sentences[2]
    # What is to be expected is between the two.
    assert 0.0002 <= verdict.worst.expected < 0.0012
    assert figure.panels[1].words.replace("\u00a0", " ") == "promised 0.12 %, to expect 0.02 %"
    # Both are fewer than one of a hundred: neither none, nor a difference.
    assert sentences[3].startswith("On average fewer than 1 of 100 rows come true")
