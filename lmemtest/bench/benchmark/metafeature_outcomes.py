"""Does a metafeature decide which of two algorithms is better, and on which benchmarks does it not?

The analysis of outcomes: at every benchmark, level and budget the first algorithm is better, equal or worse than the
second; the mean outcome over the budgets is compared between levels on each benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.outcomes import (
    UNCLEAR,
    Outcomes,
    contrasts,
    decided,
    mean_outcomes,
    overall,
    test_points,
    without_room,
)
from lmemtest.bench.benchmark.pair_scores import MetafeatureContrasts, PairScores, pair_scores
from lmemtest.core.result import result
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, resolve_rng
from lmemtest.core.words import format_level, format_number, joined, p_text, percent
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array


TESTS = {"two-sample": "two-sample t-test with pooled variance", "paired": "t-test of the differences within seeds"}
UNITS = ("run", "budget")
_SHARES = {"better": 1.0, "equal": 0.0, "worse": -1.0}  # of the budgets, with what an outcome is there
ADJUSTS = ("holm", "tukey", "sidak", "bonferroni", "fdr", "none")


@result
class MetafeatureOutcomes(MetafeatureContrasts):
    """Outcomes of one algorithm against another by benchmark and level of a metafeature.

    Attributes
    ----------
    algorithms, metafeature, levels, benchmarks, alpha, notes
        As in `MetafeatureContrasts`. An outcome of 1 means that the first algorithm is better, -1 that the second is.
    points : pandas.DataFrame
        One row per benchmark, level and budget: ``benchmark``, ``level``, ``budget``, ``outcome`` (1, 0, -1),
        ``advantage`` (of the first algorithm, on the scale of the score), ``t_ratio``, ``df``, ``p_value``.
    instances : pandas.DataFrame
        One row per benchmark and level: ``benchmark``, ``level``, ``budgets`` (how many), ``better``, ``equal``,
        ``worse`` (shares of them), ``outcome`` (their mean).
    contrasts : pandas.DataFrame
        One row per benchmark and pair of levels: ``benchmark``, ``level``, ``reference``, ``level_outcome`` and
        ``reference_outcome`` (mean outcomes over the budgets), ``contrast`` (their difference), ``p_raw`` and
        ``p_value`` (adjusted) of "no difference", ``decision``, ``singled_out``, ``no_room`` (mean outcomes lie between
        -1 and 1, and from where the benchmark is at one of the levels the mean contrast would lead out of this range,
        so the verdicts cannot follow). p-values are two-sided. Decisions:
        "follows" (significant, in the direction of the mean over benchmarks), "unclear" (not so, but significant in
        this direction in a one-sided test without adjustment), "reversed" (significant in the other direction without
        adjustment), "none found".
    overall : pandas.DataFrame
        One row per pair of levels: ``level``, ``reference``, ``benchmarks`` (how many), ``contrast`` (mean over
        benchmarks), ``se``, ``df``, ``t_ratio``, ``p_value`` (Holm over the pairs), ``ci_low``, ``ci_high``.
    order : tuple of int
        Positions of the benchmarks in the order of the dendrogram, like beside like.
    linkage : (benchmarks - 1, 4) float
        Average linkage of the benchmarks' mean outcomes, in scipy's form; empty for one benchmark.
    test : {"two-sample", "paired"}
        The test at each point.
    unit : {"run", "budget"}
        What the p-values of the contrasts take for independent.
    adjust : str
        Adjustment of these p-values.
    """

    figure = "metafeature_effect_plot"
    parts = {"contrasts": "contrasts", "overall": "overall", "instances": "instances", "points": "points"}
    formats = dict.fromkeys(("level_outcome", "reference_outcome", "contrast"), ".3f") | {"p_raw": "p"}

    points: pd.DataFrame
    instances: pd.DataFrame
    order: tuple[int, ...]
    linkage: Array
    test: str
    unit: str
    adjust: str

    @property
    def rule(self) -> str:
        """How benchmarks are singled out, in words."""
        return (
            f"Rule: a benchmark is singled out if the mean contrast over benchmarks differs from zero (t-test over "
            f"benchmarks, {percent(self.alpha)}, Holm over pairs of levels) and its own contrast is not significant "
            f"in the same direction in a one-sided test at {percent(self.alpha)} without adjustment (which would "
            "single out the more benchmarks the more there are)."
        )

    def sentences(self) -> tuple[str, ...]:
        """One sentence per pair of levels, and one for the benchmarks that do not follow it."""
        return tuple(text for row in self.overall.to_dict("records") for text in self._sentences(row))

    @property
    def title(self) -> str:
        """One line above the table."""
        return f"{self.names[0]} against {self.names[1]}: outcomes by {self.metafeature}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What an outcome and a contrast are, and the rule."""
        first, second = self.names
        return (
            f"Outcome at each benchmark, {self.metafeature} and budget: 1 if {first} is better, -1 if {second} is, 0 "
            f"if neither is significant ({TESTS[self.test]}, alpha = {self.alpha:g}); averaged over "
            f"budgets. Contrast: level minus reference.",
            self.rule,
        )

    def _sentences(self, row: dict[Any, Any]) -> list[str]:
        first, second = self.names
        level, reference = format_level(row["level"]), format_level(row["reference"])
        n, mean, p = int(row["benchmarks"]), float(row["contrast"]), float(row["p_value"])
        head = f"Over {n} benchmarks the mean outcome of {first} against {second} at {level}"
        if not np.isfinite(p):
            return [f"{head} minus that at {reference} is {format_number(mean)}; one benchmark gives no test of it."]
        side = "lower" if mean < 0 else "higher"
        interval = (
            f"{percent(1 - self.alpha)} CI of the contrast {written(row['ci_low'], '.3f')} to "
            f"{written(row['ci_high'], '.3f')}"
        )
        if not below(p, self.alpha):
            return [f"{head} is not significantly different from that at {reference} ({interval}, {p_text(p)})."]
        out = [f"{head} is {side} than at {reference} by {written(abs(mean), '.3f')} ({interval}, {p_text(p)})."]
        part = self.of_pair(row)
        odd = part[part["singled_out"]]
        if not len(odd):
            return [*out, f"None of the {n} benchmarks is singled out."]
        names = [
            f"{format_level(r['benchmark'])} ({r['contrast']:+.3f}, {r['decision']})" for r in odd.to_dict("records")
        ]
        full = odd.loc[odd["no_room"], "benchmark"].tolist()
        unclear = int((part["decision"] == UNCLEAR).sum())
        more = f", {unclear} {'is' if unclear == 1 else 'are'} unclear" if unclear else ""
        counts = f"{n - len(odd) - unclear} benchmarks follow{more}; singled out: {', '.join(names)}."
        if not full:
            return [*out, counts]
        room = (
            f"Of these, {joined(map(format_level, full), 8)} {'has' if len(full) == 1 else 'have'} no room for the "
            "mean contrast: at one of the levels the outcome is too close to 1 or -1 already, so verdicts cannot show "
            "an effect of that size. method='model' compares the scores."
        )
        return [*out, counts, room]


