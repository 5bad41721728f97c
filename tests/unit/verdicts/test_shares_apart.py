"""Two shares in a sentence differ by what the sentence says is between them."""

import re
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

import calviz
from calviz.core.words import decimal, points, share_decimals
from calviz.figures.hundred_squares import HundredSquares
from calviz.figures.reliability import Reliability
from calviz.report.content import Subject
from calviz.report.document import compose
from calviz.sample.sample import Sample

#: A mean score and a share of hits, and after or before them what lies between.
AFTER = r"([\d.]+) % but [a-z ]+?([\d.]+) %.*?(?:difference of |, )[−]?([\d.]+) points"
BEFORE = r"by ([\d.]+) points: mean confidence ([\d.]+) %, accuracy ([\d.]+) %"


@pytest.mark.parametrize("written", [1, 2])
def test_shares_as_written_differ_by_the_gap_as_written(written):
    rng = np.random.default_rng(0)
    wrong = 0
    for score, hits in rng.uniform(0, 1, (5_000, 2)).tolist():
        d = share_decimals(score, hits, written)
        apart = abs(Decimal(f"{100 * score:.{d}f}") - Decimal(f"{100 * hits:.{d}f}"))
        rounded = apart.quantize(Decimal(10) ** -written, ROUND_HALF_UP)
        wrong += str(rounded) != f"{abs(100 * (score - hits)):.{written}f}"
    # Where a gap is next to half a digit three decimals may not do; with one decimal it is one in four.
    assert wrong <= (0.01 if written == 1 else 0.05) * 5_000


def test_a_share_has_the_same_digits_in_percent_as_in_a_fraction():
    # Half a digit, which rounds either way once it has been multiplied by 100.
    for hits in range(1, 4_000, 2):
        share = hits / 4_000
        assert round(float(points(share, 2)) / 100, 4) == float(decimal(share, 4)), hits


def files():
    rng = np.random.default_rng(1)
    for seed in range(6):
        n = int(rng.integers(800, 4_000))
        p = rng.beta(0.6, 0.8, n)
        y = (rng.random(n) < p ** rng.uniform(0.6, 1.6)).astype(int)
        site = np.where(rng.random(n) < 0.5, "a", "b")
        yield calviz.Predictions(probs=p, labels=y, groups={"site": site})
        z = rng.normal(size=(n, 3))
        label = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        sharp = np.exp(z * rng.uniform(1.2, 2))
        probs = sharp / sharp.sum(axis=1, keepdims=True)
        yield calviz.Predictions(probs=probs, labels=label, name=f"{seed}")


@pytest.mark.slow
def test_sentences_do_the_sum():
    checked = set()
    for data in files():
        result = calviz.audit(data, resamples=100)
        messages = [(f.code, f.message) for f in result.findings]
        messages.append(("other view", result.verdict.other_view or ""))
        for code, text in messages:
            text = text.replace("\u00a0", " ")
            for a, b, gap in re.findall(AFTER, text):
                checked.add(code)
                assert f"{abs(float(a) - float(b)):.{len(gap.partition('.')[2])}f}" == gap, text
            for gap, a, b in re.findall(BEFORE, text):
                checked.add(code)
                assert f"{abs(float(a) - float(b)):.1f}" == gap, text
        head = next(m for c, m in messages if c == "CAL001").replace("\u00a0", " ")
        explained = calviz.explain(data)[0]
        if "(seen from" not in head:
            pair = re.search(r"([\d.]+) % against [a-z ]+?([\d.]+) %", head).groups()
            assert all(f"{share} percent" in explained for share in pair), (head, explained)
    assert {"CAL020", "other view"} <= checked


def far_apart_where_rounded():
    """Rows whose mean confidence is 84.44 % and whose accuracy is 73.06 %: with one decimal they would be 11.3 points apart, not 11.4."""
    n = 10_000
    hit = np.arange(n) < 7_306
    scores = np.full(n, 0.8444)
    return calviz.Predictions(probs=scores, labels=hit.astype(int))


def test_a_diagram_its_report_and_its_squares_do_the_sum():
    sample = Sample(far_apart_where_rounded(), resamples=50)
    diagram = Reliability.compute(sample)
    verdict = calviz.verdict(sample)
    for text in (diagram.describe(), HundredSquares.compute(verdict).describe()):
        assert "84.44 %" in text
        assert "73.06 %" in text
    report = compose(Subject(sample), date="").html()
    assert "The mean forecast is 84.44" in report
    assert re.search(r"<td[^>]*>84\.44.%</td>\s*<td[^>]*>73\.06.%</td>", report)
    assert re.search(r"<td[^>]*>0\.8444</td>\s*<td[^>]*>0\.7306</td>", report)
    drawn = diagram.plot()
    label = next(a.text for a in drawn.layout.annotations if a.text and "Frequency" in a.text)
    assert "84.44 %" in label
    assert "73.06 %" in label
    hover = next(t.hovertext for t in drawn.data if t.hovertext is not None)[0]
    assert "84.44 %" in hover
    assert "73.06 %" in hover
    assert "Gap 11.4 points" in hover
