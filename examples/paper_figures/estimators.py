"""Two estimators of the mean score of a learning pipeline: tuning in every repetition, or once for all of them.

A pipeline is tuned, trained and tested, and each step draws random numbers: how the data are split, how weights are
initialised, in which order examples come, which hyperparameters a search tries. The ideal estimator draws all of them
anew in each of its k repetitions and tunes every time, k (T + 1) trainings with T trials. With fixed tuning there are
T + k: hyperparameters are found once, and the repetitions draw anew all other sources or some of them.

A pipeline is a function ``pipeline(hyperparameters, seeds)`` that trains once and gives a score, a tuner one
``tuner(pipeline, seeds)`` that trains by calling the function it is given and returns hyperparameters. `seeds` maps
each source of variation and "tuning" to an integer below 2^31.

Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.errors import ArgumentError, EstimationError
from paper_figures.draws import generators

Seeds = Mapping[str, int]
Pipeline = Callable[[Any, Seeds], float]
Tuner = Callable[[Pipeline, Seeds], Any]

TUNING = "tuning"  # the source of variation that belongs to the tuner
LARGEST_SEED = 2**31  # what every library takes for a seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Scores of repetitions, and what they cost.

    `table` has one row per repetition: ``repetition`` from 1, ``score`` (NaN where it failed), ``failure`` (why, else
    None), ``n_trainings``, and ``seed_x`` for each source x. `hyperparameters` are those of each repetition, or the
    one choice that all share; the sources in `fixed` have the same seed in all repetitions. `n_trainings` counts all
    that were asked for, failed ones included, and `n_tuning` those that the tuner asked for.
    """

    table: pd.DataFrame
    hyperparameters: tuple[Any, ...]
    fixed: tuple[str, ...]
    n_trainings: int
    n_tuning: int

    @property
    def scores(self) -> np.ndarray:
        """Of the repetitions that gave one: with failures their mean is too good if these go with bad scores."""
        return self.table["score"].dropna().to_numpy(dtype=float)

    @property
    def mean(self) -> float:
        """Mean score."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """That of the mean *given* the fixed sources, whose luck all repetitions share; NaN with a single score."""
        n = len(self.scores)
        return float(self.scores.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def ideal_estimator(
    pipeline: Pipeline,
    tuner: Tuner,
    k: int,
    *,
    sources: Iterable[str],
    objective: Pipeline | None = None,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """Estimate the mean score of a pipeline with every source of variation new in each repetition, tuning included.

    Parameters
    ----------
    pipeline, tuner : callable
        As above.
    k : int, >= 1
        Repetitions.
    sources : iterable of str
        What draws random numbers in `pipeline`, such as "data", "init", "order"; "tuning" is added.
    objective : callable, optional
        What the tuner gets instead of `pipeline`: the same training, scored on validation data. Without it the tuner
        sees the scores of the pipeline itself, and the best of them is too good if these are scores on test data.
    rng : int, numpy.random.Generator or None
        Two pipelines with the same `sources` and the same integer get the same seeds, so their repetitions are pairs.

    Notes
    -----
    IdealEst(k) of the reference; its variance is ``sigma^2 / k``. A repetition whose training or tuning raises an
    error, or whose score is not finite, has no score and says why.

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
    names = checked(sources)
    repetitions = []
    for generator in generators(rng, k):
        seeds = draw_seeds((*names, TUNING), generator)
        tuned = tune(tuner, objective or pipeline, seeds)
        trained = None if tuned.failure else train(pipeline, tuned.hyperparameters, seeds)
        repetitions.append(Repetition(seeds, tuned, trained))
    return estimate(repetitions, tuple(each.tuned.hyperparameters for each in repetitions), (), 0)


