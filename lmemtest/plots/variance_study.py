"""Variances of sources of randomness, relative to that of one of them or as shares."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.variation.variance_study import VarianceStudy
from lmemtest.core.validate import check_choice
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _rows, _style

VALUES = ("relative", "share", "sd")
_ENDS = {"relative": ("relative_low", "relative_high"), "share": ("share_low", "share_high")}
_MOST_LANES = 6  # studies side by side in the row of a source; of more, each has a row
_FARTHEST = 2.0  # of the largest estimate: where longer whiskers are cut


@_canvas.draws(VarianceStudy, source="variance_study()")
def variance_study_plot(study: VarianceStudy, /, *, values: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the variance of each source with its interval, one colour per algorithm and benchmark.

    Parameters
    ----------
    study : VarianceStudy
        From `lmemtest.variance_study`.
    values : {"relative", "share", "sd"}, optional
        Variances over that of the source in ``relative_to`` (by default, where there is one; on a square-root scale,
        where lengths are ratios of standard deviations), shares of the sum, or standard deviations.

    Returns
    -------
    Axes
        One row per source; with more than six studies one row per source and study.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, figure 1

    Examples
    --------
    >>> import numpy as np, lmemtest as lt
    >>> rng = np.random.default_rng(1)
    >>> table = {"data": [*range(30), *[0] * 29], "init": [*[0] * 30, *range(1, 30)], "accuracy": rng.normal(size=59)}
    >>> ax = lt.variance_study(table, score="accuracy", sources=["data", "init"]).plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['data', 'init']
    """
    known = study.relative_to is not None and bool(study.table["relative"].notna().any())
    shown = ("relative" if known else "share") if values is None else check_choice(values, "values", VALUES)
    if shown == "relative" and not known:
        raise ArgumentError("values='relative' needs a source that is the unit: variance_study(..., relative_to=...).")
    table = study.table.assign(study=_names(study))
    names, sources = list(dict.fromkeys(table["study"])), list(dict.fromkeys(table["source"]))
    lanes = len(names) if len(names) <= _MOST_LANES else 1
    if lanes < len(names):
        labels = [label for source in sources for label in (source, *names)]
        at = {(s, n): (i * (len(names) + 1) + j) for i, s in enumerate(sources) for j, n in enumerate(names, 1)}
        headers = frozenset(i * (len(names) + 1) for i in range(len(sources)))
    else:
        labels = sources
        at = {(s, n): i for i, s in enumerate(sources) for n in names}
        headers = frozenset()
    low, high = _ENDS.get(shown, ("ci_low", "ci_high"))
    most = float(np.nanmax([table[shown].max(), float(shown == "relative"), 1e-300]))
    limit = min(float(np.nanmax([table[high].max(), most])), _FARTHEST * most)
    cut = bool((table[high] > limit).any())
    table[high] = np.minimum(table[high], 2.0 * limit)  # an end may be infinite
    root = shown == "relative"  # one source can vary a hundred times as much as another
    margin = _rows.MARGIN**2 if root else _rows.MARGIN
    series = []
    for i, name in enumerate(names):
        rows = table[table["study"] == name]
        place = np.array([at[source, name] for source in rows["source"]], dtype=np.intp)
        look = {"name": name, "colour": _style.colour(i), "marker": _style.marker(i), "offset": i} if lanes > 1 else {}
        series.append(_rows.Series.of(rows, place, centre=shown, ends=(low, high), **look))
    content = _rows.Rows(
        labels=labels,
        series=tuple(series),
        axis_label=_label(study, shown, cut),
        lanes=lanes,
        headers=headers,
        reference=1.0 if shown == "relative" else 0.0,
        limits=(-margin * limit, (1.0 if cut else 1.0 + _rows.MARGIN) * limit),
        root=root,
        legend=lanes > 1,
    )
    return _rows.draw_rows(content, ax)


def _names(study: VarianceStudy) -> pd.Series:
    if not study.by:
        return pd.Series("", index=study.table.index)
    return study.table[[*study.by]].map(format_level).agg(" on ".join, axis=1)


def _label(study: VarianceStudy, shown: str, cut: bool) -> str:
    score, level = _style.one_line(study.score), _style.nobreak(f"{100 * study.level:.4g} %")
    text = {
        "relative": f"Variance of {score} over that of {study.relative_to} (square-root scale)",
        "share": f"Share of the variance of {score}",
        "sd": f"Standard deviation of {score}",
    }[shown]
    more = "; those that reach the right edge go on" if cut else ""
    return f"{text}\n{level} intervals, one by one{more}"
