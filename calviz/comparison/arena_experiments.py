"""The experiments of an arena: every method is fitted on the calibration rows of every model and judged on its evaluation rows."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from calviz.comparison.arena_results import SCORES, Experiment, MethodScore, ResultTable
from calviz.comparison.arena_sources import ArenaState, Key, Playable
from calviz.comparison.fitting import Division, Rows, fit_and_apply
from calviz.core.blocks import Stopped, available_cores, checkpoint, one_blas_thread, watching
from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED, RecalibratorSpec
from calviz.core.errors import CalvizError, InputError, reason_of
from calviz.core.predictions import Dataset
from calviz.data.loaded import EVAL_SPLITS, FIT_SPLITS, usual_split
from calviz.verdicts.analysis import evaluate

MethodOptions = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Which methods are fitted, and on which rows.

    Attributes
    ----------
    methods : tuple of str or "all"
        Keys of recalibrators; the uncalibrated model always takes part.
    division : Division
        If it is the default, files need a calibration and a test split.
    drawn : bool
        Whether files without these splits are divided at random.
    options : mapping of str to mapping
        Parameters of single methods.
    """

    methods: tuple[str, ...] | str = "all"
    division: Division = field(default_factory=Division)
    drawn: bool = False
    options: MethodOptions = field(default_factory=dict)

    @property
    def specs(self) -> list[RecalibratorSpec]:
        """Specs of the methods, the uncalibrated model first; "all" leaves out those that take columns, which most data sets lack."""
        specs = RECALIBRATORS.chosen(self.methods, self.options)
        return [s for s in specs if self.methods != "all" or not s.takes_columns]


