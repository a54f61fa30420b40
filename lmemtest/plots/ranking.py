"""A ranking: the diagram of what was compared, or centres with their intervals."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest._validate import check_choice
from lmemtest.inference.means.separation import Separation
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots.emmeans import READINGS, decided_by
from lmemtest.plots.separation import cd_diagram
from lmemtest.studies.ranking.ranking import Ranking

KINDS = ("diagram", "intervals")
_CENTRES = ("mean", "median", "mean_rank")


@_canvas.draws(Ranking, source="rank()")
def ranking_plot(ranking: Ranking, /, *, kind: str = "diagram", ax: Axes | None = None) -> Axes:
    """Draw a ranking: which algorithms differ, on the scale on which they were compared.

    Parameters
    ----------
    ranking : Ranking
    kind : {"diagram", "intervals"}, optional
        The diagram of `cd_diagram` (default), or one row per algorithm with its interval and letters. Intervals of
        means over benchmarks are mostly as wide as the benchmarks are unlike, which all algorithms share.

    Returns
    -------
    Axes

    Notes
    -----
    Both are drawn from ``ranking.separation``, and so show the same decisions. Overlap of two intervals does not tell
    whether the algorithms differ: the letters do.
    """
    separation = ranking.separation
    if check_choice(kind, "kind", KINDS) == "diagram":
        return cd_diagram(separation, ax=ax)
    return _intervals(ranking, separation, ax)


def _intervals(ranking: Ranking, separation: Separation, ax: Axes | None) -> Axes:
    """One row per algorithm."""
    table = ranking.table.set_index("algorithm").loc[list(separation.levels)]
    centre = next(name for name in _CENTRES if name in table.columns)
    direction = "minimize" if centre == "mean_rank" else ranking.direction
    what = f"{centre.replace('_', ' ').capitalize()} of {_style.one_line(ranking.score)}"
    level = _style.nobreak(f"{100 * (1 - ranking.alpha):g} % CI")
    label = f"{what}, {level}{READINGS.get(direction, '')}"
    label += f"\nAlgorithms that share a letter do not differ significantly ({decided_by(separation)})."
    series = _rows.Series.of(table, np.arange(len(table), dtype=np.intp), centre=centre)
    content = _rows.Rows(
        labels=list(separation.levels),
        series=(series,),
        axis_label=label,
        aside=tuple(separation.letters[level] for level in separation.levels),
    )
    return _rows.draw_rows(content, ax)
