"""Where a metafeature decides which of two algorithms is better: the cluster map, and the contrasts with intervals."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from lmemtest.core.result import Answer
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _heat, _rows, _style

TREE = 5.0  # width of the dendrogram in units of the font size
ROW_HEIGHT, AROUND = 1.7, 8.0  # of the map in units of the font size: fonts stay readable with many benchmarks
MOST_ROWS = 80
_STUB = 0.06  # of the largest distance: the stroke of a leaf before its first merger


@_canvas.draws("metafeature_effect", source="metafeature_effect()")
def metafeature_effect_plot(result: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw where a metafeature decides which of two algorithms is better.

    Parameters
    ----------
    result : Answer
        From `lmemtest.metafeature_effect`: the contrast of each benchmark with its interval, below that over
        benchmarks. With ``method="outcomes"``: a map of the mean outcomes, benchmarks by levels, with a dendrogram of
        the benchmarks.

    Returns
    -------
    Axes
        Of the map: column j is level j, row i (from the top) the i-th benchmark of the dendrogram. Of the contrasts:
        row i is at y = i, headings included.

    Raises
    ------
    ArgumentError
        If `result` is something else, has more than 80 contrasts to draw, or `ax` is too small.

    Notes
    -----
    Triangles beside the map mark benchmarks that are singled out; the rule is in ``result.rule``. In the plot of the
    contrasts they are hollow, and crosses are the differences of the benchmarks' own means, before pooling.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(model=["forest", "svm"])
    >>> found = lt.metafeature_effect(runs, ("HB+prior", "HB"), "prior", method="outcomes", rng=1)
    >>> [label.get_text() for label in found.plot().get_xticklabels()]
    ['bad', 'good']
    """
    if result.method == "outcomes":
        return _draw_map(result, ax)
    if len(result.contrasts) > MOST_ROWS:
        raise ArgumentError(
            f"metafeature_effect_plot draws at most {MOST_ROWS} contrasts, got {len(result.contrasts)}. Compare fewer "
            "levels: metafeature_effect(..., levels=[...])."
        )
    return _rows.draw_rows(_contrasts(result), ax)


# ---------------------------------------------------------------------- the map of outcomes


def _draw_map(result: Answer, ax: Axes | None) -> Axes:
    benchmarks = [result.benchmarks[i] for i in result.order]
    place = {benchmark: row for row, benchmark in enumerate(benchmarks)}
    column = {level: i for i, level in enumerate(result.levels)}
    values = np.full((len(place), len(column)), np.nan)
    table = result.instances
    values[table["benchmark"].map(place), table["level"].map(column)] = table["outcome"]
    first, second = (_style.one_line(format_level(name)) for name in result.algorithms)
    rule = f"◂ singled out: {len(result.singled_out)} of {len(place)}. " if result.singled_out else ""
    heat = _heat.Heat(
        rows=[format_level(name) for name in benchmarks],
        columns=[format_level(name) for name in result.levels],
        values=values,
        palette="high is blue",
        scale_label=f"Mean outcome (1: {first} better, −1: {second} better)",
        note=[
            f"Columns: {_style.one_line(result.metafeature)}. {rule}Each budget counts 1, 0 or −1 by a test at "
            f"{100 * result.alpha:g} %."
        ],
    )
    tree = TREE * (len(result.linkage) > 0)
    if ax is None:
        font = _style.base_font() / 72
        width, height = _heat.figure_size(heat)
        width = _canvas.figure_width(max(width + tree * font, 5.0))
        ax = _canvas.new_axes(width, max(height, (ROW_HEIGHT * len(place) + AROUND) * font))
    ax, size, cells = _heat.draw_heat(heat, ax, left=tree)
    if rows := [place[benchmark] for benchmark in result.singled_out]:  # an empty line would have an extent
        beside = 1.0 + 0.5 * _heat.BAR_GAP * size / cells.width  # between the map and the colour scale
        style: dict[str, Any] = {"linestyle": "none", "marker": "<", "markersize": 0.6 * size, "clip_on": False}
        places: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "color": _style.WARM, "label": "_singled_out"}
        ax.plot(np.full(len(rows), beside), rows, **places, **style)
    if tree:
        inset = ax.inset_axes((-0.2, 0.0, 0.1, 1.0), label="_dendrogram")
        distance, width = cells.x - _canvas.PAD, (tree - 0.5) * size
        inset.set_axes_locator(functools.partial(_left_of, ax, distance, width))
        segments, height, stub = _tree_segments(result)
        inset.add_collection(LineCollection(list(segments), colors=_style.MUTED, linewidths=0.8, label="_tree"))
        inset.set_xlim(height * 1.02 if height > 0 else 1.0, -stub)
        inset.set_ylim(ax.get_ylim())
        inset.set_facecolor("none")
        _canvas.bare(inset)
    return ax


