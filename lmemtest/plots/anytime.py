"""Figures of `anytime`: mean curves over the budget, their differences, and who can be the best at which budget."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from lmemtest.bench.budget.anytime import Anytime
from lmemtest.core.arrays import Array, Mask
from lmemtest.core.rounding import tie_order
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _layout, _style
from lmemtest.plots._layout import PAD, SMALL, Axis, Cell
from lmemtest.plots._lines import (
    MOST_BANDS,
    Curve,
    Level,
    Lines,
    Panel,
    Span,
    axis_around,
    draw_lines,
    looks,
    mean_of,
    on_log,
)

_ALONE = "Means are at the observed budgets (small ticks); there are no estimates between them."
_CELL = 0.36  # of the distance to the nearest neighbour, on either side of a budget that stands for itself
_MOST_PANELS = 6
_SHARED = 10.0  # of the largest range of a panel to the smallest, up to which all have one axis
_MOST_MARKERS = 30  # budgets with a large marker each
_LANE, _BAR = 1.2, 0.5  # of a difference: for the name of a side, and for bars, in font sizes
_LEFT, _RIGHT = _style.ACCENT, _style.WARM  # the colour of the algorithm that is better
_MOST_NAMED = 8  # curves; of more those that are grey have no name
_ABSENT, _BEATEN, _CANDIDATE, _BEST = -1, 0, 1, 2
_PALE = 0.3  # opacity of a candidate
_RIBBON, _RIBBON_RANGE = 0.75, 0.35  # opacity up to the smallest critical difference, and from there to the largest
_EQUAL = 1e-6  # relative difference of critical differences that is rounding
_HATCHED = {"facecolor": "white", "edgecolor": _style.FAINT, "hatch": "////", "linewidth": 0.0}


# ------------------------------------------------------------------------------------------------- what they share


def joined(result: Anytime) -> bool:
    """Whether curves say something between the points at which they are known."""
    return result.columns is not None


def _axis(result: Anytime) -> Axis:
    """Of the budgets, which are labelled themselves if they are few."""
    options: dict[str, Any] = {
        "small": result.observed,
        "ticks": result.observed if len(result.observed) <= _layout.MOST_LABELLED else None,
        "whole": _layout.all_whole(result.observed),
    }
    return Axis.around(result.budgets, log=result.scale == "log", **options)


def cells(result: Anytime) -> Array:
    """``(n, 2)`` budgets from which to which each point counts: up to the middle between neighbours where curves are
    joined, else a piece around each point with gaps between them."""
    log = result.scale == "log"
    x = np.log(result.budgets) if log else result.budgets
    gaps = np.diff(x)
    if joined(result):
        middles = x[:-1] + gaps / 2.0
        edges = np.column_stack([np.append(x[0], middles), np.append(middles, x[-1])])
    else:
        half = _CELL * np.minimum(np.append(gaps[0], gaps), np.append(gaps, gaps[-1]))
        half[[0, -1]] = np.minimum(half[[0, -1]], PAD * (x[-1] - x[0]))  # within the axis
        edges = np.column_stack([x - half, x + half])
    return np.exp(edges) if log else edges


def spans_of(result: Anytime, mask: Mask) -> list[tuple[float, float]]:
    """Budgets from which to which `mask` holds: one span per run of points if they are joined, else per point."""
    edges = cells(result)
    if not joined(result):
        return [(float(a), float(b)) for a, b in edges[mask]]
    turns = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(float(edges[a, 0]), float(edges[b - 1, 1])) for a, b in zip(turns[::2], turns[1::2], strict=True)]


def _check_names(names: Sequence[str], result: Anytime, argument: str) -> None:
    for name in names:
        if name not in result.algorithms:
            raise ArgumentError(
                f"{argument} must name algorithms of the result, got {name!r}.{suggest(str(name), result.algorithms)} "
                f"It has {listed(result.algorithms)}."
            )


def _confidence(result: Anytime, family: str | None) -> str:
    """What the bands hold for, and how much they rest on."""
    every = "all budgets" if family is None else f"all {family} and budgets"
    sample = f"{result.n_sample} {result.sample}"
    return f"{_style.nobreak(f'{100 * (1.0 - result.alpha):g} %')} confidence for {every} at once ({sample})"


def _mean_style(result: Anytime, index: int, *, front: bool) -> dict[str, Any]:
    """Markers where every budget has means of its own, which lines only join."""
    return {
        "marker": "none" if joined(result) else _style.marker(index),
        "size": 0.42 if front else 0.25,
        "width": (0.16 if front else 0.08) * (1.0 if joined(result) else 0.6),
        "front": 3 if front else 2,
    }


# ------------------------------------------------------------------------------------------------- mean curves


@_canvas.draws(Anytime, source="anytime()")
def anytime_plot(
    result: Anytime, /, *, algorithms: Sequence[str] | None = None, y_scale: str = "auto", ax: Axes | None = None
) -> Axes:
    """Draw the mean curves of the algorithms over the budget.

    Parameters
    ----------
    result : Anytime
        From `lmemtest.anytime`.
    algorithms : sequence of str, optional
        These are drawn with their bands, the others as thin grey lines (without names where there are more than eight
        in all). With None all are, or of more than five the five with the best means at the largest budget.
    y_scale : {"auto", "linear", "log"}
        Of the scores: "auto" is logarithmic where all curves and bands are positive, less is better, and the largest
        mean is five times the smallest or more, so that on a linear axis nothing could be seen near the best.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. Bands hold for all algorithms and budgets at once. Small ticks are at
        the observed budgets. Where every budget has means of its own, markers are at these and lines only join them.

    Raises
    ------
    ArgumentError
        If `result` is something else, `algorithms` names others, or `ax` is too small.

    Notes
    -----
    Two bands that overlap do not show that two algorithms are equal: benchmarks that are hard for one are hard for the
    other, which cancels in their difference. `anytime_differences_plot` shows differences.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> ax = lt.anytime(runs).plot()
    >>> sorted(text.get_text() for text in ax.child_axes[0].texts)
    ['HB', 'RS']
    """
    if algorithms is not None and (isinstance(algorithms, str) or not isinstance(algorithms, Sequence)):
        raise ArgumentError(
            f"algorithms must be a list of names or None, got {algorithms!r}. For one: algorithms=[{algorithms!r}]."
        )
    _check_names(algorithms or (), result, "algorithms")
    chosen = _shown_with_bands(result) if algorithms is None else algorithms
    curves = []
    places = _style.places(result.algorithms, result.runs.roster)
    for i, (name, look) in enumerate(zip(result.algorithms, looks(places.values()), strict=True)):
        front = name in chosen
        rows = result.curves[i * len(result.budgets) : (i + 1) * len(result.budgets)]
        ends = ("band_low", "band_high") if front else None
        look = look if front else {"colour": _style.NEUTRAL}
        style = _mean_style(result, places[name], front=front)
        named = {"name" if front or len(result.algorithms) <= _MOST_NAMED else "whose": name}
        curves.append(Curve.of(rows, result.budgets, "mean", ends, label="_mean", **named, **look, **style))
    foot = (
        f"Bands: {_confidence(result, 'algorithms')}. Whether two curves differ is seen in their difference, "
        "not in these bands."
    )
    if algorithms is None and len(chosen) < len(curves):
        foot += f" Grey, without bands: all but the {len(chosen)} with the best means at the largest budget."
    log = on_log(curves, result.direction, y_scale)
    lines = Lines(
        what=f"a plot of {len(curves)} curves",
        panels=(Panel(x=_axis(result), y=axis_around(curves, log=log), curves=tuple(curves)),),
        beside=True,
        x_label=result.budget,
        y_label=mean_of(result.score, result.direction, log=log),
        foot=foot + ("" if joined(result) else f" {_ALONE}"),
    )
    return draw_lines(lines, ax)


def _shown_with_bands(result: Anytime) -> list[str]:
    """The algorithms with the best means at the largest budget: more bands over each other are mud."""
    last = result.means()[:, -1]
    order = tie_order(last, descending=result.direction != "minimize")
    return [result.algorithms[i] for i in order if np.isfinite(last[i])][:MOST_BANDS]


# ------------------------------------------------------------------------------------------------- differences


@_canvas.draws(Anytime, source="anytime()")
def anytime_differences_plot(
    result: Anytime, /, *, pairs: Sequence[tuple[str, str]] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the differences of pairs of algorithms over the budget.

    Parameters
    ----------
    result : Anytime
        From `lmemtest.anytime`.
    pairs : sequence of (str, str), optional
        Names of the algorithms of each panel, first minus second. With None all pairs, or the six with the largest
        ``|t|`` at a budget where there are more.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, with the same scales. Bands hold for all pairs (also those that are not
        drawn) and all budgets at once. Where a difference is shown the curve is thick and coloured, and a block at the
        foot of the panel marks the stretch: blue where the first of the pair is better, orange where the second is.

    Raises
    ------
    ArgumentError
        If `result` is something else, `pairs` are no pairs of its algorithms, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> ax = lt.plots.anytime_differences_plot(lt.anytime(runs))
    >>> [panel.get_title(loc="left") for panel in ax.child_axes]
    ['HB − RS']
    """
    chosen = _chosen_pairs(result, pairs)
    x, zero = _axis(result), Level(at=0.0, dash="-", label="_zero")
    parts = [_difference(result, left, right) for left, right in chosen]
    zeros = Curve(x=np.zeros(1), y=np.zeros(1))
    own = [axis_around([zeros, curves[0]]) for curves, _ in parts]
    high = [axis.limits[1] - axis.limits[0] for axis in own]
    shared = max(high) <= _SHARED * min(high)
    every_y = [axis_around([zeros, *(curves[0] for curves, _ in parts)])] * len(own) if shared else own
    panels = tuple(
        Panel(
            x=x,
            y=y,
            title=names,
            curves=tuple(curves),
            levels=(zero,),
            lanes=(_LANE + _BAR, _LANE),
            draw=functools.partial(_draw_sides, result, names, bars),
        )
        for names, y, (curves, bars) in zip(chosen, every_y, parts, strict=True)
    )
    every = len(result.algorithms) * (len(result.algorithms) - 1) // 2
    drawn = "Bands" if joined(result) else "Bars"
    words = [f"{drawn}: {_confidence(result, f'{every} pairs' if every > 1 else None)}."]
    if any(bars for _, bars in parts):
        words.append("Coloured, with a block at the foot: significantly better.")
    else:
        words.append("No algorithm is significantly better at any budget.")
    if pairs is None and len(chosen) < every:
        words.append(f"Drawn: of {every} pairs the {len(chosen)} with the largest |t| at a budget.")
    if not shared:
        words.append("Each panel has an axis of its own.")
    if not joined(result):
        words.append(_ALONE)
    lines = Lines(
        what=f"a plot of {len(chosen)} pair{'s' * (len(chosen) > 1)}",
        panels=panels,
        shared=shared,
        smallest=(6.0, 5.5),
        x_label=result.budget,
        y_label=(f"Difference of mean {result.score}", f"Difference of {result.score}", "Difference"),
        foot=" ".join(words),
    )
    return draw_lines(lines, ax)


