"""How often a model finds a difference that is not there, on the user's own table.

The names of the algorithms are exchanged at random, so that no algorithm is better; a model that keeps its level then
rejects in 5 % of the tables. What exchanges decide what counts as chance: whole benchmarks (is an algorithm better on
benchmarks like these?) or single runs (do the algorithms differ on these benchmarks at all?).

Exchanges make the algorithms alike and the benchmarks independent, so an audit is blind to what goes wrong where they
are not: algorithms that vary to different degrees, and seeds that benchmarks share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.permutation.permutation import (
    UNITS,
    RelabelledFit,
    check_unit,
    differences,
    exchanged_in_words,
    find_relabelling,
    fit_for_comparison,
)
from lmemtest.core.codes import group_numbers
from lmemtest.core.hints import guided
from lmemtest.core.proportions import clopper_pearson
from lmemtest.core.replicates import Executor, Failure, check_replicates, replicate
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import among, check_fraction, check_names, check_positive_int, resolve_rng
from lmemtest.core.words import percent
from lmemtest.errors import ArgumentError, DataError, DesignError, EstimationError
from lmemtest.lmm.distributions.studentized_range import ptukey
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.intervals.cluster_robust import cluster_robust
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.means.moderated import Moderated, ModeratedMeans, moderated

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.permutation.permutation import Relabelling
    from lmemtest.core.arrays import Index
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.lmm.model import LmmFit

    _NamedFits = list[tuple[str, LmmFit]]

YOURS, RECOMMENDED, NAIVE = "yours", "recommended", "naive"

UNSEEN = (
    "Swapped names make algorithms alike and benchmarks independent of each other. So no rate shows what a model does "
    "where one of three or more algorithms varies more between benchmarks than the others (diagnose looks at that), or "
    "where a seed means the same on several benchmarks (seed_effect looks at that)."
)

_LEVEL = 0.95  # of the interval of a rate: the simulation's own error
_DOUBTFUL = 2.0  # times alpha: an interval that reaches further does not show that a model keeps its level


def tables_needed(alpha: float) -> int:
    """Relabelled tables after which a model that rejects in `alpha` of them is "nominal", not "cannot tell".

    >>> tables_needed(0.05)
    142
    """
    n = np.arange(1.0, 10.0 / alpha + 2.0)  # about 7 / alpha tables are enough
    high = clopper_pearson(n * alpha, n, _LEVEL)[1]
    return 1 + int(np.argmax(high <= _DOUBTFUL * alpha))


@dataclass(frozen=True, slots=True, eq=False)
class _Rejects:
    """Does a model find some pair of algorithms different at level alpha, as `pairs` would say?"""

    table: RelabelledFit
    L: Any
    n_algorithms: int
    algorithm: str
    alpha: float
    cluster: tuple[str, ...] | None  # of moderated standard errors; None where the model's are the default
    means: Estimates | None  # of the table as it is, where relabelled ones have the same design and clusters

    def __call__(self, taken: Index) -> tuple[bool, bool]:
        fit = self.table.refit(taken)
        if self.cluster is not None:
            return bool(np.any(below(self._moderated(fit).pairs().table["p_value"], self.alpha))), bool(fit.converged)
        L = differences(fit, self.algorithm) if self.L is None else self.L
        variance = fit.cov(L).diagonal()
        known = np.isfinite(variance) & (variance > 0)
        if not known.any():
            raise EstimationError("no difference between two algorithms is estimable")
        t = np.abs(fit.estimate(L)[known]) / np.sqrt(variance[known])
        df, of_df = np.unique(fit.df(L[known], "satterthwaite"), return_inverse=True)
        largest = np.zeros(len(df))  # has the smallest p-value
        np.maximum.at(largest, of_df, t)
        p = ptukey(np.sqrt(2.0) * largest, self.n_algorithms, df, upper=True)
        return bool(np.any(below(p, self.alpha))), bool(fit.converged)

    def _moderated(self, fit: LmmFit) -> Estimates:
        """The means of a refit with moderated standard errors; of these, only what their pairs need."""
        assert self.cluster is not None
        if self.means is None:
            return emmeans(fit, self.algorithm, vcov=moderated(fit, self.cluster))
        b, V, kept = np.zeros_like(self.means.b), np.zeros_like(self.means.V), fit.problem.kept
        b[kept], V[np.ix_(kept, kept)] = fit.kept_params, fit.kept_cov
        means = replace(self.means, b=b, V=V, df_function=fit.df, estimable_function=partial(_has_error, fit))
        source = Moderated(fit=fit, robust=cluster_robust(fit, self.cluster))
        return replace(means, moderate=ModeratedMeans.of(source, means), errors="moderated")


def _has_error(fit: LmmFit, L: Any) -> Any:
    return fit.estimable(L) & fit.has_error(L)


def _rejections(exchange: Relabelling, models: Sequence[_Rejects], rng: np.random.Generator) -> list[Any]:
    """Whether each model rejects on one relabelled table."""
    taken = exchange.draw(rng)
    return [_decided(model, taken) for model in models]


def _decided(model: _Rejects, taken: Index) -> Any:
    from lmemtest.errors import LmemtestError

    try:
        return model(taken)
    except (LmemtestError, np.linalg.LinAlgError) as error:  # one model fails, the other still counts
        return Failure.of(error)


@guided
@one_blas_thread()
def audit(
    runs: Runs,
    model: str | LmmFit | None = None,
    *,
    n_draws: int = 1000,
    unit: str | Sequence[str] = UNITS,
    alpha: float = 0.05,
    placebo: Any = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Answer:
    """Measure how often a model finds a difference that is not there.

    Parameters
    ----------
    runs : Runs
        The table.
    model : str or LmmFit, optional
        Your model, whose response (such as ``log(loss)``) the recommended one then has as well; by default the naive
        ``score ~ algorithm + (1|benchmark)``, which counts every row as an independent observation. The recommended
        model (see `recommend`) is always beside it.
    n_draws : int
        Relabelled tables per unit; 1,000 give a rate of 5 % an interval of 3.7 to 6.5 %. Each is a refit of both
        models, of 2 to 300 ms by their size: an audit of 1,000 tables takes seconds to minutes per unit.
    unit : {"family", "benchmark", "instance", "run"} or a sequence of them
        What is exchanged: the algorithms' names on whole families of benchmarks, on whole benchmarks, on instances (a
        benchmark at one combination of metafeatures), or on single runs of the same seed (on any runs of the instance
        where algorithms have their own seeds). By default all that the table has columns for.
    alpha : float in (0, 1)
        Nominal level: a table is rejected if some pair has a Tukey-adjusted p-value below it (Satterthwaite degrees
        of freedom).
    placebo : level of the algorithm column, optional
        Use the runs of this algorithm alone, and name whole runs at random "placebo 1" and "placebo 2": an algorithm
        against itself. Implies ``unit="run"``. Every name needs runs, so at least two seeds on most benchmarks.
    rng : int, numpy.random.Generator or None
        Source of the relabellings; the same whatever `n_jobs` or `executor` is.
    n_jobs : int
        Processes; -1 for one per processor.
    executor : object with a ``map``, optional
        What computes instead, such as one of concurrent.futures or a client of Dask.
    progress : bool, optional
        Progress bar on standard error; by default on a terminal, after two seconds.

    Returns
    -------
    Answer
        ``rates``, one row per unit and model, the user's or the naive one before the recommended one: ``unit``,
        ``model`` ("naive", "yours" or "recommended"), ``rate`` (share of the tables that could be fitted in which the
        model rejects), ``ci_low``, ``ci_high`` (95 %), ``n_draws``, ``rejected`` (tables in which some pair differs
        "significantly"), ``failed`` (in which the model could not be fitted: no rejection), ``unconverged`` (in which
        the search did not complete its certificate: kept), ``decision`` (see Notes) and ``formula``, with the residual
        variances by a column where the model has them. ``alpha``; ``exchanged``, what was exchanged for each unit, in
        words.

    Raises
    ------
    ArgumentError
        If `runs` is a plain table, an option is unknown, or the table has neither benchmarks nor seeds to exchange.
    DataError
        If no labels can be exchanged, or `placebo` has too few runs.

    Notes
    -----
    The table is the user's own, so scales, outliers and heterogeneity are as they are. An exchange by "family",
    "benchmark" or "instance" keeps the differences that algorithms have on single ones and makes their direction
    random; one by "run" removes them. A model can keep its level in one and fail in the other.

    Exchanged names make the algorithms alike, and benchmarks independent of each other. "Nominal" says that the
    model keeps its level for algorithms that are alike in how much they vary. It does not show what happens where they
    are not: of six equally good algorithms one of which varies five times as much, a model with one variance for all
    calls some different in 14 % of the tables, and the audit of such a table says about 5 %. Nor does it show what
    happens where a seed means the same on several benchmarks (16 to 87 %; the audit says about 5 %). `fit.diagnose` and
    `seed_effect` look for these.

    The decision goes by its 95 % interval (Clopper & Pearson 1934): "too often" or "too rarely" where it
    excludes `alpha`, "nominal" where it contains `alpha` and ends below twice `alpha`, "cannot tell" where it
    reaches further (at 5 % with fewer than about 140 tables).

    References
    ----------
    Barr, Levy, Scheepers & Tily (2013), doi:10.1016/j.jml.2012.11.001

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.checks.audit import audit
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, algorithm=["RS", "HB"])
    >>> result = audit(runs, n_draws=4, unit="benchmark", rng=1)
    >>> result.to_frame()[["unit", "model", "n_draws"]]
            unit        model  n_draws
    0  benchmark        naive        4
    1  benchmark  recommended        4
    """
    require_runs(runs)
    n_draws = check_positive_int(n_draws, "n_draws")
    alpha = check_fraction(alpha, "alpha")
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    notes: list[str] = []
    if placebo is not None:
        runs, unit = _placebo(runs, placebo), "run"
        notes.append(f"Placebo: all runs are of {placebo!r}; their names are made up.")
    units, left_out = _units(runs, unit)
    fits, same_response = _fits(runs, model) if placebo is None else _fits_of_placebo(runs, model, placebo)
    notes += same_response
    columns = list(dict.fromkeys(name for _, fit in fits for name in fit.cells.frame.columns))
    rates: list[dict[str, Any]] = []
    exchanged = {}
    generator = resolve_rng(rng)
    for one in units:
        exchange = find_relabelling(runs, one, columns, score=fits[0][1].design.parsed.response)
        exchanged[one] = exchanged_in_words(runs, exchange)
        notes += _few_relabellings(exchange)
        models = tuple(_rejects(runs, fit, exchange, alpha, name) for name, fit in fits)
        label = f"Exchanges by {one}"
        results = replicate(
            partial(_rejections, exchange, models),
            n_draws,
            rng=generator,
            n_jobs=n_jobs,
            executor=executor,
            progress=progress,
            label=label,
        )
        for i, (name, fit) in enumerate(fits):
            rate, why = _rate([r[i] for r in results], name, fit.label, one, alpha)
            rates.append(rate)
            notes += why
    return _answer(rates, alpha, exchanged, (*notes, *left_out))


def _rejects(runs: Runs, fit: LmmFit, exchange: Relabelling, alpha: float, name: str) -> _Rejects:
    """The recommended model is judged by the comparisons that `pairs` makes by default, others by their own errors."""
    default = name == RECOMMENDED and emmeans(fit, runs.algorithm).errors == "moderated"
    robust = moderated(fit).robust if default else None
    table = RelabelledFit.of(fit, exchange)
    alike = exchange.start is not None and robust is not None and robust.fit is fit
    return _Rejects(
        table=table,
        L=None if exchange.start is None else differences(fit, runs.algorithm),
        n_algorithms=len(runs.algorithms),
        algorithm=runs.algorithm,
        alpha=alpha,
        cluster=None if robust is None else robust.cluster,
        means=emmeans(table.fit, runs.algorithm, vcov="model") if alike else None,
    )


def _rate(outcomes: list[Any], name: str, formula: str, unit: str, alpha: float) -> tuple[dict[str, Any], list[str]]:
    """A row of the table of rates, and what to know of the tables on which the model failed."""
    failures = [v.reason for v in outcomes if isinstance(v, Failure)]
    done = [v for v in outcomes if not isinstance(v, Failure)]
    if not done:
        raise EstimationError(f"the {name} model could be fitted to no relabelled table. {failures[0]}")
    rejected, unconverged = sum(rejected for rejected, _ in done), sum(not converged for _, converged in done)
    counts = {"n_draws": len(outcomes), "rejected": rejected, "failed": len(failures), "unconverged": unconverged}
    notes = []
    if failures:
        notes.append(f"The {name} model failed on {len(failures):,} tables, which are not in its rate ({failures[0]}).")
    if unconverged:
        notes.append(
            f"On {unconverged:,} tables the search of the {name} model did not complete its certificate; they are "
            "in its rate."
        )
    return _row(unit, name, counts, formula, alpha), notes


def _row(unit: str, model: str, counts: dict[str, int], formula: str, alpha: float) -> dict[str, Any]:
    """The rate with Clopper and Pearson's interval, and whether that lies above, around or below the nominal level."""
    fitted = counts["n_draws"] - counts["failed"]
    low, high = map(float, clopper_pearson(counts["rejected"], fitted, _LEVEL))
    decision = "nominal" if high <= _DOUBTFUL * alpha else "cannot tell"
    if low > alpha or high < alpha:
        decision = "too often" if low > alpha else "too rarely"
    rate = {"rate": counts["rejected"] / fitted, "ci_low": low, "ci_high": high}
    return {"unit": unit, "model": model, **rate, **counts, "decision": decision, "formula": formula}


