"""Probability of outperforming over many benchmarks: each by itself, all together, and on how many it holds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.bench.data.blocks import Blocks, blocks_of
from lmemtest.bench.outperforming.duels import Duels, by_benchmark, duels_of, least_p, p_values, together
from lmemtest.bench.outperforming.replicability import better_on, partial_conjunction
from lmemtest.bench.outperforming.verdict import CONCLUSIONS, adjusted_gamma, conclusions, in_words, meaning
from lmemtest.core.caller import advice, named
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import at_most, below, written
from lmemtest.core.validate import check_choice, resolve_rng
from lmemtest.core.words import counted, listed, percent, plural, suggest
from lmemtest.errors import ArgumentError, DesignError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs

METHODS = ("mixed", "percentile")
FEW_BENCHMARKS = 5
_INTERVALS = {
    "families": "score interval with the variance of the mean of the families' means",
    "families drawn": "percentile interval, families drawn again and runs within their benchmarks",
    "mixed": "score interval with the variance of the mixed model win ~ 1 + (1 | benchmark)",
    "percentile": "percentile interval, benchmarks drawn again and runs within them",
    "score": "score interval of the only benchmark (exact where fewer than five runs are paired)",
}


@result
class OutperformingOverBenchmarks(Result):
    """How often runs of one algorithm are better than runs of another on the same benchmark.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair, of which left is the one that is more often better unless `algorithms` named two or `control`
        one: ``left``, ``right``, ``n_families`` (where they are the sample), ``n_benchmarks``, ``n_pairs`` of runs,
        ``mean`` of the benchmarks' probabilities that a run of left is better (of the means by family, where families
        are the sample), ``estimate`` of the method with ``ci_low`` and ``ci_high``,
        ``conclusion``, ``better_on``: at least so many benchmarks (partial conjunction, Bonferroni, at half of alpha as
        either side of the interval), ``better_on_most``: the largest number that so many runs can show. For scores of 0
        and 1 ``risk_difference``, 2 estimate - 1, as well.
    benchmarks : pandas.DataFrame
        One row per pair and benchmark: ``left``, ``right``, ``family`` (where families are the sample), ``benchmark``,
        ``wins``, ``ties``, ``losses`` of left, ``estimate``, ``ci_low``, ``ci_high`` at level 1 - alpha, ``p_raw``
        (one-sided), ``p_value`` (Holm over the benchmarks).
    replicability : pandas.DataFrame
        One row per pair and number u: ``left``, ``right``, ``u``, ``p_bonferroni``, ``p_fisher`` of "left is better on
        at least u benchmarks".
    paired : bool
    gamma, alpha : float
        As asked for, for the whole family.
    gamma_adjusted, alpha_adjusted : float
        For each pair: alpha over the number of pairs, and the gamma that as many runs detect at it.
    method : {"mixed", "percentile", "score"}
    score, direction : str
    family : str or None
        The column of the families that are the sample; None where benchmarks are.
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "outperforming_plot"
    parts: ClassVar[dict[str, str]] = {name: name for name in ("table", "benchmarks", "replicability")}
    formats = dict.fromkeys(["mean", "estimate", "ci_low", "ci_high", "risk_difference"], ".3f")

    table: pd.DataFrame
    benchmarks: pd.DataFrame
    replicability: pd.DataFrame
    paired: bool
    gamma: float
    alpha: float
    gamma_adjusted: float
    alpha_adjusted: float
    method: str
    score: str
    direction: str
    family: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Of which score."""
        return f"Probability that a run is better on the same benchmark, in {self.score}"

    def shown(self) -> pd.DataFrame:
        """Without what so many runs can show at most."""
        return self.table.drop(columns="better_on_most")

    @property
    def band(self) -> str:
        """What the intervals are."""
        name = self.method
        if self.family is not None:
            name = {"mixed": "families", "percentile": "families drawn"}.get(name, name)
        return f"{percent(1.0 - self.alpha_adjusted)} {_INTERVALS[name]}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the intervals are, and what was asked."""
        family = round(self.alpha / self.alpha_adjusted)
        shared = f" (for {family} pairs: alpha = {self.alpha:g} and gamma = {self.gamma:g}, adjusted)" * (family > 1)
        return (
            f"{self.band}; ties count one half.",
            in_words(self.gamma_adjusted, shared),
        )

    def sentences(self) -> tuple[str, ...]:
        """Of a pair: the conclusion, the number of benchmarks, what it means. Of several: a headline, and each pair."""
        rows = self.table.to_dict("records")
        if len(rows) > 1:
            return (self._headline(), *(f"{'; '.join(self._of_pair(row))}." for row in rows))
        row = rows[0]
        first, *replicated = self._of_pair(row)
        names = str(row["left"]), str(row["right"])
        return (
            f"{first}.",
            *(f"{clause} (partial conjunction)." for clause in replicated),
            *meaning(row["conclusion"], row["ci_high"], self.gamma_adjusted, *names),
        )

    def _headline(self) -> str:
        """How many pairs have which conclusion."""
        found = [(name, int((self.table["conclusion"] == name).sum())) for name in CONCLUSIONS]
        parts = [f"{name} in {count}" for name, count in found if count]
        turned = int(below(self.table["ci_high"].to_numpy(), 0.5).sum())
        second = f"; in {turned} the second is significantly more often better" if turned else ""
        return f"Of {len(self.table)} pairs of algorithms, the advantage of the first is {', '.join(parts)}{second}."

    def _of_pair(self, row: dict[Hashable, Any]) -> list[str]:
        """The conclusion, and on how many benchmarks it holds."""
        left, right, low, high = (row[name] for name in ("left", "right", "ci_low", "ci_high"))
        ends = f"{percent(1.0 - self.alpha_adjusted)} interval {written(low, '.2f')} to {written(high, '.2f')}"
        where = "" if self.family is None else f" of {plural(self.family)} like these"
        said = [
            f"A run of {left} is better than one of {right} on the same benchmark{where} with probability "
            f"{written(row['estimate'], '.2f')} ({'no interval' if np.isnan(low) else ends}): {row['conclusion']}"
        ]
        if row["n_benchmarks"] > 1 and row["better_on_most"]:
            count = counted(row["n_benchmarks"], "benchmark")
            found = f"{left} is significantly better than {right} on at least {row['better_on']} of {count}"
            none = f"{left} cannot be counted as better than {right} on any number of {count}"
            said.append(found if row["better_on"] else none)
        if len(self.table) > 1 and below(high, 0.5):
            return [said[0], f"{right} is significantly more often better"]
        return said


