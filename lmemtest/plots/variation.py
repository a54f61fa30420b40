"""Sources of variation as standard deviations with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lmemtest._validate import check_choice
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.studies.variation.variance_sources import VarianceSources, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def variation_plot(sources: VarianceSources, *, leave_out: str | Sequence[str] = (), ax: Axes | None = None) -> Axes:
    """Draw the standard deviation of each source with its interval.

    Parameters
    ----------
    sources : VarianceSources
        From `lmemtest.variance_sources`.
    leave_out : str or sequence of str
        Sources that are not drawn; one that is much larger than all others hides them. A line below says how large
        they are.
    ax : Axes, optional
        Where to draw; a new figure with None.

    Returns
    -------
    Axes
        One row per source, in the order of the table, with its share of the variance at the right.

    Raises
    ------
    ArgumentError
        If `sources` is not a result of `variance_sources`, a source is unknown, all are left out, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.variation import variation_plot
    >>> from lmemtest.studies.variation.variance_sources import variance_sources
    >>> found = variance_sources(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> ax = variation_plot(found, leave_out="benchmark")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['algorithm', 'benchmark:algorithm', 'benchmark:seed', 'run']
    """
    _canvas.check_axes(ax)
    if not isinstance(sources, VarianceSources):
        raise ArgumentError(f"sources must be the result of variance_sources(), got {type(sources).__name__}.")
    names = [leave_out] if isinstance(leave_out, str) else list(leave_out)
    known = tuple(source.name for source in sources.sources)
    for name in names:
        check_choice(name, "leave_out", known)
    if set(names) == set(known):
        raise ArgumentError("leave_out names all sources, so nothing is left to draw. Keep at least one.")
    return _rows.draw_rows(_content(sources, names), ax)


def _content(sources: VarianceSources, leave_out: list[str]) -> _rows.Rows:
    shown = [source for source in sources.sources if source.name not in leave_out]
    hidden = [source for source in sources.sources if source.name in leave_out]
    label = f"Standard deviation of {_style.one_line(sources.score)}"
    level = _style.nobreak(f"{100 * sources.level:g} %")
    label += f"\n{level} intervals, one by one"
    if any(np.isnan(source.ci_high) for source in shown):
        label += "; without whiskers: no interval"
    if hidden:
        parts = [
            f"{_style.one_line(s.name)} ({_style.number(s.sd)}, {_style.nobreak(percent(s.share))})" for s in hidden
        ]
        label += f"\nNot drawn: {', '.join(parts)}"
    sd, low, high = (np.array([getattr(s, name) for s in shown], dtype=float) for name in ("sd", "ci_low", "ci_high"))
    high = np.where(np.isfinite(high), high, np.nan)
    row = np.arange(len(shown), dtype=np.intp)
    return _rows.Rows(
        labels=tuple((_style.one_line(source.name),) for source in shown),
        series=(_rows.Series(name="", row=row, centre=sd, low=low, high=high),),
        axis_label=label,
        aside=tuple(percent(source.share) for source in shown),
        aside_title="share",
        reference=0.0,
    )
