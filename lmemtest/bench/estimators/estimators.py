"""Two estimators of the mean score of a learning pipeline: tuning in every repetition, or once for all of them.

A pipeline is tuned, trained and tested, and each step draws random numbers: how the data are split, how weights are
initialised, in which order examples come, which hyperparameters a search tries. The ideal estimator draws all of them
anew in each of its k repetitions and tunes every time, k (T + 1) trainings with T trials. With fixed tuning there are
T + k: hyperparameters are found once, and the repetitions draw anew all other sources or some of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.core.executors import Executor
from lmemtest.core.replicates import check_replicates, replicate
from lmemtest.core.result import Result, result
from lmemtest.core.validate import check_positive_int, resolve_rng
from lmemtest.core.words import counted, format_number, joined
from lmemtest.errors import ArgumentError, EstimationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Seeds = Mapping[str, int]
Pipeline = Callable[[Any, Seeds], float]
Tuner = Callable[[Pipeline, Seeds], Any]

TUNING = "tuning"  # the source of variation that belongs to the tuner
LARGEST_SEED = 2**31  # what every library takes for a seed


@result
class Estimate(Result):
    """The mean score of a pipeline over repetitions, and how it was made.

    Attributes
    ----------
    estimator : {"ideal", "fixed tuning"}
        Whether every repetition was tuned, or all have the hyperparameters of one tuning run.
    table : pandas.DataFrame
        One row per repetition: ``repetition`` from 1, ``score`` (NaN where it failed), ``failure`` (why, else None),
        ``n_trainings``, and ``seed_x`` for each source x, "tuning" included.
    hyperparameters : tuple
        Of each repetition (None where tuning failed), or the one that all share.
    randomized, fixed : tuple of str
        Sources with a new seed in each repetition, and those with the same seed in all.
    n_trainings, n_tuning : int
        Trainings in all, and those of them that the tuner asked for, failed ones included.
    notes : tuple of str
        What the standard error does not contain, and failures.
    """

    parts: ClassVar = {"repetitions": "table"}

    estimator: str
    table: pd.DataFrame
    hyperparameters: tuple[Any, ...]
    randomized: tuple[str, ...]
    fixed: tuple[str, ...]
    n_trainings: int
    n_tuning: int
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> NDArray[np.float64]:
        """Of the repetitions that gave one."""
        return self.table["score"].dropna().to_numpy(dtype=float)

    @property
    def mean(self) -> float:
        """Mean score."""
        return float(self.scores.mean())

    @property
    def sd(self) -> float:
        """Standard deviation of the scores; NaN with a single one."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else float("nan")

    @property
    def standard_error(self) -> float:
        """``sd / sqrt(k)``: that of the mean given the fixed sources."""
        return self.sd / float(np.sqrt(len(self.scores)))

    @property
    def title(self) -> str:
        """Which estimator of how many repetitions."""
        return f"Mean score of {counted(len(self.table), 'repetition')}, {_HOW[self.estimator]}"

    @property
    def facts(self) -> tuple[str, ...]:
        """Which sources were randomised, and what it cost."""
        new = joined(self.randomized) if self.randomized else "nothing"
        same = f"; the same in all: {joined(self.fixed)}" if self.fixed else ""
        return (
            f"New in each repetition: {new}{same}. "
            f"{counted(self.n_trainings, 'training')}, {self.n_tuning} of them for tuning.",
        )

    def shown(self) -> pd.DataFrame:
        """Repetitions with their scores, and failures if there are any."""
        failed = self.table["failure"].notna().any()
        return self.table[["repetition", "score", *(["failure"] if failed else [])]]

    def sentences(self) -> tuple[str, ...]:
        """Mean and standard error."""
        k = len(self.scores)
        error = f"standard error {format_number(self.standard_error)}" if k > 1 else "no standard error"
        return (f"The mean score is {format_number(self.mean)} ({error}, {counted(k, 'score')}).",)


_HOW = {"ideal": "each with its own tuning", "fixed tuning": "tuned once"}


