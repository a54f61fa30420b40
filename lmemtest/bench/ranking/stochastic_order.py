"""Almost stochastic order: is one algorithm better over the whole distribution of its runs, not only in the mean?

One distribution dominates another if each of its quantiles is better. Between dominance and its contrary the violation
ratio says how much is missing: of the squared distance between the two quantile functions, the share where the first is
worse. It is 0 if the first dominates, 1 if the second does, one half if neither has more of the distance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.bench.ranking.resampling import complete_blocks
from lmemtest.bench.ranking.violations import Comparer
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below
from lmemtest.core.table import Format
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_number, check_positive_int, resolve_rng
from lmemtest.core.words import format_number, joined, p_text
from lmemtest.errors import ArgumentError, DesignError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array


SAMPLES = ("runs", "benchmarks")
ALL = "all"
_DRAWS = 2000
_FEW_RUNS = 10
_WORK_PER_HOUR = 4e11  # distances of quantiles: 9 ns each
_MOST_WORK = _WORK_PER_HOUR / 4
_BEYOND = 5  # draws beyond the bound, by default


@result
class StochasticOrder(Result):
    """Which algorithms are almost stochastically better than which.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per benchmark and ordered pair: ``benchmark`` ("all" for means by benchmark), ``left``, ``right``,
        ``n_left``, ``n_right``, ``violation_ratio`` of left over right, ``eps_min`` (its upper confidence bound),
        ``p_raw`` (permutation test of equal distributions against left being better), ``p_value`` (Bonferroni),
        ``decision``: whether left is almost stochastically better; missing where a sample is a single run. ``open``:
        what is missing for it ("eps_min", "p_value", "eps_min and p_value"; empty where it is).
    benchmarks, algorithms : tuple of str
    tau : float
        Largest `eps_min` of a decision.
    alpha : float
        For the whole family.
    family : int
        Claims that `alpha` is shared by: ordered pairs times benchmarks.
    sample : {"runs", "benchmarks"}
    n_draws : int
    score, direction : str
    notes : tuple of str
    """

    formats: ClassVar[Mapping[str, Format]] = dict.fromkeys(["violation_ratio", "eps_min"], ".3f")

    table: pd.DataFrame
    benchmarks: tuple[str, ...]
    algorithms: tuple[str, ...]
    tau: float
    alpha: float
    family: int
    sample: str
    n_draws: int
    score: str
    direction: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Of which score."""
        better = f"{'lower' if self.direction == 'minimize' else 'higher'} is better"
        return f"Almost stochastic order by {self.score} ({better})"

    @property
    def facts(self) -> tuple[str, ...]:
        """When a claim is made."""
        return (
            f"Left is almost stochastically better if eps_min is below {self.tau:g} and the p-value below "
            f"{self.alpha:g}; both are at alpha / {self.family:,} (Bonferroni: ordered pairs"
            f"{' and benchmarks' if len(self.benchmarks) > 1 else ''}), from {self.n_draws:,} draws.",
        )

    def at(self, tau: float) -> StochasticOrder:
        """The decisions at another largest violation ratio.

        Parameters
        ----------
        tau : float in (0, 0.5]

        Returns
        -------
        StochasticOrder
        """
        tau = check_number(tau, "tau", low=0, high=0.5, open="low")
        table = _decided(self.table, tau, self.alpha)
        return replace(self, table=table, tau=tau)

    def matrix(self, column: str = "eps_min", *, benchmark: str | None = None) -> pd.DataFrame:
        """One column of the table by left (rows) and right (columns); missing on the diagonal.

        Parameters
        ----------
        column : {"eps_min", "violation_ratio", "p_raw", "p_value", "decision"}
        benchmark : str, optional
            Must be given where there are several.

        Returns
        -------
        pandas.DataFrame
        """
        check_choice(column, "column", ("eps_min", "violation_ratio", "p_raw", "p_value", "decision"))
        if benchmark is None and len(self.benchmarks) > 1:
            raise ArgumentError(
                f"benchmark must be one of the {len(self.benchmarks)}, such as {self.benchmarks[0]!r}: each has a "
                "matrix of its own."
            )
        name = self.benchmarks[0] if benchmark is None else check_choice(benchmark, "benchmark", self.benchmarks)
        rows = self.table[self.table["benchmark"] == name]
        out = rows.pivot_table(index="left", columns="right", values=column, aggfunc="first", dropna=False, sort=False)
        return out.reindex(index=list(self.algorithms), columns=list(self.algorithms)).rename_axis(
            index=None, columns=None
        )

    def sentences(self) -> tuple[str, ...]:
        """One sentence per claim on one benchmark, or per ordered pair and the benchmarks that it holds on."""
        claimed = self.table[self.table["decision"].fillna(False).astype(bool)]
        if not len(claimed):
            where = " on any benchmark" if len(self.benchmarks) > 1 else ""
            return (
                f"No algorithm is shown to be almost stochastically better than another{where}, which does not show "
                "that any two are alike.",
            )
        out = []
        for (left, right), rows in claimed.groupby(["left", "right"], sort=False):
            said = f"{left} is almost stochastically better than {right}"
            if len(self.benchmarks) > 1:
                names = rows["benchmark"].tolist()
                out.append(f"{said} on {len(names)} of {len(self.benchmarks)} benchmarks ({joined(names)}).")
            else:
                bound, p = format_number(rows["eps_min"].iloc[0], 2), p_text(rows["p_value"].iloc[0])
                out.append(f"{said} (eps_min = {bound}, {p}).")
        return tuple(out)


