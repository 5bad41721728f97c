"""Fuzz the readers with damaged files: each must be read, or refused in one sentence, quickly and in little memory.

    nice -n 15 python benchmarks/fuzz_readers.py --inputs 100000 [--seed 0] [--first 0] [--keep DIR]
    python benchmarks/fuzz_readers.py --only 12345          # repeat one input, with its traceback

Input number i of a seed is always the same. A worker reads one after the other in a process with limited memory (RLIMIT_AS); the
parent ends a worker that uses more than five seconds of processor time on one of them, or is silent for thirty. Errors other than
an `InputError` or `OptionError` of one short sentence, growth by more than 256 MiB, and predictions that violate their own rules
count as finds, and are kept as files if `--keep` names a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import select
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from _fuzz_mutations import mutate  # noqa: E402
from _fuzz_seeds import PREDICTIONS, TRUTH, seeds  # noqa: E402

#: Limits for one input in seconds, of processor time and of wall time.
SECONDS, PATIENCE = 5.0, 30.0
#: Limit for the growth of the process, in bytes: damaged files are small, so larger growth is a find.
GROWTH = 256 << 20
#: Address space allowed beyond that of the idle worker, in bytes.
SPACE = 3 << 30
_LONGEST_SENTENCE = 1_500


@dataclass
class Outcome:
    """Outcome of one input."""

    number: int
    name: str
    kind: str
    text: str = ""
    seconds: float = 0.0
    growth: int = 0


@dataclass
class Maker:
    """Makes input number i of a seed, always the same."""

    seed: int
    files: dict[str, bytes] = field(default_factory=seeds)

    def make(self, number: int) -> tuple[str, bytes, random.Random]:
        """Name and bytes of an input, and the generator for further draws."""
        rng = random.Random(f"{self.seed}/{number}")
        name = rng.choice(list(self.files))
        data = mutate(self.files[name], list(self.files.values()), rng)
        if rng.random() < 0.05:  # the content decides, not the name
            name = rng.choice(list(self.files))
        return name, data, rng


def options_for(rng: random.Random) -> Any:
    """Draw the reading options, mostly the defaults."""
    from calviz.data import REPAIRS, ReadingOptions

    if rng.random() < 0.75:
        return ReadingOptions()
    return ReadingOptions(
        repair=tuple(rng.sample(sorted(REPAIRS), rng.randrange(3))),
        kind=rng.choice((None, "probabilities", "logits")),
        label=rng.choice((None, None, None, "label", "labels", "p_cat")),
        scores=rng.choice((None, None, None, ("p_*",), ("probs",), ("p_cat", "p_dog"))),
        label_base=rng.choice((None, None, 1)),
        class_names=rng.choice((None, None, ("a", "b", "c"))),
        choices=rng.choice((None, None, "top", "each", "2", "3")),
    )


def attempt(name: str, data: bytes, options: Any) -> tuple[str, str]:
    """Read an input: ("read", ""), ("refused", sentence) or ("find", description)."""
    from calviz.core.errors import InputError, OptionError
    from calviz.data import LabelFile, read

    labels = LabelFile(TRUTH) if name == PREDICTIONS else None
    try:
        loaded = read(data, name=name, options=options, labels=labels)
        for model in loaded.models.values():
            check(model)
        assert "\n" not in loaded.recognition.sentence()
    except (InputError, OptionError) as error:
        text = str(error)
        fine = (
            len(text) < _LONGEST_SENTENCE and text.isprintable() and text.endswith((".", "?", "!"))
        )
        return ("refused", text) if fine else ("find", f"not one short sentence: {text[:300]!r}")
    except BaseException:  # a panic of a native library is not an Exception
        return "find", traceback.format_exc()
    return "read", ""


def check(model: Any) -> None:
    """Check that predictions satisfy the rules on which later code relies, and can be evaluated."""
    import numpy as np

    import calviz
    from calviz.core.predictions import Predictions

    if isinstance(model, Predictions):
        assert np.isfinite(model.probs).all()
        assert model.probs.min() >= -1e-6
        assert model.probs.max() <= 1 + 1e-6
        assert np.abs(model.probs.sum(axis=1, dtype=float) - 1).max() < 0.0201
        assert model.labels.min() >= 0
        assert model.labels.max() < model.n_classes
    else:
        assert np.isfinite(model.confidence).all()
    if model.n * max(1, model.n_classes) < 20_000:
        results = calviz.evaluate(
            model, ["accuracy", "nll", "brier", "ece"], classes=False, findings=False
        )
        assert all(np.isfinite(r.value) or r.reason or r.key == "nll" for r in results)


def _memory(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def _processor(process: int) -> float:
    """Processor time of a process in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def work(seed: int, first: int, last: int) -> None:
    """Read inputs first..last-1; prints each number before, and its outcome after."""
    warnings.simplefilter("error")
    maker = Maker(seed)
    for name, data in maker.files.items():  # imports, caches and threads do not count
        kind, text = attempt(name, data, options_for(random.Random("0/none")))
        assert kind != "find", text
    space = _memory("VmSize") + SPACE
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    for number in range(first, last):
        name, data, rng = maker.make(number)
        options = options_for(rng)
        print(json.dumps({"number": number, "name": name}), flush=True)
        _reset_peak()
        before, start = _memory("VmRSS"), time.process_time()
        kind, text = attempt(name, data, options)
        seconds = time.process_time() - start
        growth = _memory("VmHWM") - before
        if kind != "find" and growth > GROWTH:
            kind, text = "find", f"grew by {growth >> 20} MiB ({kind}: {text[:200]})"
        print(json.dumps([kind, text, seconds, growth]), flush=True)


