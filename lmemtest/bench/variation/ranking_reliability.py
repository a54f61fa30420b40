"""How far the order of the algorithms would hold up on other benchmarks and seeds.

The mean of an algorithm over b benchmarks with n runs on each is its true mean plus an error of the variance

    e(b, n) = (interaction + run / n) / b,

and over f families with b benchmarks each, where families of benchmarks are the sample,

    e(f, b, n) = (family interaction + (interaction + run / n) / b) / f,

the same that `lmemtest.power` plans with: what benchmarks and seeds do to all algorithms alike cancels from their
order. With the variance ``a`` of the true means the reliability is ``a / (a + e)``, the part of the variance of the
observed means that is not error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.power.power import check_counts
from lmemtest.bench.variation.run_design import ALGORITHM, BENCHMARK, RunDesign, ratio_limits, run_design, run_variances
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer, result
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_fraction
from lmemtest.core.words import format_number, plural
from lmemtest.errors import ArgumentError, DataError

TARGETS = (0.8, 0.9)
_ROUNDING = 1e-9  # of a number of benchmarks


@result
class RankingReliability(Answer):
    """Reliability of the order of the algorithms; see `ranking_reliability` for its table and values."""

    @property
    def single_run(self) -> float:
        """Reliability of one run on one benchmark."""
        return self.at(1, 1, 1)

    @property
    def dependability(self) -> float:
        """The reliability if every algorithm had benchmarks and seeds of its own, whose differences are error then."""
        return self.dependability_at(self.n_benchmarks_each, self.n_seeds)

    def error_variance(self, n_benchmarks: float, n_seeds: float, n_families: float | None = None) -> float:
        """Variance of the error of an algorithm's mean, as far as it can change the order; sizes as in `at`."""
        within = (self.benchmark_variance + self.run_variance / n_seeds) / n_benchmarks
        return (self.family_variance + within) / (n_families or self.n_families or 1)

    def at(self, n_benchmarks: float, n_seeds: float, n_families: float | None = None) -> float:
        """Reliability of a study of this size.

        Parameters
        ----------
        n_benchmarks, n_seeds : float > 0
            Where families are the sample, benchmarks of each. ``n_seeds=inf`` gives what no number of seeds can exceed.
        n_families : float > 0, optional
            As many as in the study by default.
        """
        if self.algorithm_variance == 0:
            return 0.0
        error = self.error_variance(n_benchmarks, n_seeds, n_families)
        return self.algorithm_variance / (self.algorithm_variance + error)

    def dependability_at(self, n_benchmarks: float, n_seeds: float, n_families: float | None = None) -> float:
        """Dependability of a study of this size."""
        if self.algorithm_variance == 0:
            return 0.0
        within = (self.shared_benchmark_variance + self.shared_seed_variance / n_seeds) / n_benchmarks
        shared = (self.shared_family_variance + within) / (n_families or self.n_families or 1)
        error = self.error_variance(n_benchmarks, n_seeds, n_families)
        return self.algorithm_variance / (self.algorithm_variance + error + shared)

    def needed(self, reliability: float | Iterable[float] = TARGETS) -> Answer:
        """How many benchmarks, or families, a reliability takes, for each number of seeds of the table.

        Parameters
        ----------
        reliability : float or iterable of float, each in (0, 1)

        Returns
        -------
        Answer
            ``to_frame()`` has reliability, n_seeds, n_benchmarks; where families are the sample, n_families, and
            n_benchmarks of each as in the table. The number is infinite where the algorithms' means are not seen to
            differ.
        """
        targets = [reliability] if isinstance(reliability, (int, float)) else list(reliability)
        targets = [check_fraction(target, "reliability") for target in targets]
        each = [*(["n_benchmarks"] if self.family else []), "n_seeds"]
        sizes = self.table[each].drop_duplicates().itertuples(index=False, name=None)
        rows = [(t, *size, self._needed(t, *size)) for size in sizes for t in targets]
        rows.sort(key=lambda row: targets.index(row[0]))
        most, units = self.at(self.n_benchmarks_each, math.inf), "families" if self.family else "benchmarks"
        sample = f"{self.n_benchmarks} benchmarks"
        if self.family is not None:
            sample = f"{self.n_families} {plural(self.family)}, and as many benchmarks in each,"
        notes = (
            (
                f"With {sample} no number of seeds gives more than {written(most, '.2f')}.",
                "The variances are taken as known; `ci_low` and `ci_high` of the reliability say how well they are.",
            )
            if self.algorithm_variance > 0
            else (f"The means of the algorithms are not seen to differ, so no number of {units} can be named.",)
        )
        return Answer(
            question="needed",
            title=f"{units.capitalize()} needed",
            tables={"table": pd.DataFrame(rows, columns=["reliability", *each, f"n_{units}"])},
            notes=notes,
            formats={"reliability": "g"} | dict.fromkeys(["n_benchmarks", "n_families"], _count),
        )

    def _needed(self, target: float, *size: float) -> float:
        """Units for this reliability: families with (benchmarks, seeds) each, or benchmarks with (seeds,)."""
        if self.algorithm_variance == 0:
            return math.inf
        n_benchmarks, n_seeds = size if self.family else (1.0, *size)
        error = self.error_variance(n_benchmarks, n_seeds, 1)
        exact = target / (1.0 - target) * error / self.algorithm_variance
        return float(max(math.ceil(exact * (1.0 - _ROUNDING)), 1))