def _chosen_pairs(result: Anytime, pairs: Sequence[tuple[str, str]] | None) -> list[tuple[str, str]]:
    if pairs is None:
        table = result.differences
        largest = table["t_ratio"].abs().groupby([table["left"], table["right"]], sort=False).max()
        kept = largest.nlargest(_MOST_PANELS).index if len(largest) > _MOST_PANELS else largest.index
        return [(str(left), str(right)) for left, right in kept]
    rule = "pairs must hold pairs of names, such as [('A', 'B')]"
    if isinstance(pairs, str) or not isinstance(pairs, Sequence):
        raise ArgumentError(f"{rule}, got {pairs!r}.")
    if len(pairs) == 0:
        raise ArgumentError(f"{rule}, got none. pairs=None draws those that differ most.")
    chosen = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ArgumentError(f"{rule}, got {pair!r}.")
        _check_names(pair, result, "pairs")
        if pair[0] == pair[1]:
            raise ArgumentError(f"pairs must hold pairs of different algorithms, got {tuple(pair)!r}.")
        chosen.append((pair[0], pair[1]))
    return chosen


def _draw_sides(
    result: Anytime,
    names: tuple[str, str],
    bars: list[tuple[float, float, str]],
    box: Axes,
    place: Cell,
    font: float,
) -> None:
    """Bars at the foot where one of two algorithms is better, and which side is whose."""
    bottom, top = box.get_ylim()
    for start, end, colour in bars:
        ends = (bottom, bottom + _BAR * font / place.height * (top - bottom))
        box.fill_between([start, end], *ends, color=colour, linewidth=0.0, label="_bar", zorder=3)
    # a difference above zero favours the first where high is good
    sides = list(zip(map(_style.one_line, names), (_LEFT, _RIGHT), strict=True))
    (low, below), (high, above) = sides if result.direction == "minimize" else sides[::-1]
    style = _style.font_for([low, high])
    ruler = _style.Ruler(box, SMALL * font, **style)
    fit = ruler.widest([low, high]) <= place.width - ruler.width(" better") - font
    short = [low, high] if fit else [("First" if name == names[0] else "Second") for name in (low, high)]
    heights = ((_BAR + 0.1) * font / place.height, "bottom"), (1.0, "top")
    for name, colour, (y, side) in zip(short, (below, above), heights, strict=True):
        words = _style.text_style(SMALL * font, color=_style.as_text(colour), ha="left", va=side, **style)
        box.text(0.4 * font / place.width, y, f"{name} better", transform=box.transAxes, **words)


