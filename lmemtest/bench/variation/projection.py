"""What more items, prompts, judges or attempts would change: the standard error of a design from a pilot's variances.

With n_s units of source s, all combinations of which are run r times, a mean of scores has the variance

    sum over parts P of V_P / (product of n_s over the sources in P),

where the noise has the product of all of them and r (a decision study of generalizability theory). A source that is
nested in others has n_s units in each of theirs. A difference of two models has twice that.

Each V_P has an interval of its own; that of the sum is made of them by MOVER (Zou & Donner 2008), with the coefficients
1 / (product of n_s), as if estimates of different parts were uncorrelated; docs/developers/planning.md has how often it
holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.power.variance_components import TOGETHER
from lmemtest.bench.variation.trainings import NOISE, RESIDUAL, in_residual
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most as no_more
from lmemtest.core.validate import check_number, check_positive_int
from lmemtest.core.words import counted, format_number, joined, listed, percent
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.intervals.variance_intervals import Combinations

if TYPE_CHECKING:
    from lmemtest.bench.variation.variance_sources import VarianceSources
    from lmemtest.core.arrays import Array

REPEAT = "repeat"  # another run of the same combination of all sources
BEST = "best"  # the path of the best designs, beside those of sources
_MOST = 20  # units of a source but the first, where no limit is given
_MOST_DESIGNS = 1_000_000
_LATER = 2.0 ** np.linspace(0.0, 3.0, 10)  # of the current number of units, or cost, to look ahead


def project(
    study: VarianceSources,
    *,
    current: Mapping[str, int] | None = None,
    budget: float | None = None,
    costs: Mapping[str, float] | None = None,
    at_most: Mapping[str, int] | None = None,
) -> Answer:
    """The standard error of a crossed design, what one more unit of each source buys, and the best design for a budget.

    Parameters
    ----------
    study : VarianceSources
        Of ``variance_sources(table, sources=[...], model=...)``, or of the trainings of one pipeline.
    current : mapping of str to int >= 1, optional
        Units of each source; a source that is nested in others has so many in each of theirs. "repeat": runs of each
        combination, 1 by default. The first source is the one that a budget is spent on last. By default those of the
        study, with the mean number of what is nested.
    budget : float > 0, optional
        What may be spent; by default the cost of `current`.
    costs : mapping of str to float >= 0, optional
        Of a unit of a source, of each combination of several ("item:prompt"), or of each score ("score"), of one model.
        By default ``{"score": 1}``.
    at_most : mapping of str to int >= 1, optional
        Largest numbers of units; 20 of each source but the first where none is given, or all numbers of `current`.

    Returns
    -------
    Answer
        ``designs``: ``design`` ("current", "best"), ``n_x`` of each source, ``cost``, ``standard_error`` and its
        interval ``ci_low``, ``ci_high`` at the level of the study (NaN where a part has none); ``steps``: per source
        ``n`` with one unit more, ``cost``, ``standard_error``, ``gain`` (what the standard error falls by per unit of
        cost), ``floor`` (with units of that source without end); ``paths``: the same columns as ``designs`` for up to
        8 times the cost, ``path`` being a source of which there are more, or "best".

    Raises
    ------
    ArgumentError
        If a source is unknown or lacks a number, a number or cost breaks its rule, or the budget pays for no design.
    DesignError
        If the study has several pipelines, or sources whose variances it does not tell apart.

    Notes
    -----
    Which design is best is decided by the estimates; with few levels of a source they are hardly known, which intervals
    show. Effects are independent, and new units are drawn as those of the pilot were. Where no combination was run
    twice, what is left holds the noise and interactions without a number: it is taken to fall with the number of
    combinations, and repeats are not planned.

    References
    ----------
    Brennan (2001), Generalizability Theory, chapters 4 to 6, doi:10.1007/978-1-4757-3456-0; Zou & Donner (2008),
    doi:10.1002/sim.3095

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import lmemtest as lt
    >>> rng, shape = np.random.default_rng(2), (2, 40, 4, 3)
    >>> score = 0.2 * rng.normal(size=shape[:2])[:, :, None, None] + 0.1 * rng.normal(size=shape)
    >>> at = np.indices(shape).reshape(4, -1)
    >>> table = pd.DataFrame({"model": at[0], "item": at[1], "prompt": at[2], "judge": at[3], "score": score.ravel()})
    >>> study = lt.variance_sources(table, score="score", sources=["item", "prompt", "judge"], model="model")
    >>> plan = study.project()
    >>> plan.best["item"] > 200, plan.buys
    (True, 'item')
    """
    known, names = _sources_with_variances(study)
    repeats = NOISE in set(known["source"])
    every = [*names, *[REPEAT] * repeats]
    start = _counts(current, every, "current") if current is not None else _as_studied(study, names)
    if missing := [name for name in names if name not in start]:
        raise ArgumentError(f"current lacks {missing[0]!r}. Give units of each source: {listed(names)}.")
    start = {name: start.get(name, 1) for name in dict.fromkeys([*start, *every])}
    order = list(start)
    largest = _counts(at_most, every, "at_most")
    limits = dict.fromkeys(order[1:], _MOST) | largest
    within = {name: min(n, largest.get(name, n)) for name, n in start.items()}

    def units(part: str) -> Array:
        """The sources whose numbers multiply to the units of a part, as 0 and 1."""
        rest = part in (NOISE, RESIDUAL, "all sources", "score")
        of = set(order) - ({REPEAT} if part not in (NOISE, "score") else set()) if rest else set(part.split(":"))
        of |= {outer for name in of for outer in study.nested.get(name, ())}
        return np.array([name in of for name in order], dtype=float)

    powers = np.array([units(part) for part in known["source"]])
    factor = 2.0 if study.of == "differences" else 1.0
    variances = factor * known["variance"].to_numpy(dtype=float)
    prices = {"score": 1.0} if costs is None else dict(costs)
    for name in prices:
        check_number(prices[name], f"costs[{name!r}]", low=0)
        _counts(dict.fromkeys(name.split(":") if name != "score" else [], 1), every, "costs")
    paid = np.array([units(name) for name in prices])
    if not paid[np.array([*prices.values()]) > 0.0].sum(axis=0).all():
        raise ArgumentError("costs must say what more units of every source cost: give 'score', what each score costs.")

    def of(n: Array, parts: Array, amounts: Array, sign: float) -> Array:
        """Sums over parts of an amount times, or over, its number of units, of designs ``(m, sources)``."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(sign * np.log(n) @ parts.T) @ amounts)

    def error(n: Array) -> Array:
        return np.sqrt(of(n, powers, variances, -1.0))

    def cost(n: Array) -> Array:
        return of(n, paid, np.array([*prices.values()]), 1.0)

    low, high = (factor * known[end].to_numpy(dtype=float) ** 2 for end in ("ci_low", "ci_high"))
    ends = Combinations(variances, low, high)
    unknown = np.isnan(low)

    def table(designs: Array) -> pd.DataFrame:
        """Of designs ``(m, sources)``: units, cost and standard error with its interval."""
        shares = np.exp(-np.log(designs) @ powers.T)
        limits = np.array([ends.interval(row) for row in shares])
        limits[(shares[:, unknown] > 0.0).any(axis=1)] = np.nan
        errors = dict(zip(("ci_low", "ci_high"), np.sqrt(np.maximum(limits, 0.0)).T, strict=True))
        units = pd.DataFrame(designs.astype(int), columns=[f"n_{name}" for name in order])
        return units.assign(cost=cost(designs), standard_error=error(designs), **errors)

    now = np.array([[float(start[name]) for name in order]])
    spent, was = float(cost(now)[0]), float(error(now)[0])
    more = now + np.eye(len(order))
    endless = np.where(np.eye(len(order)) > 0.0, 1e12, now)
    steps = pd.DataFrame({"source": order, "n": more.diagonal().astype(int), "cost": cost(more)})
    steps = steps.assign(standard_error=error(more), floor=error(endless))
    steps["gain"] = (was - steps["standard_error"]) / (steps["cost"] - spent)
    money = spent if budget is None else check_number(budget, "budget", low=0, open="low")
    best, *later = _best(within, limits, cost, error, [money, *(spent * _LATER)])
    designs = table(np.vstack([now, best]))
    designs.insert(0, "design", ["current", BEST])
    paths = {BEST: np.unique(later, axis=0)}
    for at, name in enumerate(order):
        counts = np.unique(np.rint(start[name] * _LATER))
        counts = counts[counts <= max(limits.get(name, np.inf), start[name])]
        paths[name] = np.where(np.arange(len(order)) == at, counts[:, None], now)
    parts = [table(path).assign(path=name).sort_values("cost", kind="stable") for name, path in paths.items()]
    buys = str(steps["source"].iloc[int(steps["gain"].argmax())])
    words = " x ".join(counted(int(n), name) for name, n in zip(order, best, strict=True))
    what = "a difference" if study.of == "differences" else "a mean"
    before, after = (_with_interval(row) for row in designs.to_dict("records"))
    return Answer(
        question="project",
        title=f"Standard error of {what} of {study.score}, by design",
        tables={"designs": designs, "steps": steps, "paths": pd.concat(parts, ignore_index=True)},
        values={"best": dict(zip(order, best.astype(int).tolist(), strict=True)), "buys": buys, "budget": money,
                "alpha": study.alpha, "of": study.of, "score": study.score},
        facts=(
            "n_x: units of source x (in each of those that it is nested in). Costs are those of one model.",
            f"{percent(1.0 - study.alpha)} intervals of standard errors: those of the variances, combined by MOVER.",
        ),
        findings=(
            f"At the current design one more {buys} reduces the standard error most for its cost.",
            f"For a cost of {format_number(money)} the best design is {words}: standard error {after}, now {before}.",
        ),
        notes=(
            "Which design is best is decided by the estimated variances; the plan is as good as they are.",
            *["No combination was run twice, so repeats are not planned."] * (not repeats),
        ),
        figure="projection_plot",
    )  # fmt: skip


