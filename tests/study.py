"""Tables of runs for tests: `make_scores`, `make_table` and `make_runs` draw them; `table_of_scores`, `runs_of_scores`,
`blocks_of_scores` and `as_runs` give what is there its columns and roles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import ascii_letters
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.bench.data.blocks import Blocks

NAMES = np.array([*(ascii_letters[26:] + ascii_letters[:26])])  # of algorithms
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
Direction = Literal["minimize", "maximize"]


# ---------------------------------------------------------------------- what is there


def table_of_scores(
    scores: np.ndarray, axes: str = "benchmark algorithm seed", score: str = "score", **columns: Any
) -> pd.DataFrame:
    """One row per score, the first axis slowest, whose axes are columns: numbers, of algorithms letters.

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


def as_runs(table: Any, direction: Direction = "minimize", **roles: Any) -> lt.Runs:
    """The runs of a table whose columns have one of the names in `COLUMNS`, where `roles` do not say otherwise."""
    given = {name for names in roles.values() for name in ([names] if isinstance(names, str | bool) else names or [])}
    left = [name for name in nw.from_native(table).collect_schema().names() if name not in given]
    named = {role: name for role, usual in COLUMNS.items() for name in reversed(usual) if name in left}
    if "metafeatures" in named:
        named["metafeatures"] = (named["metafeatures"],)
    if not {**named, **roles}.get("benchmark"):
        named.pop("family", None)
    return lt.Runs(table, **({"direction": direction} | named | roles))


def runs_of_scores(
    scores: np.ndarray,
    axes: str = "benchmark algorithm seed",
    *,
    direction: Direction = "minimize",
    kept: np.ndarray | bool = True,
    seed_shared: bool = True,
    **columns: Any,
) -> lt.Runs:
    """Runs with these scores, by `table_of_scores`: columns are roles by their names, `failed`, or else metafeatures.

    `kept` says which scores are in the table; those that are NaN are of failed runs.
    """
    table = table_of_scores(scores, axes, **columns)
    if kept is not True:
        table = table[np.broadcast_to(kept, scores.shape).ravel()]
    failed = "failed" if "failed" in table else "missing" if (np.isnan(scores) & kept).any() else None
    metafeatures = [name for name in table if name not in (*COLUMNS, "failed", "score")]
    return as_runs(table, direction, metafeatures=metafeatures, failed=failed, seed_shared=seed_shared)


def blocks_of_scores(scores: Any, **facts: Any) -> Blocks:
    """Blocks b00, b01, ... of one instance each, with scores (block, algorithm) or (block, algorithm, run)."""
    runs = np.asarray(scores, dtype=float)
    runs = runs[:, :, None] if runs.ndim == 2 else runs
    names = tuple(f"b{i:02d}" for i in range(len(runs)))
    usual = {"algorithms": tuple(NAMES[: runs.shape[1]].tolist()), "instances": names, "names": names}
    usual |= {"block": np.arange(len(runs)), "unit": "benchmark", "score": "accuracy", "direction": "maximize"}
    return Blocks(runs=runs, **usual | facts)


# ---------------------------------------------------------------------- what is drawn


def normal(rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=size)


def make_scores(
    rng: np.random.Generator,
    counts: Mapping[str, int],
    sds: Mapping[str, Any],
    *,
    noise: Any = 1.0,
    law: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] = normal,
    start: Any = 0.0,
) -> np.ndarray:
    """Scores with an axis for each factor of `counts`: `start`, effects of the groups in `sds` in their order, noise.

    A group ("benchmark:algorithm") has one effect per level, times its sd, or its sds ("...:algorithm", one for each
    algorithm). `noise` is a standard deviation, or an array of them that fits the scores; `law` draws the effects.
    """
    axes, total = list(counts), np.zeros(tuple(counts.values())) + start
    for group, sd in sds.items():
        factors = group.split(":")
        effects = np.asarray(sd) * law(rng, tuple(counts[factor] for factor in factors))
        order = np.argsort([axes.index(factor) for factor in factors])
        total += effects.transpose(order).reshape([n if axis in factors else 1 for axis, n in counts.items()])
    return total + noise * rng.normal(size=total.shape)


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
    direction: Direction = "minimize",
    rng: int | np.random.Generator = 1,
    **roles: Any,
) -> lt.Runs:
    """Runs with one row each (and per budget), in columns named after their roles: "algorithm", ..., "prior", "loss".

    A number of levels is named A, B, ...; b00, b01, ...; 0, 1, ...; 1, 2, ... (budgets); p0, p1, ...  `families` are
    their numbers of benchmarks (in place of `benchmarks`). The loss is `shift` by algorithm and what `make_scores`
    adds. `missing` is a share of rows that are left out, `failed` a share of runs without a score.  A role names its
    column: `algorithm="tool"`.
    """
    rng = np.random.default_rng(rng)
    if families is not None:
        benchmarks = sum(families)
    names = {
        "benchmark": [f"b{i:02d}" for i in range(benchmarks)] if isinstance(benchmarks, int) else benchmarks,
        "prior": [f"p{i}" for i in range(priors)] if isinstance(priors, int) else priors,
        "algorithm": NAMES[:algorithms] if isinstance(algorithms, int) else algorithms,
        "seed": range(seeds) if isinstance(seeds, int) else seeds,
        "budget": range(1, budgets + 1) if isinstance(budgets, int) else budgets,
    }
    levels = {factor: list(values) for factor, values in names.items() if values is not None}
    counts = {factor: len(values) for factor, values in levels.items()}
    if isinstance(shift, Mapping):
        shift = [shift.get(name, 0.0) for name in levels["algorithm"]]
    start = 0.0 if shift is None else np.reshape(shift, [-1 if factor == "algorithm" else 1 for factor in counts])
    sds = {"benchmark": 1.0, "benchmark:algorithm": 0.5} if sds is None else sds
    sds = {":".join(sorted(group.split(":"), key=list(counts).index)): sd for group, sd in sds.items()}
    loss = make_scores(rng, counts, sds, noise=noise, start=start)
    if families is not None:
        family = np.repeat([f"f{i}" for i in range(len(families))], families)
        levels["family"] = family.reshape(-1, *[1] * (len(counts) - 1))
    if failed:
        runs = [n for factor, n in counts.items() if factor != "budget"]
        loss[rng.random(np.prod(runs)).reshape(runs) < failed] = np.nan
    table = table_of_scores(loss, " ".join(counts), "loss", **levels)
    if missing:
        table = table[rng.random(len(table)) >= missing].reset_index(drop=True)
    roles = {role: name for role, name in roles.items() if role in table or role not in ("budget", "family")}
    columns = {role: name for role, name in roles.items() if isinstance(name, str)}
    table = table.rename(columns={"loss": columns.get("score", "loss"), **columns})
    return as_runs(table, direction, **({"failed": "missing"} if failed else {}) | roles)


def make_table(*sizes: Any, **options: Any) -> pd.DataFrame:
    """The table of `make_runs`."""
    return make_runs(*sizes, **options).frame.to_native()