class Run:
    """Drives workers through all inputs and counts the outcomes."""

    def __init__(self, seed: int, keep: Path | None) -> None:
        self.seed, self.keep, self.maker = seed, keep, Maker(seed)
        self.kinds: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.sentences: Counter[str] = Counter()
        self.finds: list[Outcome] = []
        self.slowest, self.largest = Outcome(-1, "", ""), Outcome(-1, "", "")

    def drive(self, first: int, last: int) -> None:
        """Run all inputs, with a new worker whenever one ends."""
        while first < last:
            first = self._worker(first, min(last, first + 20_000))

    def _worker(self, first: int, last: int) -> int:
        command = [sys.executable, __file__, "--worker", str(self.seed), str(first), str(last)]
        errors = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
            assert process.stdout is not None
            current, buffer = Outcome(first, "", ""), b""
            patience = 300.0  # for the imports
            worked, waited = 0.0, 0.0
            while True:
                if not select.select([process.stdout], [], [], patience)[0]:
                    # On a busy machine the worker may wait: only its processor time counts.
                    waited += patience
                    if waited < PATIENCE and _processor(process.pid) - worked < SECONDS:
                        continue
                    process.kill()
                    self._note(
                        Outcome(
                            current.number, current.name, "find", f"a hang of {SECONDS} s", SECONDS
                        )
                    )
                    return current.number + 1
                worked, waited = _processor(process.pid), 0.0
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    break
                buffer += chunk
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    if isinstance(message, dict):
                        current, patience = Outcome(message["number"], message["name"], ""), SECONDS
                        continue
                    current.kind, current.text, current.seconds, current.growth = message
                    self._note(current)
                    patience = 300.0 if current.number == last - 1 else SECONDS
            if process.wait() == 0:
                return last
            if not current.name:
                raise RuntimeError("the worker cannot read the undamaged files: see --worker 0 0 1")
            text = f"the process ended with code {process.returncode}"
            self._note(Outcome(current.number, current.name, "find", text))
            return current.number + 1

    def _note(self, outcome: Outcome) -> None:
        self.kinds[outcome.kind] += 1
        self.endings[outcome.name.split(".", 1)[-1]] += 1
        if outcome.kind == "refused":
            self.sentences[
                re.sub(r"'[^']*'|[-\d.,e+]+", "#", outcome.text.partition(": ")[2])[:60]
            ] += 1
        if outcome.seconds > self.slowest.seconds:
            self.slowest = outcome
        if outcome.growth > self.largest.growth:
            self.largest = outcome
        if outcome.kind == "find":
            self.finds.append(outcome)
            print(
                f"FIND {outcome.number} {outcome.name}: {outcome.text.strip()[-1500:]}\n",
                flush=True,
            )
            if self.keep is not None:
                self.keep.mkdir(parents=True, exist_ok=True)
                name, data, _ = self.maker.make(outcome.number)
                (self.keep / f"{outcome.number}_{name}").write_bytes(data)
        total = sum(self.kinds.values())
        if total % 5_000 == 0:
            print(f"{total:,} inputs: {dict(self.kinds)}", flush=True)

    def summary(self, seconds: float) -> str:
        """Summary of the run for the documentation."""
        total = sum(self.kinds.values())
        rows = [
            ("inputs", f"{total:,}"),
            ("read", f"{self.kinds['read']:,}"),
            ("refused in one sentence", f"{self.kinds['refused']:,}"),
            ("kinds of sentences", f"{len(self.sentences):,}"),
            ("finds", f"{self.kinds['find']:,}"),
            (
                "slowest",
                f"{self.slowest.seconds:.2f} s ({self.slowest.number}, {self.slowest.name})",
            ),
            (
                "most memory",
                f"{self.largest.growth / 2**20:.0f} MiB ({self.largest.number}, {self.largest.name})",
            ),
            ("per second", f"{total / seconds:.0f}"),
            ("files", ", ".join(f"{k} {v:,}" for k, v in sorted(self.endings.items()))),
        ]
        return "\n".join(f"| {key} | {value} |" for key, value in rows)


def main() -> int:
    """Run the command line; returns 1 if there are finds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", type=int)
    parser.add_argument("--worker", type=int, nargs=3, metavar=("SEED", "FIRST", "LAST"))
    arguments = parser.parse_args()
    if arguments.worker:
        work(*arguments.worker)
        return 0
    if arguments.only is not None:
        warnings.simplefilter("error")
        name, data, rng = Maker(arguments.seed).make(arguments.only)
        print(name, len(data), data[:400])
        print(*attempt(name, data, options_for(rng)))
        return 0
    start = time.monotonic()
    run = Run(arguments.seed, arguments.keep)
    run.drive(arguments.first, arguments.first + arguments.inputs)
    print(run.summary(time.monotonic() - start))
    return 1 if run.finds else 0


if __name__ == "__main__":
    sys.exit(main())
