"""Clusters of benchmarks: the tree with their stability, or how often two benchmarks share a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_choice
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _heat, _rows, _style

KINDS = ("dendrogram", "together")
_Branch = tuple[float, float, float, float, float, int]


@_canvas.draws("benchmark_clusters", source="benchmark_clusters()")
def benchmark_clusters_plot(clusters: Answer, /, *, kind: str = "dendrogram", ax: Axes | None = None) -> Axes:
    """Draw clusters of benchmarks.

    Parameters
    ----------
    clusters : Answer
        From `lmemtest.benchmark_clusters`.
    kind : {"dendrogram", "together"}
        The tree with a colour per cluster and its stability; or a map of how often two benchmarks share a cluster when
        the runs are redrawn.

    Returns
    -------
    Axes
        Benchmarks in the order of the tree's leaves, from the top.

    Raises
    ------
    ArgumentError
        If `clusters` are something else, nothing was redrawn for the map, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> len(lt.benchmark_clusters(runs, n_draws=20, rng=1).plot().get_yticklabels())
    20
    """
    check_choice(kind, "kind", KINDS)
    if kind == "together":
        return _heat.draw_heat(_map(clusters), ax)[0]
    branches, heights = _branches(clusters)
    top = max(branch[0] for branch in branches)
    table, series = clusters.benchmarks, []
    for row in clusters.clusters.to_dict("records"):
        place = np.flatnonzero(table["cluster"].to_numpy() == row["cluster"])
        stability = "" if not clusters.n_draws else f", {row['decision']} ({written(row['jaccard'], '.2f')})"
        look: dict[str, Any] = {
            "colour": _style.colour(row["cluster"] - 1),
            "marker": _style.marker(row["cluster"] - 1),
        }
        zero = np.zeros(len(place))
        name = f"cluster {row['cluster']}{stability}"
        series.append(_rows.Series(name=name, row=place, centre=zero, low=zero, high=heights[place], **look))
    unit = {"shape": "shape of the profiles", "noise": "standard deviations of a run"}[clusters.scale]
    label = f"Distance ({unit}), {clusters.method} linkage"
    if clusters.n_draws:
        label += "\nIn brackets: mean Jaccard similarity when the runs are redrawn"
    content = _rows.Rows(
        labels=list(table["benchmark"]),
        series=tuple(series),
        axis_label=label,
        reference=0.0,
        limits=(-0.02 * top, 1.04 * top or 1.0),
        legend=True,
    )
    ax = _rows.draw_rows(content, ax)
    _draw_branches(ax, branches)
    return ax


def _map(clusters: Answer) -> _heat.Heat:
    if not clusters.n_draws:
        raise ArgumentError(
            "kind='together' needs redrawn tables, and there are none. Use kind='dendrogram', or cluster with "
            "n_draws=200 where runs are repeated."
        )
    order = list(clusters.benchmarks["benchmark"])
    return _heat.Heat(
        rows=order,
        columns=order,
        values=clusters.together.loc[order, order].to_numpy(dtype=float),
        palette="from zero",
        scale_label="Share of redrawn tables with both in one cluster",
        note=[f"{clusters.n_draws:,} tables with redrawn runs, {clusters.n_clusters} clusters each."],
    )


def _branches(clusters: Answer) -> tuple[list[_Branch], np.ndarray]:
    """Merges as (height, y and height of both sides, cluster or 0 above them), and the first height of each leaf."""
    order = {name: row for row, name in enumerate(clusters.benchmarks["benchmark"])}
    cluster = dict(zip(clusters.benchmarks["benchmark"], clusters.benchmarks["cluster"].tolist(), strict=True))
    names = list(clusters.profiles.index)
    nodes = [(float(order[name]), 0.0, int(cluster[name])) for name in names]
    heights = np.zeros(len(names))
    branches = []
    for left, right, height, _ in clusters.linkage:
        sides = (int(left), int(right))
        for side in sides:
            if side < len(names):
                heights[order[names[side]]] = height
        (y1, h1, c1), (y2, h2, c2) = (nodes[side] for side in sides)
        shared_cluster = c1 if c1 == c2 else 0
        branches.append((float(height), y1, h1, y2, h2, shared_cluster))
        nodes.append((0.5 * (y1 + y2), float(height), shared_cluster))
    return branches, heights


def _draw_branches(ax: Axes, branches: list[_Branch]) -> None:
    size = float(ax.get_yticklabels()[0].get_fontsize())
    style: dict[str, Any] = {"linewidth": 0.12 * size, "linestyle": "-", "marker": "none"}
    style |= {"zorder": 2, "label": "_branch"}
    for height, y1, h1, y2, h2, cluster in branches:
        colour = _style.colour(cluster - 1) if cluster else _style.MUTED
        for y, start in ((y1, h1), (y2, h2)):
            if start > 0 or y != round(y):  # the branch of a leaf is drawn with it
                ax.plot([start, height], [y, y], color=colour, **style)
        ax.plot([height, height], [y1, y2], color=colour, **style)