def over_benchmarks(
    runs: Runs,
    algorithms: Sequence[str] | None,
    paired: bool,
    gamma: float,
    alpha: float,
    *,
    method: str,
    n_draws: int,
    rng: int | np.random.Generator | None,
    control: str | None = None,
    comparisons: int | None = None,
) -> OutperformingOverBenchmarks:
    """`probability_of_outperforming` of runs; `comparisons` is the size of the family, where not all of it is asked."""
    import pandas as pd

    check_choice(method, "method", ("auto", *METHODS))
    generator = resolve_rng(rng)
    if paired and runs.seed is None:
        raise DesignError(
            "runs has no seed column, so no run of one algorithm belongs to one of another. "
            + f"Name it: {advice('role', role='seed')}, or compare all runs with {advice('unpaired')}."
        )
    sample, blocks = runs.study.sampled, blocks_of(runs, unit="benchmark")
    blocks = blocks.of(_check_algorithms(algorithms, blocks.algorithms))
    family = _family(control, blocks.algorithms)
    share = alpha / (comparisons or len(family))
    raised = adjusted_gamma(gamma, alpha, comparisons or len(family))
    if method == "percentile" and below((n_draws + 1) * 0.5 * share, 1.0):
        least = int(np.ceil(2.0 / share))
        more = advice("draws_of_pairs", least=least)
        raise ArgumentError(
            f"{n_draws:,} draws have no quantile with {0.5 * share:.3g} beyond it, as {len(family)} pairs need. {more}"
        )
    left, right = np.array(family, dtype=np.intp).T
    duels = duels_of(blocks, left, right, paired)
    if control is None and (algorithms is None or len(family) > 1):
        duels = duels.turned(below(duels.mean, 0.5))  # the one on the left is more often better
    n_benchmarks = duels.there.sum(axis=1)
    method = ("mixed" if method == "auto" else method) if n_benchmarks.max() > 1 else "score"
    middle, low, high = together(duels, method, 1.0 - share, n_draws, generator)
    names = np.array(blocks.algorithms, dtype=object)
    pairs = {"left": names[duels.left], "right": names[duels.right]}
    p = p_values(duels)
    single = by_benchmark(duels, p, 1.0 - alpha)
    of_pair = single.pop("pair").to_numpy()
    table = pd.DataFrame(
        {
            **pairs,
            **({} if duels.families is None else {"n_families": duels.n_families}),
            "n_benchmarks": n_benchmarks,
            "n_pairs": duels.counts.n.sum(axis=1).astype(int),
            "mean": duels.mean,
            "estimate": middle,
            "ci_low": low,
            "ci_high": high,
            "conclusion": conclusions(low, high, raised),
            "better_on": better_on(p, "bonferroni", 0.5 * share),
            "better_on_most": better_on(least_p(duels), "bonferroni", 0.5 * share),
            **({"risk_difference": np.where(duels.binary, 2.0 * middle - 1.0, np.nan)} if duels.binary.any() else {}),
        }
    )
    ordered = np.arange(p.shape[1]) < n_benchmarks[:, None]
    both = {f"p_{name}": partial_conjunction(p, name)[ordered] for name in ("bonferroni", "fisher")}
    by_pair = {side: column[of_pair] for side, column in pairs.items()}
    return OutperformingOverBenchmarks(
        table=table,
        benchmarks=pd.concat([pd.DataFrame(by_pair), single], axis=1),
        replicability=pd.DataFrame({**by_pair, "u": np.nonzero(ordered)[1] + 1, **both}),
        paired=paired,
        gamma=gamma,
        alpha=alpha,
        gamma_adjusted=raised,
        alpha_adjusted=share,
        method=method,
        score=blocks.score,
        direction=blocks.direction,
        family=sample.column if sample.noun == "family" else None,
        notes=(*blocks.notes, *sample.notes, *sample.weights, *_notes(table, duels, blocks, paired, method, share)),
    )


