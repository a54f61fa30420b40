"""Looks at a growing study: how far differences are from zero, and how far they have to be."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.looks.monitor import Monitoring
from lmemtest.core.codes import in_order
from lmemtest.core.words import plural
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Lines, Panel, axis_around, draw_lines, looks

_MOST_LINES = 10  # of more algorithms those nearest to the first are drawn


@_canvas.draws(Monitoring, source="monitor()")
def looks_plot(found: Monitoring, /, *, ax: Axes | None = None) -> Axes:
    """Draw how far algorithms are behind the first over the looks, and the boundary, planned looks included.

    Parameters
    ----------
    found : Monitoring
        From `lmemtest.monitor`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: units on the x axis, normal scores on the y axis. A line for each
        comparison with the first algorithm (or the control), the ten nearest at most; the boundary is black, full
        for the looks so far and dotted for those that are still to come.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, prior="good")
    >>> ax = lt.monitor(runs, maximum=30).plot()
    >>> [text.get_text() for text in ax.get_legend().get_texts()][-2:]
    ['boundary', 'boundary, looks to come']
    """
    plan, path, boundary = found.schedule, found.to_frame("path"), found.to_frame("boundary")
    first = plan.control or found.decisions.levels[0]
    path = path[(path["left"] == first) | (path["right"] == first)]
    better = np.where(path["left"] == first, 1.0, -1.0) * (1.0 if plan.direction == "maximize" else -1.0)
    path = path.assign(other=np.where(path["left"] == first, path["right"], path["left"]), z=better * path["z"])
    names = [name for name in found.decisions.levels if name != first][:_MOST_LINES]
    curves = []
    places = _style.places(names, in_order(found.decisions.levels))  # at every look, and in other figures, the same
    for (name, i), look in zip(places.items(), looks(places.values()), strict=True):
        shape: dict[str, Any] = {**look, "marker": _style.marker(i), "label": "_path"}
        curves.append(
            Curve.of(path[path["other"] == name], _n(path[path["other"] == name]), "z", None, name=name, **shape)
        )
    grey: dict[str, Any] = {"colour": _style.INK, "marker": "o", "width": 0.1, "size": 0.3, "label": "_boundary"}
    done = boundary["done"].to_numpy()
    ahead = ~done | (boundary["n"] == found.sizes[-1]).to_numpy()  # from the last look on
    for sign in (1.0, -1.0)[: 1 + bool((path["z"] < 0.0).any())]:
        ends = boundary.assign(z=sign * boundary["z"])
        curves.append(Curve.of(ends[done], _n(ends[done]), "z", None, name="boundary" * (sign > 0), **grey))
        if not done.all():
            words = "boundary, looks to come" * (sign > 0)
            curves.append(Curve.of(ends[ahead], _n(ends[ahead]), "z", None, name=words, dash=":", **grey))
    ticks = boundary["n"].to_numpy(dtype=float) if len(boundary) <= 12 else None
    left = len(found.decisions.levels) - 1 - len(names)
    lines = Lines(
        what=f"a plot of {len(curves)} lines",
        panels=(
            Panel(
                x=Axis.around(_n(boundary), pad=0.05, ticks=ticks, whole=True),
                y=axis_around(curves, pad=0.06),
                curves=tuple(curves),
            ),
        ),
        x_label=plural(plan.unit).capitalize(),
        y_label=(
            f"How far {first} is ahead: normal scores of tests",
            f"{first} ahead: normal score",
            "Normal score",
        ),
        foot="A pair beyond the boundary is decided."
        + " The boundary is that of the first pair; for further ones it is nearer." * (len(plan.family) > 1)
        + (f" {left} algorithms further behind are left out." if left else ""),
    )
    return draw_lines(lines, ax)


def _n(table: Any) -> Any:
    return table["n"].to_numpy(dtype=float)