def _difference(result: Anytime, left: str, right: str) -> tuple[list[Curve], list[tuple[float, float, str]]]:
    """What is drawn of a pair: the curve, then where it is coloured; and bars at the foot of the panel."""
    first, second = result.algorithms.index(left), result.algorithms.index(right)
    sign, names = (1.0, (left, right)) if first < second else (-1.0, (right, left))
    rows = result.differences[(result.differences["left"] == names[0]) & (result.differences["right"] == names[1])]
    estimate, one, other = (sign * rows[name].to_numpy(dtype=float) for name in ("estimate", "band_low", "band_high"))
    band: dict[str, Any] = {"low": np.minimum(one, other), "high": np.maximum(one, other)}
    x, decision = result.budgets, result.decisions[first, second]
    grey: dict[str, Any] = {"colour": _style.NEUTRAL, "label": "_difference"}
    if joined(result):
        stretches = result.stretches[result.stretches[["better", "worse"]].isin(names).all(axis=1)]
        curves = [Curve(x=x, y=estimate, width=0.1, opacity=0.3, **grey, **band)]
        bars = []
        for row in stretches.to_dict("records"):
            start, end = float(row["budget_from"]), float(row["budget_to"])
            bars.append((start, end, _LEFT if row["better"] == left else _RIGHT))
            at = np.array([start, *x[(x > start) & (x < end)], end])
            y = np.interp(np.log(at), np.log(x), estimate) if result.scale == "log" else np.interp(at, x, estimate)
            curves.append(Curve(x=at, y=y, colour=bars[-1][2], width=0.26, label="_shown", front=4))
        return curves, bars
    curves = [Curve(x=x, y=estimate, width=0.05, band_label="", opacity=0.0, **grey, **band)]
    size = 0.5 if len(x) <= _MOST_MARKERS else 0.25
    for value, colour in ((0, _style.NEUTRAL), (1, _LEFT), (-1, _RIGHT)):
        here = decision == value
        bars_here: dict[str, Any] = {name: end[here] for name, end in band.items()} | {"bars": True, "opacity": 1.0}
        style: dict[str, Any] = {"colour": colour, "marker": "o", "size": size, "width": 0.0, "front": 4}
        label = "_shown" if value else "_not_shown"
        curves.append(Curve(x=x[here], y=estimate[here], label=label, **bars_here, **style))
    return curves, [(a, b, c) for v, c in ((1, _LEFT), (-1, _RIGHT)) for a, b in spans_of(result, decision == v)]


