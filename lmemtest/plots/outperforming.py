"""Probability of outperforming: pairs of algorithms, and the benchmarks of a single one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.result import Answer
from lmemtest.core.validate import check_positive_int
from lmemtest.core.words import plural
from lmemtest.plots import _canvas, _rows, _style

if TYPE_CHECKING:
    import pandas as pd


@_canvas.draws("outperforming", source="outperforming() of a Runs")
def outperforming_plot(result: Answer, /, *, max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Draw the probabilities of all pairs; of a single pair those of the benchmarks, too.

    Parameters
    ----------
    result : Answer
        From `lmemtest.outperforming` of a `Runs`.
    max_rows : int, >= 2
        The most pairs, or benchmarks of a single one, to draw; of more, those farthest from one half.

    Returns
    -------
    Axes
        Dots with intervals, a line at one half and a dashed one at gamma. Intervals of benchmarks are each by itself.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> axes = lt.outperforming(runs, algorithms=("HB", "RS")).plot()
    >>> axes.get_yticklabels()[0].get_text()
    'All 20 benchmarks'
    """
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    ends = list(zip(result.table["left"], result.table["right"], strict=True))
    pairs = [f"{left} over {right}" for left, right in ends]
    alone = len(pairs) == 1
    count = int(result.table["n_benchmarks"].iloc[0])
    families = "" if result.family is None else f" of {int(result.table['n_families'].iloc[0])} {plural(result.family)}"
    single = ""
    shown = _from_half(result.table, max_rows)
    labels = [f"All {count} benchmarks{families}"] if alone else shown.labels(pairs)
    left_out = shown.sentence("pairs, those nearest to one half,")
    series = [_rows.Series.of(result.table.iloc[shown.kept], shown.place, centre="estimate")]
    if alone and count > 1:
        shown = _from_half(result.benchmarks, max_rows)
        kept = result.benchmarks.iloc[shown.kept]
        series.append(_rows.Series.of(kept, shown.place + 1, centre="estimate", colour=_style.MUTED))
        names = result.benchmarks["benchmark"].astype(str)
        if names.duplicated().any():  # the same data set in several families
            names = names + " in " + result.benchmarks["family"]
        labels = [*labels, *shown.labels(names)]
        left_out = shown.sentence("benchmarks, those nearest to one half,")
        single = "; below it score intervals of each benchmark by itself"
    of = "a run of {} is better than one of {}".format(*ends[0]) if alone else "a run of the first is better"
    return _rows.draw_rows(
        _rows.Rows(
            labels=labels,
            series=tuple(series),
            axis_label=f"Probability that {of}\n{result.band}{single}; dashed: gamma{left_out}",
            reference=0.5,
            threshold=result.gamma_adjusted,
        ),
        ax,
    )


def _from_half(table: pd.DataFrame, most: int) -> _rows.Shown:
    return _rows.Shown.largest(np.abs(table["estimate"].to_numpy(dtype=float) - 0.5), most)
