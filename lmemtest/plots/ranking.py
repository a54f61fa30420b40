"""Who is better: rankings, leaderboards, probabilities of outperforming, and accuracies of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.evaluation.evaluation_result import Evaluation
from lmemtest.bench.evaluation.tables import groups_column
from lmemtest.bench.ranking.leaderboard import CENTRE, MEASURES
from lmemtest.bench.ranking.methods import TEST_NAMES
from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.bench.robustness.variants import Variants
from lmemtest.core.arrays import Array
from lmemtest.core.result import Answer
from lmemtest.core.rounding import tie_order, written
from lmemtest.core.validate import check_choice, check_positive_int
from lmemtest.core.words import counted, format_p, percent, plural
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import intervals_kind, turned
from lmemtest.plots import _canvas, _heat, _rows, _style
from lmemtest.plots._given import (
    ON_RANKS,
    READINGS,
    adjustment_name,
    as_decisions,
    aside,
    decided_by,
    interval_words,
    omnibus_text,
)
from lmemtest.plots.cd_diagrams import cd_diagram, cd_diagrams
from lmemtest.plots.pairs import MOST_PAIRS, UNTESTED

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("diagram", "intervals", "differences")
_CENTRES = ("mean", "median", "mean_rank")


@_canvas.draws(Ranking, source="rank()")
def ranking_plot(ranking: Ranking, /, *, kind: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw a ranking: which algorithms differ, on the scale on which they were compared.

    Parameters
    ----------
    ranking : Ranking
    kind : {"diagram", "intervals", "differences"}, optional
        The diagram of `cd_diagram`; one row per algorithm with its interval and letters; or one row per pair that was
        compared, with the interval of the difference. Default: the diagram, and the differences from a control.

    Returns
    -------
    Axes

    Notes
    -----
    All of them show the decisions of ``ranking.decisions``. Overlap of the intervals of two algorithms does not tell
    whether they differ, the letters do; intervals of means over benchmarks are mostly as wide as the benchmarks are
    unlike, which all algorithms share. Intervals of differences, where a test has any, exclude zero where it is
    significant.

    Examples
    --------
    >>> import lmemtest as lt
    >>> wide = {"A": [0.9, 0.8, 0.7, 0.9, 0.6], "B": [0.8, 0.7, 0.7, 0.8, 0.5], "C": [0.5, 0.6, 0.4, 0.6, 0.3]}
    >>> ranking = lt.rank(wide, "frequentist", test="tukey", direction="maximize")
    >>> [label.get_text() for label in ranking.plot(kind="differences").get_yticklabels()]
    ['A − B', 'A − C', 'B − C']
    """
    if kind is None:
        kind = "differences" if ranking.control is not None and "estimate" in ranking.pairs else "diagram"
    if check_choice(kind, "kind", KINDS) == "diagram":
        return cd_diagram(ranking, ax=ax)
    return _rows.draw_rows(_centres(ranking) if kind == "intervals" else _differences(ranking), ax)


def _centres(ranking: Ranking) -> _rows.Rows:
    """One row per algorithm."""
    decisions = as_decisions(ranking, None, {})
    table = ranking.table.set_index("algorithm").loc[list(decisions.levels)]
    centre = next(name for name in _CENTRES if name in table.columns)
    direction = "minimize" if centre == "mean_rank" else ranking.direction
    limits, table = _bounded(table, centre)
    what = f"{centre.replace('_', ' ').capitalize()} of {_style.one_line(ranking.score)}"
    kind = f"{_rows.intervals(1.0 - ranking.alpha, simultaneous=False)}."
    lines = [f"{what}{READINGS.get(direction, '')}", kind, *_unbounded(limits)]
    letters: tuple[str, ...] = ()
    if ranking.control is None:
        letters, reading = aside(decisions, decisions.levels, "Algorithms")
        lines.append(f"{reading} ({decided_by(decisions)}).")
    return _rows.Rows(
        labels=list(decisions.levels),
        series=(_rows.Series.of(table, np.arange(len(table), dtype=np.intp), centre=centre),),
        axis_label="\n".join([*lines, *filter(None, [omnibus_text(decisions)])]),
        limits=limits,
        aside=letters,
    )


