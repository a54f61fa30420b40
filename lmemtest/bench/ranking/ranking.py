"""The result of a ranking, whatever its method: one table of algorithms, one of pairs, one matrix of decisions."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.bench.ranking.classical import FEWEST_BLOCKS
from lmemtest.bench.ranking.methods import ON_RANKS, TEST_NAMES, codes_on, left_out
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.rounding import tolerance, written
from lmemtest.core.table import Format
from lmemtest.core.verdicts import Verdict, ahead_or_behind
from lmemtest.core.words import counted, format_number, joined, p_text
from lmemtest.lmm.means.decisions import MOST_NAMED

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.ranking.classical import Omnibus
    from lmemtest.bench.ranking.methods import RankOptions
    from lmemtest.core.arrays import Codes
    from lmemtest.lmm.means.decisions import Decisions


@result
class Ranking(Result):
    """Algorithms in order, and which of them differ.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per algorithm, best first: ``algorithm``, the centre by which they are ordered (``mean``, ``median`` or
        ``mean_rank``) with its spread and interval, ``mean_rank``, ``rank_low`` and ``rank_high`` (the set of ranks
        that the decisions leave open), ``letters`` of up to 12 algorithms.
    pairs : pandas.DataFrame
        One row per pair, ``left`` before ``right`` in the ranking: ``estimate`` (left minus right) with ``ci_low`` and
        ``ci_high``, ``statistic`` (t, or the sum of the signed ranks),
        ``df``, ``p_raw``, ``p_value`` (adjusted), ``effect_size`` with ``effect_low``,
        ``effect_high`` and ``magnitude``, ``p_better`` (share of the blocks on which left is better, ties one half),
        ``wins``, ``ties``, ``losses`` (of left over right, in blocks), ``decision``.
    decisions : Decisions
        The decisions, from which letters, groups and figures are made.
    blocks : Blocks
        The scores that were ranked.
    runs : Runs
        The runs that the blocks are of.
    method : {"lmem", "frequentist", "bayesian"}
    test : str
        What decides about the pairs: "Nemenyi", "Wilcoxon signed-rank", "Tukey HSD", ...
    omnibus : Omnibus or None
    effect : str
        Kind of the effect sizes, by the names in `effect_sizes`.
    control : str or None
        The algorithm with which all others were compared; None for all pairs.
    alpha : float
    score, direction : str
    options : RankOptions
        Those of `rank`, checked.
    formula : str
        The mixed model; empty for other methods.
    assumptions : pandas.DataFrame or None
        Tests that chose the method: ``test``, ``of``, ``statistic``, ``p_value``.
    notes : tuple of str
    """

    parts: ClassVar[Mapping[str, str]] = {"ranking": "table", "pairs": "pairs"}
    figure: ClassVar[str | None] = "ranking_plot"
    formats: ClassVar[Mapping[str, Format]] = {"mean_rank": ".2f"}

    table: pd.DataFrame
    pairs: pd.DataFrame
    decisions: Decisions
    blocks: Blocks
    runs: Runs
    method: str
    test: str
    omnibus: Omnibus | None
    effect: str
    control: str | None
    alpha: float
    score: str
    direction: str
    options: RankOptions
    formula: str = ""
    assumptions: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[str, ...]:
        """The algorithms, best first."""
        return self.decisions.levels

    @property
    def codes(self) -> Codes:
        """The verdict on every row of `pairs`, the left compared with the right."""
        return self.decisions.pairs(self.pairs["left"], self.pairs["right"])

    @property
    def decided(self) -> pd.DataFrame:
        """The pairs with a decision for one of the two."""
        return self.pairs[ahead_or_behind(self.codes)]

    @property
    def title(self) -> str:
        """What was ranked by what."""
        end = "lower" if self.direction == "minimize" else "higher"
        return f"Ranking by {self.score} ({end} is better), {TEST_NAMES[self.test]}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The sample, the tests and their adjustment."""
        sample = f"{len(self.levels)} algorithms on {self.blocks.said()}"
        if self.method == "bayesian":
            how = f"decided where a posterior probability is above {1.0 - self.alpha:g}, pair by pair"
            return (f"{sample}; {how}; {self.options.rope_text(self.score)}.",)
        adjust = ADJUSTMENT_NAMES.get(self.decisions.adjust, self.decisions.adjust)
        which = "all pairs" if self.control is None else f"comparisons with {self.control}"
        facts = [f"{sample}; {which}, {adjust} adjustment, alpha = {self.alpha:g}."]
        if self.omnibus is not None:
            facts.append(f"{self.omnibus.name}: {self.omnibus.text}.")
        return tuple(facts)

    def sentences(self) -> tuple[str, ...]:
        """Who is ahead, what is decided, and what is not; the first is the headline."""
        return ranking_sentences(self)

    def leaderboard(self, **options: Any) -> Answer:
        """Ratings, win rates and mean ranks on the same blocks: `leaderboard`, with its options."""
        from lmemtest.bench.ranking.leaderboard import leaderboard

        whole = self.control is None and self.method != "bayesian"
        return leaderboard(self.blocks, **{"decisions": self.decisions if whole else None, **options})

    def next_benchmark(
        self, *, alpha: float = 0.05, n_draws: int = 10_000, rng: int | np.random.Generator | None = None
    ) -> Answer:
        """The ranks that each algorithm may have on a further benchmark of this kind, and its probability to be first.

        Parameters
        ----------
        alpha : float in (0, 1)
            One minus the probability of each prediction set.
        n_draws : int
            Draws of scores on a new benchmark.
        rng : int, numpy.random.Generator or None

        Returns
        -------
        Answer
            One row per algorithm: ``algorithm``, ``rank_low`` and ``rank_high``, ``median_rank``, ``p_first``; and the
            values `alpha`, `n_draws`, `n_blocks`, `unit`.

        Raises
        ------
        DesignError
            If fewer than five benchmarks have scores of all algorithms.

        Notes
        -----
        Simulated coverage of 95 % sets is 93 to 99 % from 8 benchmarks on (4 to 40 algorithms; normal, heavy-tailed and
        skewed scores); see `lmemtest.bench.ranking.next_benchmark`. The ranks in the table of the ranking are about
        means over all benchmarks of this kind, and are known the better the more there are; a prediction set is about
        one benchmark, and stays as wide as benchmarks differ.

        Examples
        --------
        >>> import lmemtest as lt
        >>> ranking = lt.rank(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
        >>> ranking.next_benchmark(n_draws=2000, rng=1).to_frame()[["algorithm", "rank_low", "rank_high"]].head(2)
          algorithm  rank_low  rank_high
        0  HB+prior         1          6
        1  RS+prior         1          5
        """
        from lmemtest.bench.ranking.next_benchmark import next_benchmark

        return next_benchmark(self.blocks, alpha, n_draws, rng)

    def stability(self, *, progress: bool | None = None) -> Answer:
        """Which decisions change when one block or one algorithm leaves the study: one refit for each.

        Parameters
        ----------
        progress : bool, optional
            Progress bar on standard error for what takes more than two seconds: always, never, or (None) on a terminal.

        Returns
        -------
        Answer
            See `lmemtest.bench.ranking.stability.stability_of`.

        Raises
        ------
        DesignError
            If there are fewer than three blocks.
        """
        from lmemtest.bench.ranking.stability import closed_form, codes_by_table, stability_of

        test = "auto" if self.method == "lmem" else self.test
        at_once = self.method == "lmem" and closed_form(self.runs, self.blocks, self.options)

        def again(part: Blocks) -> Codes:
            # the same draws for each part, so that none changes by chance alone
            options = replace(self.options, test=test, rng=deepcopy(self.options.rng))
            at_hand = codes_by_table(part, options.alpha) if at_once else None
            return codes_on(part, self.runs, self.method, options) if at_hand is None else at_hand

        whole = self.decisions.among(self.blocks.algorithms)
        neither = "undecided" if self.method == "bayesian" else "not significant"
        return stability_of(again, self.blocks, whole, neither=neither, progress=progress)

    def paragraph(self) -> str:
        """What was done and found, as a paragraph for a paper; ``report()`` is the same."""
        return ranking_paragraph(self)


