"""Importance of a hyperparameter as tuning risk: what fixing it costs, or saves, at each tuning budget.

Random search draws the hyperparameters independently, so the trials that happen to have one of them at a value are a
random search of all others with this one fixed there: no new runs are needed. Their tuning curve is compared with the
curve of all trials, which tunes everything, at equal cost.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Mask
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_column, check_fraction, is_number, several
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.compare import compare
from lmemtest.tuning.costs import known_if_constant

TUNED = "tuned"


@one_blas_thread()
def risk(
    trials: Any,
    hyperparameter: str,
    *,
    values: Any,
    score: str,
    direction: str,
    cost: str | None = None,
    grid: ArrayLike | None = None,
    statistic: str | float = "median",
    level: float = 0.8,
    band: str = "ld_highest_density",
    bounds: tuple[float, float] | None = None,
    portion: float = 0.5,
) -> Answer:
    """Compare tuning a hyperparameter with fixing it at its default, or at other values.

    Parameters
    ----------
    trials : dataframe or dict of columns
        One row per trial of a random search of one method on one benchmark.
    hyperparameter : str
        The column that is fixed.
    values : value, (low, high) or list of these
        Where to fix it: the default, or several values. A tuple of two numbers is a range, for hyperparameters that
        are drawn from an interval and hit no value twice.
    score : str
        Column of the score; a failed run is a worst score.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    cost : str, optional
        Column of the cost of a trial. Give it if the hyperparameter changes the cost (epochs, layers): budgets are then
        costs, and the uncertainty of both mean costs is part of the bands.
    grid, statistic, level, band, bounds, portion
        As in `lmemtest.tuning.compare`.

    Returns
    -------
    Answer
        ``to_frame()`` has one row per value: value, n_scores, mean_cost (if costs were given), evidence, better,
        portion. ``to_frame("risk")`` has one row per value and budget: value, trials or cost, the curves ``tuned`` and
        ``fixed``, the ``risk`` (what fixing loses, positive where tuning is better, in units of the score) with its
        band for all budgets at once, and whether that is trivial. `comparisons`: for each value, that of curve `a`,
        which tunes everything, and curve `b`, which has the value fixed, as of `lmemtest.tuning.compare`; `risks`: the
        same with simultaneous bands of both curves. `hyperparameter`, `fixed_at` (the values), `counts` (of the trials
        with each), `direction`.

    Raises
    ------
    ArgumentError
        If an argument is out of its range.
    DataError
        If scores, costs or the hyperparameter are missing, or no trial has a value.
    UnknownColumnError
        If a column is not in the table.

    Notes
    -----
    Tuning risk is the difference in performance between tuning all hyperparameters and leaving one at its default
    (Weerts et al.); it depends on the budget, so it is a curve. The subset stands for a search with the value fixed if
    the hyperparameters are drawn independently of each other, as random search does unless its space is conditional.

    The trials with the value are among all trials, so the two curves are not independent. Each band and the bounds of
    the risk (Bonferroni, half of the error probability for each curve) hold all the same; rates of false labels are
    not stated. Selecting the value by looking at the scores makes any of this too favourable: take the default that
    others ship.

    References
    ----------
    Weerts, Mueller & Vanschoren (2020), Importance of tuning hyperparameters of machine learning algorithms,
    doi:10.48550/arXiv.2007.07588;
    Lourie, Cho & He (2024), section 2 and appendix F, doi:10.18653/v1/2024.naacl-long.189

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> epochs = rng.integers(1, 5, 400)
    >>> accuracy = 0.6 + 0.08 * np.minimum(epochs, 3) + rng.normal(0, 0.02, 400)
    >>> found = risk({"epochs": epochs, "accuracy": accuracy}, "epochs", values=[1, 3], score="accuracy",
    ...                    direction="maximize", cost="epochs")
    >>> found.to_frame()[["value", "evidence", "better"]].to_dict("list")
    {'value': ['1', '3'], 'evidence': ['strong', 'none'], 'better': ['tuned', '']}
    """
    level = check_fraction(level, "level")
    frame = _frame(trials, hyperparameter, score, cost)
    wanted = _values(values)
    options: dict[str, Any] = {"direction": direction, "statistic": statistic, "band": band, "bounds": bounds}
    options |= {"portion": portion, "n_draws": 0}
    comparisons, risks, counts = [], [], []
    for value in wanted:
        subset = frame[_chosen(frame[hyperparameter], value, hyperparameter)]
        options["names"] = (TUNED, f"fixed at {describe_value(value)}")
        if cost is not None:
            options["cost_a"], options["cost_b"] = (
                known_if_constant(part[cost].to_numpy()) for part in (frame, subset)
            )
        comparison = compare(frame[score], subset[score], level=level, grid=grid, **options)
        # both bands at once, on the budgets of the comparison
        both = compare(frame[score], subset[score], level=0.5 * (1.0 + level), grid=comparison.grid, **options)
        comparisons.append(comparison)
        risks.append(both)
        counts.append(len(subset))
    notes = [
        "The trials with a value are among all trials: each band holds, and so do the bounds of the risk, but no rate "
        "of false labels is stated."
    ]
    if any(isinstance(value, tuple) for value in wanted):
        notes.append("A range stands for its values: within it the hyperparameter is still tuned.")
    # what a trial of the whole search costs
    unpriced = "Budgets are trials; if the hyperparameter changes what a trial costs, give cost=."
    notes.append(unpriced if cost is None else comparisons[0].facts[0])
    names = [describe_value(value) for value in wanted]
    labels: dict[str, Any] = {"value": names, "n_scores": counts}
    if cost is not None:
        labels["mean_cost"] = [comparison.b.cost.value for comparison in comparisons]
    labels["evidence"] = [comparison.label for comparison in comparisons]
    labels["better"] = [comparison.better or "" for comparison in comparisons]
    labels["portion"] = [comparison.observed for comparison in comparisons]
    tuned = f"Tuning {hyperparameter} (n = {comparisons[0].a.n_scores})"
    return Answer(
        question="tuning.risk",
        title=f"{tuned} or fixing it: {comparisons[0].statistic} curves, {direction}",
        tables={"labels": pd.DataFrame(labels), "risk": _risk(names, risks)},
        values={
            "hyperparameter": hyperparameter,
            "fixed_at": wanted,
            "counts": tuple(counts),
            "comparisons": tuple(comparisons),
            "risks": tuple(risks),
            "direction": direction,
        },
        findings=tuple(
            f"{hyperparameter} = {name}: {comparison.findings[0]}"
            for name, comparison in zip(names, comparisons, strict=True)
        ),
        notes=tuple(notes),
        formats={"portion": ".2f"},
    )


def _risk(names: list[str], risks: list[Answer]) -> pd.DataFrame:
    """One row per value and budget: what fixing loses, with its band."""
    frames = []
    for name, both in zip(names, risks, strict=True):
        a, b, sign = both.a, both.b, 1.0 if both.direction == "maximize" else -1.0
        ends = [sign * (a.band_low - b.band_high), sign * (a.band_high - b.band_low)]
        columns = {
            "value": pd.Series([name] * len(both.grid), dtype=object),
            both.axis: both.grid,
            "tuned": a.estimate,
            "fixed": b.estimate,
            "risk": sign * (a.estimate - b.estimate),
            "band_low": np.minimum(*ends),
            "band_high": np.maximum(*ends),
            "trivial": ~both.usable,
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def describe_value(value: Any) -> str:
    """A value, or a range, as text.

    >>> describe_value(3), describe_value((0.1, 0.2)), describe_value("adam")
    ('3', '0.1 to 0.2', 'adam')
    """
    if isinstance(value, tuple):
        return f"{value[0]:g} to {value[1]:g}"
    return f"{value:g}" if is_number(value) else str(value)


def _frame(trials: Any, hyperparameter: str, score: str, cost: str | None) -> pd.DataFrame:
    """The columns that are read, each once; an error if the hyperparameter is missing somewhere."""
    from lmemtest.core.frames import collected

    table = as_frame(trials, argument="trials")
    columns = table.collect_schema().names()
    for argument, name in (("hyperparameter", hyperparameter), ("score", score), ("cost", cost)):
        if name is not None or argument != "cost":
            check_column(name, columns, argument=argument)
    if hyperparameter == score:
        raise ArgumentError(f"hyperparameter and score are the same column, {score!r}. Name the one that is fixed.")
    # one column of the table may be hyperparameter and cost at once (epochs)
    used = dict.fromkeys(name for name in (hyperparameter, score, cost) if name is not None)
    frame = collected(table.select(list(used))).to_pandas()
    missing = int(frame[hyperparameter].isna().sum())
    if missing:
        raise DataError(
            f"{missing:,} of {len(frame):,} trials have no value of {hyperparameter!r}. Keep the trials of one method "
            "that has this hyperparameter."
        )
    return frame


def _values(values: Any) -> tuple[Any, ...]:
    listed_ = isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, (str, bytes, tuple))
    wanted = tuple(values) if listed_ and several(values) else (values,)
    if not wanted:
        raise ArgumentError("values must name at least one value of the hyperparameter, got an empty list.")
    for value in wanted:
        if not (value is None or isinstance(value, (str, bytes, tuple, np.generic, numbers.Number, datetime))):
            raise ArgumentError(f"values must be values of the hyperparameter, or ranges (low, high), got {value!r}.")
        if isinstance(value, tuple) and not (
            len(value) == 2 and all(map(is_number, value)) and float(value[0]) < float(value[1])
        ):
            raise ArgumentError(
                f"a tuple in values must be a range (low, high) with low < high, got {value!r}. "
                "Write several values as a list."
            )
    described = [describe_value(value) for value in wanted]
    if len(set(described)) < len(described):
        raise ArgumentError(f"values must differ from each other, got {listed(described)}.")
    return wanted


def _chosen(column: pd.Series[Any], value: Any, name: str) -> Mask:
    numeric = column.dtype.kind in "iufb"
    if not isinstance(value, tuple):
        if numeric and not is_number(value) and not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"values of {name!r} must be numbers, as in the table, got {value!r}.")
        try:
            chosen = np.asarray(column == value, dtype=bool)
        except (TypeError, OverflowError):  # a date beside words, an integer that no column of integers can hold
            chosen = np.zeros(len(column), dtype=bool)
    elif numeric:
        chosen = ((column >= value[0]) & (column <= value[1])).to_numpy(dtype=bool)
    else:
        raise ArgumentError(f"{name!r} is not numeric, so {value!r} cannot be a range of it. Name values, as a list.")
    if not chosen.any():
        distinct = column.unique()
        there = f"There are: {listed(sorted(map(describe_value, distinct)))}"
        if numeric and len(distinct) > 20:
            there = f"They go from {column.min():g} to {column.max():g}; give a range (low, high)"
        raise DataError(f"no trial has {name} = {describe_value(value)}. {there}.")
    return chosen
