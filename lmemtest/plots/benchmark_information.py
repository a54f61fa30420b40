"""How much each benchmark says about the algorithms."""

from __future__ import annotations

from matplotlib.axes import Axes

from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Answer
from lmemtest.core.validate import check_positive_int
from lmemtest.plots import _canvas, _rows, _style


@_canvas.draws("benchmark_information", source="benchmark_information()")
def benchmark_information_plot(result: Answer, /, *, max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Draw how much of the variance between runs the algorithms explain on each benchmark.

    Parameters
    ----------
    result : Answer
        From `lmemtest.benchmark_information`.
    max_rows : int, >= 2
        Of more benchmarks, those with the largest and the smallest shares are drawn, and a row and the axis label say
        how many were left out.

    Returns
    -------
    Axes
        One row per benchmark, by share from the top; the x axis is in percent.

    Raises
    ------
    ArgumentError
        If `result` is something else, `max_rows` is below two, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> lt.benchmark_information(runs).plot().get_yticklabels()[0].get_text()
    'sgd-cancer'
    """
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    table = result.table.sort_values("share", ascending=False, kind="stable", ignore_index=True)
    shown = _rows.Shown.ends(len(table), max_rows)
    labels = shown.labels(table["benchmark"])
    table = table.take(shown.kept.tolist())
    found, none = (
        (table["informative"] == value).to_numpy(dtype=bool, na_value=False) for value in (True, False)
    )  # missing: no test was possible
    grey = {"colour": _style.NEUTRAL, "marker": _style.marker(1), "hollow": True}
    kinds: tuple[_rows.Kind, ...] = (("algorithms differ", found, {}), ("no difference found", none, grey))
    columns = {"centre": "share", "ends": ("share_low", "share_high"), "scale": 100.0}
    series = _rows.Series.kinds(table, shown.place, kinds, **columns)
    label = f"Variance between runs that algorithms explain, % ({100.0 * result.level:g} % interval)"
    if len(series) > 1:
        label += f"\nColours: Welch's F-test, {ADJUSTMENT_NAMES[result.adjust]} adjustment, level {result.alpha:g}."
    content = _rows.Rows(
        labels=labels,
        series=series,
        headers=shown.headers,
        legend=len(series) > 1,
        reference=0.0,
        axis_label=label + shown.sentence("benchmarks, those in the middle,"),
    )
    return _rows.draw_rows(content, ax)
