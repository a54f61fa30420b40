"""Where a metafeature decides which of two algorithms is better: the cluster map, and the contrasts with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.transforms import Bbox

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _heat, _rows, _style
from lmemtest.studies.benchmark.metafeature_effect import MetafeatureEffect
from lmemtest.studies.benchmark.metafeature_outcomes import MetafeatureOutcomes
from lmemtest.words import format_level

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Segments = NDArray[np.float64]

TREE, TREE_SHARE = 5.0, 0.15  # width of the dendrogram in units of the font size, and of the axes at most
ROW_HEIGHT, AROUND = 1.7, 8.0  # of the map in units of the font size: fonts stay readable with many benchmarks
MOST_ROWS = 80


def metafeature_plot(result: MetafeatureOutcomes | MetafeatureEffect, *, ax: Axes | None = None) -> Axes:
    """Draw where a metafeature decides which of two algorithms is better.

    Parameters
    ----------
    result : MetafeatureOutcomes or MetafeatureEffect
        From `metafeature_effect`: the contrast of each benchmark with its interval, below that over benchmarks. With
        ``method="outcomes"``: a map of the mean outcomes, benchmarks by levels, with a dendrogram of the benchmarks.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, whose height
        grows with the number of benchmarks.

    Returns
    -------
    Axes
        Of the map: column j is level j, row i (from the top) the i-th benchmark of the dendrogram. Of the contrasts:
        row i is at y = i, headings included.

    Raises
    ------
    ArgumentError
        If `result` is neither, has more than 80 contrasts to draw, or `ax` is too small for readable text.

    Notes
    -----
    Triangles beside the map mark benchmarks that are singled out; the rule is in ``result.rule``. In the plot of the
    contrasts they are hollow, and crosses are the differences of the benchmarks' own means, before pooling.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.metafeature import metafeature_plot
    >>> runs = lt.datasets.load_hpo_runs().filter(model=["forest", "svm"])
    >>> ax = metafeature_plot(lt.metafeature_effect(runs, ("HB+prior", "HB"), "prior", method="outcomes", rng=1))
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['bad', 'good']
    """
    _canvas.check_axes(ax)
    if isinstance(result, MetafeatureOutcomes):
        return _draw_map(result, ax)
    if isinstance(result, MetafeatureEffect):
        if len(result.contrasts) > MOST_ROWS:
            raise ArgumentError(
                f"metafeature_plot draws at most {MOST_ROWS} contrasts, got {len(result.contrasts)}. Compare fewer "
                "levels: metafeature_effect(..., levels=[...])."
            )
        return _rows.draw_rows(_contrasts(result), ax)
    raise ArgumentError(f"result must be the result of metafeature_effect(), got {type(result).__name__}.")


# ---------------------------------------------------------------------- the map of outcomes


def _draw_map(result: MetafeatureOutcomes, ax: Axes | None) -> Axes:
    heat = _outcomes(result)
    tree = len(result.linkage) > 0
    font = _style.base_font()
    if ax is None:
        width, height = _heat.figure_size(heat)
        wanted = (ROW_HEIGHT * len(heat.rows) + AROUND) * font / 72
        ax = _canvas.new_axes(max(width + tree * TREE * font / 72, 5.0), max(height, wanted))
    width, _ = _canvas.size_in_points(ax)
    taken = min(TREE * font, TREE_SHARE * width)
    slot = ax.get_window_extent().frozen()
    # a layout engine makes room by itself, and gives up axes that are moved
    placed = tree and not _canvas.has_layout_engine(ax.figure.figure)
    if placed:
        _canvas.place_axes(ax, slot.x0 + taken * ax.figure.figure.dpi / 72, slot.y0, slot.x1, slot.y1)
    _heat.draw_heat(heat, ax)
    _mark(ax, result)
    if tree:
        _draw_tree(ax, result, taken, slot.x0 if placed else None)
    return ax


def _outcomes(result: MetafeatureOutcomes) -> _heat.Heat:
    place = {benchmark: row for row, benchmark in enumerate(result.benchmarks[i] for i in result.order)}
    column = {level: i for i, level in enumerate(result.levels)}
    values = np.full((len(place), len(column)), np.nan)
    table = result.instances
    values[table["benchmark"].map(place), table["level"].map(column)] = table["outcome"]
    first, second = (_style.one_line(format_level(name)) for name in result.algorithms)
    rule = f"◂ singled out: {len(result.singled_out)} of {len(place)}. " if result.singled_out else ""
    return _heat.Heat(
        rows=tuple(_style.one_line(format_level(name)) for name in place),
        columns=tuple(_style.one_line(format_level(name)) for name in result.levels),
        values=values,
        shown=np.ones(values.shape, dtype=bool),
        coloured=np.isfinite(values),
        palette="high is blue",
        scale_label=f"Mean outcome (1: {first} better, −1: {second} better)",
        note=f"Columns: {_style.one_line(result.metafeature)}. {rule}Each budget counts 1, 0 or −1 by a test at "
        f"{100 * result.alpha:g} %.",
    )


def _mark(ax: Axes, result: MetafeatureOutcomes) -> None:
    """Triangles in the gap between the map and the colour scale."""
    order = [result.benchmarks[i] for i in result.order]
    rows = [order.index(benchmark) for benchmark in result.singled_out]
    if not rows:  # an empty line would have an extent
        return
    size = float(ax.get_yticklabels()[0].get_fontsize())
    box, scale = ax.get_window_extent(), ax.child_axes[0].get_window_extent()
    gap = scale.x0 - box.x1
    ax.plot(
        np.full(len(rows), 1.0 + 0.5 * gap / box.width),
        rows,
        transform=ax.get_yaxis_transform(),
        linestyle="none",
        marker="<",
        markersize=min(0.6 * size, 0.7 * gap * 72 / ax.figure.figure.dpi),
        color=_style.WARM,
        clip_on=False,
        label="_singled_out",
    )


@dataclass(frozen=True, slots=True)
class _LeftOfLabels:
    """Places axes left of the row labels of `parent`, whatever becomes of its size; in points."""

    parent: Axes
    labels: float
    width: float

    def __call__(self, ax: Any, renderer: Any) -> Bbox:
        del ax, renderer
        box, figure = self.parent.get_window_extent(), self.parent.figure
        point = figure.figure.dpi / 72
        right = box.x0 - self.labels * point
        return Bbox.from_extents(right - self.width * point, box.y0, right, box.y1).transformed(
            figure.transSubfigure.inverted()
        )


def _draw_tree(ax: Axes, result: MetafeatureOutcomes, width: float, left: float | None) -> None:
    """Draw the dendrogram left of the labels, its leaves at the rows of the map, and right of `left` in pixels."""
    inset = ax.inset_axes((-0.2, 0.0, 0.1, 1.0), label="_dendrogram")
    edge = min(label.get_window_extent().x0 for label in ax.get_yticklabels())
    point = ax.figure.figure.dpi / 72
    gap = _style.HINTING_SLACK * (ax.get_window_extent().x0 - edge) / point + _canvas.PAD
    if left is not None:
        width = max((ax.get_window_extent().x0 - left) / point - gap - _canvas.PAD, 1.0)
    inset.set_axes_locator(_LeftOfLabels(ax, gap, width))
    segments, height = _tree_segments(result)
    inset.add_collection(LineCollection(list(segments), colors=_style.MUTED, linewidths=0.8, label="_tree"))
    inset.set_xlim(height * 1.02 if height > 0 else 1.0, 0.0)
    inset.set_ylim(ax.get_ylim())
    inset.set_facecolor("none")
    _canvas.bare(inset)


def _tree_segments(result: MetafeatureOutcomes) -> tuple[Segments, float]:
    """Three strokes per merger, as ``(3 (n - 1), 2, 2)`` points of height and row; and the largest height."""
    n = len(result.benchmarks)
    row = np.empty(2 * n - 1)
    height = np.zeros(2 * n - 1)
    row[list(result.order)] = np.arange(n)
    strokes = []
    for k, (i, j, distance, _) in enumerate(result.linkage, start=n):
        i, j = int(i), int(j)
        row[k], height[k] = (row[i] + row[j]) / 2.0, distance
        strokes += [[(height[c], row[c]), (distance, row[c])] for c in (i, j)]
        strokes.append([(distance, row[i]), (distance, row[j])])
    return np.array(strokes), float(height.max())


# ---------------------------------------------------------------------- the contrasts of the model


def _contrasts(result: MetafeatureEffect) -> _rows.Rows:
    labels: list[tuple[str, ...]] = []
    headers: set[int] = set()
    found: list[dict[Any, Any]] = []
    for overall in result.overall.to_dict("records"):
        level, reference = (_style.one_line(format_level(overall[key])) for key in ("level", "reference"))
        if len(result.overall) > 1:
            headers.add(len(labels))
            labels.append((level, reference))
        found.append({**overall, "row": len(labels), "kind": "mean"})
        labels.append(("mean over benchmarks",))
        part = result.contrasts
        part = part[(part["level"] == overall["level"]) & (part["reference"] == overall["reference"])]
        for record in part.sort_values("contrast", kind="stable").to_dict("records"):
            kind = "singled out" if record["singled_out"] else "benchmark"
            found.append({**record, "row": len(labels), "kind": kind})
            labels.append((_style.one_line(format_level(record["benchmark"])),))
    return _rows.Rows(
        labels=tuple(labels),
        series=_series(found),
        axis_label=_axis_label(result),
        headers=frozenset(headers),
        reference=0.0,
        legend=True,
    )


def _series(found: list[dict[Any, Any]]) -> tuple[_rows.Series, ...]:
    import pandas as pd

    table = pd.DataFrame(found)
    looks = {
        "mean": ("over benchmarks", _style.INK, "D", False),
        "benchmark": ("benchmark, pooled", _style.ACCENT, "o", False),
        "singled out": ("singled out", _style.WARM, "o", True),
    }
    series = [_raw(table)]
    for kind, (name, colour, marker, hollow) in looks.items():
        part = table[table["kind"] == kind]
        if len(part):
            series.append(
                _rows.Series(
                    name=name,
                    row=part["row"].to_numpy(dtype=np.intp),
                    centre=part["contrast"].to_numpy(dtype=float),
                    low=part["ci_low"].to_numpy(dtype=float),
                    high=part["ci_high"].to_numpy(dtype=float),
                    colour=colour,
                    marker=marker,
                    hollow=hollow,
                )
            )
    return tuple(series)


def _raw(table: pd.DataFrame) -> _rows.Series:
    part = table[table["raw"].notna()]
    none = np.full(len(part), np.nan)
    return _rows.Series(
        name="benchmark by itself",
        row=part["row"].to_numpy(dtype=np.intp),
        centre=part["raw"].to_numpy(dtype=float),
        low=none,
        high=none,
        colour=_style.NEUTRAL,
        marker="x",
    )


def _axis_label(result: MetafeatureEffect) -> str:
    first, second = (_style.one_line(format_level(name)) for name in result.algorithms)
    response = _style.one_line(result.fit.design.parsed.response)
    metafeature = _style.one_line(result.metafeature)
    if len(result.overall) == 1:
        row = result.overall.iloc[0]
        what = f"{_style.one_line(format_level(row['level']))} − {_style.one_line(format_level(row['reference']))}"
    else:
        what = f"levels of {metafeature}"
    percent = _style.nobreak(f"{100 * (1 - result.alpha):g} %")
    return (
        f"Advantage of {first} over {second} ({response}): {what}\n"
        f"{percent} intervals that hold together over the benchmarks"
    )
