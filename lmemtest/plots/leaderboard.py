"""Leaderboards: a measure of all algorithms with its intervals, and the win rates of single pairs."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.ranking.leaderboard import CENTRE, MEASURES
from lmemtest.core.result import Answer
from lmemtest.core.rounding import tie_order
from lmemtest.core.validate import check_choice, check_positive_int
from lmemtest.core.words import counted, percent, plural
from lmemtest.plots import _canvas, _heat, _rows, _style

# What each measure is called below the axis
WORDS = {
    "elo": "Rating (Elo)",
    "win_rate": "Comparisons won, in %",
    "mean_rank": "Mean rank (1 is best)",
    "p_best": "First places, in % of the {units}",
    "gap_closed": "Gap between worst and best that is closed, in %",
}
PERCENT = ("win_rate", "p_best", "gap_closed")


@_canvas.draws("leaderboard", source="leaderboard()")
def leaderboard_plot(
    board: Answer, /, *, measure: str = "elo", max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None
) -> Axes:
    """Draw a measure of a leaderboard as sorted dots with their intervals.

    Parameters
    ----------
    board : Answer
        From `leaderboard`.
    measure : {"elo", "win_rate", "mean_rank", "p_best", "gap_closed"}
        Column of the table.
    max_rows : int, >= 2
        Of more algorithms, those at both ends are drawn, and a row and the axis label say how many were left out.

    Returns
    -------
    Axes
        Algorithms from the best at the top. With ratings the win rate is at the right, and a line marks 1,000.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.ranking.leaderboard import leaderboard
    >>> board = leaderboard(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"), rng=1)
    >>> [label.get_text() for label in board.plot().get_yticklabels()][:2]
    ['HB+prior', 'RS+prior']
    """
    check_choice(measure, "measure", MEASURES)
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    table = board.to_frame()
    table = table.iloc[tie_order(table[measure], descending=measure != "mean_rank")]
    shown = _rows.Shown.ends(len(table), max_rows)
    labels = shown.labels(table["algorithm"])
    aside: list[str] = []
    if measure == "elo":
        aside = [percent(share) for share in table["win_rate"].iloc[shown.kept]]
        for row in shown.headers:
            aside.insert(row, "")
    scale = 100.0 if measure in PERCENT else 1.0
    series = _rows.Series.of(
        table.iloc[shown.kept], shown.place, centre=measure, ends=(f"{measure}_low", f"{measure}_high"), scale=scale
    )
    where = f"1,000 is {board.reference or 'the mean of all'}; " if measure == "elo" else ""
    content = _rows.Rows(
        labels=labels,
        series=(series,),
        axis_label=f"{WORDS[measure].format(unit=board.unit, units=plural(board.unit))}\n"
        f"{where}{_style.nobreak(percent(1.0 - board.alpha))} intervals, one by one: {board.scope}"
        + shown.sentence("algorithms, those in the middle,"),
        headers=shown.headers,
        aside=tuple(aside),
        aside_title="win rate" if aside else "",
        reference=CENTRE if measure == "elo" else None,
    )
    return _rows.draw_rows(content, ax)


@_canvas.draws("leaderboard", source="leaderboard()")
def win_rate_plot(board: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the win rates of all pairs of algorithms as a map.

    Parameters
    ----------
    board : Answer
        From `leaderboard`.

    Returns
    -------
    Axes
        Algorithms by their rating from the top and from the left; a cell holds the share of the benchmarks on which
        the row beats the column, in percent, ties one half. Blue is above 50, red below; where two algorithms never
        met there is no colour.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.ranking.leaderboard import leaderboard
    >>> board = leaderboard(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"), rng=1)
    >>> [text.get_text() for text in lt.plots.win_rate_plot(board).texts][:2]
    ['60', '55']
    """
    names = list(board.win_rates.columns)
    heat = _heat.Heat(
        rows=names,
        columns=names,
        values=100.0 * board.win_rates.to_numpy(dtype=float),
        shown=~np.eye(len(names), dtype=bool),
        palette="high is blue",
        centre=50.0,
        most=50.0,
        decimals=0,
        scale_label=f"Row beats column, in % of the {plural(board.unit)}",
        note=f"{counted(board.n_blocks, board.unit)} by {_style.one_line(board.score)}; ties are one half.",
    )
    return _heat.draw_heat(heat, ax)[0]
