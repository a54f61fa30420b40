"""What seeds do to each algorithm."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.result import Answer
from lmemtest.plots import _canvas, _rows, _style


@_canvas.draws("seed_effect", source="seed_effect()")
def seed_effect_plot(result: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the mean score of every seed, beside the range that chance explains.

    Parameters
    ----------
    result : Answer
        From `lmemtest.seed_effect`.

    Returns
    -------
    Axes
        Row i, from the top, is the i-th algorithm: one marker per seed, filled and orange where the seed decides part
        of the score; below them the range that holds 95 % of the seeds if only chance decides.

    Examples
    --------
    >>> import lmemtest as lt
    >>> ax = lt.seed_effect(lt.datasets.load_hpo_runs().filter(budget=8, prior="good")).plot()
    >>> [label.get_text() for label in ax.get_yticklabels()][:3]
    ['HB', 'HB+prior', 'RS']
    """
    names = list(result.table["algorithm"])
    means = result.seed_means
    row = means["algorithm"].map({name: i for i, name in enumerate(names)}).to_numpy(dtype=np.intp)
    affected = means["algorithm"].isin(result.affected).to_numpy()
    kinds: tuple[_rows.Kind, ...] = (
        ("seeds", ~affected, {"hollow": True}),
        ("seeds that decide", affected, {"colour": _style.WARM, "marker": _style.marker(1)}),
    )
    chance = result.chance_range.to_numpy()
    explained = _rows.Series(
        name="95 % of the seeds, if only chance decides",
        row=np.arange(len(names)),
        centre=np.zeros(len(names)),
        low=-chance,
        high=chance,
        colour=_style.NEUTRAL,
        marker="|",
        offset=1,
    )
    unit = "standard deviations" if result.standardized else "units of the score"
    content = _rows.Rows(
        labels=names,
        series=(*_rows.Series.kinds(means, row, kinds, centre="mean", ends=None), explained),
        lanes=2,
        legend=True,
        reference=0.0,
        axis_label=f"Mean score of a seed minus that of the algorithm, in {unit}",
    )
    return _rows.draw_rows(content, ax)