@one_blas_thread()
def metafeature_outcomes(
    runs: Runs,
    algorithms: Sequence[Any],
    metafeature: str,
    *,
    levels: Sequence[Any] | None = None,
    test: str = "two-sample",
    unit: str = "run",
    adjust: str | None = None,
    alpha: float = 0.05,
    n_draws: int = 9999,
    rng: int | np.random.Generator | None = None,
) -> MetafeatureOutcomes:
    """Compare the outcomes of two algorithms between the levels of a metafeature, benchmark by benchmark.

    Parameters
    ----------
    runs, algorithms, metafeature, levels, alpha, rng
        As in `lmemtest.metafeature_effect`; `alpha` is the level of the tests at the points too.
    test : {"two-sample", "paired"}
        How the outcome at a point is found: Student's two-sample test, which takes the runs of the two algorithms for
        independent; or the test of the differences within seeds, which is the right one where a seed means the same
        for both, for instance the same initial design.
    unit : {"run", "budget"}
        What the p-values of the contrasts take for independent: the runs of different seeds, by flipping the signs of
        their residuals; or the outcomes at the budgets (analysis of variance over budgets), which are not: the runs are
        the same.
    adjust : {"holm", "tukey", "sidak", "bonferroni", "fdr", "none"}, optional
        Adjustment over all contrasts; by default Holm with ``unit="run"`` and Tukey over all instances with
        ``unit="budget"``, where alone it is defined.
    n_draws : int
        Tables per contrast; the smallest p-value before adjustment is 1 / (n_draws + 1).

    Returns
    -------
    MetafeatureOutcomes

    Notes
    -----
    With ``unit="run"`` the hypothesis of a benchmark is that the difference of the algorithms is the same at both
    levels. Tables under it hold the common difference, and the residuals of whole runs with random signs, the same for
    all runs of a seed (a wild bootstrap clustered by seed): neither the budgets of a run nor the runs of a seed are
    taken for independent. With few budgets mean outcomes take few values, and the test is careful. Where other signs
    could change a decision, a note gives the Monte Carlo error (two standard errors) of the p-value that decides it.

    A benchmark can be singled out because it is noisy: "none found" is no proof of "none". The deviations of
    `metafeature_effect` say which benchmarks are different from the others.

    An outcome is a decision, not an effect: its mean depends on the number of runs and on their noise as well. At a
    level with noisier runs fewer differences are found. `metafeature_effect` compares the scores themselves.

    The method is that of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO
    benchmarking, section 4.3, with p-values of its own (``unit="budget"`` gives theirs).

    References
    ----------
    Geburek et al. (2024), doi:10.48550/arXiv.2408.02533; Cameron, Gelbach & Miller (2008), doi:10.1162/rest.90.3.414;
    Holm (1979), Scand. J. Stat. 6, 65-70; Phipson & Smyth (2010), doi:10.2202/1544-6115.1585,
    on (1 + count) / (n_draws + 1)

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.benchmark.metafeature_outcomes import metafeature_outcomes
    >>> runs = lt.datasets.load_hpo_runs().filter(model=["forest", "svm"])
    >>> found = metafeature_outcomes(runs, algorithms=("HB+prior", "HB"), metafeature="prior", rng=1)
    >>> found.to_frame()[["benchmark", "level", "reference", "contrast", "decision"]].head(3).round(2)
             benchmark level reference  contrast decision
    0    forest-cancer  good       bad       0.9  follows
    1  forest-diabetes  good       bad       0.4  follows
    2    forest-digits  good       bad       0.8  follows
    """
    check_choice(test, "test", tuple(TESTS))
    check_choice(unit, "unit", UNITS)
    if adjust is None:
        adjust = "holm" if unit == "run" else "tukey"
    elif check_choice(adjust, "adjust", ADJUSTS) == "tukey" and unit == "run":
        raise ArgumentError(
            "adjust='tukey' needs means with a common standard error, which flipped signs do not give. "
            "Use adjust='holm', or unit='budget'."
        )
    alpha = check_fraction(alpha, "alpha")
    n_draws = check_positive_int(n_draws, "n_draws", minimum=99)
    generator = resolve_rng(rng)
    pairs = pair_scores(runs, algorithms, metafeature, levels)
    if unit == "budget" and pairs.n_budgets.max() < 2:
        raise ArgumentError("unit='budget' needs two or more budgets, the runs have one. Use unit='run'.")
    outcomes = test_points(pairs, test, alpha)
    table, how = contrasts(
        pairs, outcomes, unit=unit, adjust=adjust, test=test, alpha=alpha, n_draws=n_draws, rng=generator
    )
    over_benchmarks = overall(pairs, table, alpha)
    table, close = decided(table, over_benchmarks, alpha, n_draws if unit == "run" else None)
    table["no_room"] = without_room(table, over_benchmarks)
    means = mean_outcomes(outcomes.outcome)
    order, tree = _clusters(means)
    points, instances = _frames(pairs, outcomes, means)
    return MetafeatureOutcomes(
        **pairs.labels,
        points=points,
        instances=instances,
        contrasts=table,
        overall=over_benchmarks,
        order=order,
        linkage=tree,
        test=test,
        unit=unit,
        adjust=adjust,
        alpha=alpha,
        notes=(*pairs.notes, *how, *close),
    )