# -------------------------------------------------------------------------------------------------- what a ranking says


MOST_PAIRS = 12  # in a paragraph; more are in a table
SYMBOLS = {
    "cohen_d": "d",
    "hedges_g": "g",
    "cohen_dz": "d_z",
    "cliff_delta": "Cliff's delta",
    "akinshin_gamma": "gamma",
    "rank_biserial": "rank-biserial r",
    "standardised": "d",
}


def ranking_sentences(ranking: Ranking) -> tuple[str, ...]:
    """Who is ahead, who is better than whom, which pairs are practically equivalent, and what stays open."""
    if ranking.control is None and not ranking.decisions.lettered:
        return tuple(_of_many(ranking))
    beaten, equal, open_pairs, untested = _sorted_out(ranking)
    sentences = [_headline(ranking, beaten)]
    better = _better(ranking)
    sentences += [f"{name} is {better} than {joined(worse, len(worse))}." for name, worse in beaten.items()]
    if equal:
        sentences.append(f"Practically equivalent: {_pairs(equal)}.")
    if open_pairs:
        what = "Undecided" if ranking.method == "bayesian" else "Not significantly different"
        sentences.append(f"{what}: {_pairs(open_pairs)}.")
    met = {(row["left"], row["right"]): _met(row) for row in ranking.pairs.to_dict("records")}
    alone = [pair for pair in untested if met[pair] < FEWEST_BLOCKS]
    others = [pair for pair in untested if met[pair] >= FEWEST_BLOCKS]
    if alone:
        sentences.append(f"Without a test, for too few common {ranking.blocks.units}: {_pairs(alone)}.")
    if others:
        sentences.append(f"Without a test, since their differences have no variance: {_pairs(others)}.")
    return tuple(sentences)