@guided
@one_blas_thread()
def ranking_reliability(
    runs: Runs,
    *,
    n_benchmarks: int | Iterable[int] | None = None,
    n_seeds: int | Iterable[int] | None = None,
    n_families: int | Iterable[int] | None = None,
    alpha: float = 0.05,
) -> RankingReliability:
    """Reliability of the order of the algorithms, and how it grows with benchmarks and seeds.

    Parameters
    ----------
    runs : Runs
        With at least two benchmarks. With several budgets, runs are compared by their mean over the budgets. Families
        of benchmarks are the sample from five on, and the reliability is that over new families.
    n_benchmarks, n_seeds : int or iterable of int, optional
        Planned studies; by default around the size of this one. Seeds are runs of an algorithm at one instance. Where
        families are the sample, benchmarks of each family; by default as many as here (the harmonic mean).
    n_families : int or iterable of int, optional
        Of planned studies, where families are the sample.
    alpha : float in (0, 1)
        One minus the confidence level.

    Returns
    -------
    RankingReliability
        ``needed()`` says how many benchmarks, or families, 0.8 and 0.9 take; ``at(...)`` and ``dependability_at(...)``
        give single plans. The ``table`` has one row per planned study: ``n_benchmarks``, ``n_seeds``, ``reliability``,
        ``ci_low``, ``ci_high``, ``dependability``; where families are the sample, ``n_families`` and ``n_benchmarks``
        of each. Values: ``reliability``, ``ci_low``, ``ci_high`` of the study as it is; ``algorithm_variance``, of the
        true means of the algorithms, 0 where it is estimated below; ``benchmark_variance`` and ``run_variance``, what
        one benchmark and one run on a benchmark add to the error of an algorithm's mean, ``family_variance``, what one
        family adds beyond its benchmarks (0 where families are not the sample), and the same for what all algorithms
        share, which only the dependability counts, ``shared_benchmark_variance``, ``shared_seed_variance``,
        ``shared_family_variance``; ``n_algorithms``, ``n_benchmarks``, ``n_seeds`` (runs of an algorithm at one
        instance, the harmonic mean where their number differs), ``n_benchmarks_each`` (of a family, the harmonic mean;
        all of them where families are not the sample), ``n_families`` and ``family``, the column (None where they are
        not the sample); ``alpha``, ``score``.

    Raises
    ------
    ArgumentError
        If `runs` is not Runs, has fewer than two benchmarks, other numbers of seeds are asked for where runs are not
        repeated, or numbers of families where these are not the sample.
    DataError
        If budgets cannot be averaged, or scores do not vary beyond the means.

    Notes
    -----
    ``reliability = a / (a + e)``, ``e = (interaction + run / n_seeds) / n_benchmarks``, and with benchmarks nested in
    random families ``e = (family interaction + (interaction + run / n_seeds) / n_benchmarks) / n_families``: the
    generalizability
    coefficient for relative decisions with benchmarks and seeds as random facets. With one facet it is Cronbach's
    alpha and the intraclass correlation ICC(3, k) of Shrout and Fleiss; for one run on one benchmark (``single_run``)
    ICC(3, 1). ``dependability`` is the coefficient for absolute decisions: benchmarks, and seeds on a benchmark,
    count as error as well. Levels of metafeatures and budgets are kept as they are.

    The variance ``a`` belongs to the algorithms of the study, whose means are fixed: it is the variance of the
    estimated means minus their error, not a random term, because its estimate is the same in a balanced study and its
    interval then need not assume that the algorithms were drawn from a population of such. In a balanced study the F
    ratio of the algorithms is noncentral F with ``(k - 1) a / e`` as noncentrality, so the interval at the study's own
    size is exact; for other numbers of seeds it takes the ratio of the error variances as known.

    References
    ----------
    Cronbach, Rajaratnam & Gleser (1963), doi:10.1111/j.2044-8317.1963.tb00206.x; Shavelson, Webb & Rowley (1989),
    doi:10.1037/0003-066X.44.6.922; Shrout & Fleiss (1979), doi:10.1037/0033-2909.86.2.420; Riezler & Hagmann (2022),
    Validity, Reliability, and Significance, doi:10.1007/978-3-031-02183-1

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.variation.ranking_reliability import ranking_reliability
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> found = ranking_reliability(runs, n_benchmarks=[5, 20], n_seeds=[1, 25])
    >>> found.to_frame().round(3)
       n_benchmarks  n_seeds  reliability  ci_low  ci_high  dependability
    0             5      1.0        0.422   0.288    0.537          0.001
    1            20      1.0        0.745   0.618    0.823          0.004
    2             5     25.0        0.816   0.711    0.876          0.001
    3            20     25.0        0.947   0.908    0.966          0.004
    """
    design, scores = run_design(runs, task="reliability is judged", families=True)
    level, size = 1.0 - check_fraction(alpha, "alpha"), design.sizes
    repeated = any({ALGORITHM, BENCHMARK, *design.families} <= term for term in design.terms[:-1])
    n_each = design.holds[BENCHMARK] if design.families else size["n_benchmarks"]
    planned = _planned(n_benchmarks, n_families, n_each, size)
    seeds = _seeds(n_seeds, size["n_seeds"], repeated=repeated)
    variances, _, fixed = run_variances(design, scores)
    difference, noise, test = next(iter(fixed.values()))
    if not noise > 0:
        raise DataError(
            f"{runs.score!r} does not vary beyond the means of algorithms and benchmarks, so there is no error and "
            "nothing to judge. Look at the table with runs.check()."
        )
    low, high = ratio_limits(test, level)
    signal = max(difference, 0.0)
    family = design.columns[design.families[0]][-1] if design.families else None
    values: dict[str, Any] = {
        "reliability": signal / (signal + noise),
        "ci_low": low / (1.0 + low),
        "ci_high": high / (1.0 + high),
        "algorithm_variance": signal,
        **design.error_of_a_mean(variances),
        **{name: size[name] for name in ("n_algorithms", "n_benchmarks", "n_seeds", "n_families")},
        "n_benchmarks_each": n_each,
        "family": family,
        "alpha": alpha,
        "score": runs.score,
    }
    result = RankingReliability(
        question="ranking_reliability",
        title="Reliability of the ranking",
        tables={"table": pd.DataFrame()},
        values=values,
        facts=(_fact(values),),
        findings=(_sentence(values),),
        notes=(*design.notes, *_notes(design, difference, str(runs.budget), repeated=repeated)),
        formats=dict.fromkeys(["reliability", "ci_low", "ci_high", "dependability"], ".3f"),
        figure="ranking_reliability_plot",
    )
    rows = []
    for n, (f, b) in itertools.product(seeds, planned):
        gain = noise / result.error_variance(b, n, f)  # of signal over noise
        limits = [limit * gain / (1.0 + limit * gain) for limit in (low, high)]
        rows.append((f, b, n, result.at(b, n, f), *limits, result.dependability_at(b, n, f)))
    names = ["n_families", "n_benchmarks", "n_seeds", "reliability", "ci_low", "ci_high", "dependability"]
    table = pd.DataFrame(rows, columns=names)
    return replace(result, tables={"table": table if family else table.drop(columns="n_families")})