# ---------------------------------------------------------------------- clusters and tables


def _clusters(means: Array) -> tuple[tuple[int, ...], Array]:
    """Average linkage of the benchmarks by the root mean squared difference of outcomes at common levels."""
    m = len(means)
    if m < 2:
        return tuple(range(m)), np.zeros((0, 4))
    from scipy.cluster.hierarchy import leaves_list, linkage

    i, j = np.triu_indices(m, k=1)
    squared = (means[i] - means[j]) ** 2
    n = np.isfinite(squared).sum(axis=1)
    with np.errstate(invalid="ignore"):
        distance = np.sqrt(np.nansum(squared, axis=1) / n)
    distance[n == 0] = 2.0  # no common level: as far as can be
    tree = np.asarray(linkage(distance, method="average", optimal_ordering=True), dtype=float)
    return tuple(int(leaf) for leaf in leaves_list(tree)), tree


def _frames(pairs: PairScores, outcomes: Outcomes, means: Array) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per benchmark, level and budget; and one per benchmark and level."""
    b, v, f = np.nonzero(np.isfinite(outcomes.outcome))
    points = pd.DataFrame({name: values[b, v, f] for name, values in outcomes._asdict().items()})
    points["outcome"] = points["outcome"].astype(int)
    at = {"benchmark": [pairs.benchmarks[i] for i in b], "level": [pairs.levels[i] for i in v]}
    at["budget"] = [pairs.budgets[i] for i in f]
    b, v = np.nonzero(np.isfinite(means))
    outcome = outcomes.outcome[b, v]
    n = np.isfinite(outcome).sum(axis=1)
    instances = pd.DataFrame(
        {
            "benchmark": [pairs.benchmarks[i] for i in b],
            "level": [pairs.levels[i] for i in v],
            "budgets": n,
            **{name: (outcome == value).sum(axis=1) / n for name, value in _SHARES.items()},
            "outcome": means[b, v],
        }
    )
    return pd.concat([pd.DataFrame(at), points], axis=1), instances
