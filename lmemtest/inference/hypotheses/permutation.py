"""Permutation test of a comparison of algorithms: what the statistic would be if labels were chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._replicates import check_replicates
from lmemtest._result import Result, result
from lmemtest._rounding import written
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_positive_int
from lmemtest.errors import ArgumentError, EstimationError
from lmemtest.inference.hypotheses.relabelling import (
    UNITS,
    RelabelledFit,
    Relabelling,
    differences,
    find_relabelling,
    fit_for_comparison,
)
from lmemtest.inference.hypotheses.simulated_null import NullDraws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

    FloatArray = NDArray[np.float64]

MAX_T = "max_t"

_SAME = 1e-9  # relative: relabellings that only rename give the same statistic up to rounding


@result
class PermutationResult(Result):
    """Permutation test of a comparison of algorithms.

    Attributes
    ----------
    statistic, statistic_name : float, str
        Of the table as it is, and what it is; large values speak against the null.
    p_value, p_value_error : float
        ``(1 + #{T* >= T}) / (n_draws + 1)``, with its Monte-Carlo error; a draw that failed counts as larger.
    draws : (n_draws,) float
        The statistic of every relabelled table; NaN where the model could not be fitted.
    failed, unconverged : int
        Draws without a statistic, and draws in which the search did not complete its certificate (kept).
    unit, exchangeable : str
        What was exchanged, also in words, in `n_strata` groups.
    hypothesis, formula : str
        The null hypothesis that this tests, and the model with the residual variances where the fit has several.
    notes : tuple of str
        What else a reader must know.
    """

    statistic: float
    statistic_name: str
    p_value: float
    p_value_error: float
    draws: FloatArray
    failed: int
    unconverged: int
    unit: str
    exchangeable: str
    hypothesis: str
    n_strata: int
    formula: str
    notes: tuple[str, ...] = ()

    def table(self) -> pd.DataFrame:
        """One row: statistic, p_value, p_value_error, unit, n_strata, n_draws, failed, unconverged, formula."""
        names = ("statistic", "p_value", "p_value_error", "unit", "n_strata", "n_draws", "failed", "unconverged")
        return pd.DataFrame([{name: getattr(self, name) for name in (*names, "formula")}])

    @property
    def n_draws(self) -> int:
        """Relabelled tables."""
        return len(self.draws)

    @property
    def title(self) -> str:
        return "Permutation test"

    @property
    def facts(self) -> tuple[str, ...]:
        return (
            f"Model: {self.formula}; statistic: {self.statistic_name}.",
            f"Exchanged: {self.exchangeable}.",
            f"Null hypothesis: {self.hypothesis}.",
        )

    def shown(self) -> pd.DataFrame:
        return self.to_frame().drop(columns="formula")


@dataclass(frozen=True, slots=True, eq=False)
class MaxT:
    """Largest ``|t|`` over all pairs of algorithms."""

    algorithm: str
    L: FloatArray | None  # of a design that does not change; None: read off each fit

    def __call__(self, fit: Any) -> float:
        L = differences(fit, self.algorithm) if self.L is None else self.L
        estimate, variance = fit.estimate(L), fit.cov(L).diagonal()
        known = np.isfinite(estimate) & (variance > 0)
        if not known.any():
            raise EstimationError("no difference between two algorithms is estimable")
        return float(np.abs(estimate[known] / np.sqrt(variance[known])).max())


def _draw(table: RelabelledFit, statistic: Callable[[Any], Any], rng: np.random.Generator) -> tuple[float, bool]:
    fit = table.refit(table.exchange.draw(rng))
    return _number(statistic(fit)), bool(fit.converged)


@one_blas_thread()
def permutation_test(
    runs: Runs,
    model: str | LmmFit,
    statistic: str | Callable[[Any], float] = MAX_T,
    *,
    unit: str = "benchmark",
    n_draws: int = 999,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> PermutationResult:
    """Test whether algorithms are exchangeable, by exchanging their labels.

    Parameters
    ----------
    runs : Runs
        The table.
    model : str or LmmFit
        Formula with the algorithm in its fixed part, or a fit of one.
    statistic : "max_t" or callable
        The largest ``|t|`` over all pairs of algorithms, or a function of the fit whose large values speak against
        the null.
    unit : {"benchmark", "instance", "run"}
        What is exchanged. "benchmark": the names of the algorithms on a whole benchmark. "instance": on a benchmark at
        one combination of metafeatures. "run": the names of single runs, among those with the same seed on the same
        instance; where algorithms have seeds of their own, among all runs on the instance.
    n_draws : int
        Relabelled tables, drawn at random.
    rng : int, numpy.random.Generator or None
        Source of the relabellings; the same whatever `n_jobs` is.
    n_jobs, progress : int, bool
        Processes (-1: one per processor); a progress bar, by default on a terminal after two seconds.

    Returns
    -------
    PermutationResult

    Raises
    ------
    ArgumentError
        If `runs` is a plain table, an option is unknown, the table lacks a role, or the model does not compare the
        algorithms.
    DataError
        If no labels can be exchanged.

    Notes
    -----
    The p-value holds whatever the distribution of the scores; the model only chooses what the statistic is sensitive
    to. The unit chooses the hypothesis. By "benchmark": over benchmarks like these the algorithms are exchangeable
    (advantages on single benchmarks are allowed, as often and as large for one as for the other). By "instance": the
    same of instances, which takes those of one benchmark as independent of each other. By "run": on these
    benchmarks the algorithms do not differ at all; a rejection may come from one benchmark and says nothing about
    others.

    For two algorithms, exchangeable means that neither is better. For three or more it also means that none varies
    more from benchmark to benchmark than another: with six equally good algorithms on 12 benchmarks, one of which
    varies five times as much, this test rejects in 12 to 15 % of the tables at 5 %. `sign_flip_test` asks whether one
    is better on average, whatever their variation, and rejects in 5 %.

    References
    ----------
    Phipson & Smyth (2010). Permutation p-values should never be zero. doi:10.2202/1544-6115.1585; Winkler et al.
    (2015). Multi-level block permutation. doi:10.1016/j.neuroimage.2015.05.092

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.inference.hypotheses.permutation import permutation_test
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 9], "tool": ["A", "B"] * 8,
    ...          "task": list("aabbccddeeffgghh")}
    >>> runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> test = permutation_test(runs, "loss ~ tool + (1 | task)", n_draws=199, rng=1)
    >>> test.n_strata, test.p_value < 0.1
    (8, True)
    """
    n_draws = check_positive_int(n_draws, "n_draws")
    check_replicates(rng=rng, n_jobs=n_jobs, progress=progress)
    if not callable(statistic) and not (isinstance(statistic, str) and statistic == MAX_T):
        raise ArgumentError(f"statistic must be '{MAX_T}' or a function of a fit, got {statistic!r}.")
    fit = fit_for_comparison(runs, model)
    exchange = find_relabelling(runs, unit, list(fit.cells.frame.columns), score=fit.design.parsed.response)
    if callable(statistic):
        function, name = statistic, getattr(statistic, "__name__", "statistic")
    else:
        L = None if exchange.start is None else differences(fit, runs.algorithm)
        function, name = MaxT(runs.algorithm, L), "largest |t| over all pairs of algorithms"
    observed = _number(function(fit))
    if not np.isfinite(observed):
        raise ArgumentError(f"statistic must be a finite number for the table as it is, got {observed}.")

    task = partial(_draw, RelabelledFit.of(fit, exchange), function)
    options = {"rng": rng, "n_jobs": n_jobs, "progress": progress, "label": "Permutations"}
    draws = NullDraws.of(task, n_draws, drawn="relabelled table", **options)
    p_value, error = draws.p_value(observed, _SAME * abs(observed))
    return PermutationResult(
        statistic=observed,
        statistic_name=name,
        p_value=p_value,
        p_value_error=error,
        draws=draws.statistics,
        failed=draws.failed,
        unconverged=draws.unconverged,
        unit=unit,
        exchangeable=exchanged_in_words(runs, exchange),
        hypothesis=hypothesis_in_words(unit, len(runs.algorithms)),
        n_strata=exchange.n_strata,
        formula=fit.label,
        notes=tuple(_notes(exchange, draws, len(runs.algorithms))),
    )


def exchanged_in_words(runs: Runs, exchange: Relabelling) -> str:
    """What changed places, for a reader of the result."""
    instance = " x ".join(runs.instance)
    n = f"{exchange.n_strata:,}"
    if exchange.unit == "benchmark":
        return f"the names of the algorithms, all their runs together, within each of {n} benchmarks"
    if exchange.unit == "instance":
        return f"the names of the algorithms, all their runs together, within each of {n} instances ({instance})"
    on = f" on the same instance ({instance})" if instance else ""
    if exchange.paired:
        return f"the names of the runs with the same {runs.seed}{on}, in {n} such groups"
    return f"the names of whole runs{on}, in {n} such groups; algorithms have seeds of their own"


def hypothesis_in_words(unit: str, n_algorithms: int) -> str:
    """The null hypothesis that an exchange of labels tests."""
    if unit == "run":
        return "on these benchmarks the algorithms do not differ; benchmarks that were not run are not the subject"
    where = "the other instances of the same benchmark"
    apart = f", whatever happens on {where}" if unit == "instance" else ""
    if n_algorithms == 2:
        return (
            f"over {unit}s like these no algorithm is better; on a single {unit} one may be, as likely as the other"
            f"{apart}"
        )
    return (
        f"over {unit}s like these the algorithms are exchangeable: none is better, and none varies more than another "
        f"or goes together with one; on a single {unit} each is as likely as any other to be better, by the same "
        f"amounts{apart}"
    )


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"statistic must return one number, got {type(value).__name__}.") from None


def _notes(exchange: Relabelling, draws: NullDraws, n_algorithms: int) -> list[str]:
    notes = []
    if n_algorithms > 2 and exchange.unit != "run":
        notes.append(
            "Exchanged names make the algorithms alike in every way, so a rejection may also come from one that varies "
            "more than the others. sign_flip_test(runs) tests their means alone, pair by pair."
        )
    few = exchange.few_arrangements
    if few is not None:
        notes.append(
            f"There are only {few:,} distinct relabellings, so the p-value cannot be smaller than "
            f"{written(1.0 / few, '.2g')} apart from the resolution of the draws."
        )
    if exchange.fixed_items:
        notes.append(
            f"{exchange.fixed_items:,} groups of runs have no partner to exchange labels with and keep theirs."
        )
    if draws.failed:
        why = draws.reasons[0] if draws.reasons else "the statistic is not a number"
        notes.append(
            f"{draws.failed:,} of {len(draws.statistics):,} draws have no statistic ({why}); they count as larger."
        )
    if draws.unconverged:
        notes.append(f"In {draws.unconverged:,} draws the search did not complete its certificate; they are kept.")
    return notes


__all__ = ["UNITS", "PermutationResult", "permutation_test"]