def _of_many(ranking: Ranking) -> list[str]:
    """What is said of more algorithms than have letters: who may be the best, and how many pairs are decided."""
    decisions, n_pairs = ranking.decisions, len(ranking.pairs)
    worse = np.flatnonzero(decisions.codes[0] == Verdict.BETTER)
    beaten = (
        {decisions.levels[0]: [decisions.levels[i] for i in worse]} if ahead_or_behind(decisions.codes).any() else {}
    )
    decided = f"{len(ranking.decided):,} of {n_pairs:,} pairs"
    what = "are decided" if ranking.method == "bayesian" else "differ significantly"
    untested = int((ranking.codes == Verdict.NOT_TESTED).sum())
    more = f", {untested:,} have no test" if untested else ""
    return [
        _headline(ranking, beaten),
        *decisions.sentences(),
        f"{decided} {what}{more}; rank_low and rank_high have the ranks left open.",
    ]


def _met(row: Mapping[Any, Any]) -> int:
    """On how many blocks both have a score."""
    return int(row["wins"] + row["ties"] + row["losses"])


def _better(ranking: Ranking) -> str:
    """Better in which sense: by a test, by more than what does not matter, or as far as is known."""
    if ranking.method != "bayesian":
        return "ranked significantly better" if ranking.test in ON_RANKS else "significantly better"
    return "practically better" if ranking.options.rope > 0.0 else "probably better"


def _sorted_out(
    ranking: Ranking,
) -> tuple[dict[str, list[str]], list[tuple[str, str]], list[tuple[str, str]], list[tuple[str, str]]]:
    """Whom each algorithm is better than; pairs that are equivalent; tested and not decided; not tested."""
    beaten: dict[str, list[str]] = {}
    equal: list[tuple[str, str]] = []
    undecided: list[tuple[str, str]] = []
    untested: list[tuple[str, str]] = []
    neither = {Verdict.EQUIVALENT: equal, Verdict.NOT_SIGNIFICANT: undecided, Verdict.NOT_TESTED: untested}
    for left, right, code in zip(ranking.pairs["left"], ranking.pairs["right"], ranking.codes, strict=True):
        if ahead_or_behind(code):
            better, worse = (left, right) if code == Verdict.BETTER else (right, left)
            beaten.setdefault(better, []).append(worse)
        else:
            neither[code].append((left, right))
    return beaten, equal, undecided, untested


