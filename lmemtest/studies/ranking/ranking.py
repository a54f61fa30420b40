"""The result of a ranking, whatever its method: one table of algorithms, one of pairs, one matrix of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

from lmemtest._result import Result, result
from lmemtest._table import Format

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.inference.means.separation import Separation
    from lmemtest.studies.ranking.blocks import Blocks


@result
class Omnibus(Result):
    """A test that all algorithms are alike.

    Attributes
    ----------
    name : str
        "Friedman", "repeated-measures ANOVA", ...
    statistic, p_value : float
    df : tuple of float
        One, or numerator and denominator.
    symbol : str
        Of the statistic: "F", "chi2", "t", "W".
    alpha : float
    """

    name: str
    statistic: float
    df: tuple[float, ...]
    p_value: float
    symbol: str
    alpha: float


@result
class Ranking(Result):
    """Algorithms in order, and which of them differ.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per algorithm, best first: ``algorithm``, the centre by which they are ordered (``mean``, ``median`` or
        ``mean_rank``) with its spread and interval, ``mean_rank``, ``letters``.
    pairs : pandas.DataFrame
        One row per pair, ``left`` before ``right`` in the ranking: ``estimate`` (left minus right) with ``ci_low`` and
        ``ci_high``, ``statistic``, ``df``, ``p_raw``, ``p_value`` (adjusted), ``effect_size`` with ``effect_low``,
        ``effect_high`` and ``magnitude``, ``p_better`` (share of the blocks on which left is better, ties one half),
        ``wins``, ``ties``, ``losses`` (of left over right, in blocks), ``decision``.
    separation : Separation
        The decisions, from which letters, groups and figures are made.
    blocks : Blocks
        The scores that were ranked.
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
    assumptions : pandas.DataFrame or None
        Tests that chose the method: ``test``, ``of``, ``statistic``, ``p_value``.
    notes : tuple of str
    """

    parts: ClassVar[Mapping[str, str]] = {"ranking": "table", "pairs": "pairs"}
    figure: ClassVar[str | None] = "ranking_plot"
    formats: ClassVar[Mapping[str, Format]] = {"mean_rank": ".2f"}

    table: pd.DataFrame
    pairs: pd.DataFrame
    separation: Separation
    blocks: Blocks
    method: str
    test: str
    omnibus: Omnibus | None
    effect: str
    control: str | None
    alpha: float
    score: str
    direction: str
    assumptions: pd.DataFrame | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
