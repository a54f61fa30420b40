"""Permutation test of a comparison of algorithms: what the statistic would be if labels were chance.

An *item* is what carries one label: all runs of an algorithm on a benchmark or on an instance, or one run. Items of
one *stratum* may exchange their labels. Where the items of every stratum have the same cells, exchanging labels is
exchanging scores, and the design of a model stays what it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.permutation.sign_flips import sign_flips
from lmemtest.core.codes import combine_codes, group_codes
from lmemtest.core.hints import guided
from lmemtest.core.replicates import Executor, check_replicates
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_options_of, check_positive_int
from lmemtest.core.words import plural
from lmemtest.errors import ArgumentError, DataError, EstimationError
from lmemtest.lmm.cells import CellMap, Cells, compress, regroup
from lmemtest.lmm.formula import parse_formula
from lmemtest.lmm.hypotheses.null_distributions import null_draws, share_as_large
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import LmmFit, fit_lmm

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index


LABELS, SIGNS = "labels", "signs"
UNITS = ("family", "benchmark", "instance", "run")

# What a unit exchanges, and what a table that lacks its role says.
_NEEDS = {
    "family": "labels per family of benchmarks, and the table has no families that hold several benchmarks. Name them "
    "in Runs(family=), or use unit='benchmark'",
    "benchmark": "labels per benchmark, and the table has no benchmark column. Name it in Runs(benchmark=), or use "
    "unit='run'",
    "instance": "labels per benchmark and metafeatures, and the table has no metafeatures. Name them in "
    "Runs(metafeatures=), or use unit='benchmark'",
    "run": "the labels of single runs, and the table has no column that distinguishes them. Name it in Runs(seed=), or "
    "use unit='benchmark'",
}
_FEW_ARRANGEMENTS = 1000.0  # below it draws repeat so often that their number hides how little there is to draw
MAX_T = "max_t"

_SAME = 1e-9  # relative: relabellings that only rename give the same statistic up to rounding


def _max_t(L: Array | None, algorithm: str, fit: Any) -> float:
    """Largest ``|t|`` over all pairs of algorithms; L of a design that does not change, or None: read off each fit."""
    L = differences(fit, algorithm) if L is None else L
    estimate, variance = fit.estimate(L), fit.cov(L).diagonal()
    estimable = np.isfinite(estimate) & (variance > 0)
    if not estimable.any():
        raise EstimationError("no difference between two algorithms is estimable")
    return float(np.abs(estimate[estimable] / np.sqrt(variance[estimable])).max())


def _draw(table: RelabelledFit, statistic: Callable[[Any], Any], rng: np.random.Generator) -> tuple[float, bool]:
    fit = table.refit(table.exchange.draw(rng))
    return _number(statistic(fit)), bool(fit.converged)


@guided
@one_blas_thread()
def permutation_test(
    runs: Runs,
    model: str | LmmFit | None = None,
    statistic: str | Callable[[Any], float] = MAX_T,
    *,
    exchange: str = "labels",
    unit: str | None = None,
    alpha: float = 0.05,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Answer:
    """Test algorithms by exchange: are they alike in every way (labels), or which are better on average (signs)?

    Parameters
    ----------
    runs : Runs
        The table. For signs with a benchmark, of which the mean over its runs (at common instances and budgets) is
        used; where the runs have five families or more, these take the place of benchmarks, each with the mean over its
        own.
    model : str or LmmFit
        For labels: formula with the algorithm in its fixed part, or a fit of one.
    statistic : "max_t" or callable
        For labels: the largest ``|t|`` over all pairs of algorithms, or a function of the fit whose large values speak
        against the null.
    exchange : {"labels", "signs"}
        "labels" exchanges the names of the algorithms, refits the model to each table that comes out, and tests whether
        all algorithms are exchangeable. "signs" flips the signs of the differences of whole benchmarks, needs no model,
        and tests each pair of algorithms.
    unit : {"family", "benchmark", "instance", "run"}, optional
        For labels: what is exchanged; by default "family" where the runs have five families or more, else "benchmark".
        "family": the names of the algorithms on a whole family of benchmarks. "benchmark": on a whole benchmark.
        "instance": on a benchmark at one combination of metafeatures. "run": the names of single runs, among those with
        the same seed on the same instance; where algorithms have their own seeds, among all runs on the instance.
    alpha : float in (0, 1)
        For signs: chance of any false difference among all pairs in the sentences.
    n_draws : int, optional
        Relabelled tables, drawn at random, by default 999; or random patterns of signs, by default 9,999. Where there
        are no more than so many patterns all are taken: up to 14 benchmarks by default.
    rng : int, numpy.random.Generator or None
        Source of the draws; the same whatever `n_jobs` or `executor` is.
    n_jobs, executor, progress : int, object with a ``map``, bool
        For labels: processes (-1: one per processor), or what computes instead, such as a client of Dask; a progress
        bar, by default on a terminal after two seconds.

    Returns
    -------
    Answer
        Of labels: `statistic` of the table as it is, and `statistic_name` (large values speak against the null);
        `p_value`, ``(1 + #{T* >= T}) / (n_draws + 1)``, with `p_value_error`, its Monte-Carlo error (a draw that failed
        counts as larger); `draws`, the statistic of every relabelled table, NaN where the model could not be fitted;
        `failed` and `unconverged`, draws without a statistic, and draws in which the search did not complete its
        certificate (kept); `unit` and `exchangeable`, what was exchanged, also in words, in `n_strata` groups;
        `hypothesis`, the null hypothesis that this tests; `formula` of the model, with the residual variances where the
        fit has several.

        Of signs: `table`, one row per pair of algorithms: ``left``, ``right``, ``n_benchmarks`` (or families, on which
        both ran), ``estimate`` (left - right, mean over them), ``t_ratio`` (with the pair's own standard deviation),
        ``p_value`` (adjusted for all pairs; NaN with fewer than two common benchmarks); `statistic` and `p_value`, the
        largest ``|t|`` of all pairs, and that no algorithm is better than another: the smallest adjusted p-value;
        `n_benchmarks`, on which two algorithms differ (on others no sign matters), or families by `unit`; `n_draws` and
        `exact`, patterns of signs, and whether these are all there are (up to the sign of all together); `smallest`,
        the smallest p-value that these patterns allow; `hypothesis`.

    Raises
    ------
    ArgumentError
        If `runs` is a plain table, an option is unknown or of the other exchange, the table lacks a role, or the model
        does not compare the algorithms.
    DataError
        If no labels can be exchanged, no two algorithms have two benchmarks in common, or all their scores are equal.

    Notes
    -----
    **Labels.** The p-value holds whatever the distribution of the scores; the model only chooses what the statistic is
    sensitive to. The unit chooses the hypothesis. By "benchmark": over benchmarks like these the algorithms are
    exchangeable (advantages on single benchmarks are allowed, as often and as large for one as for the other). By
    "family": the same of families, which may favour an algorithm on all of their benchmarks; K families of two
    algorithms have 2^(K - 1) different relabellings, so with four no p-value is below 1/8, and six are the fewest for 5
    %. By "instance": the same of instances, which takes those of one benchmark as independent of each other. By "run":
    on these benchmarks the algorithms do not differ at all; a rejection may come from one benchmark and says nothing
    about others.

    For two algorithms, exchangeable means that neither is better. For three or more it also means that none varies
    more from benchmark to benchmark than another: with six equally good algorithms on 12 benchmarks, one of which
    varies five times as much, this test rejects in 12 to 15 % of the tables at 5 %. Signs ask whether one is better on
    average, whatever their variation, and reject in 5 %.

    **Signs.** The null hypothesis of a pair: over benchmarks like these neither algorithm is better; on a single one it
    may be, by whatever amount, as likely as the other. More exactly, differences on a benchmark are symmetric about
    zero. Nothing is asked of how much each algorithm varies, of how the differences of several pairs go together, or of
    normal distributions. The chance of any false difference among all pairs is at most the level, whichever pairs
    differ, if the differences of the others are symmetric together (Romano & Wolf 2005); this is exact for any number
    of benchmarks. Advantages that are zero on average but skewed are no part of the hypothesis. For two algorithms an
    exchange of their names is a flip of signs.

    B benchmarks have 2^(B - 1) patterns of signs, so no p-value is below one over that: 1/16 with five, 1/32 with six.

    References
    ----------
    Phipson & Smyth (2010). Permutation p-values should never be zero. doi:10.2202/1544-6115.1585; Winkler et al.
    (2015). Multi-level block permutation. doi:10.1016/j.neuroimage.2015.05.092; Westfall & Young (1993),
    Resampling-based multiple testing, algorithm 2.8; Romano & Wolf (2005), Exact and approximate stepdown methods for
    multiple hypothesis testing, doi:10.1198/016214504000000539; Winkler et al. (2014), Permutation inference for the
    general linear model, doi:10.1016/j.neuroimage.2014.01.060 (sign flips: "independent and symmetric errors").

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 9], "tool": ["A", "B"] * 8,
    ...          "task": list("aabbccddeeffgghh")}
    >>> runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> test = permutation_test(runs, "loss ~ tool + (1 | task)", n_draws=199, rng=1)
    >>> test.n_strata, test.p_value < 0.1
    (8, True)
    >>> test = permutation_test(runs, exchange="signs")
    >>> test.n_benchmarks, test.exact, test.p_value
    (6, True, 0.03125)
    >>> test.sentences()
    ('A is better than B by 1.250 on average (p = 0.031).',)
    """
    check_options_of(
        "exchange",
        check_choice(exchange, "exchange", (LABELS, SIGNS)),
        ("model", model, None, (LABELS,)),
        ("statistic", statistic, MAX_T, (LABELS,)),
        ("unit", unit, None, (LABELS,)),
        ("n_jobs", n_jobs, 1, (LABELS,)),
        ("executor", executor, None, (LABELS,)),
        ("progress", progress, None, (LABELS,)),
        ("alpha", alpha, 0.05, (SIGNS,)),
    )
    n_draws = check_positive_int((999 if exchange == LABELS else 9999) if n_draws is None else n_draws, "n_draws")
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    if exchange == SIGNS:
        return sign_flips(runs, check_fraction(alpha, "alpha"), n_draws, rng)
    if model is None:
        raise ArgumentError("model must be a formula or a fit where labels are exchanged. exchange='signs' needs none.")
    if not callable(statistic) and not (isinstance(statistic, str) and statistic == MAX_T):
        raise ArgumentError(f"statistic must be '{MAX_T}' or a function of a fit, got {statistic!r}.")
    fit = fit_for_comparison(runs, model)
    sample = runs.study.sampled
    unit = sample.noun if unit is None else unit
    labels = find_relabelling(runs, unit, list(fit.cells.frame.columns), score=fit.design.parsed.response)
    if callable(statistic):
        function, name = statistic, getattr(statistic, "__name__", "statistic")
    else:
        L = None if labels.start is None else differences(fit, runs.algorithm)
        function, name = partial(_max_t, L, runs.algorithm), "largest |t| over all pairs of algorithms"
    observed = _number(function(fit))
    if not np.isfinite(observed):
        raise ArgumentError(f"statistic must be a finite number for the table as it is, got {observed}.")

    task = partial(_draw, RelabelledFit.of(fit, labels), function)
    options = {"rng": rng, "n_jobs": n_jobs, "executor": executor, "progress": progress, "label": "Permutations"}
    draws, unconverged, reasons = null_draws(task, n_draws, drawn="relabelled table", **options)
    p_value, error = share_as_large(draws, observed, _SAME * abs(observed))
    failed = int(np.isnan(draws).sum())
    row = {"statistic": observed, "p_value": p_value, "p_value_error": error, "unit": unit, "n_strata": labels.n_strata}
    row |= {"n_draws": n_draws, "failed": failed, "unconverged": unconverged, "formula": fit.label}
    exchangeable = exchanged_in_words(runs, labels)
    hypothesis = hypothesis_in_words(unit, len(runs.algorithms))
    named = {"statistic_name": name, "exchangeable": exchangeable, "hypothesis": hypothesis}
    table, alike = pd.DataFrame([row]), 1 if callable(statistic) else labels.renamings
    return Answer(
        question="permutation_test",
        title="Permutation test",
        tables={"table": table},
        values={**row, **named, "draws": draws},
        facts=(
            f"Model: {fit.label}; statistic: {name}.",
            f"Exchanged: {exchangeable}.",
            f"Null hypothesis: {hypothesis}.",
        ),
        notes=(
            *(sample.notes if unit == sample.noun else ()),
            *_notes(labels, draws, unconverged, reasons, len(runs.algorithms), alike),
        ),
        printed=table.drop(columns="formula"),
    )


# ---------------------------------------------------------------------- what may be exchanged


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relabelling:
    """What may be exchanged in a table.

    ``unit`` is what keeps its scores together, ``paired`` whether runs exchange labels with runs of the same seed only,
    ``columns`` those of the cells on which labels are exchanged, ``algorithm`` the column of the labels. ``item`` is
    the item of each cell (sorted by stratum), ``stratum`` and ``label`` those of each item. Where the items of every
    stratum have the same cells, ``start`` is the position of each item's first cell in ``order``, the cells sorted by
    item and within items in the same order; else it is None, and tables must be grouped anew.
    """

    unit: str
    paired: bool
    columns: tuple[str, ...]
    algorithm: str
    item: Index
    stratum: Index
    label: Index
    n_labels: int
    start: Index | None
    order: Index

    @property
    def n_strata(self) -> int:
        """Groups of items that exchange their labels; groups with one label only do not count."""
        return int(np.count_nonzero(self._labels_per_stratum() > 1))

    @property
    def fixed_items(self) -> int:
        """Items that share their stratum with no other label, so that they never change."""
        return int(np.count_nonzero(self._labels_per_stratum()[self.stratum] < 2))

    def _labels_per_stratum(self) -> Index:
        pairs = np.unique(self.stratum.astype(np.int64) * self.n_labels + self.label)
        return np.bincount(pairs // self.n_labels, minlength=int(self.stratum.max()) + 1)

    @property
    def few_arrangements(self) -> int | None:
        """The number of distinct relabellings where it is small, else None."""
        n_strata = int(self.stratum.max()) + 1
        sizes = np.bincount(self.stratum, minlength=n_strata)
        same = np.bincount(self.stratum * self.n_labels + self.label, minlength=n_strata * self.n_labels)
        log = gammaln(sizes + 1).sum() - gammaln(same + 1).sum()
        return round(np.exp(log)) if log < np.log(_FEW_ARRANGEMENTS) else None

    @property
    def renamings(self) -> int:
        """Relabellings that only rename the algorithms, so that no two of them look different; 1 in patchy tables."""
        sizes = np.bincount(self.stratum)
        whole = (sizes == self.n_labels).all() and len(np.unique(self.stratum * self.n_labels + self.label)) == len(
            self.stratum
        )
        return math.factorial(self.n_labels) if whole else 1

    def draw(self, rng: np.random.Generator) -> Index:
        """For each item the item of its stratum whose label it gets, all arrangements equally likely."""
        return np.lexsort((rng.random(len(self.stratum)), self.stratum))

    def relabel(self, cells: Cells, taken: Index) -> Cells:
        """The cells after an exchange."""
        if self.start is None:
            first = np.empty(len(self.label), dtype=np.intp)
            first[self.item] = np.arange(len(self.item))
            keys, at = cells.columns, cells.names.index(self.algorithm)
            exchanged = keys.codes[at][first[taken][self.item]]
            return replace(cells, columns=replace(keys, codes=(*keys.codes[:at], exchanged, *keys.codes[at + 1 :])))
        position = np.empty_like(self.order)
        position[self.order] = np.arange(len(self.order))
        place = position - self.start[self.item]
        to = self.order[self.start[taken][self.item] + place]
        mean, ss = np.empty_like(cells.mean), np.empty_like(cells.ss)
        mean[to], ss[to] = cells.mean, cells.ss
        return replace(cells, mean=mean, ss=ss)


def find_relabelling(runs: Runs, unit: str, columns: Sequence[str], *, score: str) -> Relabelling:
    """Find what may be exchanged.

    By "benchmark" all runs of two algorithms on a benchmark change their names together, by "family" those on all
    benchmarks of a family (the coarsest of which there are enough, else the coarsest), by "instance" those at one
    combination of metafeatures, by "run" single runs: with runs of the same seed where algorithms share seeds, else
    with any run on the instance. ``columns`` are those that the models use, ``score`` the column that they explain.

    Raises
    ------
    ArgumentError
        If the table lacks the role that the unit needs, or the unit is unknown.
    DataError
        If nothing can be exchanged, or a column belongs to the algorithms themselves.
    """
    check_unit(unit, runs)
    families, instance = family_columns(runs), runs.instance
    needs = {"family": families, "benchmark": runs.benchmark, "instance": runs.metafeatures, "run": runs.seed}
    if needs[unit] in (None, ()):
        raise ArgumentError(f"unit='{unit}' exchanges {_NEEDS[unit]}.")
    within = {"family": families, "benchmark": (runs.benchmark,), "instance": instance, "run": (*instance, runs.seed)}
    stratum_names = [str(name) for name in within[unit]]
    item_names = [*stratum_names, runs.algorithm]
    by = tuple(dict.fromkeys([*item_names, *columns]))
    cells = compress(runs, by=by, score=score)
    frame = cells.frame

    label, n_labels = _codes(frame, [runs.algorithm])
    stratum, n_strata = _codes(frame, stratum_names)
    paired = unit != "run" or len(np.unique(stratum * n_labels + label)) > n_strata
    if not paired:  # every algorithm has seeds of its own
        stratum, n_strata = _codes(frame, list(instance))
    group, n_groups = _codes(frame, item_names)
    item = combine_codes([(stratum, n_strata), (group, n_groups)], len(frame))
    rest_names = [name for name in by if name not in item_names]
    for name in (name for name in rest_names if name not in (runs.seed, runs.budget)):
        codes, n_codes = _codes(frame, [name])
        if n_codes > 1 and len(np.unique(label * n_codes + codes)) == n_labels:
            raise DataError(
                f"the model uses '{name}', which is a property of the algorithms: each value of '{runs.algorithm}' has "
                f"one. With exchanged labels it would no longer fit. Leave '{name}' out of the model."
            )

    first = np.empty(int(item.max()) + 1, dtype=np.intp)
    first[item] = np.arange(len(item))
    rest = _codes(frame, rest_names)[0]
    order = np.lexsort((rest, item))
    relabelling = Relabelling(
        unit=unit,
        paired=paired,
        columns=by,
        algorithm=runs.algorithm,
        item=item,
        stratum=stratum[first],
        label=label[first],
        n_labels=n_labels,
        start=_starts_if_alike(item, stratum[first], rest, cells.n, order),
        order=order,
    )
    if not relabelling.n_strata:
        noun = unit if unit in ("family", "benchmark") else "instance"
        where = f"on any {noun}" if unit != "run" or not paired else f"for any seed on any {noun}"
        raise DataError(
            f"unit='{unit}': there are no two algorithms {where}, so no labels can be exchanged. Each algorithm needs "
            f"runs on the {plural(noun)} of the others."
        )
    return relabelling


def family_columns(runs: Runs) -> tuple[str, ...]:
    """The column of the families that are exchanged; none without families."""
    families = runs.study.sampled.families or runs.study.families
    return families[0][-1:] if families else ()


def _codes(frame: pd.DataFrame, names: Sequence[str]) -> tuple[Index, int]:
    index, keys = group_codes([frame[name] for name in names], len(frame))
    return index, keys.size


def _starts_if_alike(item: Index, stratum: Index, rest: Index, n: Array, order: Index) -> Index | None:
    """First position of each item in `order` where the items of every stratum have the same cells, else None."""
    size = np.bincount(item)
    start = np.cumsum(size) - size
    model = np.searchsorted(stratum, stratum)  # the first item of the stratum
    if not np.array_equal(size, size[model]):
        return None
    place = np.arange(len(order)) - start[item[order]]
    like = order[start[model[item[order]]] + place]
    alike = np.array_equal(rest[order], rest[like]) and np.array_equal(n[order], n[like])
    return start if alike else None


def check_unit(unit: Any, runs: Runs) -> str:
    """Refuse what is not a unit of exchange; a seed is a block and not a unit."""
    if isinstance(unit, str) and unit not in UNITS and unit in ("seed", runs.seed):
        raise ArgumentError(
            f"unit must be {' or '.join(map(repr, UNITS))}, got {unit!r}. Runs with the same seed are the blocks "
            "within which unit='run' exchanges names: use unit='run'."
        )
    return check_choice(unit, "unit", UNITS)


# ---------------------------------------------------------------------- fits of relabelled tables


@dataclass(frozen=True, slots=True, eq=False)
class RelabelledFit:
    """A model that is fitted again and again to a table whose labels are exchanged."""

    fit: LmmFit
    exchange: Relabelling
    cells: Cells
    to_model: CellMap

    @classmethod
    def of(cls, fit: LmmFit, exchange: Relabelling) -> RelabelledFit:
        """Prepare `fit` for exchanges of the labels of its table."""
        parsed = fit.design.parsed
        cells = compress(fit.data, by=exchange.columns, score=parsed.response, transform=parsed.response_transform)
        light = replace(fit, data=None)  # replicates need the cells only, and other processes get a copy
        return cls(fit=light, exchange=exchange, cells=cells, to_model=CellMap.of(cells, light.cells))

    def refit(self, taken: Index) -> LmmFit:
        """The model on the table after one exchange (see `Relabelling.draw`)."""
        cells = self.exchange.relabel(self.cells, taken)
        if self.exchange.start is None:
            return self.fit.refit(cells=regroup(cells, self.fit.cells.names))
        return self.fit.refit(cells=self.to_model.aggregate(cells))


def fit_for_comparison(runs: Runs, model: str | LmmFit | None, *, argument: str = "model") -> LmmFit:
    """The model (a formula, or a fit of one) fitted to the table; its fixed part must compare the algorithms."""
    require_runs(runs)
    formula = getattr(model, "formula", model)
    if not isinstance(formula, str):
        raise ArgumentError(f"{argument} must be a formula or a fit, got {type(model).__name__}.")
    for there, what, instead in (
        (getattr(model, "weights", None), "is a fit with weights, which belong", "Fit without weights"),
        (parse_formula(formula).offsets, "has an offset, which belongs", "Leave the offset out"),
    ):
        if there:
            raise ArgumentError(
                f"{argument} {what} to rows and not to labels, so that exchanging labels does not answer the question. "
                f"{instead}."
            )
    fit = fit_lmm(formula, runs, reml=getattr(model, "reml", True), dispersion=getattr(model, "dispersion", None))
    if runs.algorithm not in fit.design.factors:
        raise ArgumentError(
            f"{argument} must compare the algorithms: '{runs.algorithm}' is not a factor in the fixed part of "
            f"'{formula}'."
        )
    return fit


def differences(fit: Any, algorithm: str) -> Array:
    """Linear functions of the fixed effects: all pairwise differences of the algorithms' marginal means."""
    means = emmeans(fit, algorithm, ddf="asymptotic").fixed
    i, j = np.triu_indices(len(means), k=1)
    return np.asarray(means[i] - means[j])


