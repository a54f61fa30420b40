"""Tables of runs for tests: `from study import make_runs, make_study`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt

NAMES = np.array([*"ABCDEFGHIJKLMNOPQRSTUVWXYZ"])  # of algorithms
ROLES = ("algorithm", "benchmark", "seed", "budget", "family")


def normal(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=size)


def make_scores(
    rng: np.random.Generator,
    counts: Mapping[str, int],
    sds: Mapping[str, Any],
    *,
    noise: Any = 1.0,
    law: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] = normal,
) -> np.ndarray:
    """Scores with an axis for each factor of `counts`: effects of the groups in `sds`, drawn in their order, and noise.

    A group ("benchmark:algorithm") has one effect per level, times its sd, or its sds ("...:algorithm", one for each
    algorithm). `noise` is a standard deviation, or an array of them that fits the scores; `law` draws the effects.
    """
    axes, total = list(counts), np.zeros(tuple(counts.values()))
    for group, sd in sds.items():
        factors = group.split(":")
        effects = np.asarray(sd) * law(rng, tuple(counts[factor] for factor in factors))
        order = np.argsort([axes.index(factor) for factor in factors])
        total += effects.transpose(order).reshape([n if axis in factors else 1 for axis, n in counts.items()])
    return total + noise * rng.normal(size=total.shape)


def make_table(
    scores: np.ndarray, axes: str = "benchmark algorithm seed", score: str = "score", **columns: Any
) -> pd.DataFrame:
    """One row per score, whose axes are columns: numbers, of algorithms letters.

    Other columns are arrays that fit the scores (a family: `families[:, None, None]`); under the name of an axis they
    are the labels of its levels.
    """
    names = axes.split()
    table = {}
    for name, place in zip(names, np.indices(scores.shape).reshape(scores.ndim, -1), strict=True):
        labels = NAMES if name == "algorithm" else np.arange(scores.shape[names.index(name)])
        table[name] = np.asarray(columns.get(name, labels))[place]
    table |= {name: np.broadcast_to(x, scores.shape).ravel() for name, x in columns.items() if name not in names}
    return pd.DataFrame({**table, score: scores.ravel()})


def make_runs(
    scores: np.ndarray,
    axes: str = "benchmark algorithm seed",
    *,
    direction: str = "minimize",
    kept: np.ndarray | None = None,
    seed_shared: bool = True,
    **columns: Any,
) -> lt.Runs:
    """Runs with these scores, by `make_table`: columns are roles by their names, `failed`, or else metafeatures.

    `kept` says which scores are in the table; those that are NaN are of failed runs.
    """
    table = make_table(scores, axes, **columns)
    if kept is not None:
        table = table[np.broadcast_to(kept, scores.shape).ravel()]
    roles: dict[str, Any] = {role: role for role in (*ROLES, "failed") if role in table}
    roles["metafeatures"] = [name for name in table if name not in roles and name != "score"]
    if (np.isnan(scores) & (True if kept is None else kept)).any():
        roles["failed"] = "missing"
    return lt.Runs(table, score="score", direction=direction, seed_shared=seed_shared, **roles)


def make_study(
    rng: np.random.Generator,
    counts: Mapping[str, int],
    sds: Mapping[str, float] | None = None,
    *,
    noise: float = 1.0,
    score: str = "loss",
) -> pd.DataFrame:
    """One row per combination of the factors in `counts`, first factor slowest; levels are integers.

    The score is the sum of one normal effect per level of each group in `sds` ("benchmark:algorithm"), drawn in their
    order, and of normal noise per row.
    """
    rows = itertools.product(*map(range, counts.values()))
    table = pd.DataFrame(list(rows), columns=list(counts))
    return table.assign(**{score: make_scores(rng, counts, sds or {}, noise=noise).ravel()})