def _family(control: Any, algorithms: tuple[str, ...]) -> list[tuple[int, int]]:
    """Which are compared, by their position: all pairs, or the control with all others."""
    if control is None:
        return list(combinations(range(len(algorithms)), 2))
    if not isinstance(control, str) or control not in algorithms:
        raise ArgumentError(
            f"{named('control')} must be one of the algorithms ({listed(algorithms)}), got {control!r:.80}."
            f"{suggest(str(control), algorithms)}"
        )
    first = algorithms.index(control)
    return [(first, other) for other in range(len(algorithms)) if other != first]


def _check_algorithms(given: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        given = known
    what = named("algorithms")
    if isinstance(given, str) or not isinstance(given, Sequence) or any(not isinstance(name, str) for name in given):
        raise ArgumentError(f"{what} must be two names or more, got {given!r:.80}.")
    for name in given:
        if name not in known:
            raise ArgumentError(
                f"{what} names {name!r}, which is not in the runs. Algorithms: {listed(known)}.{suggest(name, known)}"
            )
    if len(set(given)) < 2 or len(set(given)) < len(given):
        raise ArgumentError(f"{what} must be two different names or more, got {listed(given) or 'none'}.")
    return tuple(given)


def _notes(
    table: pd.DataFrame, duels: Duels, blocks: Blocks, paired: bool, method: str, alpha: float
) -> tuple[str, ...]:
    notes = []
    unit = "benchmark" if blocks.family is None else "family"
    fewest = int(table[f"n_{plural(unit)}"].min())
    most = len(blocks.names) if blocks.family is None else len(set(blocks.family))
    if fewest < most:
        alone = f", and the interval is of this {unit} by itself: it says nothing about others" * (fewest == 1)
        notes.append(f"Some pair has runs to compare on {fewest} of {counted(most, unit)} only{alone}.")
    if duels.incomplete:
        notes.append("Runs without a partner of the same seed are left out, and rows that repeat a run are averaged.")
    alike = duels.alike & (table["n_benchmarks"].to_numpy() > 1)
    if method == "mixed" and not alike.all():
        shared = "" if paired else " A run that is in several comparisons is a random effect as well."
        notes.append(
            "The mixed model takes wins as 1, 1/2 and 0 with one variance within benchmarks, and benchmarks as a "
            f"sample: the probability is that on another benchmark of their kind.{shared}"
            if blocks.family is None
            else "The interval takes the benchmarks' own probabilities as they are, with one variance within families, "
            "and families as a sample: the probability is that on a benchmark of another family of their kind."
        )
    if 1 < fewest < FEW_BENCHMARKS:
        notes.append(
            f"{counted(fewest, unit)} say little about others: intervals are wide, 0.6 to 0.9 with three "
            "in simulated studies, and percentile intervals are too short there."
        )
    if alike.any():
        notes.append(
            "Where all pairs ended alike there is no variance: the interval is Clopper and Pearson's of as many wins "
            f"or ties as there are {plural(unit)}, which can be wider than that of a pair with a few losses."
        )
        if not below(0.5, (0.5 * alpha) ** (1.0 / most)):
            notes.append(f"With {counted(most, unit)} even winning all pairs on all of them is not significant by it.")
    most_pairs = int(duels.counts.n.max())
    if paired and not at_most(0.5**most_pairs, 0.5 * alpha):
        notes.append(
            f"With {counted(most_pairs, 'pair')} on a benchmark at most, no sign test of one benchmark can reach "
            f"{0.5 * alpha:.3g}, so better_on counts none of them by Bonferroni; Fisher's combination can "
            "(to_frame('replicability'))."
        )
    if duels.binary.all() and not (duels.alike & duels.counts.tie.any(axis=1)).all():
        notes.append(
            "Scores are 0 and 1, so most pairs are tied and count half: the probability is (1 + difference of the "
            "shares) / 2. risk_difference is that difference, with limits 2 ci_low - 1 and 2 ci_high - 1."
        )
    return tuple(notes)