def play_all(
    sources: Sequence[Playable],
    rules: Rules = Rules(),
    *,
    state: ArenaState | None = None,
    jobs: int | None = None,
    progress: Callable[[str, int, int, str], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> tuple[ResultTable, tuple[str, ...]]:
    """Run all experiments.

    Parameters
    ----------
    sources : sequence of Playable
    rules : Rules
    state : ArenaState, optional
        Saves results as they come, and provides those of an earlier run.
    jobs : int, optional
        Number of parallel workers; if left out, the number of available cores. Files are run in processes, predictions in
        memory in threads.
    progress : callable, optional
        Called as ``progress(name, done, total, problem)`` after each file; `problem` is "" if there was none.
    stop : callable, optional
        Polled during the work; once it returns True, the table holds only what is finished.

    Returns
    -------
    table : ResultTable
    problems : tuple of str
        Why files could not be used.

    Raises
    ------
    InputError
        If no source could be used.
    Stopped
        If it was stopped before anything was finished.
    """
    specs = rules.specs  # raises on unknown methods before any work
    saved = dict(state.done) if state is not None else {}
    results: list[tuple[Experiment, list[MethodScore]]] = []
    problems: list[str] = []
    stopped = stop or (lambda: False)
    workers = max(1, min(jobs or available_cores(), len(sources)))
    # Closed at once if the work ends early, so that no worker outlives it.
    with closing(_outcomes(sources, rules, frozenset(saved), workers, stopped)) as outcomes:
        for done, outcome in enumerate(outcomes, start=1):
            for experiment, scores in outcome.results:
                new = {key: score for key, score in scores.items() if key not in saved}
                if new and state is not None:
                    state.add(experiment, new)
                results.append((experiment, [saved.get(k, score) for k, score in scores.items()]))
            if outcome.problem:
                problems.append(outcome.problem)
            if progress is not None:
                progress(outcome.name, done, len(sources), outcome.problem)
    if not results:
        if stopped():
            raise Stopped
        first = problems[0] if problems else "there is nothing to run."
        several = (
            f"none of {len(problems):,} files can be used; the first: " if len(problems) > 1 else ""
        )
        raise InputError(f"{several}{first}", placed=True)
    # Sorted by name, because workers finish in random order.
    results.sort(key=lambda pair: pair[0])
    return ResultTable.of(results, methods=[spec.key for spec in specs]), tuple(problems)


# ---- One source


@dataclass(frozen=True)
class SourceOutcome:
    """Outcome of one source: its experiments, or the problem if there are none."""

    name: str
    results: tuple[tuple[Experiment, dict[Key, MethodScore]], ...] = ()
    problem: str = ""


def play(source: Playable, rules: Rules, finished: frozenset[Key] = frozenset()) -> SourceOutcome:
    """Run the experiments of one source; finished results are not computed again and only have placeholders in the outcome."""
    try:
        results = [
            _experiment(source, model, data, rules, finished)
            for model, data in source.models().items()
        ]
    except Stopped:
        raise
    except CalvizError as error:
        text = str(error)
        if isinstance(error, InputError) and error.repairs:
            text = f"{text.rstrip('.')} (repair {' or '.join(r.key for r in error.repairs)})."
        names = (source.name, "" if source.path is None else source.path.name)
        named = any(name and name in text for name in names)
        return SourceOutcome(source.name, problem=text if named else f"{source.name}: {text}")
    except MemoryError as error:
        return SourceOutcome(source.name, problem=reason_of(error))
    return SourceOutcome(source.name, tuple(results))


def _experiment(
    source: Playable, model: str, data: Dataset, rules: Rules, finished: frozenset[Key]
) -> tuple[Experiment, dict[Key, MethodScore]]:
    if not rules.division.given and not rules.drawn:
        _check_splits(data, model)
    rows = rules.division.rows(data)
    classes = 2 if data.kind == "confidence" else data.n_classes
    sizes = (rows.fit.rows, rows.evaluation.rows, classes)
    experiment = Experiment(source.benchmark, source.dataset, model, *sizes)
    digest = experiment_digest(data, rules.division)
    scores: dict[Key, MethodScore] = {}
    for spec in rules.specs:
        options = rules.options.get(spec.key, {})
        # Methods are named in a state with their parameters.
        key = (digest, f"{spec.key} {sorted(options.items())!r}" if options else spec.key)
        if key in finished:
            scores[key] = MethodScore(spec.key)  # placeholder for the result in the state
            continue
        checkpoint(f"{source.dataset}, {model}: {spec.label}")
        scores[key] = _score(data, spec, rows, options)
    return experiment, scores


def _score(
    data: Dataset, spec: RecalibratorSpec, rows: Rows, options: Mapping[str, Any]
) -> MethodScore:
    try:
        with one_blas_thread():
            fitted = fit_and_apply(data, spec, rows, options)
            evaluation = evaluate(fitted.calibrated, SCORES)
        scores = {key: evaluation[key].value for key in SCORES}
        seconds = 0.0 if spec.key == UNCALIBRATED else fitted.fit_seconds + fitted.apply_seconds
        missing = next((evaluation[k].reason for k in SCORES if not evaluation[k].available), None)
        return MethodScore(spec.key, scores, seconds, missing)
    except Stopped:
        raise
    except Exception as error:
        return MethodScore(spec.key, reason=reason_of(error))


def _check_splits(data: Dataset, model: str) -> None:
    usual = (usual_split(data.split_names, names) for names in (FIT_SPLITS, EVAL_SPLITS))
    if None in usual:
        have = ", ".join(data.split_names[:6])
        lack = f"calibration and test split (it has {have})" if have else "splits"
        raise InputError(
            f"'{model}' has no {lack}",
            remedy="name two (--fit-split, --eval-split), or let a share of the rows fit the maps (--fit-fraction)",
        )


def experiment_digest(data: Dataset, division: Division) -> str:
    """Return a hash of the rows of an experiment and of their division."""
    text = f"{data.fingerprint()} {sorted(division.given.items())!r}"
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


# ---- Workers


def _outcomes(
    sources: Sequence[Playable],
    rules: Rules,
    finished: frozenset[Key],
    workers: int,
    stop: Callable[[], bool],
) -> Generator[SourceOutcome, None, None]:
    ending = threading.Event()

    def check(_: str) -> None:
        if ending.is_set() or stop():
            raise Stopped

    def work(source: Playable) -> SourceOutcome:
        with watching(check):
            return play(source, rules, finished)

    if workers == 1:
        for source in sources:
            checkpoint(source.name)
            try:
                outcome = work(source)
            except Stopped:
                return
            yield outcome
        return
    if any(source.path is None for source in sources):
        pool = futures.ThreadPoolExecutor(workers)
        try:
            yield from _in_turn(lambda source: pool.submit(work, source), sources, workers, stop)
        finally:
            ending.set()
            pool.shutdown(wait=True, cancel_futures=True)
        return
    processes = futures.ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(rules, finished),
    )

    def submit(source: Playable) -> Future[SourceOutcome]:
        with _interrupts_held_back():
            return processes.submit(_play, source)

    try:
        yield from _in_turn(submit, sources, workers, stop)
        processes.shutdown(wait=True)
    except BrokenProcessPool:
        raise CalvizError(
            "a worker process was killed, perhaps because memory ran out; run it again with fewer jobs."
        ) from None
    except BaseException:
        # Running fits, which may take minutes, are not waited for.
        for process in list((processes._processes or {}).values()):
            process.terminate()
        processes.shutdown(wait=False, cancel_futures=True)
        raise


def _in_turn(
    submit: Callable[[Playable], Future[SourceOutcome]],
    sources: Iterable[Playable],
    workers: int,
    stop: Callable[[], bool],
) -> Iterator[SourceOutcome]:
    """Yield outcomes as they finish; only a few sources are submitted ahead, so that a stop does not wait for many."""
    left = iter(sources)
    waiting: set[Future[SourceOutcome]] = set()
    while True:
        # Number of submitted sources per worker: few, so that a stop does not wait for many.
        while len(waiting) < workers * 2 and not stop():
            source = next(left, None)
            if source is None:
                break
            waiting.add(submit(source))
        if not waiting:
            return
        ready, waiting = futures.wait(waiting, timeout=0.5, return_when=futures.FIRST_COMPLETED)
        for future in ready:
            try:
                yield future.result()
            except Stopped:
                continue
        if stop():
            for future in waiting:
                future.cancel()
            waiting = {future for future in waiting if not future.cancelled()}


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start worker processes without Ctrl+C, which would end in a traceback before they ignore it; it reaches this process afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    # Its start would lift the block.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_RULES: Rules = Rules()
_FINISHED: frozenset[Key] = frozenset()


def _begin(rules: Rules, finished: frozenset[Key]) -> None:
    """Set up a worker process; Ctrl+C is handled by its parent, with which it ends, however that ends."""
    global _RULES, _FINISHED
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _RULES, _FINISHED = rules, finished


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play(source: Playable) -> SourceOutcome:
    return play(source, _RULES, _FINISHED)
