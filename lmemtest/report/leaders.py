"""What a page shows where there are more algorithms or benchmarks than a reader takes in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.caller import advice
from lmemtest.core.words import format_level
from lmemtest.report.wording import measured

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.means.estimates import Estimates
    from lmemtest.report.analysis import Analysis

MOST_ALGORITHMS, LEADERS = 25, 20  # beyond so many, so many are shown
MOST_BENCHMARKS, TELLING = 60, 40
MOST_TABLE_ROWS = 300  # benchmarks of a table that can be unfolded


def leaders(analysis: Analysis) -> Analysis:
    """The analysis as tables and figures show it: of many algorithms the best ones.

    Nothing is computed again: decisions, adjustments and deviations are those of all algorithms.
    """
    if len(analysis.decisions.levels) <= MOST_ALGORITHMS:
        return analysis
    decisions = analysis.decisions.head(LEADERS)
    among = set(decisions.levels)
    means, pairs, effects = analysis.means, analysis.pairs, analysis.effects
    means = means.rows(np.array([label in among for label in means.labels()]), means.by)
    both = pairs.table["left"].isin(among) & pairs.table["right"].isin(among)
    pairs = replace(pairs, table=pairs.table[both].reset_index(drop=True), estimates=means)
    if effects is not None:
        kept = effects.table["algorithm"].map(format_level).isin(among)
        effects = replace(effects, tables={"table": effects.table[kept].reset_index(drop=True)})
    return replace(analysis, pairs=pairs, decisions=decisions, effects=effects)


def pictured(analysis: Analysis) -> tuple[Estimates, Comparisons, Decisions]:
    """Means, pairs and decisions for figures, of a score that is named as in sentences.

    They are without the fit, of which a second process that draws them would get a copy.
    """
    means = replace(analysis.pairs.estimates.as_shown(), score=measured(analysis))
    return means, replace(analysis.pairs, estimates=means), replace(analysis.decisions, score=means.score)


def left_out(analysis: Analysis) -> str:
    """Which algorithms tables and figures leave out, and where they are; empty where they show all."""
    count = len(analysis.decisions.levels)
    if count <= MOST_ALGORITHMS:
        return ""
    return (
        f"Figures, and tables other than the ranking, show the {LEADERS} best algorithms; {count - LEADERS:,} more are "
        f"left out ({advice('all_means')}). Decisions and adjustments are those of all {count:,}."
    )


def best_only(analysis: Analysis) -> str:
    """A reminder that the best algorithms are shown, with a blank before it; empty where all are."""
    count = len(analysis.decisions.levels)
    return f" The {LEADERS} best of {count:,} algorithms are shown." if count > MOST_ALGORITHMS else ""


def telling(table: pd.DataFrame) -> tuple[list[Any], str]:
    """Benchmarks that a figure of deviations shows, in order, and the rule that chose them; empty where all are."""
    benchmarks = table["benchmark"].unique().tolist()
    if len(benchmarks) <= MOST_BENCHMARKS:
        return benchmarks, ""
    size = table["effect"].abs()
    largest = size.groupby(table["benchmark"], sort=False).max().reindex(benchmarks)
    apart = ((table["ci_low"] > 0) | (table["ci_high"] < 0)).groupby(table["benchmark"], sort=False).sum()
    apart = apart.reindex(benchmarks)
    order = np.lexsort((np.arange(len(benchmarks)), -largest.fillna(-np.inf), -apart))
    chosen = {benchmarks[i] for i in order[:TELLING]}
    rule = "most intervals that exclude zero and then the largest deviation" if apart.any() else "largest deviations"
    last = order[TELLING - 1], order[TELLING]
    tie = apart.iloc[last[0]] == apart.iloc[last[1]] and np.isclose(largest.iloc[last[0]], largest.iloc[last[1]])
    ties = ", of equal ones the first in the table" if tie else ""
    return [name for name in benchmarks if name in chosen], (
        f" Shown are {TELLING} of {len(benchmarks):,}: those with the {rule}{ties}."
    )


def first_rows(names: Sequence[Any], where: str) -> tuple[list[Any], tuple[str, ...]]:
    """Rows of a table that can be unfolded: all of a few hundred, of more the first ones and where the others are."""
    if len(names) <= MOST_TABLE_ROWS:
        return list(names), ()
    return list(names[:MOST_TABLE_ROWS]), (f"The first {MOST_TABLE_ROWS} of {len(names):,}; {where} has all.",)
