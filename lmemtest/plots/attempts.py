"""Figure of repeated attempts: pass@k, pass^k and maj@k of models over k."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.evaluation.attempts import AGREEMENT
from lmemtest.bench.evaluation.questions import LIKE, SUFFIX, THESE
from lmemtest.core.codes import in_order
from lmemtest.core.result import Answer
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted, percent
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import MOST_BANDS, Curve, Lines, Panel, draw_lines, looks, spans_much

_TITLES = {"pass@k": "pass@k: at least one of k", "pass^k": "pass^k: all of k", "maj@k": "maj@k: most of k"}


@_canvas.draws("repeated_attempts", source="repeated_attempts()")
def repeated_attempts_plot(found: Answer, /, *, question: str = THESE, ax: Axes | None = None) -> Axes:
    """Draw what k attempts reach, for each model.

    Parameters
    ----------
    found : Answer
        From `lmemtest.repeated_attempts`.
    question : {"these tasks", "tasks like these"}
        The population of the intervals; the second of several tasks only.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``: pass@k, pass^k and maj@k, as far as there are any, over k, all from the
        accuracy at k = 1. Bands are intervals, not simultaneous, left out with more than five models.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"model": list("AAAABBBB") * 3, "item": [i for i in range(3) for _ in range(8)],
    ...          "epoch": [1, 2, 3, 4] * 6, "right": [0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1] * 2}
    >>> found = lt.repeated_attempts(table, model="model", item="item", epoch="epoch", score="right")
    >>> [panel.get_title(loc="left") for panel in found.plot().child_axes]
    ['pass@k: at least one of k', 'pass^k: all of k', 'maj@k: most of k']
    """
    answered = tuple(name for name in (THESE, LIKE) if SUFFIX[name] in found.where)
    table, suffix = found.models, SUFFIX[check_choice(question, "question", answered)]
    names = sorted(set(table["model"]), key=list(table["model"]).index)
    shown = [name for name in dict.fromkeys(table["statistic"]) if name != AGREEMENT]
    ends = (f"ci_low_{suffix}", f"ci_high_{suffix}") if len(names) <= MOST_BANDS else None
    x = table["k"].to_numpy(dtype=float)
    axis = Axis.around(x, log=spans_much(x), ticks=np.array(found.k, dtype=float))
    places = _style.places(names, in_order(names))
    panels = []
    for statistic in shown:
        rows = table[(table["statistic"] == statistic) | (table["k"] == 1)]
        curves = [
            Curve.of(
                own,
                own["k"].to_numpy(dtype=float),
                f"estimate_{suffix}",
                ends,
                name=name,
                marker=_style.marker(place),
                bars=len(own) == 1,
                opacity=0.6 if len(own) == 1 else 0.14,
                **look,
            )
            for (name, place), look in zip(places.items(), looks(places.values()), strict=True)
            for own in [rows[rows["model"] == name].sort_values("k", kind="stable")]
        ]
        panels.append(Panel(x=axis, y=Axis(limits=(-0.02, 1.02)), curves=tuple(curves), title=(_TITLES[statistic],)))
    intervals = f"{percent(1.0 - found.alpha)} intervals {found.where[suffix]}, not simultaneous."
    known = ends is not None and bool(np.isfinite(table[list(ends)].to_numpy(dtype=float)).any())
    few = f"Intervals are left out with more than {MOST_BANDS} models; the table has them."
    lines = Lines(
        what=f"a plot of {counted(len(names), 'model')} in {counted(len(panels), 'panel')}",
        panels=tuple(panels),
        x_label="Attempts k",
        y_label=("Share of items", "Share"),
        foot=intervals if known else few if ends is None else "",
        shared=True,
        dodge=True,
    )
    return draw_lines(lines, ax)
