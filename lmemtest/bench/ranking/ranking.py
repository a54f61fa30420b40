"""The result of a ranking, whatever its method: one table of algorithms, one of pairs, one matrix of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from lmemtest.bench.ranking.methods import TEST_NAMES, codes_on
from lmemtest.bench.ranking.wording import ranking_paragraph, ranking_sentences
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.table import Format
from lmemtest.core.verdicts import ahead_or_behind

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.ranking.classical import Omnibus
    from lmemtest.bench.ranking.methods import Asked
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
    asked : Asked
        The options.
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
    asked: Asked
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
            return (f"{sample}; {how}; {self.asked.rope_text(self.score)}.",)
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
        from lmemtest.bench.ranking.single_runs import closed_form, codes_by_table
        from lmemtest.bench.ranking.stability import stability_of

        test = "auto" if self.method == "lmem" else self.test
        at_once = self.method == "lmem" and closed_form(self.runs, self.blocks, self.asked)

        def again(part: Blocks) -> Codes:
            # the same draws for each part, so that none changes by chance alone
            asked = replace(self.asked, test=test, rng=deepcopy(self.asked.rng))
            at_hand = codes_by_table(part, asked.alpha) if at_once else None
            return codes_on(part, self.runs, self.method, asked) if at_hand is None else at_hand

        whole = self.decisions.among(self.blocks.algorithms)
        neither = "undecided" if self.method == "bayesian" else "not significant"
        return stability_of(again, self.blocks, whole, neither=neither, progress=progress)

    def paragraph(self) -> str:
        """What was done and found, as a paragraph for a paper."""
        return ranking_paragraph(self)
