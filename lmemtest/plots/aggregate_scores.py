"""Aggregate scores with their intervals, performance profiles, and probabilities of improvement."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.ranking.aggregates import AggregateScores
from lmemtest.core.result import Answer
from lmemtest.core.rounding import in_tie_order, tie_order
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Lines, Panel, draw_lines, looks
from lmemtest.plots._rows import draw_columns

GAP = "optimality_gap"
_HEADS = {"iqm": "IQM", "median": "Median", "mean": "Mean", GAP: "Optimality gap"}
_MOST_BANDS = 6  # more bands over each other are mud
_MOST_PAIRS = 66  # 12 algorithms; more rows do not fit a page


@_canvas.draws(AggregateScores, source="aggregate_scores()")
def aggregate_scores_plot(result: AggregateScores, /, *, ax: Axes | None = None) -> Axes:
    """Draw aggregate scores with their intervals, a column per measure.

    Parameters
    ----------
    result : AggregateScores
        From `aggregate_scores`.

    Returns
    -------
    Axes
        It holds the columns, ``ax.child_axes``, each with a scale of its own; row i, from the top, is at y = i.
        Algorithms are in the order of the first measure, the best on top. Titles say which end is better.

    Notes
    -----
    Each interval is that of one algorithm: whether two algorithms differ is a question to ``result.estimates()``.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.ranking.aggregates import aggregate_scores
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB", "HB+prior"], budget=8, prior="good")
    >>> ax = aggregate_scores(runs.normalize("minmax"), ["iqm", "median"], rng=1).plot()
    >>> [box.get_title(loc="left") for box in ax.child_axes]
    ['IQM', 'Median']
    """
    order = result.of(result.measures[0])["algorithm"].tolist()
    columns = []
    for measure in result.measures:
        rows = result.of(measure).set_index("algorithm").loc[order]
        columns.append(
            _rows.Rows(
                labels=order,
                series=(_rows.Series.of(rows, np.arange(len(order), dtype=np.intp)),),
                axis_label="",
                title=_HEADS[measure],
            )
        )
    which = (
        [f"{_style.one_line(result.score)}, {_style.BETTER[result.direction]}"] if set(result.measures) - {GAP} else []
    )
    if GAP in result.measures and (result.direction == "maximize" or not which):
        which.append("optimality gap: lower is better")
    short = [f"{_HEADS[name]}: {result.name(name)}." for name in ("iqm", "median") if name in result.measures]
    return draw_columns(columns, (f"{'; '.join(which)}.", *filter(None, [" ".join(short)]), result.band), ax)


@_canvas.draws("profiles", source="profiles()")
def performance_profile_plot(result: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw performance profiles: the share of runs that are better than each score.

    Parameters
    ----------
    result : Answer
        From `AggregateScores.profiles`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. The higher a curve, the better at every score. Bands are pointwise
        intervals, left out with more than six algorithms; lines differ in colours and dashes.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.ranking.aggregates import aggregate_scores
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB", "HB+prior"], budget=8, prior="good")
    >>> profiles = aggregate_scores(runs.normalize("minmax"), "iqm", rng=1).profiles()
    >>> len(profiles.plot().child_axes[0].lines) > 2
    True
    """
    k, x = len(result.algorithms), np.array(result.taus)
    ends = ("ci_low", "ci_high") if k <= _MOST_BANDS else None
    style: dict[str, Any] = {"label": "_profile", "band_label": "_interval"}
    every = looks(_style.places(result.algorithms, result.roster).values(), dashed=True)
    curves = tuple(
        Curve.of(
            result.table[i * len(x) : (i + 1) * len(x)],
            x,
            "share",
            ends,
            name=result.algorithms[i],
            **style,
            **every[i],
        )
        for i in tie_order(result.shares.sum(axis=1), descending=True)  # the legend begins with the highest
    )
    foot = f"Bands: {result.band[:1].lower()}{result.band[1:]}"
    if k > _MOST_BANDS:
        foot = f"{result.band} Bands are left out with more than {_MOST_BANDS} algorithms; the table has them."
    side = "below" if result.direction == "minimize" else "above"
    lines = Lines(
        what=f"a plot of {counted(k, 'algorithm')}",
        panels=(Panel(x=Axis.around(x, pad=0.0), y=Axis(limits=(-0.02, 1.02)), curves=curves),),
        x_label=f"τ, on the scale of {_style.one_line(result.score)} ({_style.BETTER[result.direction]})",
        y_label=(f"Share of {result.of} with a score {side} τ", f"Share {side} τ", "Share"),
        foot=foot,
    )
    return draw_lines(lines, ax)


@_canvas.draws("improvement", source="improvement()")
def improvement_plot(result: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw probabilities of improvement with their intervals.

    Parameters
    ----------
    result : Answer
        From `AggregateScores.improvement`; of more than 66 pairs those farthest from one half are drawn.

    Returns
    -------
    Axes
        A row per pair, the algorithm that is more often better first; the line marks one half. Filled dots: the
        interval is clear of one half.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.ranking.aggregates import aggregate_scores
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB", "HB+prior"], budget=8, prior="good")
    >>> ax = aggregate_scores(runs.normalize("minmax"), "iqm", rng=1).improvement().plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['HB+prior > RS', 'HB > RS', 'HB+prior > HB']
    """
    table = result.table.copy()
    turned = (table["probability"] < 0.5).to_numpy()
    table.loc[turned, ["left", "right"]] = table.loc[turned, ["right", "left"]].to_numpy()
    table.loc[turned, ["probability", "ci_low", "ci_high"]] = 1.0 - (
        table.loc[turned, ["probability", "ci_high", "ci_low"]].to_numpy()
    )
    table = table.iloc[in_tie_order(range(len(table)), table["probability"].__getitem__, descending=True)]
    drawn = table.head(_MOST_PAIRS)
    clear = (drawn["ci_low"] > 0.5).to_numpy()
    place = np.arange(len(drawn), dtype=np.intp)
    open_dot = {"colour": _style.NEUTRAL, "hollow": True}
    kinds: tuple[_rows.Kind, ...] = (("above one half", clear, {}), ("may be one half", ~clear, open_dot))
    left_out = f"\n{len(table) - len(drawn):,} pairs nearer to one half are left out." * (len(table) > len(drawn))
    content = _rows.Rows(
        labels=list(zip(drawn["left"], drawn["right"], strict=True)),
        between=" > ",
        series=_rows.Series.kinds(drawn, place, kinds, centre="probability"),
        axis_label=f"Probability that a {result.noun} of the first is better, by {_style.one_line(result.score)}\n"
        f"{result.band}{left_out}",
        reference=0.5,
        legend=True,
    )
    return _rows.draw_rows(content, ax)