def _differences(ranking: Ranking) -> _rows.Rows:
    """One row per pair that was compared, a control on the right."""
    decisions, table = as_decisions(ranking, None, {}), ranking.pairs
    if "estimate" not in table:
        raise ArgumentError("kind='differences' needs estimates of differences, which this method has not. Use "
                            "kind='diagram' or posterior_maps_plot.")  # fmt: skip
    if len(table) > MOST_PAIRS:
        raise ArgumentError(
            f"kind='differences' draws at most {MOST_PAIRS} pairs, got {len(table)}. Use comparison_matrix_plot."
        )
    if ranking.control is not None:
        table = turned(table, (table["left"] == ranking.control).to_numpy())  # the control on the right
    limits, table = _bounded(table, "estimate", reference=0.0)
    pairs = list(zip(table["left"], table["right"], strict=True))
    significant, undecided = (
        np.array([matrix.loc[pair] for pair in pairs], dtype=bool)
        for matrix in (decisions.significant, decisions.undecided)
    )
    hollow: dict[str, Any] = {"colour": _style.NEUTRAL, "hollow": True}
    kinds: tuple[_rows.Kind, ...] = (
        ("significant", significant, {}),
        ("not significant", ~significant & ~undecided, hollow),
        (UNTESTED, undecided, hollow),
    )
    ranks = ranking.test in ON_RANKS
    what = f"mean ranks by {ranking.score}" if ranks else ranking.score
    several = len(table) > 1
    kind = interval_words(intervals_kind(decisions.adjust, adjusted=several), 1.0 - ranking.alpha, several=several)
    level = f"{kind} ({adjustment_name(decisions.adjust)})"
    better = READINGS["minimize" if ranks else ranking.direction]
    lines = [f"Difference of {_style.one_line(what)}{better}", level, *_unbounded(limits)]
    lines.append(f"Decisions: {decided_by(decisions)}. {omnibus_text(decisions)}".strip())
    return _rows.Rows(
        labels=pairs,
        series=_rows.Series.kinds(table, np.arange(len(table), dtype=np.intp), kinds),
        axis_label="\n".join(lines),
        aside=tuple(UNTESTED if np.isnan(p) else format_p(p, level=ranking.alpha) for p in table["p_value"]),
        aside_title="p-value",
        limits=limits,
        reference=0.0,
        legend=True,
    )


def _bounded(
    table: pd.DataFrame, centre: str, reference: float = np.nan
) -> tuple[tuple[float, float] | None, pd.DataFrame]:
    """Intervals without an end, drawn to the edge of the axis; its limits, None where every interval has its ends."""
    values: Array = table[[centre, "ci_low", "ci_high"]].to_numpy(dtype=float)
    if not np.isinf(values).any():
        return None, table
    finite = np.append(values[np.isfinite(values)], reference if np.isfinite(reference) else [])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    room = 0.1 * (high - low or max(abs(low), 1.0))
    limits = low - room, high + room
    return limits, table.assign(**{end: table[end].clip(*limits) for end in ("ci_low", "ci_high")})


def _unbounded(limits: tuple[float, float] | None) -> list[str]:
    return [] if limits is None else ["An interval that reaches the edge has no end: too few blocks for its level."]


@_canvas.draws("rank", source="rank(..., 'all')")
def rankings_plot(several: Variants, /, *, ax: Axes | None = None) -> Axes:
    """Draw the critical-difference diagrams of several tests of the same runs below each other.

    Parameters
    ----------
    several : Variants
        From ``rank(..., "all")``.

    Returns
    -------
    Axes
        It holds the diagrams; each has the scale of its test, marginal means or mean ranks.
    """
    names = {name: TEST_NAMES[name] for name in several.rankings}
    titles = {f"{text[:1].upper()}{text[1:]}": several.rankings[name].decisions for name, text in names.items()}
    return cd_diagrams(titles, share_axis=False, ax=ax)