# ------------------------------------------------------------------------------------------------- ribbon


@_canvas.draws(Anytime, source="anytime()")
def cd_ribbon(result: Anytime, /, *, ax: Axes | None = None) -> Axes:
    """Draw who can be the best at which budget.

    Parameters
    ----------
    result : Anytime
        From `lmemtest.anytime`.

    Returns
    -------
    Axes
        It holds two panels, ``ax.child_axes``. The upper one has the distance of each mean curve from the best mean at
        the same budget, the best on top, and a ribbon as wide as the critical difference. The strip below has a row per
        algorithm, in the order of their means over the range of budgets: filled where it is shown to be better than all
        others, pale where nobody is shown to be better, empty where somebody is, hatched where it has no scores.

    Notes
    -----
    In a complete table all differences at a budget have the same standard error. Then a curve is inside the ribbon
    exactly where the row of its algorithm is not empty. Else the ribbon has a pale part, between the smallest and the
    largest critical difference of two algorithms, and the rows say who can be the best.

    With more than eight algorithms those that can be the best nowhere are grey and have no row.

    References
    ----------
    Demšar (2006), Journal of Machine Learning Research 7, 1-30, on the critical difference

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> ax = lt.plots.cd_ribbon(lt.anytime(runs))
    >>> curves, strip = ax.child_axes
    >>> [text.get_text() for text in strip.texts]
    ['HB', 'RS']
    """
    state = _states(result)
    means, count = result.means(), len(result.algorithms)
    worse = means if result.direction == "minimize" else -means
    behind = worse - np.nanmin(worse, axis=0)
    # with one algorithm left there is nothing to compare
    low, high = (np.where(np.isfinite(means).sum(axis=0) > 1, x, np.nan) for x in result.critical_difference())
    unequal = bool((high > low * (1.0 + _EQUAL)).any())
    named = [i for i in range(count) if count <= _MOST_NAMED or (state[i] >= _CANDIDATE).any()]
    places = [*_style.places(result.algorithms, result.runs.roster).values()]
    every = [look if i in named else {"colour": _style.NEUTRAL} for i, look in enumerate(looks(places))]
    curves = tuple(
        Curve(
            name=result.algorithms[i] if i in named else "",
            whose=result.algorithms[i],
            x=result.budgets,
            y=behind[i],
            **look,
            label="_behind",
            **_mean_style(result, places[i], front=i in named),
        )
        for i, look in enumerate(every)
    )
    largest = max(float(np.nanmax(behind)), float(np.nanmax(high))) or 1.0

    def draw_ribbon(box: Axes, place: Cell, font: float) -> None:  # noqa: ARG001
        """From the best on top: an area where curves go on between budgets, else a bar at each."""
        parts = [("_ribbon", np.zeros_like(low), low, _RIBBON), ("_ribbon_range", low, high, _RIBBON_RANGE)]
        for label, start, end, alpha in parts if unequal else parts[:1]:
            style: dict[str, Any] = {"color": _style.FAINT, "linewidth": 0.0, "zorder": 0.7, "alpha": alpha}
            pieces = [(result.budgets, start, end)] if joined(result) else zip(cells(result), start, end, strict=True)
            for piece in pieces:
                box.fill_between(*piece, label=label, **style)

    lines = Lines(
        what=f"a plot of {count} curves and rows",
        panels=(
            Panel(
                x=_axis(result), y=Axis(limits=((1.0 + PAD) * largest, -PAD * largest)), curves=curves, draw=draw_ribbon
            ),
        ),
        beside=True,
        strip=tuple(
            (_style.one_line(result.algorithms[i]), every[i]["colour"], _spans(result, state[i], every[i]["colour"]))
            for i in _best_first(result)
            if i in named
        ),
        key=_ribbon_key(state),
        x_label=result.budget,
        y_label=(f"Mean {result.score}, behind the best", f"{result.score}, behind the best", "Behind the best"),
        foot=_ribbon_foot(result, unequal=unequal, grey=count - len(named), joined=joined(result)),
    )
    return draw_lines(lines, ax)