def fixed_tuning_estimator(
    pipeline: Pipeline,
    tuner: Tuner,
    k: int,
    *,
    sources: Iterable[str],
    randomize: str | Iterable[str] = "all",
    objective: Pipeline | None = None,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """Estimate the mean score of a pipeline that is tuned once, with some sources of variation new in each repetition.

    Parameters
    ----------
    pipeline, tuner, k, sources, objective, rng
        As those of `ideal_estimator`.
    randomize : "all", str or iterable of str
        Those of `sources` that have a new seed in each repetition. The others keep the seeds of the tuning run.

    Notes
    -----
    FixHOptEst(k, subset) of the reference. What its standard error leaves out is what `estimator_quality` is about.

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
    names = checked(sources)
    new = randomized_of(randomize, names)
    rng = np.random.default_rng(rng)
    first = draw_seeds((*names, TUNING), rng)
    tuned = tune(tuner, objective or pipeline, first)
    if tuned.failure:
        raise EstimationError(f"{tuned.failure} (seeds {first}). Every repetition needs its hyperparameters.")
    repetitions = []
    for generator in generators(rng, k):
        seeds = {**first, **draw_seeds(new, generator)}
        repetitions.append(Repetition(seeds, Tuned(), train(pipeline, tuned.hyperparameters, seeds)))
    fixed = tuple(name for name in (*names, TUNING) if name not in new)
    return estimate(repetitions, (tuned.hyperparameters,), fixed, tuned.n_trainings)


def randomized_of(randomize: str | Iterable[str], names: tuple[str, ...]) -> tuple[str, ...]:
    """The sources that a subset means, in their order."""
    if isinstance(randomize, str):
        randomize = names if randomize == "all" else (randomize,)
    asked = tuple(randomize)
    for name in asked:
        if name not in names:
            hint = " Use ideal_estimator to tune in every repetition." if name == TUNING else ""
            raise ArgumentError(f"randomize must be 'all' or some of the sources {list(names)}, got {name!r}.{hint}")
    return tuple(name for name in names if name in asked)


# ---------------------------------------------------------------------- repetitions


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search gave and how many trainings it asked for."""

    hyperparameters: Any = None
    n_trainings: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Repetition:
    """A search and the training after it, a score or the reason why there is none."""

    seeds: Seeds
    tuned: Tuned
    trained: float | str | None  # None where the search failed

    def row(self, number: int) -> dict[str, Any]:
        """Of the table of an estimate."""
        scored = isinstance(self.trained, float)
        return {
            "repetition": number,
            "score": self.trained if scored else float("nan"),
            "failure": None if scored else self.trained or self.tuned.failure,
            "n_trainings": self.tuned.n_trainings + (self.trained is not None),
            **{f"seed_{name}": seed for name, seed in self.seeds.items()},
        }


def draw_seeds(names: tuple[str, ...], rng: np.random.Generator) -> dict[str, int]:
    """A new seed for each source."""
    return {name: int(rng.integers(LARGEST_SEED)) for name in names}


def tune(tuner: Tuner, objective: Pipeline, seeds: Seeds) -> Tuned:
    """Hyperparameters and what they cost, or why there are none."""
    count = 0

    def counting(hyperparameters: Any, seeds: Seeds) -> float:
        nonlocal count
        count += 1
        return objective(hyperparameters, seeds)

    try:
        return Tuned(tuner(counting, dict(seeds)), count)
    except Exception as error:  # whatever a library raises: it is named, and other repetitions go on
        trainings = "1 training" if count == 1 else f"{count:,} trainings"
        return Tuned(None, count, f"tuning failed after {trainings} with {reason(error, seeds)}")


def train(pipeline: Pipeline, hyperparameters: Any, seeds: Seeds) -> float | str:
    """The score of one training, or why there is none."""
    try:
        score = float(pipeline(hyperparameters, dict(seeds)))
    except Exception as error:  # as above
        return f"the training failed with {reason(error, seeds)}"
    return score if np.isfinite(score) else f"the score is {score}"


def reason(error: Exception, seeds: Seeds) -> str:
    """An error of a library, with what to do where it asked for a seed that nobody named."""
    unnamed = isinstance(error, KeyError) and error.args and error.args[0] not in seeds
    return (
        f"{type(error).__name__}: {error}{' (if it is a source of variation, name it in sources)' if unnamed else ''}"
    )


def estimate(
    repetitions: list[Repetition], hyperparameters: tuple[Any, ...], fixed: tuple[str, ...], n_tuning: int
) -> Estimate:
    """Repetitions in a table, after a search of `n_tuning` trainings that all of them share."""
    table = pd.DataFrame([each.row(number) for number, each in enumerate(repetitions, start=1)])
    if table["score"].isna().all():
        raise EstimationError(f"none of {len(table)} repetitions gave a score; the first: {table['failure'].iloc[0]}.")
    return Estimate(
        table=table,
        hyperparameters=hyperparameters,
        fixed=fixed,
        n_trainings=n_tuning + int(table["n_trainings"].sum()),
        n_tuning=n_tuning + sum(each.tuned.n_trainings for each in repetitions),
    )


def checked(sources: Iterable[str]) -> tuple[str, ...]:
    """The names of the sources of a pipeline."""
    names = (sources,) if isinstance(sources, str) else tuple(sources)
    if not names or len(set(names)) < len(names):
        raise ArgumentError(f"sources must be names of sources of variation, each once, got {sources!r}.")
    for taken in ("all", TUNING):
        if taken in names:
            raise ArgumentError(
                f"sources must not hold {taken!r}, which has a meaning of its own; the source of the tuner is added."
            )
    return names