def _headline(ranking: Ranking, beaten: Mapping[str, list[str]]) -> str:
    first, *others = ranking.levels
    if ranking.control is not None:
        against = [name for name, worse in beaten.items() if ranking.control in worse]
        worse = beaten.get(ranking.control, [])
        parts = [f"better than {ranking.control}: {joined(against, len(against))}"] if against else []
        parts += [f"worse: {joined(worse, len(worse))}"] if worse else []
        return (
            f"Shown to be {'; '.join(parts)}." if parts else f"No algorithm is shown to differ from {ranking.control}."
        )
    worse = beaten.get(first, [])
    tied = _tied_first(ranking)
    ahead = f"{joined(tied, len(tied))} share the first place" if len(tied) > 1 else f"{first} ranks first"
    if not beaten:
        which = "the two" if len(others) == 1 else f"any two of the {len(others) + 1} algorithms"
        return f"{ahead}, but no difference between {which} is shown."
    if len(tied) > 1:
        return f"{ahead}."
    if len(worse) == len(others):
        which = {1: "the other one", 2: "both others"}.get(len(others), f"all {len(others)} others")
        return f"{ahead}, ahead of {which}."
    near = [name for name in others if name not in worse]
    if not ranking.decisions.lettered:
        return f"{ahead}; it is not shown to be better than {joined(near, MOST_NAMED)}."
    return f"{ahead}; it is not shown to be better than {joined(near)}."


def _tied_first(ranking: Ranking) -> list[str]:
    """The algorithms that nothing but the order of the columns puts behind the first."""
    centres, errors = np.array(ranking.decisions.means), np.array(ranking.decisions.se)
    near = np.abs(centres - centres[0]) <= tolerance(centres, errors)
    return [name for name, tied in zip(ranking.levels, near, strict=True) if tied]


def _pairs(pairs: list[tuple[str, str]]) -> str:
    names = [f"{left} and {right}" for left, right in pairs[:MOST_PAIRS]]
    rest = f"; and {len(pairs) - MOST_PAIRS} other pairs" if len(pairs) > MOST_PAIRS else ""
    return "; ".join(names) + rest


# ---------------------------------------------------------------------- a paragraph for a paper


def ranking_paragraph(ranking: Ranking) -> str:
    """What was compared, on which sample, how, and what was found."""
    end = "lower" if ranking.direction == "minimize" else "higher"
    parts = [
        f"We compared {counted(len(ranking.levels), 'algorithm')} on {ranking.blocks.said()} by {ranking.score} "
        f"({end} is better)."
    ]
    parts.append(_how(ranking))
    if ranking.omnibus is not None:
        verdict = "significant" if ranking.omnibus.significant else "not significant"
        parts.append(f"The omnibus test ({ranking.omnibus.name}) was {verdict}: {ranking.omnibus.text}.")
    parts += _found(ranking)
    version = importlib.import_module("lmemtest").__version__
    parts.append(f"Computed with lmemtest {version}.")
    return " ".join(parts)


def _how(ranking: Ranking) -> str:
    name = TEST_NAMES[ranking.test]
    if ranking.method == "bayesian":
        return (
            f"Pairs were compared with the {name}; {ranking.options.rope_text(ranking.score)}, and a pair is decided "
            f"where a posterior probability is above {1.0 - ranking.alpha:g}."
        )
    adjust = ADJUSTMENT_NAMES.get(ranking.decisions.adjust, ranking.decisions.adjust)
    if ranking.method == "lmem":
        how = (
            f"Marginal means come from the linear mixed model {ranking.formula} (REML, Satterthwaite degrees of "
            "freedom)"
        )
        if ranking.decisions.errors == "moderated":
            how += f", with standard errors of differences moderated by their scatter over the {ranking.blocks.units}"
    else:
        runs = int(ranking.blocks.n_runs.max())
        each = f"Each {ranking.blocks.unit} counts once" + (", with the mean of its runs" if runs > 1 else "")
        without = "" if ranking.test == "wilcoxon" else left_out(ranking.blocks)
        if without:
            each += f"; {without.split(';')[0]}"
        how = f"{each}. {_choice(ranking)}Pairs were compared by {name}"
    family = "all pairs" if ranking.control is None else f"the comparisons with {ranking.control}"
    controls = "" if ranking.decisions.adjust in ("none", "fdr") else ", family-wise"
    if len(ranking.pairs) == 1:  # no family
        return f"{how}; alpha = {ranking.alpha:g}."
    return f"{how}; {adjust} adjustment for {family}, alpha = {ranking.alpha:g}{controls}."


