"""Record calibration results of R: loess, and the logistic line with its intervals.

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


def main() -> None:
    """Record all cases."""
    values, version = {}, ""
    for name, (score, hit) in cases().items():
        with tempfile.TemporaryDirectory() as folder:
            table, script = Path(folder) / "rows.csv", Path(folder) / "script.R"
            rows = "\n".join(
                f"{p!r},{y}" for p, y in zip(score.tolist(), hit.tolist(), strict=True)
            )
            table.write_text(f"p,y\n{rows}\n")
            script.write_text(SCRIPT)
            output = subprocess.run(
                ["Rscript", "--vanilla", script, table], capture_output=True, text=True, check=True
            ).stdout
        results = {line.split()[0]: line.split()[1:] for line in output.splitlines()}
        version = ".".join(results.pop("version"))
        values[name] = {key: [float(text) for text in texts] for key, texts in results.items()}
    record = {"versions": {"R": version}, "values": values}
    RECORDED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