def ideal_estimator(
    pipeline: Pipeline,
    tuner: Tuner,
    k: int,
    *,
    sources: Iterable[str],
    objective: Pipeline | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Estimate:
    """Estimate the mean score of a pipeline with every source of variation new in each repetition, tuning included.

    Parameters
    ----------
    pipeline : callable
        ``pipeline(hyperparameters, seeds)`` trains once and gives the score on test data, a finite number. `seeds`
        maps each of `sources` and "tuning" to an integer below 2^31.
    tuner : callable
        ``tuner(pipeline, seeds)`` gives hyperparameters. It trains by calling the function it is given; to give its
        trials seeds of their own it may call it with other seeds than those it got.
    k : int, >= 1
        Repetitions.
    sources : iterable of str
        What draws random numbers in `pipeline`, such as "data", "init", "order"; "tuning" is added.
    objective : callable, optional
        What the tuner gets instead of `pipeline`: the same training, scored on validation data.
    rng : int, numpy.random.Generator or None
        Two pipelines with the same `sources` and the same integer get the same seeds, so their repetitions are pairs.
    n_jobs : int
        Processes; -1 for one per processor. The result does not depend on it.
    executor : object with a ``map``, optional
        What computes instead, such as one of concurrent.futures or a client of Dask.
    progress : bool, optional
        Progress bar on standard error for what takes more than two seconds: always, never, or (None) on a terminal.

    Returns
    -------
    Estimate

    Raises
    ------
    ArgumentError
        If an argument is outside of its domain.
    EstimationError
        If no repetition gave a score.

    Notes
    -----
    IdealEst(k) of the reference. Its variance is ``sigma^2 / k``, as repetitions are independent. A repetition whose
    training or tuning raises an error, or whose score is not finite, has no score and is named in the notes; trainings
    are counted where they are asked for, so a tuner that trains in processes of its own goes uncounted.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, algorithm 1

    Examples
    --------
    >>> def pipeline(size, seeds):
    ...     data, init = (np.random.default_rng(seeds[name]).normal() for name in ("data", "init"))
    ...     return 0.8 - (size - 1 - 0.1 * data) ** 2 + 0.02 * init
    >>> def tuner(pipeline, seeds):
    ...     sizes = np.random.default_rng(seeds["tuning"]).uniform(0, 2, size=5)
    ...     return max(sizes, key=lambda size: pipeline(size, seeds))
    >>> found = ideal_estimator(pipeline, tuner, 20, sources=["data", "init"], rng=1)
    >>> round(found.mean, 2), found.n_trainings
    (0.74, 120)
    """
    names, k = _checked(pipeline, tuner, objective, sources), check_positive_int(k, "k")
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    task = functools.partial(_tune_and_train, names=names, pipeline=pipeline, tuner=tuner, objective=objective)
    done = replicate(
        task, k, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Repetitions", fewer="k"
    )
    return _estimate(
        "ideal",
        done,
        hyperparameters=tuple(run.hyperparameters for run in done),
        randomized=(*names, TUNING),
        fixed=(),
        n_tuning=sum(run.n_tuning for run in done),
        notes=_note_on_objective(objective),
    )


def fixed_tuning_estimator(
    pipeline: Pipeline,
    tuner: Tuner,
    k: int,
    *,
    sources: Iterable[str],
    randomize: str | Iterable[str] = "all",
    objective: Pipeline | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Estimate:
    """Estimate the mean score of a pipeline that is tuned once, with some sources of variation new in each repetition.

    Parameters
    ----------
    pipeline, tuner, k, sources, objective, rng, n_jobs, executor, progress
        As those of `ideal_estimator`.
    randomize : "all", str or iterable of str
        Those of `sources` that have a new seed in each repetition. The others keep the seeds of the tuning run.

    Returns
    -------
    Estimate

    Raises
    ------
    ArgumentError
        If an argument is outside of its domain.
    EstimationError
        If tuning failed, or no repetition gave a score.

    Notes
    -----
    FixHOptEst(k, subset) of the reference. All repetitions share the luck of the tuning run and of the fixed sources,
    so they are correlated, and the standard error of the estimate is that of the mean *given* this luck. What it
    leaves out is what `lmemtest.bench.estimators.quality` is about.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, algorithm 2

    Examples
    --------
    >>> def pipeline(size, seeds):
    ...     data, init = (np.random.default_rng(seeds[name]).normal() for name in ("data", "init"))
    ...     return 0.8 - (size - 1 - 0.1 * data) ** 2 + 0.02 * init
    >>> def tuner(pipeline, seeds):
    ...     sizes = np.random.default_rng(seeds["tuning"]).uniform(0, 2, size=5)
    ...     return max(sizes, key=lambda size: pipeline(size, seeds))
    >>> found = fixed_tuning_estimator(pipeline, tuner, 20, sources=["data", "init"], randomize="init", rng=1)
    >>> found.n_trainings, found.fixed
    (25, ('data', 'tuning'))
    """
    names, k = _checked(pipeline, tuner, objective, sources), check_positive_int(k, "k")
    new = randomized_of(randomize, names)
    check_replicates(n_jobs=n_jobs, executor=executor, progress=progress)
    rng = resolve_rng(rng)
    first = _draw_seeds((*names, TUNING), rng)
    tuned = _tune(tuner, objective or pipeline, first)
    if tuned.failure:
        raise EstimationError(f"{tuned.failure} (seeds {dict(first)}). Every repetition needs its hyperparameters.")
    task = functools.partial(_retrain, names=new, first=first, pipeline=pipeline, hyperparameters=tuned.hyperparameters)
    done = replicate(
        task, k, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Repetitions", fewer="k"
    )
    fixed = tuple(name for name in (*names, TUNING) if name not in new)
    left_out = (
        f"The standard error is that of repetitions with the same {joined(fixed)}. What these contribute moves all "
        "repetitions together and is not in it.",
    )
    return _estimate(
        "fixed tuning",
        done,
        hyperparameters=(tuned.hyperparameters,),
        randomized=new,
        fixed=fixed,
        n_tuning=tuned.n_tuning,
        notes=(*left_out, *_note_on_objective(objective)),
    )


def randomized_of(randomize: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """The sources that a subset means, in their order."""
    if isinstance(randomize, str) and randomize == "all":
        return names
    asked = (randomize,) if isinstance(randomize, str) else randomize
    asked = tuple(asked) if isinstance(asked, Iterable) and not isinstance(asked, (bytes, Mapping)) else (asked,)
    for name in asked:
        if name == TUNING and TUNING not in names:
            raise ArgumentError(
                f"randomize names {TUNING!r}, which is fixed in this estimator. Use ideal_estimator to tune in every "
                "repetition."
            )
        if name not in names:
            raise ArgumentError(f"randomize must be 'all' or some of the sources {list(names)}, got {name!r}.")
    return tuple(name for name in names if name in asked)


# ---------------------------------------------------------------------- repetitions


@dataclass(frozen=True, slots=True)
class _Repetition:
    """What became of a repetition."""

    seeds: Seeds
    score: float
    failure: str | None
    n_tuning: int
    n_final: int
    hyperparameters: Any = None


def _draw_seeds(names: tuple[str, ...], rng: np.random.Generator) -> dict[str, int]:
    return {name: int(rng.integers(LARGEST_SEED)) for name in names}


def _tune_and_train(
    rng: np.random.Generator, names: tuple[str, ...], pipeline: Pipeline, tuner: Tuner, objective: Pipeline | None
) -> _Repetition:
    seeds = _draw_seeds((*names, TUNING), rng)
    tuned = _tune(tuner, objective or pipeline, seeds)
    if tuned.failure:
        return tuned
    run = _train(pipeline, tuned.hyperparameters, seeds)
    return replace(run, n_tuning=tuned.n_tuning, hyperparameters=tuned.hyperparameters)


def _retrain(
    rng: np.random.Generator, names: tuple[str, ...], first: Seeds, pipeline: Pipeline, hyperparameters: Any
) -> _Repetition:
    return _train(pipeline, hyperparameters, {**first, **_draw_seeds(names, rng)})


def _tune(tuner: Tuner, objective: Pipeline, seeds: Seeds) -> _Repetition:
    """Hyperparameters and what they cost, or why there are none."""
    count, failure, hyperparameters = 0, None, None

    def counting(hyperparameters: Any, seeds: Seeds) -> float:
        nonlocal count
        count += 1
        return objective(hyperparameters, seeds)

    try:
        hyperparameters = tuner(counting, dict(seeds))
    except Exception as error:  # whatever a library raises: it is named, and other repetitions go on
        failure = f"tuning failed after {counted(count, 'training')} with {_said(error, seeds)}"
    return _Repetition(seeds, float("nan"), failure, count, 0, hyperparameters)


def _train(pipeline: Pipeline, hyperparameters: Any, seeds: Seeds) -> _Repetition:
    """The score of one training, or why there is none."""
    done = functools.partial(_Repetition, seeds, n_tuning=0, n_final=1)
    try:
        score = float(pipeline(hyperparameters, dict(seeds)))
    except Exception as error:  # as above
        reason = f"the training failed with {_said(error, seeds)}"
        return done(score=float("nan"), failure=reason)
    if not np.isfinite(score):
        return done(score=float("nan"), failure=f"the score is {score}")
    return done(score=score, failure=None)


def _said(error: Exception, seeds: Seeds) -> str:
    """An error of a library, with what to do where it asked for a seed that nobody named."""
    asked = error.args[0] if isinstance(error, KeyError) and error.args else None
    hint = isinstance(asked, str) and asked not in seeds
    return f"{type(error).__name__}: {error}{' (if it is a source of variation, name it in sources)' * hint}"


def _estimate(
    estimator: str, done: list[_Repetition], *, n_tuning: int, notes: tuple[str, ...], **how: Any
) -> Estimate:
    table = pd.DataFrame(
        {
            "repetition": np.arange(1, len(done) + 1),
            "score": [run.score for run in done],
            "failure": pd.Series([run.failure for run in done], dtype=object),
            "n_trainings": [run.n_tuning + run.n_final for run in done],
            **{f"seed_{name}": [run.seeds[name] for run in done] for name in done[0].seeds},
        }
    )
    failed = table[table["failure"].notna()]
    if len(failed) == len(table):
        raise EstimationError(
            f"none of {counted(len(table), 'repetition')} gave a score; the first: {failed['failure'].iloc[0]}."
        )
    if len(failed):
        first = failed.iloc[0]
        notes = (
            *notes,
            f"{counted(len(failed), 'repetition')} of {len(table)} without a score (repetition {first['repetition']}: "
            f"{first['failure']}). The mean is that of the others, and too good if failures go with bad scores.",
        )
    trainings = n_tuning + sum(run.n_final for run in done)
    return Estimate(estimator=estimator, table=table, n_trainings=trainings, n_tuning=n_tuning, notes=notes, **how)


def _note_on_objective(objective: Pipeline | None) -> tuple[str, ...]:
    if objective is not None:
        return ()
    return (
        "The tuner saw the scores of the pipeline itself. If these are scores on test data, the best of them is too "
        "good: give scores on validation data as objective.",
    )


def _checked(pipeline: Any, tuner: Any, objective: Any, sources: Any) -> tuple[str, ...]:
    """The names of the sources, all arguments being what they must be."""
    for value, name, takes in ((pipeline, "pipeline", "hyperparameters, seeds"), (tuner, "tuner", "pipeline, seeds")):
        if not callable(value):
            raise ArgumentError(f"{name} must be a function {name}({takes}), got {value!r}.")
    if objective is not None and not callable(objective):
        raise ArgumentError(
            f"objective must be a function objective(hyperparameters, seeds) or None, got {objective!r}."
        )
    names = (sources,) if isinstance(sources, str) else sources
    listed = isinstance(names, Iterable) and not isinstance(names, (bytes, Mapping))
    names = tuple(names) if listed else ()
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ArgumentError(f"sources must be names of sources of variation, each once, got {sources!r}.")
    for taken in ("all", TUNING):
        if taken in names:
            raise ArgumentError(
                f"sources must not hold {taken!r}, which has a meaning of its own; the source of the tuner is added."
            )
    return names