# ---------------------------------------------------------------------- words


def exchanged_in_words(runs: Runs, exchange: Relabelling) -> str:
    """What changed places, for a reader of the result."""
    instance = " x ".join(runs.instance)
    n = f"{exchange.n_strata:,}"
    if exchange.unit in ("benchmark", "family"):
        of = f" ({family_columns(runs)[0]})" if exchange.unit == "family" else ""
        return f"the names of the algorithms, all their runs together, within each of {n} {plural(exchange.unit)}{of}"
    if exchange.unit == "instance":
        return f"the names of the algorithms, all their runs together, within each of {n} instances ({instance})"
    on = f" on the same instance ({instance})" if instance else ""
    if exchange.paired:
        return f"the names of the runs with the same {runs.seed}{on}, in {n} such groups"
    return f"the names of whole runs{on}, in {n} such groups; algorithms have their own seeds"


def hypothesis_in_words(unit: str, n_algorithms: int) -> str:
    """The null hypothesis that an exchange of labels tests."""
    if unit == "run":
        return "on these benchmarks the algorithms do not differ; benchmarks that were not run are not the subject"
    where = "the other instances of the same benchmark"
    several = plural(unit)
    apart = f", whatever happens on {where}" if unit == "instance" else ""
    if n_algorithms == 2:
        return (
            f"over {several} like these no algorithm is better; on a single {unit} one may be, as likely as the other"
            f"{apart}"
        )
    return (
        f"over {several} like these the algorithms are exchangeable: none is better, and none varies more than another "
        f"or goes together with one; on a single {unit} each is as likely as any other to be better, by the same "
        f"amounts{apart}"
    )


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"statistic must return one number, got {type(value).__name__}.") from None


def _notes(
    exchange: Relabelling, draws: Array, unconverged: int, reasons: tuple[str, ...], n_algorithms: int, alike: int
) -> list[str]:
    """What to know; `alike` relabellings at least have the statistic of the table as it is."""
    notes = []
    if n_algorithms > 2 and exchange.unit != "run":
        notes.append(
            "Exchanged names make the algorithms alike in every way, so a rejection may also come from one that varies "
            "more than the others. permutation_test(runs, exchange='signs') tests their means alone, pair by pair."
        )
    few = exchange.few_arrangements
    if few is not None:
        notes.append(
            f"There are only {few:,} distinct relabellings, so the p-value cannot be smaller than "
            f"{written(alike / few, '.2g')} apart from the resolution of the draws."
        )
    if exchange.fixed_items:
        notes.append(
            f"{exchange.fixed_items:,} groups of runs have no partner to exchange labels with and keep theirs."
        )
    if failed := int(np.isnan(draws).sum()):
        why = reasons[0] if reasons else "the statistic is not a number"
        notes.append(f"{failed:,} of {len(draws):,} draws have no statistic ({why}); they count as larger.")
    if unconverged:
        notes.append(f"In {unconverged:,} draws the search did not complete its certificate; they are kept.")
    return notes