def _answer(rates: list[dict[str, Any]], alpha: float, exchanged: dict[str, str], notes: tuple[str, ...]) -> Answer:
    table = pd.DataFrame(rates)
    models = {rate["model"]: rate["formula"] for rate in rates}
    facts = [f"{name}: {formula}" for name, formula in models.items()]
    facts += [f"unit {unit}: exchanged are {words}." for unit, words in exchanged.items()]
    return Answer(
        question="audit",
        title=f"False positives at a nominal {percent(alpha)} (family of all pairs, Tukey)",
        tables={"rates": table},
        values={"alpha": alpha, "exchanged": exchanged},
        facts=(*facts, *([UNSEEN] if set(exchanged) - {"run"} else [])),
        findings=tuple(_sentence(rate, alpha) for rate in rates),
        notes=notes,
        printed=table.drop(columns=["formula", "unconverged"]),
        formats={"rate": percent, "ci_low": percent, "ci_high": percent},
        figure="audit_plot",
    )


def _sentence(rate: dict[str, Any], alpha: float) -> str:
    """One plain sentence on a unit and a model."""
    who = {NAIVE: "the naive model", YOURS: "your model", RECOMMENDED: "the recommended model"}[rate["model"]]
    how = {
        "family": "the algorithms' names are swapped at random on each family of benchmarks, so that all are alike",
        "benchmark": "the algorithms' names are swapped at random on each benchmark, so that all are alike",
        "instance": "the algorithms' names are swapped at random on each instance, so that all are alike",
        "run": "the algorithms' names are swapped at random between single runs, so that there is no difference",
    }[rate["unit"]]
    end = {
        "too often": f"{rate['rate'] / alpha:.1f} times the nominal {percent(alpha)}, so do not trust its p-values "
        "here",
        "nominal": f"which agrees with the nominal {percent(alpha)}",
        "cannot tell": f"too few tables to tell whether that is the nominal {percent(alpha)}; "
        f"n_draws={tables_needed(alpha):,} would tell for a model that keeps its level",
        "too rarely": f"below the nominal {percent(alpha)}: it is conservative and may miss true differences",
    }[rate["decision"]]
    return (
        f"When {how}, {who} still reports a significant difference in {percent(rate['rate'])} of "
        f"{rate['n_draws'] - rate['failed']:,} tables (95 % interval {percent(rate['ci_low'])} to "
        f"{percent(rate['ci_high'])}), {end}."
    )