def _sentence(values: dict[str, Any]) -> str:
    """The reliability of the study."""
    reliability, low, high = (written(values[name], ".2f") for name in ("reliability", "ci_low", "ci_high"))
    others = f"{values['n_benchmarks']} other benchmarks"
    if values["family"] is not None:
        others = f"{values['n_families']} other {plural(values['family'])} like these"
    return (
        f"The reliability of the order of {values['n_algorithms']} algorithms is {reliability} "
        f"({100 * (1.0 - values['alpha']):.4g} % interval {low} to {high}): "
        f"their means on {others}, with other seeds, would correlate with these by about that much."
    )


def _fact(values: dict[str, Any]) -> str:
    """The formula, and the standard deviations in it."""
    parts = ("algorithm_variance", "benchmark_variance", "run_variance", "family_variance")
    algorithms, benchmarks, runs, families = (format_number(math.sqrt(values[part]), 3) for part in parts)
    error, between = "(i + r / seeds) / benchmarks", f"{benchmarks} of their advantages between benchmarks (i)"
    if values["family"] is not None:
        error, noun = f"(f + {error}) / families", plural(values["family"])
        between = f"{families} of their advantages between {noun} (f), {benchmarks} between benchmarks of one (i)"
    return (
        f"reliability = a / (a + {error}) with the standard deviations {algorithms} of the algorithms (a), "
        f"{between}, {runs} between runs (r), on the scale of {values['score']}; dependability also counts what all "
        "algorithms share as error."
    )