# What each measure is called below the axis
WORDS = {
    "elo": "Rating (Elo)",
    "win_rate": "Comparisons won, in %",
    "mean_rank": "Mean rank (1 is best)",
    "p_best": "First places, in % of the {units}",
    "gap_closed": "Gap between worst and best that is closed, in %",
    "rank": "Rank by mean score (1 is best)",
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
    measure : {"elo", "win_rate", "mean_rank", "p_best", "gap_closed", "rank"}
        Column of the table. Ranks by mean scores have the set of ranks that the decisions leave open.
    max_rows : int, >= 2
        Of more algorithms, those at both ends are drawn, and a row and the axis label say how many were left out.

    Returns
    -------
    Axes
        Algorithms from the best at the top. With ratings the win rate is at the right, and a line marks 1,000.
        Algorithms with scores on less than half of the benchmarks are grey: provisional.

    Examples
    --------
    >>> import lmemtest as lt
    >>> board = lt.leaderboard(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"), rng=1)
    >>> [label.get_text() for label in board.plot().get_yticklabels()][:2]
    ['HB+prior', 'RS+prior']
    """
    check_choice(measure, "measure", (*MEASURES, "rank"))
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    table = board.to_frame()
    if measure not in table:
        raise ArgumentError("measure='rank' needs sets of ranks, which this leaderboard has not: its notes say why.")
    table = table.iloc[tie_order(table[measure], descending=measure not in ("mean_rank", "rank"))]
    drawn = _rows.Shown.ends(len(table), max_rows)
    labels = drawn.labels(table["algorithm"])
    win_rates: list[str] = []
    if measure == "elo":
        win_rates = [percent(share) for share in table["win_rate"].iloc[drawn.kept]]
        for row in drawn.headers:
            win_rates.insert(row, "")
    scale = 100.0 if measure in PERCENT else 1.0
    kept = table.iloc[drawn.kept]
    provisional = 2 * kept["n"].to_numpy() < table["n"].max()
    grey: dict[str, Any] = {"colour": _style.MUTED, "hollow": True}
    series = _rows.Series.kinds(
        kept,
        drawn.place,
        [
            (f"on half of the {plural(board.unit)} or more", ~provisional, {}),
            ("on fewer: provisional", provisional, grey),
        ],
        centre=measure,
        ends=(f"{measure}_low", f"{measure}_high"),
        scale=scale,
    )
    reading = f"{_rows.intervals(1.0 - board.alpha, simultaneous=False)}: {board.scope}"
    if measure == "rank":
        level = _style.nobreak(percent(1.0 - board.alpha))
        reading = f"The ranks that the tests leave possible, simultaneously for all with {level} confidence."
    where = f"1,000 is {board.reference or 'the mean of all'}. " if measure == "elo" else ""
    content = _rows.Rows(
        labels=labels,
        series=series,
        axis_label=f"{WORDS[measure].format(unit=board.unit, units=plural(board.unit))}\n{where}{reading}"
        + drawn.sentence("algorithms, those in the middle,"),
        headers=drawn.headers,
        aside=tuple(win_rates),
        aside_title="win rate" if win_rates else "",
        legend=bool(provisional.any()),
        whole=measure == "rank",
        reference=CENTRE if measure == "elo" else None,
    )
    return _rows.draw_rows(content, ax)


@_canvas.draws("rate_votes", source="rate_votes()")
def votes_plot(found: Answer, /, *, max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Draw ratings by votes as sorted dots with their intervals, and their letters or sets of ranks beside them.

    Parameters
    ----------
    found : Answer
        From `lmemtest.rate_votes`.
    max_rows : int, >= 2
        Of more models, those at both ends are drawn, and a row and the axis label say how many were left out.

    Returns
    -------
    Axes
        Models from the highest rating at the top; a line marks 1,000, the mean of all.

    Examples
    --------
    >>> import lmemtest as lt
    >>> votes = {"model_a": list("ABC") * 8, "model_b": list("BCA") * 8}
    >>> votes["winner"] = ["a", "b", "a", "b", "tie"] * 4 + ["b"] * 4
    >>> [label.get_text() for label in lt.rate_votes(votes, position=False).plot().get_yticklabels()]
    ['C', 'A', 'B']
    """
    table = found.to_frame()
    shown = _rows.Shown.ends(len(table), check_positive_int(max_rows, "max_rows", minimum=2))
    texts, reading = aside(found.decisions, table["model"].tolist(), "Models")
    beside = [texts[i] for i in shown.kept]
    for row in shown.headers:
        beside.insert(row, "")
    level = _rows.intervals(1.0 - found.alpha, simultaneous=False)
    content = _rows.Rows(
        labels=shown.labels(table["model"]),
        series=(_rows.Series.of(table.iloc[shown.kept], shown.place, centre="rating"),),
        axis_label=f"Rating by votes: 1,000 is the mean of all, 400 points are odds of 10 to 1\n{level}"
        f"\n{reading} ({decided_by(found.decisions)})." + shown.sentence("models, those in the middle,"),
        headers=shown.headers,
        aside=tuple(beside),
        reference=CENTRE,
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
        the row beats the column, in percent, ties one half. Blue is above 50, orange below; where two algorithms never
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
        of="pairs",
        rows=names,
        columns=names,
        values=100.0 * board.win_rates.to_numpy(dtype=float),
        shown=~np.eye(len(names), dtype=bool),
        palette="high is blue",
        centre=50.0,
        most=50.0,
        decimals=0,
        scale_label=f"Row beats column, in % of the {plural(board.unit)}",
        note=[f"{counted(board.n_blocks, board.unit)} by {_style.one_line(board.score)}; ties are one half."],
    )
    return _heat.draw_heat(heat, ax)[0]


@_canvas.draws("outperforming", source="outperforming() of a Runs")
def outperforming_plot(result: Answer, /, *, max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Draw the probabilities of all pairs; of a single pair those of the benchmarks, too.

    Parameters
    ----------
    result : Answer
        From `lmemtest.outperforming` of a `Runs`.
    max_rows : int, >= 2
        The most pairs, or benchmarks of a single one, to draw; of more, those farthest from one half.

    Returns
    -------
    Axes
        Dots with intervals, a line at one half and a dashed one at gamma. Of a single pair the benchmarks are below it,
        from the one on which the first is better most often; their intervals are each by itself.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> axes = lt.outperforming(runs, algorithms=("HB", "RS")).plot()
    >>> axes.get_yticklabels()[0].get_text()
    'All 20 benchmarks'
    """
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    columns = [map(_style.one_line, result.table[side]) for side in ("left", "right")]
    ends = list(zip(*columns, strict=True))
    alone = len(ends) == 1
    count = int(result.table["n_benchmarks"].iloc[0])
    families = "" if result.family is None else f" of {int(result.table['n_families'].iloc[0])} {plural(result.family)}"
    single, dashed = "", f"; dashed: γ = {written(result.gamma_adjusted, '.3g')}"
    drawn = _from_half(result.table, max_rows)
    labels = [f"All {count} benchmarks{families}"] if alone else drawn.labels(ends)
    left_out = drawn.sentence("pairs, those nearest to one half,")
    series = [_rows.Series.of(result.table.iloc[drawn.kept], drawn.place, centre="estimate")]
    if alone and count > 1:
        benchmarks = result.benchmarks.iloc[tie_order(result.benchmarks["estimate"], descending=True)]
        drawn = _from_half(benchmarks, max_rows)
        kept = benchmarks.iloc[drawn.kept]
        series.append(_rows.Series.of(kept, drawn.place + 1, centre="estimate", colour=_style.MUTED))
        names = benchmarks["benchmark"].astype(str)
        if names.duplicated().any():  # the same data set in several families
            names = names + " in " + benchmarks["family"]
        labels = [*labels, *drawn.labels(names)]
        left_out = drawn.sentence("benchmarks, those nearest to one half,")
        single = "; below it individual score intervals of the benchmarks"
    of = "of {} is better than one of {}".format(*ends[0]) if alone else "of the first is better"
    return _rows.draw_rows(
        _rows.Rows(
            labels=labels,
            between=" over ",
            series=tuple(series),
            axis_label=f"Probability that a {result.noun} {of}\n{result.band}{single}{dashed}{left_out}",
            reference=0.5,
            threshold=result.gamma_adjusted,
        ),
        ax,
    )


def _from_half(table: pd.DataFrame, most: int) -> _rows.Shown:
    return _rows.Shown.largest(np.abs(table["estimate"].to_numpy(dtype=float) - 0.5), most)


@_canvas.draws(Evaluation, source="evaluate()")
def evaluation_plot(evaluation: Evaluation, /, *, max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Draw the accuracy of each model with its interval for every population, and the groups beside it.

    By odds (``scale="odds"``) the odds ratio of each pair.

    Parameters
    ----------
    evaluation : Evaluation
        From `lmemtest.evaluate`.
    max_rows : int, >= 2
        Of more models, those at both ends are drawn, and a row and the axis label say how many were left out. Of more
        pairs, those of the largest odds ratios.

    Returns
    -------
    Axes
        Models from the best at the top, with an interval for each population that the evaluation is about. The letters
        at the right are those of each, in the order of the legend: models that share a letter cannot be distinguished.
        Of more than 12 models there are sets of ranks in their place. Intervals are not simultaneous, so whether they
        overlap does not tell whether models differ. By odds pairs in their order, with p-values at the right.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"model": ["A"] * 8 + ["B"] * 8, "item": [*range(8)] * 2, "right": [0, 1] * 4 + [1, 1, 0, 1] * 2}
    >>> axes = lt.evaluate(table, model="model", item="item", score="right").plot()
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['B', 'A']
    """
    max_rows, odds = check_positive_int(max_rows, "max_rows", minimum=2), evaluation.scale == "odds"
    drawn = _rows.Shown.ends(len(evaluation.models), max_rows)
    if odds:
        size = np.abs(np.log(evaluation.pairs[f"odds_ratio_{[*evaluation.populations][-1]}"].to_numpy(dtype=float)))
        drawn = _rows.Shown.largest(size, max_rows)
    table = (evaluation.pairs if odds else evaluation.models).iloc[drawn.kept]
    names = evaluation.populations if len(evaluation.populations) > 1 else {"these": ""}
    looks: tuple[dict[str, Any], ...] = (
        {"colour": _style.ACCENT},
        {"colour": _style.colour(1), "marker": "s", "hollow": True},
        {"colour": _style.colour(2), "marker": "D"},
    )
    series = tuple(
        _rows.Series.of(
            table,
            drawn.place,
            centre=f"{'odds_ratio' if odds else 'accuracy'}_{suffix}",
            ends=(f"ci_low_{suffix}", f"ci_high_{suffix}"),
            name=name,
            offset=lane,
            **look,
        )
        for lane, ((suffix, name), look) in enumerate(zip(names.items(), looks[: len(names)], strict=True))
    )
    if odds:
        p = [
            " | ".join(format_p(value, level=evaluation.alpha) for value in row)
            for row in table[[f"p_value_{suffix}" for suffix in names]].to_numpy()
        ]
        outcome = "a right answer" if evaluation.direction == "maximize" else "a one"
        ratios = _rows.Rows(
            labels=list(zip(table["left"], table["right"], strict=True)),
            between=" / ",
            series=series,
            axis_label=f"Ratio of the odds of {outcome}\n{evaluation.intervals}"
            + drawn.sentence("pairs, those nearest to one,"),
            lanes=len(names),
            aside=tuple(p),
            aside_title="p-value",
            reference=1.0,
            log=True,
            legend=len(names) > 1,
        )
        return _rows.draw_rows(ratios, ax)
    letters = [" | ".join(row) for row in zip(*(groups_column(table, suffix) for suffix in names), strict=True)]
    order = ", in the order of the legend" * (len(names) > 1)
    reading = f"Models that share a letter cannot be distinguished (letters at the right{order})."
    reading = reading if evaluation.lettered else f"At the right{order}: the ranks that are left open."
    for row in drawn.headers:
        letters.insert(row, "")
    measured = evaluation.noun.capitalize() + ", mean over tasks" * (evaluation.n_tasks > 1)
    content = _rows.Rows(
        labels=drawn.labels(evaluation.models["model"]),
        series=series,
        axis_label=f"{measured}\n{_rows.intervals(1.0 - evaluation.alpha, simultaneous=False)}. {reading}"
        + drawn.sentence("models, those in the middle,"),
        headers=drawn.headers,
        lanes=len(names),
        aside=tuple(letters),
        aside_title="letters" if evaluation.lettered else "ranks",
        legend=len(names) > 1,
    )
    return _rows.draw_rows(content, ax)
