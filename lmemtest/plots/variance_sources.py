"""Sources of variation as standard deviations with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.variation.variance_sources import VarianceSources
from lmemtest.core.validate import check_choice
from lmemtest.core.words import format_number, percent
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _rows, _style


@_canvas.draws(VarianceSources, source="variance_sources()")
def variance_sources_plot(
    sources: VarianceSources, /, *, leave_out: str | Sequence[str] = (), ax: Axes | None = None
) -> Axes:
    """Draw the standard deviation of each source with its interval.

    Parameters
    ----------
    sources : VarianceSources
        From `lmemtest.variance_sources`.
    leave_out : str or sequence of str
        Sources that are not drawn; one that is much larger than all others hides them. A line below says how large
        they are.

    Returns
    -------
    Axes
        One row per source, in the order of the table, with its share of the variance at the right.

    Raises
    ------
    ArgumentError
        If `sources` are something else, one is unknown, all are left out, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> found = lt.variance_sources(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> [label.get_text() for label in found.plot(leave_out="benchmark").get_yticklabels()]
    ['algorithm', 'benchmark:algorithm', 'benchmark:seed', 'run']
    """
    names = [leave_out] if isinstance(leave_out, str) else list(leave_out)
    known = tuple(source.name for source in sources.sources)
    for name in names:
        check_choice(name, "leave_out", known)
    if set(names) == set(known):
        raise ArgumentError("leave_out names all sources, so nothing is left to draw. Keep at least one.")
    shown = [source for source in sources.sources if source.name not in names]
    hidden = [source for source in sources.sources if source.name in names]
    level = _style.nobreak(f"{100 * sources.level:g} %")
    label = f"Standard deviation of {_style.one_line(sources.score)}\n{level} intervals, one by one"
    if any(np.isnan(source.ci_high) for source in shown):
        label += "; without whiskers: no interval"
    if hidden:
        sizes = [f"{format_number(source.sd, 3)}, {_style.nobreak(percent(source.share))}" for source in hidden]
        parts = [f"{_style.one_line(source.name)} ({size})" for source, size in zip(hidden, sizes, strict=True)]
        label += f"\nNot drawn: {', '.join(parts)}"
    sd, low, high = (np.array([getattr(s, name) for s in shown], dtype=float) for name in ("sd", "ci_low", "ci_high"))
    content = _rows.Rows(
        labels=[source.name for source in shown],
        series=(_rows.Series(row=np.arange(len(shown)), centre=sd, low=low, high=high),),
        axis_label=label,
        aside=tuple(percent(source.share) for source in shown),
        aside_title="share",
        reference=0.0,
    )
    return _rows.draw_rows(content, ax)
