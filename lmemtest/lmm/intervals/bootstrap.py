"""Parametric bootstrap of any function of a fit.

Tables are drawn from the fitted model, the model is fitted to each and the function evaluated. This needs no formula
for the standard error of the function, and no assumption about the shape of its distribution beyond the model's own.
Intervals of draws are those of `core.resampling`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.hints import guided
from lmemtest.core.replicates import Executor, Failure, check_replicates, replicate
from lmemtest.core.resampling import acceleration, bca_shares, interval_ends, plain_shares
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, EstimationError, LmemtestError
from lmemtest.lmm.hypotheses.null_distributions import simulator
from lmemtest.lmm.intervals.profile import label_of
from lmemtest.lmm.model.given import check_fit

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.cells import Cells


Statistic = Callable[[Any], Any]

_ROUNDING = 1e-6  # of 1 / share, which is a whole number for the usual levels
_FEWEST_UNITS = 4  # a skewness from fewer values is noise
_ONE_SIDED = "All draws lie on one side of the estimate, so its bias cannot be corrected: there is no bca interval."
METHODS = ("percentile", "basic", "bca")


def _refitted(
    fit: Any, statistic: Statistic, draw: Callable[[np.random.Generator], Cells], rng: np.random.Generator
) -> tuple[Array, bool]:
    again = fit.refit(cells=draw(rng))
    return _evaluated(statistic, again)[0], bool(again.converged)


@guided
@one_blas_thread()
def bootstrap(
    fit: Any,
    statistic: Statistic | None = None,
    n_draws: int = 999,
    *,
    method: str = "percentile",
    alpha: float = 0.05,
    unit: str | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Answer:
    """Bootstrap any function of a fit.

    Parameters
    ----------
    fit : LmmFit
        The model from which tables are drawn.
    statistic : callable, optional
        Takes a fit and returns a number, ``(k,)`` numbers, or a named `pandas.Series` of them, always of the same
        length. By default the fixed effects that the data identify, and the standard deviations.
    n_draws : int, >= 2
        Tables.
    method : {"percentile", "basic", "bca"}
        Quantiles of the draws; their reflection at the estimate; quantiles corrected for bias and skewness.
    alpha : float in (0, 1)
        One minus the confidence level.
    unit : str, optional
        For "bca": the group of the random part whose levels are left out in turn to estimate the skewness. The
        first one of the formula by default.
    rng : int, numpy.random.Generator or None
        Source of the tables; results are the same whatever `n_jobs` or `executor` is.
    n_jobs : int
        Processes; -1 for one per processor.
    executor : object with a ``map``, optional
        What computes instead, such as one of concurrent.futures or a client of Dask.
    progress : bool, optional
        Progress bar on standard error; by default on a terminal, after two seconds.

    Returns
    -------
    Answer
        One row per element of the statistic: name, estimate (the statistic of the fit), bias (mean of the draws minus
        it), se (standard deviation of the draws), ci_low, ci_high (at 1 - `alpha`; NaN where there is none, see the
        notes). Values: the columns as arrays (the first is ``names``), ``draws`` ``(n_draws, k)`` (NaN rows where the
        statistic could not be computed), ``method``, ``alpha``, ``formula``, ``failed`` and ``unconverged`` (draws
        without a statistic; draws in which the search did not complete its certificate, which are kept).

    Raises
    ------
    ArgumentError
        If an option is unknown, the statistic is not numbers of one length, or is not finite for the fit itself.
    EstimationError
        If no table could be fitted.

    Notes
    -----
    Random effects and residuals are drawn anew (random effects are not held at their estimates), so the answer is about
    new levels of the groups. Draws whose fit fails are NaN, counted in ``failed`` and in a note, and left out of the
    quantiles. Quantiles are order statistics at ``(n_draws + 1) p``; a note says where there are too few draws for that
    (39 are the least for 95 %, 999 is the usual number). "bca" takes its acceleration from a jackknife over the levels
    of one group. Where a variance is on its boundary no bootstrap interval has the right coverage (Andrews 2000).

    References
    ----------
    Davison & Hinkley (1997), Bootstrap Methods and their Application, doi:10.1017/CBO9780511802843; Efron (1987),
    doi:10.1080/01621459.1987.10478410; Andrews (2000), doi:10.1111/1468-0262.00114

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 7], "tool": ["A", "B"] * 8,
    ...          "task": list("wwwwxxxxyyyyzzzz")}
    >>> fit = lt.fit_lmm("loss ~ tool + (1 | task)", table)
    >>> share = fit.bootstrap(lambda f: f.covariances[0][0, 0] / (f.covariances[0][0, 0] + f.scale), 99, rng=1)
    >>> share.draws.shape, bool(share.ci_low[0] < share.estimate[0] < share.ci_high[0])
    ((99, 1), True)
    >>> fit.bootstrap(n_draws=39, rng=1).names
    ('Intercept', 'tool[T.B]', 'sd Intercept | task', 'residual sd')
    """
    n_draws = check_positive_int(n_draws, "n_draws", minimum=2)
    check_choice(method, "method", METHODS)
    level = 1.0 - check_fraction(alpha, "alpha")
    check_fit(fit, "fit")
    if statistic is None:
        statistic = partial(_parameters, identified=tuple(fit.params.index[fit.params.notna()]))
    if not callable(statistic):
        instead = f" For {statistic} tables write n_draws={statistic}." if isinstance(statistic, int) else ""
        raise ArgumentError(f"statistic must be a function of a fit, got {type(statistic).__name__}.{instead}")
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    estimate, names = _evaluated(statistic, fit)
    bad = [name for name, value in zip(names, estimate, strict=True) if not np.isfinite(value)]
    if bad:  # refused before any table is drawn
        raise ArgumentError(
            f"statistic must be finite for the fit itself; {listed(bad, most=5)} is "
            f"{estimate[~np.isfinite(estimate)][0]}. Leave out what the data do not identify, such as coefficients "
            "that were dropped."
        )
    term = _unit_left_out(fit, unit) if method == "bca" or unit is not None else None

    task = partial(_refitted, replace(fit, data=None), statistic, simulator(fit, fit.scores))
    results = replicate(task, n_draws, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Bootstrap")
    draws, notes = _collected(results, len(estimate))
    valid = _valid(draws)
    shares = plain_shares(level, len(estimate))
    if method == "bca":
        values, skipped = _leave_one_out(fit, statistic, term, len(estimate))
        shares = bca_shares(valid, estimate, acceleration(values), level)
        notes += skipped
        if np.isnan(shares).any():
            notes.append(_ONE_SIDED)
    notes += _too_few(len(valid), shares, method, level)
    ci = interval_ends(valid, estimate, shares, method)
    columns = {
        "names": names,
        "estimate": estimate,
        "bias": valid.mean(axis=0) - estimate,
        "se": valid.std(axis=0, ddof=1),
        "ci_low": ci[0],
        "ci_high": ci[1],
    }
    unconverged = sum(not isinstance(r, Failure) and not r[1] for r in results)
    table = pd.DataFrame({"name": list(names), **{name: columns[name] for name in list(columns)[1:]}})
    settings = {"draws": draws, "method": method, "alpha": alpha, "formula": fit.label}
    counts = {"failed": len(draws) - len(valid), "unconverged": unconverged}
    return Answer(
        question="bootstrap",
        title="Parametric bootstrap",
        tables={"table": table},
        values={**columns, **settings, **counts},
        facts=(
            f"{fit.label}; {100 * level:.4g} % {method} intervals, not simultaneous, "
            f"from {len(draws):,} tables drawn from the fitted model.",
        ),
        notes=tuple(notes),
    )


def _parameters(fit: Any, identified: Sequence[str]) -> pd.Series[float]:
    """Fixed effects, and standard deviations under the names that `profile` gives them."""
    table = fit.varcorr[fit.varcorr["name2"] == ""]
    kinds = np.where(table["group"] == "Residual", "residual sd", "sd")
    names = [
        label_of(kind, group, name, "") for kind, group, name in zip(kinds, table["group"], table["name1"], strict=True)
    ]
    return pd.concat([fit.params[list(identified)], pd.Series(table["sd"].to_numpy(), index=names)])


def _evaluated(statistic: Statistic, fit: Any) -> tuple[Array, tuple[str, ...]]:
    """The statistic as an array, and the names of its elements."""
    value = statistic(fit)
    index = getattr(value, "index", None)
    try:
        values = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"statistic must return a number, a sequence of numbers or a Series, got {type(value).__name__}."
        ) from None
    if values.ndim != 1 or not len(values):
        raise ArgumentError(f"statistic must return one or more numbers in one dimension, got shape {values.shape}.")
    if index is not None and not callable(index):
        return values, tuple(map(str, index))
    if len(values) == 1:
        name = getattr(statistic, "__name__", "statistic")
        return values, ("statistic" if name == "<lambda>" else name,)
    return values, tuple(f"statistic[{i}]" for i in range(len(values)))


def _too_few(n: int, shares: Array, method: str, level: float) -> list[str]:
    """Say so where an end of an interval lies beyond the order statistics that `n` draws have."""
    tails = np.minimum(shares, 1.0 - shares)
    finite = tails[np.isfinite(tails)]
    if not len(finite) or (n + 1) * finite.min() >= 1.0 - _ROUNDING:
        return []
    smallest = float(finite.min())
    enough = int(np.ceil(1.0 / smallest - _ROUNDING)) - 1 if smallest > 1e-9 else None
    advice = "No n_draws is enough: use 'percentile'." if enough is None else f"Take n_draws={enough:,} at least."
    return [
        f"{n:,} draws are too few for {100 * level:.4g} % {method} intervals: an end would lie beyond all draws, so "
        f"the smallest or largest one takes its place and the interval is too short. {advice}"
    ]


def _collected(results: list[Any], width: int) -> tuple[Array, list[str]]:
    """Draws, ``(n_draws, width)``, and what to say of them."""
    failures = [r.reason for r in results if isinstance(r, Failure)]
    for r in results:
        if not isinstance(r, Failure) and len(r[0]) != width:
            raise ArgumentError(
                f"statistic must always return the same number of values; it returned {width} for the fit and "
                f"{len(r[0])} for a simulated table."
            )
    draws = np.array([np.full(width, np.nan) if isinstance(r, Failure) else r[0] for r in results])
    valid = len(_valid(draws))
    why = failures[0] if failures else "the statistic is not finite"
    if valid < 2:
        raise EstimationError(f"{valid} of {len(draws)} simulated tables gave a statistic, too few. {why}")
    notes = []
    if valid < len(draws):
        lost = f"{len(draws) - valid:,} of {len(draws):,}"
        notes.append(f"{lost} draws have no statistic and are left out of the interval ({why}).")
    unconverged = sum(not isinstance(r, Failure) and not r[1] for r in results)
    if unconverged:
        notes.append(f"In {unconverged:,} draws the search did not complete its certificate; they are kept.")
    return draws, notes


def _valid(draws: Array) -> Array:
    return draws[np.isfinite(draws).all(axis=1)]


# ---------------------------------------------------------------------- BCa


def _unit_left_out(fit: Any, group: str | None) -> Any:
    terms = {term.group: term for term in reversed(fit.design.random)}
    names = ", ".join(reversed(terms)) or "none"
    if not terms:
        raise ArgumentError(
            "method='bca' leaves out the levels of a random effect in turn, and this model has none. Use "
            "method='percentile'."
        )
    if group is not None and not (isinstance(group, str) and group in terms):
        raise ArgumentError(f"unit='{group}' is not a group of this model. Groups: {names}.")
    term = fit.design.random[0] if group is None else terms[group]
    if len(term.levels) < _FEWEST_UNITS:
        raise ArgumentError(
            f"method='bca' needs a group with at least {_FEWEST_UNITS} levels to estimate a skewness, and "
            f"{term.group} has {len(term.levels)}. Groups: {names}; name one by unit=, or use 'percentile'."
        )
    return term


def _leave_one_out(fit: Any, statistic: Statistic, term: Any, width: int) -> tuple[Array, list[str]]:
    """The statistic without each level of a group in turn, ``(levels, width)``."""
    import warnings

    from lmemtest.errors import ConvergenceWarning

    cells, values, failed = fit.scores, [], []
    for code, level in enumerate(term.levels):
        keep = term.codes != code
        part = replace(
            cells,
            columns=cells.columns.part(keep),
            n=cells.n[keep],
            weight=cells.weight[keep],
            mean=cells.mean[keep],
            ss=cells.ss[keep],
            n_rows=int(cells.n[keep].sum()),
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                value, _ = _evaluated(statistic, fit.refit(cells=part))
        except (LmemtestError, np.linalg.LinAlgError):
            value = np.empty(0)
        if len(value) == width and np.isfinite(value).all():
            values.append(value)
        else:
            failed.append(level)
    if len(values) < _FEWEST_UNITS:
        raise EstimationError(
            f"method='bca': the statistic exists for {len(values)} of the {len(term.levels)} tables without one "
            f"level of {term.group}, too few to estimate a skewness. Use method='percentile'."
        )
    notes = [f"The skewness comes from leaving out the {len(values)} levels of {term.group} in turn."]
    if failed:
        notes.append(f"Without {', '.join(failed[:5])} the statistic does not exist; left out of the skewness.")
    return np.array(values), notes