@one_blas_thread()
def stochastic_order(
    runs: Any,
    *,
    direction: str | None = None,
    sample: str = "runs",
    tau: float = 0.2,
    alpha: float = 0.05,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> StochasticOrder:
    """Almost stochastic order of every two algorithms, on each benchmark.

    Parameters
    ----------
    runs : Runs, or a wide table
        Every algorithm on every benchmark, with several runs on each. A wide table (a column per algorithm, a row per
        benchmark) has means by benchmark, for ``sample="benchmarks"``.
    direction : {"minimize", "maximize"}, optional
        For a wide table.
    sample : {"runs", "benchmarks"}
        "runs" compares the runs on each benchmark by themselves, as independent samples. "benchmarks" compares the
        distributions of mean scores over benchmarks, which are drawn for all algorithms together; their scores must
        mean the same everywhere (`Runs.normalize`).
    tau : float in (0, 0.5]
        Claims need an `eps_min` below it: 0.5 asks that less is violated than not, 0.2 for more.
    alpha : float in (0, 1)
        Of all claims together, by Bonferroni: ordered pairs times benchmarks.
    n_draws : int, optional
        Bootstrap draws and permutations; by default 2,000, or as many as put 5 draws beyond the bound.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    StochasticOrder

    Raises
    ------
    ArgumentError
        If an argument breaks its rule, or `n_draws` is too small for the level of one claim.
    DesignError
        If an algorithm is missing on a benchmark, or there is one run, or one benchmark, of each.
        Or if the bounds of so many claims would take more than 15 minutes.
    DataError
        If scores are missing, or runs have no budget in common.

    Notes
    -----
    With the quantile functions F of left and G of right, of scores to maximize, the violation ratio is the integral of
    the square of (G - F) where it is positive over that of the square of (F - G). `eps_min` is the upper end of the
    one-sided percentile interval of the bootstrap, exact where the samples that can be drawn are fewer than the draws.
    Where both distributions are equal the ratio estimates nothing (0 / 0), and a bound on it claims too much however
    many runs there are: simulated with equal distributions and 5 to 20 runs, a normal bound, as published, is below one
    half in about 20 % of tables at a level of 5 %, a percentile bound in 3 to 11 %. A claim therefore also needs a
    permutation test, which is exact there, to reject that the distributions are equal; its statistic is the integral of
    the signed squares. Together they claim in 2.5 to 5.5 % at `tau` 0.5 and in 2 to 5 % at 0.2
    (docs/aggregate-scores.md).

    What is done otherwise than in deepsig 1.2.8: the ratio is exact, not a sum over a grid of 199 points that leaves
    out scores beyond 200 runs, misplaces some quantiles by rounding and drops the first cell from the violation only,
    so that the ratios of both directions do not add up to 1; `alpha` is divided by the number of claims, where deepsig
    subtracts a share of it that vanishes with their number, and asks for certainty with two algorithms; directed
    claims are counted, all on all benchmarks; one or two runs decide nothing, where deepsig gives a bound of 0; draws
    of different seeds are independent, where those of neighbouring seeds are almost the same; scores to minimize are
    accepted, missing ones are not.

    Runs of two algorithms that share seeds are compared as if they did not, which makes fewer claims.

    References
    ----------
    del Barrio, Cuesta-Albertos & Matrán (2018), An Optimal Transportation Approach for Assessing Almost Stochastic
    Order, in The Mathematics of the Uncertain, arXiv:1705.01788; Dror, Shlomov & Reichart (2019), Deep Dominance,
    doi:10.18653/v1/P19-1266; Ulmer, Hardmeier & Frellsen (2022), deep-significance, arXiv:2204.06815

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.ranking.stochastic_order import stochastic_order
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], budget=8, prior="good")
    >>> stochastic_order(runs.filter(benchmark="svm-cancer"), rng=1).sentences()
    ('HB is almost stochastically better than RS (eps_min = 0, p < 0.001).',)
    """
    import pandas as pd

    check_choice(sample, "sample", SAMPLES)
    tau, alpha = check_number(tau, "tau", low=0, high=0.5, open="low"), check_fraction(alpha, "alpha")
    if n_draws is not None:
        check_positive_int(n_draws, "n_draws")
    generator = resolve_rng(rng)
    blocks, unitless = complete_blocks(runs, direction, sample)
    samples = _samples(blocks, sample)
    k = len(blocks.algorithms)
    if k < 2:
        raise DesignError(f"These scores are of one algorithm, {blocks.algorithms[0]}; comparing needs two or more.")
    family = k * (k - 1) * len(samples)
    more = "Repeat more runs, or compare fewer algorithms or benchmarks"
    if sample == "benchmarks":
        more = f"Add {blocks.units}, or compare fewer algorithms"
    comparer = Comparer(alpha / family, _draws(n_draws, alpha, family), sample == "benchmarks")
    _check_work(comparer, samples)
    frames = [_frame(name, values, blocks.algorithms, comparer, generator) for name, values in samples.items()]
    table = pd.concat(frames, ignore_index=True)
    table["p_value"] = np.minimum(1.0, family * table["p_raw"])
    table = _decided(table, tau, alpha)
    notes = list(blocks.notes)
    if sample == "benchmarks" and not unitless:
        notes.append(
            "Distances are added over benchmarks, so scores must mean the same on each; if they do not: "
            "stochastic_order(runs.normalize('minmax'), sample='benchmarks')."
        )
    return StochasticOrder(
        table=table,
        benchmarks=tuple(samples),
        algorithms=blocks.algorithms,
        tau=tau,
        alpha=alpha,
        family=family,
        sample=sample,
        n_draws=comparer.n_draws,
        score=blocks.score,
        direction=blocks.direction,
        notes=(*notes, *_too_small(table, comparer, alpha, family, more), *_few_runs(table)),
    )


def _check_work(comparer: Comparer, samples: dict[str, list[Array]]) -> None:
    """Say beforehand what would take hours: draws and claims both grow with pairs and benchmarks."""
    work = sum(comparer.work([len(one) for one in values]) for values in samples.values())
    if work <= _MOST_WORK:
        return
    raise DesignError(
        f"a bound at the level of one of so many claims needs {comparer.n_draws:,} draws, here for "
        f"{sum(math.comb(len(values), 2) for values in samples.values()):,} pairs of samples: about "
        f"{work / _WORK_PER_HOUR:,.1f} hours. Compare fewer algorithms or benchmarks, or take sample='benchmarks'."
    )


def _samples(blocks: Blocks, sample: str) -> dict[str, list[Array]]:
    """Gains by algorithm, on each instance, or by benchmark."""
    if sample == "benchmarks":
        if len(blocks.names) == 1:
            raise DesignError("there is one benchmark, so there is no distribution over them. Use sample='runs'.")
        return {ALL: list(blocks.gains.T)}
    if (blocks.n_runs == 1).all():
        raise DesignError(
            "every algorithm has one run on each benchmark, which has no distribution there. Repeat runs with other "
            "seeds, or use sample='benchmarks', for the distributions of scores over benchmarks."
        )
    gains = blocks.runs if blocks.direction == "maximize" else -blocks.runs
    return {
        name: [runs[np.isfinite(runs)] for runs in values] for name, values in zip(blocks.instances, gains, strict=True)
    }


def _draws(given: int | None, alpha: float, family: int) -> int:
    """Draws for a bound at the level of one claim."""
    least = math.ceil(family / alpha - 1e-6) - 1
    if given is None:
        return max(_DRAWS, math.ceil(_BEYOND * family / alpha - 1e-6) - 1)
    if given < least:
        raise ArgumentError(
            f"n_draws must be at least {least:,} for {family:,} claims at alpha = {alpha:g} together, got "
            f"{given:,}. Leave it out, or compare fewer algorithms or benchmarks."
        )
    return given


def _frame(
    name: str, samples: list[Array], algorithms: tuple[str, ...], comparer: Comparer, rng: np.random.Generator
) -> pd.DataFrame:
    """The ordered pairs on one benchmark."""
    import pandas as pd

    found = comparer.violations(samples, rng)
    pairs = list(permutations(range(len(algorithms)), 2))
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    return pd.DataFrame(
        {
            "benchmark": name,
            "left": [algorithms[i] for i in left],
            "right": [algorithms[i] for i in right],
            "n_left": [len(samples[i]) for i in left],
            "n_right": [len(samples[i]) for i in right],
            "violation_ratio": found.ratio[left, right],
            "eps_min": found.bound[left, right],
            "p_raw": found.p[left, right],
        }
    )


def _decided(table: pd.DataFrame, tau: float, alpha: float) -> pd.DataFrame:
    """With whether left is almost stochastically better, missing where that was not tested, and what it lacks."""
    import pandas as pd

    bound, p = below(table["eps_min"], tau), below(table["p_value"], alpha)
    claimed = pd.Series(bound & p, index=table.index, dtype="boolean").mask(table["p_value"].isna())
    lacking = np.select([bound & p, p, bound], ["", "eps_min", "p_value"], default="eps_min and p_value")
    return table.assign(decision=claimed, open=np.where(table["p_value"].isna(), "", lacking))


def _few_runs(table: pd.DataFrame) -> list[str]:
    """What few values do to the bound."""
    fewest = int(table[["n_left", "n_right"]].min(axis=1).where(table["p_value"].notna()).min())
    if not 1 < fewest < _FEW_RUNS:
        return []
    return [
        f"Some sample has {fewest} values: bounds of the violation ratio are too low there. With five values and a "
        f"violation ratio of exactly tau = 0.2 a claim was made in 9 % of simulated tables at a nominal 5 %, with "
        f"{_FEW_RUNS} in 6 %: take {_FEW_RUNS} or more."
    ]


def _too_small(table: pd.DataFrame, comparer: Comparer, alpha: float, family: int, more: str) -> list[str]:
    """Which samples are too small for a claim at this level."""
    sizes = sorted({tuple(sorted(pair)) for pair in zip(table["n_left"], table["n_right"], strict=True)})
    short = [(n, m) for n, m in sizes if not below(comparer.smallest_p(n, m), comparer.alpha)]
    if not short:
        return []
    least = min(comparer.smallest_p(n, m) for n, m in short)
    what = joined([f"{n} and {m}" for n, m in short])
    return [
        f"Samples of {what} cannot decide: no p-value of theirs is below {format_number(least, 2)}, and a claim needs "
        f"one below {alpha:g} / {family:,}. {more}."
    ]