def _few_relabellings(exchange: Relabelling) -> list[str]:
    few = exchange.few_arrangements
    if few is None:
        return []
    return [
        f"There are only {few:,} distinct relabellings by {exchange.unit}, so tables repeat: the rate is one over "
        f"these {few:,}, however many are drawn, and says little about tables like this one. More "
        f"{_PLURALS[exchange.unit]} would help."
    ]


def _fits_of_placebo(runs: Runs, model: str | LmmFit | None, placebo: Any) -> tuple[_NamedFits, list[str]]:
    """The fits, with the placebo named as the reason if there are too few runs for them."""
    try:
        return _fits(runs, model)
    except (DataError, DesignError, EstimationError) as error:
        raise DataError(
            f"placebo={placebo!r} leaves the {runs.n_rows:,} rows of one algorithm, split into two, which are too few "
            f"for a model: {error} Choose an algorithm with more runs, or audit without placebo=."
        ) from error


def _fits(runs: Runs, model: str | LmmFit | None) -> tuple[list[tuple[str, LmmFit]], list[str]]:
    """The model that is audited and the recommended one of the same response, and what to say of that response."""
    if model is None:
        group = f" + (1 | {quote_name(str(runs.benchmark))})" if runs.study.several_benchmarks else ""
        naive = f"{quote_name(runs.score)} ~ {quote_name(runs.algorithm)}{group}"
        first = (NAIVE, fit_for_comparison(runs, naive))
    else:
        first = (YOURS, fit_for_comparison(runs, model))
    formula = recommend(runs, curves="model").formula  # of the same rows as the model that is audited
    response = _response(first[1])
    score = quote_name(runs.score)
    notes = []
    if response != score:  # the recommended formula begins with the score
        formula = response + formula[len(score) :]
        notes.append(f"The recommended model has the response of yours, {response}.")
    recommended = fit_for_comparison(runs, formula, argument="the recommended model")
    return [first, (RECOMMENDED, recommended)], notes