def _states(result: Anytime) -> NDArray[np.int8]:
    """What is known of each algorithm at each point, from the stretches of `result.best`."""
    candidate = result.candidates()
    state = np.where(candidate, _CANDIDATE, np.where(np.isfinite(result.means()), _BEATEN, _ABSENT)).astype(np.int8)
    for row in result.best[result.best["best"].notna()].to_dict("records"):
        inside = (result.budgets >= row["budget_from"]) & (result.budgets <= row["budget_to"])
        state[result.algorithms.index(row["best"]), inside] = _BEST
    return state


def _best_first(result: Anytime) -> list[int]:
    """Best mean over the range first: by the sum of the differences from all others."""
    table = result.overall
    estimate = table["estimate"].fillna(0.0)
    total = [
        float(estimate[table["left"] == name].sum() - estimate[table["right"] == name].sum())
        for name in result.algorithms
    ]
    return tie_order(total, descending=result.direction != "minimize")


def _spans(result: Anytime, states: NDArray[np.int8], colour: str) -> tuple[Span, ...]:
    fills: dict[int, dict[str, Any]] = {
        _BEST: {"facecolor": colour, "label": "_best"},
        _CANDIDATE: {"facecolor": colour, "alpha": _PALE, "label": "_candidate"},
        _ABSENT: {**_HATCHED, "label": "_absent"},
    }
    return tuple(
        (start, end, fill, "") for state, fill in fills.items() for start, end in spans_of(result, states == state)
    )


def _ribbon_key(state: NDArray[np.int8]) -> tuple[tuple[str, Any], ...]:
    def patch(**style: Any) -> Any:
        return lambda font: Patch(**{"linewidth": 0.0} | style)  # noqa: ARG005

    entries = [
        ("up to the critical difference", patch(facecolor=_style.FAINT, alpha=_RIBBON)),
        ("better than all others", patch(facecolor=_style.MUTED)),
        ("can be the best", patch(facecolor=_style.MUTED, alpha=_PALE)),
        ("another is better", lambda font: Line2D([], [], color=_style.FAINT, linewidth=0.1 * font)),
    ]
    return (*entries, ("no scores", patch(**_HATCHED))) if (state == _ABSENT).any() else tuple(entries)


def _ribbon_foot(result: Anytime, *, unequal: bool, grey: int, joined: bool) -> str:
    words = [f"{_confidence(result, 'pairs')}."]
    if unequal:
        words.append(
            "Standard errors differ between pairs: the pale part of the ribbon lies between the smallest and the "
            "largest critical difference, and the rows show which algorithms can be the best."
        )
    if grey:
        words.append(f"Grey, without a row: {grey} that cannot be the best at any budget.")
    if not joined:
        words.append(_ALONE)
    return " ".join(words)
