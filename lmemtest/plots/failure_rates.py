"""How often each algorithm fails: one row per algorithm, one interval per population."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.failures.failure_rates import POPULATIONS
from lmemtest.core.result import Answer
from lmemtest.core.words import format_level
from lmemtest.plots import _canvas, _rows, _style


@_canvas.draws("failure_rates", source="failure_rates()")
def failure_rates_plot(rates: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the share of runs that failed, for each algorithm with its intervals.

    Parameters
    ----------
    rates : Answer
        From `lmemtest.failure_rates`.

    Returns
    -------
    Axes
        One row per algorithm, the least often failing on top; failed runs and runs are written at the right.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"tool": ["A", "B"] * 20, "task": [f"t{i // 8}" for i in range(40)]}
    >>> table["loss"] = [0.1 * i if i % 8 else None for i in range(40)]
    >>> roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    >>> runs = lt.Runs(table, failed="missing", **roles)
    >>> ax = lt.failure_rates(runs).plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['B', 'A']
    """
    table = rates.table
    names = list(dict.fromkeys(table["algorithm"]))
    shown = [name for name in POPULATIONS if (table["population"] == name).any()]
    place = {name: row for row, name in enumerate(names)}
    series = []
    for i, population in enumerate(shown):
        own = table[table["population"] == population]
        row = np.array([place[name] for name in own["algorithm"]], dtype=np.intp)
        look: dict[str, Any] = {"name": POPULATIONS[population], "colour": _style.colour(i), "offset": i}
        series.append(_rows.Series.of(own, row, centre="rate", scale=100.0, marker=_style.marker(i), **look))
    runs = table[table["population"] == "run"]
    level = _style.nobreak(f"{100 * rates.level:.4g} %")
    most = 100.0 * float(np.nanmax(table["ci_high"]))
    content = _rows.Rows(
        labels=[format_level(name) for name in names],
        series=tuple(series),
        axis_label=f"Runs that fail (%), with {level} intervals",
        lanes=len(shown),
        aside=tuple(f"{k:,} of {n:,}" for k, n in zip(runs["n_failed"], runs["n_runs"], strict=True)),
        limits=(-_rows.MARGIN * most, (1.0 + _rows.MARGIN) * most),
        legend=len(shown) > 1,
    )
    return _rows.draw_rows(content, ax)