def _planned(
    n_benchmarks: int | Iterable[int] | None, n_families: int | Iterable[int] | None, each: float, size: dict[str, Any]
) -> list[tuple[int | None, float]]:
    """Numbers of families and of benchmarks of each; without families None, and benchmarks in all."""
    counts = {"n_benchmarks": n_benchmarks, "n_families": n_families}
    plans = {name: check_counts(value, name) for name, value in counts.items() if value is not None}
    n = size["n_families"] or size["n_benchmarks"]
    usual = sorted({5, 10, 20, 50, n, 2 * n})
    if size["n_families"]:
        return [(f, float(b)) for b in plans.get("n_benchmarks", [each]) for f in plans.get("n_families", usual)]
    if n_families is not None:
        raise ArgumentError(
            f"n_families needs runs with {FEWEST_FAMILIES} families of benchmarks or more, Runs(..., family=...), got "
            f"n_families={n_families!r:.60}. Plan numbers of benchmarks: n_benchmarks=..."
        )
    return [(None, b) for b in plans.get("n_benchmarks", usual)]


def _seeds(n_seeds: int | Iterable[int] | None, observed: float, *, repeated: bool) -> list[float]:
    planned = [] if n_seeds is None else [float(value) for value in check_counts(n_seeds, "n_seeds")]
    if not repeated and any(value != observed for value in planned):
        raise ArgumentError(
            f"n_seeds must be {observed:g} here, as in the study, got {planned[0]:g}: every algorithm was run once on "
            "each benchmark, so the effects of seeds and of benchmarks cannot be separated. Repeat runs with "
            "other seeds."
        )
    return planned or (sorted({1.0, observed}) if repeated else [observed])


def _notes(design: RunDesign, signal: float, budget: str, *, repeated: bool) -> list[str]:
    notes = []
    if signal < 0:
        notes.append(
            "The means of the algorithms differ no more than their standard errors would produce, so their variance is "
            "estimated as zero and with it the reliability. The upper end of the interval says how large it may be."
        )
    if design.sizes["n_algorithms"] == 2:
        notes.append("There are two algorithms: the variance of their means is half of one squared difference.")
    if design.sizes["n_budgets"] > 1:
        notes.append(f"Runs are compared by their mean over the {design.sizes['n_budgets']} levels of {budget}.")
    if design.strata is None:
        why = "Benchmarks are in several families" if design.crosses_families else "The table is not balanced"
        notes.append(f"{why}: the interval is approximate, and plans are for balanced studies.")
    if len(design.families) > 1:
        coarse, finer = (plural(design.columns[role][-1]) for role in design.families[:2])
        notes.append(f"Planned {coarse} hold as many {finer} as those of this study.")
    if design.crosses_families:
        notes.append("No benchmark is in two of the planned families, as some are here.")
    if not repeated:
        notes.append("Runs are not repeated, so the table says nothing about other numbers of seeds.")
    return notes


def _count(n: float) -> str:
    return "∞" if math.isinf(n) else f"{n:,.4g}" if n % 1 else f"{int(n):,}"