def _response(fit: LmmFit) -> str:
    """The left side of a fit's formula."""
    parsed = fit.design.parsed
    name = quote_name(parsed.response)
    return f"{parsed.response_function}({name})" if parsed.response_function else name


def _units(runs: Runs, unit: str | Sequence[str]) -> tuple[list[str], list[str]]:
    """Units that the table has roles for; one that was asked for by name must be among them."""
    if isinstance(unit, str):
        return [check_unit(unit, runs)], []
    asked = [check_unit(one, runs) for one in dict.fromkeys(check_names(unit, "unit"))]
    if not asked:
        raise ArgumentError(f"unit must name at least one of {', '.join(UNITS)}, got none.")
    role = {"benchmark": "benchmark", "run": "seed"}
    has = {
        "family": runs.study.families,
        "benchmark": runs.benchmark,
        "instance": runs.metafeatures,
        "run": runs.seed,
    }
    known = [one for one in asked if has[one]]
    if not known:
        raise ArgumentError(
            "audit exchanges the algorithms' names by benchmark or by run, and the table has neither a benchmark nor "
            "a seed column. Name them in Runs(benchmark=, seed=)."
        )
    # without families or metafeatures these are the benchmark
    missing = [one for one in asked if not has[one] and one in role]
    return known, [f"No exchange by {one}: the table has no {role[one]} column." for one in missing]


