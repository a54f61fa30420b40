"""What more items, prompts, judges or attempts would change: the standard error of a design from a pilot's variances.

With n_s units of source s, all combinations of which are run r times, a mean of scores has the variance

    sum over parts P of V_P / (product of n_s over the sources in P),

where the noise has the product of all of them and r (a decision study of generalizability theory). A source that is
nested in others has n_s units in each of theirs. A difference of two models has twice that.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.power.components import TOGETHER
from lmemtest.bench.variation.trainings import NOISE, RESIDUAL, in_residual
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most as no_more
from lmemtest.core.validate import check_number, check_positive_int
from lmemtest.core.words import counted, format_number, joined, listed
from lmemtest.errors import ArgumentError, DesignError

if TYPE_CHECKING:
    from lmemtest.bench.variation.variance_sources import VarianceSources
    from lmemtest.core.arrays import Array

REPEAT = "repeat"  # another run of the same combination of all sources
_MOST = 20  # units of a source but the first, where no limit is given
_MOST_DESIGNS = 1_000_000


def project(
    study: VarianceSources,
    *,
    current: Mapping[str, int],
    budget: float | None = None,
    costs: Mapping[str, float] | None = None,
    at_most: Mapping[str, int] | None = None,
) -> Answer:
    """The standard error of a crossed design, what one more unit of each source buys, and the best design for a budget.

    Parameters
    ----------
    study : VarianceSources
        Of ``variance_sources(table, sources=[...], model=...)``, or of the trainings of one pipeline.
    current : mapping of str to int >= 1
        Units of each source; a source that is nested in others has so many in each of theirs. "repeat": runs of each
        combination, 1 by default. The first source is the one that a budget is spent on last.
    budget : float > 0, optional
        What may be spent; by default the cost of `current`.
    costs : mapping of str to float >= 0, optional
        Of a unit of a source, of each combination of several ("item:prompt"), or of each score ("score"), of one model.
        By default ``{"score": 1}``.
    at_most : mapping of str to int >= 1, optional
        Largest numbers of units; 20 of each source but the first where none is given.

    Returns
    -------
    Answer
        ``designs``: ``design`` ("current", "best"), ``n_x`` of each source, ``cost``, ``standard_error``; ``steps``:
        per source ``n`` with one unit more, ``cost``, ``standard_error``, ``gain`` (what the standard error falls by
        per unit of cost), ``floor`` (with units of that source without end).

    Raises
    ------
    ArgumentError
        If a source is unknown or lacks a number, a number or cost breaks its rule, or the budget pays for no design.
    DesignError
        If the study has several pipelines, or sources whose variances it does not tell apart.

    Notes
    -----
    The variances are taken as known; with few levels of a source they hardly are. Effects are independent, and new
    units are drawn as those of the pilot were. Where no combination was run twice, what is left holds the noise and
    interactions without a number: it is taken to fall with the number of combinations, and repeats are not planned.

    References
    ----------
    Brennan (2001), Generalizability Theory, chapters 4 and 5, doi:10.1007/978-1-4757-3456-0

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import lmemtest as lt
    >>> rng, shape = np.random.default_rng(2), (2, 40, 4, 3)
    >>> score = 0.2 * rng.normal(size=shape[:2])[:, :, None, None] + 0.1 * rng.normal(size=shape)
    >>> at = np.indices(shape).reshape(4, -1)
    >>> table = pd.DataFrame({"model": at[0], "item": at[1], "prompt": at[2], "judge": at[3], "score": score.ravel()})
    >>> study = lt.variance_sources(table, score="score", sources=["item", "prompt", "judge"], model="model")
    >>> plan = study.project(current={"item": 40, "prompt": 4, "judge": 3})
    >>> plan.best["item"] > 200, plan.buys
    (True, 'item')
    """
    if study.of == "runs" or study.by or TOGETHER in "".join(study.sources["source"]):
        raise DesignError(
            "a projection needs the sources of one study of trainings or of models, each with a variance of its own: "
            "variance_sources(table, sources=[...], model=...)."
        )
    known = study.sources.dropna(subset="variance")
    names = [
        name for name, kind in zip(study.sources["source"], study.sources["kind"], strict=True) if kind == "source"
    ]
    lost = [name for name in names if name not in {*known["source"], *in_residual(study.sources)}]
    if lost:
        raise DesignError(f"{joined(lost)} has no variance in this study, so that nothing says what more of it change.")
    repeats = NOISE in set(known["source"])
    every = [*names, *[REPEAT] * repeats]
    start = _counts(current, every, "current")
    if missing := [name for name in names if name not in start]:
        raise ArgumentError(f"current lacks {missing[0]!r}. Give units of each source: {listed(names)}.")
    start = {name: start.get(name, 1) for name in dict.fromkeys([*start, *every])}
    order = list(start)
    limits = dict.fromkeys(order[1:], _MOST) | _counts(at_most, every, "at_most")

    def units(part: str) -> Array:
        """The sources whose numbers multiply to the units of a part, as 0 and 1."""
        rest = part in (NOISE, RESIDUAL, "all sources", "score")
        of = set(order) - ({REPEAT} if part not in (NOISE, "score") else set()) if rest else set(part.split(":"))
        of |= {outer for name in of for outer in study.nested.get(name, ())}
        return np.array([name in of for name in order], dtype=float)

    powers = np.array([units(part) for part in known["source"]])
    variances = (2.0 if study.of == "differences" else 1.0) * known["variance"].to_numpy(dtype=float)
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

    now = np.array([[float(start[name]) for name in order]])
    spent, was = float(cost(now)[0]), float(error(now)[0])
    more = now + np.eye(len(order))
    endless = np.where(np.eye(len(order)) > 0.0, 1e12, now)
    steps = pd.DataFrame({"source": order, "n": more.diagonal().astype(int), "cost": cost(more)})
    steps = steps.assign(standard_error=error(more), floor=error(endless))
    steps["gain"] = (was - steps["standard_error"]) / (steps["cost"] - spent)
    money = spent if budget is None else check_number(budget, "budget", low=0, open="low")
    best = _best(order, limits, cost, error, money)
    designs = pd.DataFrame(np.vstack([now, best]).astype(int), columns=[f"n_{name}" for name in order])
    designs.insert(0, "design", ["current", "best"])
    designs = designs.assign(cost=cost(np.vstack([now, best])), standard_error=error(np.vstack([now, best])))
    buys = str(steps["source"].iloc[int(steps["gain"].argmax())])
    words = " x ".join(counted(int(n), name) for name, n in zip(order, best[0], strict=True))
    what = "a difference" if study.of == "differences" else "a mean"
    return Answer(
        question="project",
        title=f"Standard error of {what} of {study.score}, by design",
        tables={"designs": designs, "steps": steps},
        values={"best": dict(zip(order, best[0].astype(int).tolist(), strict=True)), "buys": buys, "budget": money},
        facts=("n_x: units of source x (in each of those that it is nested in). Costs are those of one model.",),
        findings=(
            f"At the current design one more {buys} reduces the standard error most for its cost.",
            f"For a cost of {format_number(money)} the best design is {words}: standard error "
            f"{format_number(float(designs['standard_error'].iloc[1]))}, now {format_number(was)}.",
        ),
        notes=(
            "The variances are taken as known; the plan is as good as they are.",
            *["No combination was run twice, so repeats are not planned."] * (not repeats),
        ),
    )


def _counts(given: Any, names: list[str], argument: str) -> dict[str, int]:
    """Numbers of units of some sources."""
    for name in given or {}:
        if name not in names:
            raise ArgumentError(f"{argument} names {name!r}, which is no source. Sources: {listed(names)}.")
        check_positive_int(given[name], f"{argument}[{name!r}]")
    return {name: int(n) for name, n in (given or {}).items()}


def _best(order: list[str], limits: Mapping[str, int], cost: Any, error: Any, budget: float) -> Array:
    """Of all designs within a budget the one with the smallest error; of equal ones the cheapest.

    Costs are linear in the units of the first source and errors fall with them, so that it has as many as are paid for.
    """
    if np.prod([float(limits[name]) for name in order[1:]]) > _MOST_DESIGNS:
        raise ArgumentError(f"at_most leaves over {_MOST_DESIGNS:,} designs to look at: give smaller numbers.")
    others = np.array(list(product(*(range(1, limits[name] + 1) for name in order[1:]))), dtype=float)
    one = np.column_stack([np.ones(len(others)), others])
    two = np.column_stack([np.full(len(others), 2.0), others])
    each = cost(two) - cost(one)
    first = np.minimum(np.floor((budget - cost(one)) / each * (1.0 + 1e-12)) + 1.0, limits.get(order[0], np.inf))
    possible = np.column_stack([first, others])[first >= 1.0]
    if not len(possible):
        raise ArgumentError(f"budget is {budget:g}, and one unit of each source costs {float(cost(one).min()):g}.")
    errors = error(possible)
    tied = possible[[no_more(value, float(errors.min())) for value in errors]]
    best: Array = tied[[int(np.argmin(cost(tied)))]]
    return best