def _sources_with_variances(study: VarianceSources) -> tuple[pd.DataFrame, list[str]]:
    """The parts whose variances a study has, and the names of its sources; refused where some source has none."""
    if study.of == "runs" or study.by or TOGETHER in "".join(study.sources["source"]):
        raise DesignError(
            "a projection needs the sources of one study of trainings or of models, each with its own variance: "
            "variance_sources(table, sources=[...], model=...)."
        )
    known = study.sources.dropna(subset="variance")
    names = [
        name for name, kind in zip(study.sources["source"], study.sources["kind"], strict=True) if kind == "source"
    ]
    lost = [name for name in names if name not in {*known["source"], *in_residual(study.sources)}]
    if lost:
        raise DesignError(f"{joined(lost)} has no variance in this study, so that nothing says what more of it change.")
    if taken := [name for name in names if name in (REPEAT, BEST)]:
        raise DesignError(f"a source is called {taken[0]!r}, which has a meaning in a projection. Rename the column.")
    return known, names


def _as_studied(study: VarianceSources, names: list[str]) -> dict[str, int]:
    """The units of each source that the study has, of nested ones the mean number in each of theirs."""
    n = study.sources.set_index("source")["n"]
    within = {name: prod(int(n[outer]) for outer in study.nested.get(name, ())) for name in names}
    return {name: max(round(int(n[name]) / within[name]), 1) for name in names}