def _choice(ranking: Ranking) -> str:
    """By which tests the test was chosen; empty where it was asked for."""
    if ranking.assumptions is None:
        return ""
    names = joined(dict.fromkeys(ranking.assumptions["test"]))
    return f"The test was chosen by tests of the residuals ({names}). "


def _found(ranking: Ranking) -> list[str]:
    decided = np.flatnonzero(ahead_or_behind(ranking.codes) | (ranking.codes == Verdict.EQUIVALENT))
    rows = ranking.pairs.iloc[decided[:MOST_PAIRS]].to_dict("records")
    texts = [_pair_text(ranking, row, code) for row, code in zip(rows, ranking.codes[decided], strict=False)]
    sentences = [f"{'; '.join(texts)}."] if texts else []
    if len(decided) > MOST_PAIRS:
        sentences.append(f"Of {len(decided) - MOST_PAIRS} further decided pairs the table has the numbers.")
    tested = int((ranking.codes != Verdict.NOT_TESTED).sum())
    rest = tested - len(decided)
    if rest == tested:
        sentences.append("No pair was decided." if rest > 1 else "The pair was not decided.")
    elif rest:
        which = "the other pair" if rest == 1 else f"the other {rest} pairs"
        sentences.append(f"For {which} no difference was shown, which does not show that they are equal.")
    return sentences


def _chance(p: float) -> str:
    """A posterior probability; draws that all agree do not make it certain."""
    return "P > 0.999" if p > 0.9995 else f"P = {written(p, '.3f')}"


def _pair_text(ranking: Ranking, row: Mapping[str, Any], code: int) -> str:
    left, right = row["left"], row["right"]
    wins = f"better on {row['wins']} of {row['wins'] + row['ties'] + row['losses']} {ranking.blocks.units}"
    if code == Verdict.EQUIVALENT:
        return f"{left} and {right} are practically equivalent ({_chance(row['p_equal'])})"
    turned = code == Verdict.WORSE
    first, second = (right, left) if turned else (left, right)
    sign, low, high = 1.0, row.get("ci_low", np.nan), row.get("ci_high", np.nan)
    if turned:
        wins = f"better on {row['losses']} of {row['wins'] + row['ties'] + row['losses']} {ranking.blocks.units}"
        sign, low, high = -1.0, -high, -low
    if "p_left" in row:
        chance = _chance(max(row["p_left"], row["p_right"]))
        return f"{first} is {_better(ranking)} than {second} ({chance}, {wins})"
    what = "difference of mean ranks" if ranking.test in ON_RANKS else "difference"
    numbers = [f"{what} {format_number(sign * row['estimate'])}"]
    if np.isfinite(low) and np.isfinite(high):
        level = f"{100.0 * (1.0 - ranking.alpha):g} % CI"
        numbers.append(f"{level} {format_number(low)} to {format_number(high)}")
    if np.isfinite(row["df"]):
        numbers.append(f"t({written(row['df'], '.4g')}) = {format_number(sign * row['statistic'], 3)}")
    numbers.append(p_text(row["p_value"], level=ranking.alpha))
    if np.isfinite(row["effect_size"]):
        numbers.append(f"{SYMBOLS[ranking.effect]} = {written(sign * row['effect_size'], '.2f')}")
    if _met(row):  # a model may compare algorithms that share no whole block
        numbers.append(wins)
    return f"{first} was better than {second} ({', '.join(numbers)})"
