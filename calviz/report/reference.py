"""The documentation of all metrics, recalibrators and findings, from their registries, with the publications cited.

``python -m calviz.report.reference`` writes docs/reference.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from calviz.core.entry_specs import CHECKS, RECALIBRATORS
from calviz.core.errors import OptionError
from calviz.core.metric_spec import DIRECTION_WORDS, METRICS, Direction, Parameter
from calviz.core.words import capitalised, range_end
from calviz.data.loaded import Notice
from calviz.report.glossary import GLOSSARY, LIMITS, QUESTIONS

EntryKind = Literal["metric", "recalibrator", "finding"]


@dataclass(frozen=True)
class LearnEntry:
    """The documentation of a metric, a recalibrator or a finding.

    Attributes
    ----------
    key : str
        The name on the command line and in JSON.
    kind : {"metric", "recalibrator", "finding"}
    title, family, summary : str
    formula : str
        LaTeX; empty if there is none.
    facts : tuple of str
        Short remarks: what is better, whether the predicted class is kept.
    reference : str
    parameters : tuple of Parameter
        Parameters that a user may set.
    """

    key: str
    kind: EntryKind
    title: str
    family: str
    summary: str
    formula: str
    facts: tuple[str, ...]
    reference: str
    parameters: tuple[Parameter, ...] = ()


def _better(direction: Direction) -> str:
    if direction == "none":
        return "describes the data; neither direction is better"
    return f"{DIRECTION_WORDS[direction]} is better"


def _metrics() -> Iterator[LearnEntry]:
    for m in METRICS:
        low, high = m.bounds
        yield LearnEntry(
            m.key,
            "metric",
            m.label,
            m.family,
            m.summary,
            m.formula,
            (_better(m.direction), f"between {range_end(low)} and {range_end(high)}"),
            m.reference,
            m.parameters,
        )


def _recalibrators() -> Iterator[LearnEntry]:
    for r in RECALIBRATORS:
        keeps = "keeps" if r.accuracy_preserving else "may change"
        facts = [f"{keeps} the predicted class", f"computes with {r.needs}"]
        if r.confidence_only:
            facts.append("works on confidence-only data")
        yield LearnEntry(
            r.key,
            "recalibrator",
            r.label,
            r.family,
            r.summary,
            r.formula,
            tuple(facts),
            r.reference,
            r.parameters,
        )


def _findings() -> Iterator[LearnEntry]:
    for c in CHECKS:
        title = capitalised(c.title)
        yield LearnEntry(c.key, "finding", title, "Findings", "", "", (), c.reference)


def entries() -> tuple[LearnEntry, ...]:
    """Return all entries: metrics, then recalibrators, then findings."""
    return (*_metrics(), *_recalibrators(), *_findings())


def entry(key: str) -> LearnEntry:
    """Return the entry of a key.

    Raises
    ------
    OptionError
        If there is none.
    """
    for candidate in entries():
        if candidate.key == key:
            return candidate
    raise OptionError(f"there is no metric, recalibrator or finding '{key}'.")


# ---- Publications


@dataclass(frozen=True)
class Publication:
    """A publication.

    Attributes
    ----------
    short : str
        The form in which it is cited ("Guo et al. 2017").
    full : str
        Authors, title and where it appeared.
    """

    short: str
    full: str


SOURCES = tuple(
    Publication(short, full)
    for short, full in (
        (
            "Ao et al. 2023",
            "S. Ao, S. Rueger, A. Siddharthan. Two Sides of Miscalibration: Identifying Over and "
            "Under-Confidence Prediction for Network Calibration. UAI 2023.",
        ),
        (
            "Arrieta-Ibarra et al. 2022",
            "I. Arrieta-Ibarra, P. Gujral, J. Tannen, M. Tygert, C. Xu. Metrics of Calibration for Probabilistic "
            "Predictions. JMLR 23, 2022.",
        ),
        (
            "Austin & Steyerberg 2019",
            "P. C. Austin, E. W. Steyerberg. The Integrated Calibration Index (ICI) and related metrics "
            "for quantifying the calibration of logistic regression models. Statistics in Medicine 38.",
        ),
        (
            "Berta et al. 2025",
            "E. Berta, D. Holzmüller, M. I. Jordan, F. Bach. Rethinking Early Stopping: Refine, Then Calibrate. arXiv "
            "2501.19195, 2025.",
        ),
        (
            "Berta et al. 2026",
            "E. Berta, D. Holzmüller, M. I. Jordan, F. Bach. Structured Matrix Scaling for Multi-Class Calibration. "
            "arXiv 2511.03685; AISTATS 2026.",
        ),
        (
            "Berta, Braun et al. 2026",
            "E. Berta, S. Braun, D. Holzmüller, F. Bach, M. I. Jordan. A Variational Estimator for Lp Calibration "
            "Errors. arXiv 2602.24230, 2026.",
        ),
        (
            "Blasiok & Nakkiran 2023",
            "J. Błasiok, P. Nakkiran. Smooth ECE: Principled Reliability Diagrams via Kernel "
            "Smoothing. arXiv 2309.12236; ICLR 2024.",
        ),
        (
            "Brier 1950",
            "G. W. Brier. Verification of forecasts expressed in terms of probability. Monthly Weather "
            "Review 78.",
        ),
        (
            "Breiman et al. 1984",
            "L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone. Classification and Regression Trees. Wadsworth, 1984.",
        ),
        (
            "Buckland et al. 1997",
            "S. T. Buckland, K. P. Burnham, N. H. Augustin. Model Selection: An Integral Part of Inference. Biometrics 53, 1997.",
        ),
        (
            "Corbiere et al. 2019",
            "C. Corbière, N. Thome, A. Bar-Hen, M. Cord, P. Pérez. Addressing Failure Prediction by "
            "Learning Model Confidence. NeurIPS 2019.",
        ),
        (
            "Cox 1958",
            "D. R. Cox. Two further applications of a model for binary regression. Biometrika 45.",
        ),
        (
            "Davis & Goadrich 2006",
            "J. Davis, M. Goadrich. The relationship between Precision-Recall and ROC curves. ICML "
            "2006.",
        ),
        (
            "Debray et al. 2017",
            "T. P. A. Debray and 6 others. A guide to systematic review and meta-analysis of "
            "prediction model performance. BMJ 356, 2017.",
        ),
        (
            "Dimitriadis, Gneiting & Jordan 2021",
            "T. Dimitriadis, T. Gneiting, A. I. Jordan. Stable reliability diagrams for probabilistic "
            "classifiers. PNAS 118 (8). The CORP approach.",
        ),
        (
            "Franco et al. 2019",
            "C. Franco, R. J. A. Little, T. A. Louis, E. V. Slud. Comparative Study of Confidence Intervals for Proportions in Complex "
            "Sample Surveys. Journal of Survey Statistics and Methodology 7, 2019.",
        ),
        (
            "Geifman & El-Yaniv 2017",
            "Y. Geifman, R. El-Yaniv. Selective Classification for Deep Neural Networks. NeurIPS 2017.",
        ),
        (
            "Geifman, Uziel & El-Yaniv 2019",
            "Y. Geifman, G. Uziel, R. El-Yaniv. Bias-Reduced Uncertainty Estimation for Deep Neural "
            "Classifiers. ICLR 2019.",
        ),
        (
            "Green & Silverman 1994",
            "P. J. Green, B. W. Silverman. Nonparametric Regression and Generalized Linear Models: A roughness "
            "penalty approach. Chapman & Hall.",
        ),
        (
            "Guo et al. 2017",
            "C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger. On Calibration of Modern Neural Networks. "
            "ICML 2017.",
        ),
        (
            "Gupta & Ramdas 2022",
            "C. Gupta, A. Ramdas. Top-label calibration and multiclass-to-binary reductions. ICLR 2022.",
        ),
        (
            "Gupta et al. 2021",
            "K. Gupta, A. Rahimi, T. Ajanthan, T. Mensink, C. Sminchisescu, R. Hartley. Calibration of "
            "Neural Networks using Splines. ICLR 2021.",
        ),
        (
            "Hanley & McNeil 1982",
            "J. A. Hanley, B. J. McNeil. The meaning and use of the area under a receiver operating "
            "characteristic (ROC) curve. Radiology 143.",
        ),
        (
            "Harrell 2015",
            "F. E. Harrell. Regression Modeling Strategies, second edition. Springer, 2015.",
        ),
        (
            "Hartline, Hu & Wu 2026",
            "J. Hartline, L. Hu, Y. Wu. A Perfectly Truthful Calibration Measure. arXiv 2508.13100; COLT 2026.",
        ),
        (
            "Hendrycks & Gimpel 2017",
            "D. Hendrycks, K. Gimpel. A Baseline for Detecting Misclassified and Out-of-Distribution "
            "Examples in Neural Networks. ICLR 2017.",
        ),
        (
            "Hosmer & Lemeshow 1980",
            "D. W. Hosmer, S. Lemeshow. Goodness of fit tests for the multiple logistic regression "
            "model. Communications in Statistics 9.",
        ),
        (
            "Kuiper 1960",
            "N. H. Kuiper. Tests concerning random points on a circle. Indagationes Mathematicae 22.",
        ),
        (
            "Kadavath et al. 2022",
            "S. Kadavath, T. Conerly, A. Askell et al. Language Models (Mostly) Know What They Know. arXiv 2207.05221.",
        ),
        (
            "Kull et al. 2017",
            "M. Kull, T. Silva Filho, P. Flach. Beta calibration: a well-founded and easily implemented "
            "improvement on logistic calibration for binary classifiers. AISTATS 2017.",
        ),
        (
            "Kull et al. 2019",
            "M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach. Beyond "
            "temperature scaling: Obtaining well-calibrated multiclass probabilities with Dirichlet "
            "calibration. NeurIPS 2019.",
        ),
        (
            "Kumar et al. 2019",
            "A. Kumar, P. Liang, T. Ma. Verified Uncertainty Calibration. NeurIPS 2019.",
        ),
        (
            "Lee et al. 2023",
            "D. Lee, X. Huang, H. Hassani, E. Dobriban. T-Cal: An Optimal Test for the Calibration of Predictive "
            "Models. JMLR 24, 2023.",
        ),
        (
            "Lucena 2018",
            "B. Lucena. Spline-Based Probability Calibration. arXiv 1809.07751.",
        ),
        (
            "Miller et al. 1991",
            "M. E. Miller, S. L. Hui, W. M. Tierney. Validation techniques for logistic regression "
            "models. Statistics in Medicine 10.",
        ),
        (
            "Murphy 1973",
            "A. H. Murphy. A new vector partition of the probability score. Journal of Applied "
            "Meteorology 12.",
        ),
        (
            "Naeini et al. 2015",
            "M. P. Naeini, G. F. Cooper, M. Hauskrecht. Obtaining Well Calibrated Probabilities Using "
            "Bayesian Binning. AAAI 2015.",
        ),
        (
            "Nagelkerke 1991",
            "N. J. D. Nagelkerke. A note on a general definition of the coefficient of determination. "
            "Biometrika 78.",
        ),
        (
            "Nguyen and O'Connor 2015",
            "K. Nguyen, B. O'Connor. Posterior calibration and exploratory analysis for natural language "
            "processing models. EMNLP 2015.",
        ),
        (
            "Nixon et al. 2019",
            "J. Nixon, M. W. Dusenberry, L. Zhang, G. Jerfel, D. Tran. Measuring Calibration in Deep "
            "Learning. CVPR Workshops 2019.",
        ),
        (
            "Obadinma et al. 2021",
            "S. Obadinma, H. Guo, X. Zhu. Class-wise Calibration: A Case Study on COVID-19 Hate Speech. "
            "Canadian AI 2021.",
        ),
        (
            "Oron & Flournoy 2017",
            "A. P. Oron, N. Flournoy. Centered Isotonic Regression: Point and Interval Estimation for "
            "Dose-Response Studies. Statistics in Biopharmaceutical Research 9.",
        ),
        (
            "Platt 1999",
            "J. Platt. Probabilistic outputs for support vector machines and comparisons to regularized "
            "likelihood methods. Advances in Large Margin Classifiers.",
        ),
        (
            "Roelofs et al. 2022",
            "R. Roelofs, N. Cain, J. Shlens, M. C. Mozer. Mitigating Bias in Calibration Error "
            "Estimation. AISTATS 2022.",
        ),
        (
            "Somers 1962",
            "R. H. Somers. A new asymmetric measure of association for ordinal variables. American "
            "Sociological Review 27.",
        ),
        (
            "Spiegelhalter 1986",
            "D. J. Spiegelhalter. Probabilistic prediction in patient management and clinical trials. "
            "Statistics in Medicine 5.",
        ),
        (
            "Sturges 1926",
            "H. A. Sturges. The Choice of a Class Interval. Journal of the American Statistical "
            "Association 21.",
        ),
        (
            "Tian et al. 2023",
            "K. Tian, E. Mitchell, A. Zhou et al. Just Ask for Calibration: Strategies for Eliciting Calibrated Confidence "
            "Scores from Language Models Fine-Tuned with Human Feedback. EMNLP 2023.",
        ),
        (
            "Van Calster et al. 2019",
            "B. Van Calster, D. J. McLernon, M. van Smeden, L. Wynants, E. W. Steyerberg. Calibration: "
            "the Achilles heel of predictive analytics. BMC Medicine 17.",
        ),
        (
            "Van Hoorde et al. 2015",
            "K. Van Hoorde, S. Van Huffel, D. Timmerman, T. Bourne, B. Van Calster. A spline-based "
            "tool to assess and visualize the calibration of multiclass risk predictions. Journal of "
            "Biomedical Informatics 54.",
        ),
        (
            "Vickers & Elkin 2006",
            "A. J. Vickers, E. B. Elkin. Decision curve analysis: a novel method for evaluating "
            "prediction models. Medical Decision Making 26.",
        ),
        (
            "Vovk et al. 2015",
            "V. Vovk, I. Petej, V. Fedorova. Large-scale probabilistic predictors with and without guarantees of "
            "validity. NeurIPS 2015.",
        ),
        (
            "Wenger et al. 2020",
            "J. Wenger, H. Kjellström, R. Triebel. Non-Parametric Calibration for Classification. "
            "AISTATS 2020.",
        ),
        (
            "Widmann, Lindsten & Zachariah 2019",
            "D. Widmann, F. Lindsten, D. Zachariah. Calibration tests in multi-class classification: A "
            "unifying framework. NeurIPS 2019.",
        ),
        (
            "Zhang et al. 2020",
            "J. Zhang, B. Kailkhura, T. Y.-J. Han. Mix-n-Match: Ensemble and Compositional Methods for "
            "Uncertainty Calibration in Deep Learning. ICML 2020.",
        ),
    )
)


def sources_in(text: str) -> tuple[Publication, ...]:
    """Return the publications that a text cites."""
    return tuple(source for source in SOURCES if source.short in text)


# ---- docs/reference.md


_TITLES: dict[EntryKind, str] = {
    "metric": "Metrics",
    "recalibrator": "Recalibrators",
    "finding": "Findings",
}


def markdown() -> str:
    """Return the whole document; the same registries give the same text."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# What the numbers mean"
    yield ""
    yield "Made by `python -m calviz.report.reference` from the registries; change those, not this file."
    yield ""
    yield "## Which number when"
    yield ""
    for question in QUESTIONS:
        names = ", ".join(METRICS[key].label for key in question.metrics)
        yield f"- **{question.text}** {names}. {question.advice}"
    yield ""
    yield "## Limits"
    yield ""
    for limit in LIMITS:
        yield f"- {limit}"
    for kind, title in _TITLES.items():
        yield from _chapter(title, [e for e in entries() if e.kind == kind])
    yield ""
    yield "## Notices about a file"
    for notice in Notice:
        yield ""
        yield f"**{notice.value}**: {notice.title}"
    yield ""
    yield "## Glossary"
    yield ""
    for term in GLOSSARY:
        yield f"- **{term.word}.** {term.meaning}"
    yield ""
    yield "## References"
    yield ""
    for source in SOURCES:
        yield f"- *{source.short}.* {source.full}"


def _chapter(title: str, chapter: list[LearnEntry]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    family = ""
    for e in sorted(chapter, key=lambda e: _first(chapter, e.family)):
        if e.family not in (family, title):
            family = e.family
            yield ""
            yield f"### {family}"
        yield ""
        yield f"**{e.title}** (`{e.key}`)  " if e.summary else f"**{e.key}**: {e.title}"
        if e.summary:
            yield e.summary
        if e.formula:
            yield ""
            yield f"$${e.formula}$$"
        facts = list(e.facts)
        facts += [f"`{p.name}={p.default}`" for p in e.parameters]
        if e.summary:
            yield ""
            yield "; ".join(facts) + f". Source: {e.reference}."


def _first(chapter: list[LearnEntry], family: str) -> int:
    """Position of the first entry of a family."""
    return next(i for i, e in enumerate(chapter) if e.family == family)


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())