def _left_of(parent: Axes, distance: float, width: float, ax: Axes, renderer: Any) -> Bbox:  # noqa: ARG001
    """A place left of `parent`, whatever becomes of its size; in points."""
    box, figure = parent.get_window_extent(), parent.figure
    start, point = box.x0 - distance * figure.figure.dpi / 72, figure.figure.dpi / 72
    extents = Bbox.from_extents(start, box.y0, start + width * point, box.y1)
    return extents.transformed(figure.transSubfigure.inverted())


def _tree_segments(result: Answer) -> tuple[NDArray[np.float64], float, float]:
    """Three strokes per merger, as ``(3 (n - 1), 2, 2)`` points of height and row; the largest height; and how far the
    stroke of a leaf begins below zero, so that leaves which are merged at distance zero have one, too."""
    n = len(result.benchmarks)
    highest = float(result.linkage[:, 2].max())
    stub = _STUB * (highest or 1.0)
    row = np.empty(2 * n - 1)
    height = np.full(2 * n - 1, -stub)
    row[list(result.order)] = np.arange(n)
    strokes = []
    for k, (i, j, distance, _) in enumerate(result.linkage, start=n):
        i, j = int(i), int(j)
        row[k], height[k] = (row[i] + row[j]) / 2.0, distance
        strokes += [[(height[c], row[c]), (distance, row[c])] for c in (i, j)]
        strokes.append([(distance, row[i]), (distance, row[j])])
    return np.array(strokes), highest, stub


# ---------------------------------------------------------------------- the contrasts of the model


def _contrasts(result: Answer) -> _rows.Rows:
    import pandas as pd

    labels: list[str | tuple[str, ...]] = []
    headers: set[int] = set()
    contrasts: list[dict[Any, Any]] = []
    several = len(result.overall) > 1
    for overall in result.overall.to_dict("records"):
        what = tuple(format_level(overall[key]) for key in ("level", "reference"))
        if several:
            headers.add(len(labels))
            labels.append(what)
        contrasts.append({**overall, "row": len(labels), "kind": "mean"})
        labels.append("mean over benchmarks")
        part = result.contrasts
        part = part[(part["level"] == overall["level"]) & (part["reference"] == overall["reference"])]
        for record in part.sort_values("contrast", kind="stable").to_dict("records"):
            contrasts.append(
                {**record, "row": len(labels), "kind": "singled out" if record["singled_out"] else "benchmark"}
            )
            labels.append(format_level(record["benchmark"]))
    table = pd.DataFrame(contrasts)
    row, of_kind = table["row"].to_numpy(dtype=np.intp), table["kind"].to_numpy()
    raw = table["raw"].notna().to_numpy()
    by_itself: dict[str, Any] = {"centre": "raw", "ends": None, "colour": _style.NEUTRAL, "marker": "x"}
    kinds: tuple[_rows.Kind, ...] = (
        ("over benchmarks", of_kind == "mean", {"colour": _style.INK, "marker": "D"}),
        ("benchmark, pooled", of_kind == "benchmark", {}),
        ("singled out", of_kind == "singled out", {"colour": _style.WARM, "hollow": True}),
    )
    first, second = (_style.one_line(format_level(name)) for name in result.algorithms)
    response = _style.one_line(result.fit.design.parsed.response)
    of = (
        f"levels of {_style.one_line(result.metafeature)}"
        if several
        else _style.nobreak(" − ".join(map(_style.one_line, what)))
    )
    percent = _style.nobreak(f"{100 * (1 - result.alpha):g} %")
    return _rows.Rows(
        labels=labels,
        series=(
            _rows.Series.of(table[raw], row[raw], name="benchmark, not pooled", **by_itself),
            *_rows.Series.kinds(table, row, kinds, centre="contrast"),
        ),
        axis_label=f"Advantage of {first} over {second} ({response}): {of}\n"
        f"{percent} intervals, simultaneous over the benchmarks",
        headers=frozenset(headers),
        reference=0.0,
        legend=True,
    )