def _with_interval(row: Mapping[Any, Any]) -> str:
    """A standard error with its interval, where there is one."""
    value, low, high = (format_number(row[name]) for name in ("standard_error", "ci_low", "ci_high"))
    return value if np.isnan(row["ci_low"]) else f"{value} ({low} to {high})"


def _counts(given: Any, names: list[str], argument: str) -> dict[str, int]:
    """Numbers of units of some sources."""
    for name in given or {}:
        if name not in names:
            raise ArgumentError(f"{argument} names {name!r}, which is no source. Sources: {listed(names)}.")
        check_positive_int(given[name], f"{argument}[{name!r}]")
    return {name: int(n) for name, n in (given or {}).items()}


def _best(
    start: Mapping[str, int], limits: Mapping[str, int], cost: Any, error: Any, budgets: Sequence[float]
) -> list[Array]:
    """Of all designs within each budget the one with the smallest error; of equal ones the cheapest.

    Costs are linear in the units of the first source and errors fall with them, so that it has as many as are paid for.
    """
    if np.prod([float(limits[name]) for name in [*start][1:]]) > _MOST_DESIGNS:
        raise ArgumentError(f"at_most leaves over {_MOST_DESIGNS:,} designs to look at: give smaller numbers.")
    main, *order = start
    others = np.array([*product(*(range(1, limits[name] + 1) for name in order))], dtype=float)
    others = np.vstack([others, [start[name] for name in order]])
    one = cost(np.column_stack([np.ones(len(others)), others]))
    each = cost(np.column_stack([np.full(len(others), 2.0), others])) - one
    best = []
    for budget in budgets:
        first = np.minimum(np.floor((budget - one) / each * (1.0 + 1e-12)) + 1.0, limits.get(main, np.inf))
        possible = np.column_stack([first, others])[first >= 1.0]
        if not len(possible):
            raise ArgumentError(f"budget is {budget:g}, and one unit of each source costs {one.min():g}.")
        errors = error(possible)
        tied = possible[[no_more(value, float(errors.min())) for value in errors]]
        best.append(tied[int(np.argmin(cost(tied)))])
    return best
