"""One mixed model for the question whether a metafeature decides which of two algorithms is better.

``score ~ algorithm * metafeature`` with advantages that differ from benchmark to benchmark at each level. The contrast
of contrasts, (second - first algorithm) at one level minus that at another, is estimated for the population of
benchmarks and, by partial pooling, for each benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._result import Result, result
from lmemtest._rounding import below
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_fraction, resolve_rng
from lmemtest.errors import DataError, DesignError
from lmemtest.formula.tokens import quote_name
from lmemtest.inference.distributions.largest_t import largest_t
from lmemtest.inference.distributions.student import t_quantile, two_sided_p
from lmemtest.inference.intervals.partial_pooling import FEWEST
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.model import fit_lmm
from lmemtest.studies.benchmark.contrasts import benchmark_contrasts
from lmemtest.studies.benchmark.outcomes import PairScores, pair_scores, singled_out_everywhere
from lmemtest.words import format_level, format_number, p_text, percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

# Beyond this the covariances of the advantages at the levels (10 for four) eat the benchmarks.
_MOST_LEVELS, _FEWEST_BENCHMARKS = 4, 6
# Contrasts above which the joint integral gives way to Šidák's inequality, which costs little width there.
_JOINT = 60
_ZERO = 1e-10  # of the largest error of the family: an error below it is rounding


@result
class MetafeatureEffect(Result):
    """Contrasts of contrasts from one mixed model, over benchmarks and for each benchmark.

    Attributes
    ----------
    algorithms : tuple of two
        Advantages are of the first over the second, on the scale of the score: positive is better.
    metafeature : str
    levels, benchmarks : tuple
    fit : LmmFit
        The model of the runs' means over budgets.
    advantages : pandas.DataFrame
        One row per level: ``level``, ``advantage`` (over benchmarks), ``se``, ``df``, ``t_ratio``, ``p_value``,
        ``ci_low``, ``ci_high``.
    overall : pandas.DataFrame
        One row per pair of levels: ``level``, ``reference``, ``contrast`` (of the advantages), ``se``, ``df``,
        ``t_ratio``, ``p_value``, ``ci_low``, ``ci_high``.
    contrasts : pandas.DataFrame
        One row per benchmark and pair of levels: ``benchmark``, ``level``, ``reference``, ``raw`` (the contrast of the
        benchmark's own means), ``contrast`` (drawn towards the mean over benchmarks), ``se`` (of its error),
        ``own_share`` (what `raw` counts in `contrast`; the rest is the mean), ``p_value``, ``ci_low``, ``ci_high``
        (simultaneous over all rows), ``deviation`` (from the mean over benchmarks), ``p_others`` (of no deviation, all
        rows together), ``singled_out``.
    alpha : float
        One minus the level of the intervals.
    notes : tuple of str
        What was left out, and how the intervals were made.
    """

    parts = {"contrasts": "contrasts", "advantages": "advantages", "overall": "overall"}
    formats = {"p_others": "p"}

    algorithms: tuple[Any, Any]
    metafeature: str
    levels: tuple[Any, ...]
    benchmarks: tuple[Any, ...]
    fit: LmmFit
    advantages: pd.DataFrame
    overall: pd.DataFrame
    contrasts: pd.DataFrame
    alpha: float
    notes: tuple[str, ...] = ()

    @property
    def formula(self) -> str:
        """The model."""
        return self.fit.formula

    @property
    def singled_out(self) -> tuple[Any, ...]:
        """Benchmarks that are singled out for every pair of levels that differ over benchmarks."""
        return singled_out_everywhere(self.contrasts, self.overall, self.alpha, self.benchmarks)

    @property
    def rule(self) -> str:
        """How benchmarks are singled out, in words."""
        return (
            f"Rule: a benchmark is singled out if the contrast over benchmarks differs from zero at "
            f"{percent(self.alpha)}, and the benchmark's own one, by itself, is not significant in this direction but "
            f"differs from the mean over benchmarks in the other (one-sided, {percent(self.alpha)} each)."
        )

    def sentences(self) -> tuple[str, ...]:
        """Plain sentences: the advantage at each level, its contrast, and the benchmarks that do not follow."""
        first, second = map(format_level, self.algorithms)
        out = []
        for row in self.advantages.to_dict("records"):
            level = format_level(row["level"])
            side = "better" if row["advantage"] > 0 else "worse"
            if below(row["p_value"], self.alpha):
                out.append(f"At {level} {first} is {side} than {second} by {_estimate(row, 'advantage', self.alpha)}.")
            else:
                text = _estimate(row, "advantage", self.alpha, absolute=False)
                out.append(f"At {level} {first} and {second} are not significantly different (advantage {text}).")
        for row in self.overall.to_dict("records"):
            out += self._of_pair(row)
        return tuple(out)

    @property
    def title(self) -> str:
        """One line above the table."""
        first, second = map(format_level, self.algorithms)
        return f"{first} against {second}: contrasts of advantages by {self.metafeature}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model, the contrast and the rule."""
        first, second = map(format_level, self.algorithms)
        return (
            f"{self.fit.formula}; mean score of each run over the budgets, REML. Contrast: advantage of {first} over "
            f"{second} at the level minus that at the reference, on the scale of the score.",
            self.rule,
        )

    def shown(self) -> pd.DataFrame:
        """The contrasts, the benchmarks that are singled out marked."""
        return self.contrasts.assign(singled_out=np.where(self.contrasts["singled_out"], "yes", ""))

    def _of_pair(self, row: dict[Any, Any]) -> list[str]:
        level, reference = format_level(row["level"]), format_level(row["reference"])
        if not below(row["p_value"], self.alpha):
            text = _estimate(row, "contrast", self.alpha, absolute=False)
            return [f"The advantage at {level} is not significantly different from that at {reference} ({text})."]
        side = "smaller" if row["contrast"] < 0 else "larger"
        out = [f"The advantage is {side} at {level} than at {reference} by {_estimate(row, 'contrast', self.alpha)}."]
        part = self.contrasts[self.contrasts["level"] == row["level"]]
        part = part[part["reference"] == row["reference"]]
        odd = [format_level(name) for name in part["benchmark"][part["singled_out"]]]
        clear = int((below(part["p_value"], self.alpha) & (part["contrast"] * row["contrast"] > 0)).sum())
        tail = f"; singled out: {', '.join(odd)}" if odd else "; none is singled out"
        return [*out, f"On {clear} of {len(part)} benchmarks the interval is on this side of zero{tail}."]


@one_blas_thread()
def metafeature_effect(
    runs: Runs,
    algorithms: Sequence[Any],
    metafeature: str,
    *,
    levels: Sequence[Any] | None = None,
    dispersion: str | None = None,
    alpha: float = 0.05,
    rng: int | np.random.Generator | None = 0,
) -> MetafeatureEffect:
    """Compare the advantage of one algorithm over another between levels of a metafeature by one mixed model.

    Parameters
    ----------
    runs : Runs
        With benchmark and seed. Scores must compare across benchmarks: see `Runs.normalize`.
    algorithms : sequence of two levels of the algorithm column
        Advantages are of the first over the second.
    metafeature : str
        The column whose levels are compared.
    levels : sequence, optional
        Levels to compare and their order, as in `metafeature_analysis`.
    dispersion : {"benchmark"}, optional
        With it, runs scatter differently on each benchmark.
    alpha : float in (0, 1)
        One minus the level of the intervals, and the level of the decisions.
    rng : int, numpy.random.Generator or None
        Points of the joint integrals where they are not quadratures.

    Returns
    -------
    MetafeatureEffect

    Raises
    ------
    ArgumentError, UnknownColumnError, DataError
        As in `metafeature_analysis`, and if there are fewer than three benchmarks.

    Notes
    -----
    The response is the mean of each run over the budgets that all runs of its benchmark have, so budgets are not
    counted as repetitions. With up to four levels and six or more benchmarks the model is ``score ~ algorithm + m +
    algorithm:m + (0 + m | benchmark) + (0 + m:half | benchmark) + (1 | benchmark:m:seed)`` with ``half`` 1/2 for the
    first algorithm and -1/2 for the second: benchmarks have difficulties and differences at each level, which depend
    on each other between levels in any way. Otherwise the levels of a benchmark differ to the same degree: ``(1 |
    benchmark) + (1 | benchmark:m) + (0 + half | benchmark) + (0 + half | benchmark:m) + (1 | benchmark:m:seed)``. (The
    recommended model's ``(0 + m | benchmark:algorithm)`` is the same for two algorithms but for one restriction,
    difficulties that vary at least half as much as the differences; normalised scores break it.)

    The contrast of a benchmark is its own one, by generalised least squares with the model's variances of runs and
    seeds, drawn towards the mean over benchmarks (partial pooling). How much contrasts vary between benchmarks is not
    taken as known: the variance is integrated out, so that intervals hold at least as often as stated over benchmarks
    like these, also where it is estimated as zero. Intervals and p-values of a table are simultaneous, by Šidák's
    inequality. A benchmark that is far from the others is drawn towards them, and its interval is then too optimistic.

    References
    ----------
    Morris & Tang (2011), Statist. Sci. 26, 271-287; Barr, Levy, Scheepers & Tily (2013), doi:10.1016/j.jml.2012.11.001

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.benchmark.metafeature_effect import metafeature_effect
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8)
    >>> found = metafeature_effect(runs, algorithms=("HB+prior", "HB"), metafeature="prior", rng=1)
    >>> found.overall[["level", "reference", "contrast", "p_value"]].round(4)
      level reference  contrast  p_value
    0  good       bad    0.0024   0.0002
    """
    alpha = check_fraction(alpha, "alpha")
    generator = resolve_rng(rng)
    _check_dispersion(dispersion)
    pairs = pair_scores(runs, algorithms, metafeature, levels)
    if len(pairs.benchmarks) < FEWEST:
        raise DataError(
            f"A model of benchmarks as a sample needs three or more, there are {len(pairs.benchmarks)}. "
            "metafeature_analysis compares levels on each benchmark by itself."
        )
    names = _Names.of(runs, metafeature)
    table = type(runs)(
        _run_means(pairs, names),
        score=names.score,
        direction=runs.direction,
        algorithm=names.algorithm,
        benchmark=names.benchmark,
        seed=names.seed,
        metafeatures=(metafeature,),
    )
    fit = fit_lmm(names.formula(pairs), table, dispersion=names.benchmark if dispersion else None)
    rows = _level_rows(fit, pairs, names)
    where = pairs.pairs()
    advantages = _population(fit, rows, alpha, generator)
    advantages.insert(0, "level", list(pairs.levels))
    advantages = advantages.rename(columns={"estimate": "advantage"})
    overall = _population(fit, np.array([rows[late] - rows[early] for late, early in where]), alpha, generator)
    overall.insert(0, "level", [pairs.levels[late] for late, _ in where])
    overall.insert(1, "reference", [pairs.levels[early] for _, early in where])
    overall = overall.rename(columns={"estimate": "contrast"})
    if overall["p_value"].isna().all():
        first, second = map(format_level, pairs.algorithms)
        raise DesignError(
            f"the difference between {first} and {second} does not vary between runs, so there is nothing to judge it "
            "by. Check for constant scores and for an algorithm that is a copy of another: lmemtest.check(runs)."
        )
    contrasts, how = benchmark_contrasts(fit, pairs, overall, alpha)
    return MetafeatureEffect(
        algorithms=pairs.algorithms,
        metafeature=metafeature,
        levels=pairs.levels,
        benchmarks=pairs.benchmarks,
        fit=fit,
        advantages=advantages,
        overall=overall,
        contrasts=contrasts,
        alpha=alpha,
        notes=(*pairs.notes, *how, *fit.notes),
    )


# ---------------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Columns of the table of run means, all of them factors."""

    score: str
    algorithm: str
    benchmark: str
    seed: str
    metafeature: str
    half: str  # 1/2 for the first algorithm and -1/2 for the second: its random slope is the difference

    @classmethod
    def of(cls, runs: Runs, metafeature: str) -> _Names:
        if runs.benchmark is None or runs.seed is None:  # pair_scores has refused this
            raise DataError("runs must have a benchmark and a seed column.")
        return cls(
            score=runs.score,
            algorithm=runs.algorithm,
            benchmark=runs.benchmark,
            seed=runs.seed,
            metafeature=metafeature,
            half=_new_name("half", runs.columns),
        )

    def formula(self, pairs: PairScores) -> str:
        """The model, its terms from benchmarks to runs; the last one is the only one about runs."""
        y, a, b, s, m = map(quote_name, (self.score, self.algorithm, self.benchmark, self.seed, self.metafeature))
        rich = len(pairs.levels) <= _MOST_LEVELS and len(pairs.benchmarks) >= _FEWEST_BENCHMARKS
        h = quote_name(self.half)
        groups = (
            [f"(0 + {m} | {b})", f"(0 + {m}:{h} | {b})"]
            if rich
            else [f"(1 | {b})", f"(1 | {b}:{m})", f"(0 + {h} | {b})", f"(0 + {h} | {b}:{m})"]
        )
        shared = [f"(1 | {b}:{m}:{s})"] if pairs.in_both().any() else []
        return " + ".join([f"{y} ~ {a} + {m} + {a}:{m}", *groups, *shared])


def _check_dispersion(dispersion: Any) -> None:
    from lmemtest.errors import ArgumentError

    if dispersion is not None and not (isinstance(dispersion, str) and dispersion == "benchmark"):
        raise ArgumentError(f"dispersion must be 'benchmark' or None, got {dispersion!r}.")


def _new_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _factor(codes: NDArray[np.intp], levels: tuple[Any, ...]) -> Any:
    """Levels by their text: numbers that are names must not become a slope."""
    return pd.Categorical.from_codes(codes, categories=pd.Index([format_level(level) for level in levels]))


def _run_means(pairs: PairScores, names: _Names) -> pd.DataFrame:
    """One row per run: its mean score over the shared budgets."""
    use = pairs.ran[..., None] & pairs.shared[:, None, None, None, :]
    total = np.where(use, pairs.scores, 0.0).sum(axis=4)
    b, v, a, s = np.nonzero(pairs.ran)
    return pd.DataFrame(
        {
            names.benchmark: _factor(b, pairs.benchmarks),
            names.metafeature: _factor(v, pairs.levels),
            names.algorithm: _factor(a, pairs.algorithms),
            names.seed: _factor(s, pairs.seeds),
            names.half: 0.5 - a,
            names.score: total[b, v, a, s] / pairs.shared.sum(axis=1)[b],
        }
    )


# ---------------------------------------------------------------------- over benchmarks


def _level_rows(fit: LmmFit, pairs: PairScores, names: _Names) -> Array:
    """``(k, p)``: the advantage over benchmarks at each level as a function of the fixed effects."""
    k = len(pairs.levels)
    grids = [
        pd.DataFrame(
            {
                names.metafeature: _factor(np.arange(k), pairs.levels),
                names.algorithm: _factor(np.full(k, a), pairs.algorithms),
            }
        )
        for a in (0, 1)
    ]
    first, second = (np.asarray(fit.design.rows(grid)) for grid in grids)
    return pairs.sign * (second - first)  # to minimize, the advantage of the first is second minus first


def _population(fit: LmmFit, L: Array, alpha: float, rng: np.random.Generator) -> pd.DataFrame:
    """Functions of the fixed effects with tests and simultaneous intervals."""
    covariance, df = fit.cov(L), np.asarray(fit.df(L, "satterthwaite"), dtype=float)
    variance = np.maximum(covariance.diagonal(), 0.0)
    known = (variance > _ZERO * variance.max(initial=0.0)) & (df > 0.0)
    estimate, se = fit.estimate(L), np.where(known, np.sqrt(variance), np.nan)
    t = estimate / se
    p, half = np.full(len(t), np.nan), np.full(len(t), np.nan)
    m = int(known.sum())
    if m > _JOINT:
        p[known] = adjust_raw(two_sided_p(t[known], df[known]), "sidak", m)
        half[known] = t_quantile(-0.5 * np.expm1(np.log1p(-alpha) / m), df[known]) * se[known]
    elif m:
        joint = largest_t(covariance[np.ix_(known, known)] / np.outer(se[known], se[known]), rng=rng)
        p[known] = joint.sf(np.abs(t[known]), df[known])
        half[known] = joint.isf(alpha, df[known]) * se[known]
    columns = {
        "estimate": estimate,
        "se": se,
        "df": np.where(known, df, np.nan),
        "t_ratio": t,
        "p_value": p,
        "ci_low": estimate - half,
        "ci_high": estimate + half,
    }
    return pd.DataFrame(columns)


# ---------------------------------------------------------------------- words


def _estimate(row: dict[Any, Any], name: str, alpha: float, *, absolute: bool = True) -> str:
    value, low, high = (float(row[key]) for key in (name, "ci_low", "ci_high"))
    if absolute and value < 0:
        value, low, high = -value, -high, -low
    return (
        f"{format_number(value)} ({percent(1.0 - alpha)} CI {format_number(low)} to {format_number(high)}, "
        f"{p_text(row['p_value'])})"
    )
