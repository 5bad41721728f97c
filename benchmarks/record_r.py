"""Record calibration results of R: loess, the logistic line with its intervals, and random effects of sites (metafor).

    python -P benchmarks/record_r.py

Needs R (`Rscript` on the path) but not calviz. Writes ``tests/reference/recorded_r.json`` with the version. The inputs come from
`cases`, which the tests also call.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).parents[1] / "tests" / "reference" / "recorded_r.json"
#: Curves are recorded at every such row, in ascending order of the score.
EVERY = 25
SCRIPT = """
d <- read.csv(commandArgs(TRUE)[1])
out <- function(name, values) cat(name, formatC(values, digits = 15, format = "g"), "\\n")
direct <- loess(y ~ p, d, span = 0.75, degree = 2, control = loess.control(surface = "direct"))
usual <- loess(y ~ p, d, span = 0.75, degree = 2)
every <- seq(1, nrow(d), by = EVERY)
out("direct", predict(direct, d[every, "p", drop = FALSE]))
out("usual", predict(usual, d[every, "p", drop = FALSE]))
out("ici", mean(abs(fitted(usual) - d$p)))
z <- qlogis(d$p)
line <- glm(y ~ z, data = d, family = binomial, control = glm.control(epsilon = 1e-12))
shift <- glm(y ~ 1, offset = z, data = d, family = binomial, control = glm.control(epsilon = 1e-12))
out("line", c(coef(line), confint.default(line)))
out("shift", c(coef(shift), confint.default(shift)))
cat("version", R.version$major, R.version$minor, "\\n")
""".replace("EVERY", str(EVERY))


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Scores in ascending order, and hits, by name."""
    by_name = {}
    for name, n, decimals in (("small", 200, 12), ("tied", 600, 2), ("large", 2_000, 12)):
        # RandomState's stream never changes.
        random = np.random.RandomState(n)
        z = np.sort(1.5 * random.standard_normal(n))
        score = np.clip((1 / (1 + np.exp(-z))).round(decimals), 0.01, 0.99)
        hit = random.random_sample(n) < 1 / (1 + np.exp(-0.2 - 0.6 * z - 0.1 * z * z))
        by_name[name] = score, hit.astype(np.int64)
    return by_name


#: REML, without and with Hartung and Knapp's standard error (not below the usual one), Q, the interval of tau^2.
EFFECTS = """
suppressMessages(library(metafor))
d <- read.csv(commandArgs(TRUE)[1])
out <- function(name, values) cat(name, formatC(values, digits = 15, format = "g"), "\\n")
fine <- list(threshold = 1e-12, maxiter = 1000)
plain <- rma(yi = d$y, vi = d$v, method = "REML", control = fine)
own <- rma(yi = d$y, vi = d$v, method = "REML", test = "adhoc", control = fine)
out("tau2", plain$tau2)
out("mean", own$b)
out("interval", c(own$ci.lb, own$ci.ub))
out("q", c(plain$QE, plain$QEp))
out("tau2_interval", confint(plain, control = list(tau2.max = 1000, tol = 1e-10))$random[1, 2:3])
cat("version", as.character(packageVersion("metafor")), "\\n")
"""


def sites() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Estimates of sites and their variances, by name."""
    by_name = {}
    for name, k, tau in (
        ("three", 3, 0.3),
        ("same", 8, 0.0),
        ("some", 12, 0.2),
        ("apart", 40, 1.0),
    ):
        random = np.random.RandomState(k)
        v = random.uniform(0.005, 0.1, k)
        by_name[name] = (
            (1 + tau * random.standard_normal(k) + np.sqrt(v) * random.standard_normal(k)),
            v,
        )
    return by_name


def random_effects() -> dict[str, dict[str, list[float] | str]]:
    """Record the summaries of metafor."""
    return {name: _run(EFFECTS, "y,v", y.tolist(), v.tolist()) for name, (y, v) in sites().items()}


def _run(script: str, header: str, *columns: list[float]) -> dict[str, list[float] | str]:
    """Run a script on a table; return what it prints, and its version."""
    with tempfile.TemporaryDirectory() as folder:
        table, path = Path(folder) / "rows.csv", Path(folder) / "script.R"
        rows = "\n".join(",".join(map(repr, row)) for row in zip(*columns, strict=True))
        table.write_text(f"{header}\n{rows}\n")
        path.write_text(script)
        output = subprocess.run(
            ["Rscript", "--vanilla", path, table], capture_output=True, text=True, check=True
        ).stdout
    printed = {line.split()[0]: line.split()[1:] for line in output.splitlines()}
    version = ".".join(printed.pop("version"))
    return {key: [float(text) for text in texts] for key, texts in printed.items()} | {
        "version": version
    }


def main() -> None:
    """Record all cases."""
    values = {
        name: _run(SCRIPT, "p,y", *map(np.ndarray.tolist, case)) for name, case in cases().items()
    }
    version = {str(results.pop("version")) for results in values.values()}
    record = {
        "versions": {"R": version.pop()},
        "values": values,
        "random_effects": random_effects(),
    }
    RECORDED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