def _placebo(runs: Runs, algorithm: Any) -> Runs:
    """One algorithm's runs under two made-up names, whole runs together."""
    from lmemtest.bench.data.runs import Runs

    if runs.seed is None:
        raise ArgumentError("placebo= splits whole runs, and the table has no seed column. Name it in Runs(seed=).")
    if not among(algorithm, runs.algorithms):
        known = ", ".join(map(repr, runs.algorithms))
        raise ArgumentError(f"placebo={algorithm!r} is not an algorithm of the table. Algorithms: {known}.")
    frame = runs.to_frame()
    frame = frame[frame[runs.algorithm] == algorithm].reset_index(drop=True)
    where = list(runs.instance)
    run = group_numbers(frame, [*where, runs.seed])
    stratum = group_numbers(frame, where)
    first = np.unique(run, return_index=True)[1]
    if np.bincount(stratum[first]).max() < 2:
        on = f" on each {'benchmark' if len(where) == 1 else 'instance'}" if where else ""
        raise DataError(
            f"placebo={algorithm!r} splits the runs of one algorithm{on} into two names, and there is one run only. "
            f"Choose an algorithm with two or more runs (values of '{runs.seed}'){on}, or audit without placebo=."
        )
    rank = np.arange(len(first)) - np.searchsorted(stratum[first], stratum[first])  # runs are sorted by stratum
    names = np.array(["placebo 1", "placebo 2"], dtype=object)
    return Runs(frame.assign(**{runs.algorithm: names[(rank % 2)[run]]}), **runs.roles())


_PLURALS = {"family": "families", "benchmark": "benchmarks", "instance": "benchmarks", "run": "runs"}
