"""Tables of runs for tests: `from study import make_runs, make_study`."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import narwhals as nw
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


def table_of_scores(
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


def runs_of_scores(
    scores: np.ndarray,
    axes: str = "benchmark algorithm seed",
    *,
    direction: str = "minimize",
    kept: np.ndarray | None = None,
    seed_shared: bool = True,
    **columns: Any,
) -> lt.Runs:
    """Runs with these scores, by `table_of_scores`: columns are roles by their names, `failed`, or else metafeatures.

    `kept` says which scores are in the table; those that are NaN are of failed runs.
    """
    table = table_of_scores(scores, axes, **columns)
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


# What tests call the columns of their tables, by role.
COLUMNS = {
    "score": ("loss", "acc", "score", "value", "y"),
    "algorithm": ("algorithm", "tool", "algo"),
    "benchmark": ("benchmark", "task"),
    "seed": ("seed", "rep"),
    "budget": ("budget", "step"),
    "family": ("family", "space"),
    "metafeatures": ("prior",),
}


def as_runs(table: Any, direction: Literal["minimize", "maximize"] = "minimize", **roles: Any) -> lt.Runs:
    """The runs of a table whose columns have one of the names in `COLUMNS`, where `roles` do not say otherwise."""
    given = {name for names in roles.values() for name in ([names] if isinstance(names, str | bool) else names or [])}
    left = [name for name in nw.from_native(table).collect_schema().names() if name not in given]
    named = {role: name for role, usual in COLUMNS.items() for name in reversed(usual) if name in left}
    if "metafeatures" in named:
        named["metafeatures"] = (named["metafeatures"],)
    if not {**named, **roles}.get("benchmark"):
        named.pop("family", None)
    return lt.Runs(table, **({"direction": direction} | named | roles))


def make_runs(
    algorithms: int | Sequence[str] = 3,
    benchmarks: int | Sequence[str] = 8,
    seeds: int | Sequence[Any] = 3,
    budgets: int | Sequence[Any] | None = None,
    families: Sequence[int] | None = None,
    priors: int | Sequence[str] | None = None,
    *,
    sds: Mapping[str, float] | None = None,
    shift: Sequence[float] | Mapping[str, float] | None = None,
    noise: float = 1.0,
    missing: float = 0.0,
    failed: float = 0.0,
    direction: Literal["minimize", "maximize"] = "minimize",
    rng: int | np.random.Generator = 1,
    **roles: Any,
) -> lt.Runs:
    """Runs with one row each (and per budget), in columns named after their roles: "algorithm", ..., "prior", "loss".

    A number of levels is named A, B, ...; b00, b01, ...; 0, 1, ...; 1, 2, ... (budgets); p0, p1, ...  `families` are
    their numbers of benchmarks (in place of `benchmarks`). The loss is the sum of `shift` by algorithm, one normal
    effect per level of each group in `sds` ("benchmark:algorithm"), in their order, and normal noise per row.
    `missing` is a share of rows that are left out, `failed` a share of runs without a score.  A role names its column:
    `algorithm="tool"`.
    """
    rng = np.random.default_rng(rng)
    if families is not None:
        benchmarks = sum(families)
    names = {
        "benchmark": [f"b{i:02d}" for i in range(benchmarks)] if isinstance(benchmarks, int) else benchmarks,
        "prior": [f"p{i}" for i in range(priors)] if isinstance(priors, int) else priors,
        "algorithm": (string.ascii_uppercase + string.ascii_lowercase)[:algorithms]
        if isinstance(algorithms, int)
        else algorithms,
        "seed": range(seeds) if isinstance(seeds, int) else seeds,
        "budget": range(1, budgets + 1) if isinstance(budgets, int) else budgets,
    }
    levels = {column: list(values) for column, values in names.items() if values is not None}
    table = pd.DataFrame(list(itertools.product(*levels.values())), columns=list(levels))
    if families is not None:
        family = np.repeat([f"f{i}" for i in range(len(families))], families)
        table["family"] = table["benchmark"].map(dict(zip(levels["benchmark"], family, strict=True)))
    if shift is None:
        loss = np.zeros(len(table))
    else:
        by_name = shift if isinstance(shift, Mapping) else dict(zip(levels["algorithm"], shift, strict=True))
        loss = table["algorithm"].map(by_name).fillna(0.0).to_numpy(dtype=float)
    for group, sd in ({"benchmark": 1.0, "benchmark:algorithm": 0.5} if sds is None else sds).items():
        level = table.groupby(group.split(":"), sort=False).ngroup().to_numpy()
        loss = loss + sd * rng.normal(size=level.max() + 1)[level]
    table["loss"] = loss + noise * rng.normal(size=len(table))
    if failed:
        run = table.groupby([column for column in levels if column != "budget"], sort=False).ngroup().to_numpy()
        table["loss"] = table["loss"].mask((rng.random(run.max() + 1) < failed)[run])
    if missing:
        table = table[rng.random(len(table)) >= missing].reset_index(drop=True)
    roles = {role: name for role, name in roles.items() if role in table or role not in ("budget", "family")}
    columns = {role: name for role, name in roles.items() if isinstance(name, str)}
    table = table.rename(columns={"loss": columns.get("score", "loss"), **columns})
    return as_runs(table, direction, **({"failed": "missing"} if failed else {}) | roles)


def make_table(*sizes: Any, **options: Any) -> pd.DataFrame:
    """The table of `make_runs`."""
    return make_runs(*sizes, **options).frame.to_native()
