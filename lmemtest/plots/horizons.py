"""Critical-difference diagrams at several horizons, on one scale."""

from __future__ import annotations

from dataclasses import replace

from matplotlib.axes import Axes

from lmemtest.core.result import Answer
from lmemtest.plots import _canvas, _style
from lmemtest.plots._cd_board import board_of
from lmemtest.plots.cd_diagrams import draw_boards
from lmemtest.plots.emmeans import decided_by


@_canvas.draws("horizons", source="anytime().at()")
def horizons_plot(result: Answer, /, *, layout: str = "stacked", ax: Axes | None = None) -> Axes:
    """Draw which algorithms differ at each horizon, all diagrams on one scale.

    Parameters
    ----------
    result : Answer
        From `lmemtest.anytime`, its ``.at()``.
    layout : {"stacked", "beside"}
        Diagrams one below the other, or side by side.

    Returns
    -------
    Axes
        It holds the diagrams, ``ax.child_axes``, one per horizon, as those of `cd_diagram`.

    Notes
    -----
    A length is the same difference of scores in all diagrams. The axes also start at the same score, so that a mean can
    be followed from one to the next, unless means move so far between horizons that those at one would be squeezed
    together; then each has its own start, and the first diagram's title says so.

    Rulers are critical differences at the level of the horizon, its share of that of the whole, which is in its title
    where horizons share the level; the line below the last diagram says how.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE"], prior="good")
    >>> ax = lt.anytime(runs).at([8, 32]).plot()
    >>> [diagram.texts[0].get_text() for diagram in ax.child_axes]
    ['0.164', '0.164']
    """
    titles, boards = [], []
    shared = result.across == "holm" and len(result.horizons) > 1
    for horizon in result.horizons.values():
        title, board = (
            f"{result.budget} {horizon.label}{' (mean)' * horizon.place.is_window}",
            board_of(horizon.decisions),
        )
        if shared:
            title += f", α = {horizon.decisions.alpha:.3g}"
            every = f"{result.alpha:g} over the {len(result.horizons)} diagrams"
            remark = f"α in the titles: shares of {every}, by Holm's method."
            board = replace(board, test=decided_by(horizon.decisions, level=False), remark=remark)
        titles.append(_style.one_line(title))
        boards.append(board)
    return draw_boards(boards, titles, layout, ax)
