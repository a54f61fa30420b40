"""Figures of the sanity checks: what seeds do to each algorithm, and what each benchmark says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._options import ADJUSTMENT_NAMES
from lmemtest._validate import check_positive_int
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.studies.checks.benchmark_information import BenchmarkInformation
from lmemtest.studies.checks.seed_effect import SeedEffect

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TWO_SIDED = 1.959963984540054  # 95 % of a normal distribution
_ROW, _AROUND = 0.5, 1.5  # inches per algorithm, and for the axis with its label and the legend


def seed_plot(result: SeedEffect, *, ax: Axes | None = None) -> Axes:
    """Draw the mean score of every seed, beside the range that chance explains.

    Parameters
    ----------
    result : SeedEffect
        From `lmemtest.studies.checks.seed_effect.seed_effect`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        Row i, from the top, is the i-th algorithm: one marker per seed, filled and orange where the seed decides part
        of the score; below them the range that holds 95 % of the seeds if only chance decides.

    Raises
    ------
    ArgumentError
        If `result` is not a seed dependency, or `ax` is too small for readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.sanity import seed_plot
    >>> from lmemtest.studies.checks.seed_effect import seed_effect
    >>> ax = seed_plot(seed_effect(lt.datasets.load_hpo_runs().filter(budget=8, prior="good")))
    >>> [label.get_text() for label in ax.get_yticklabels()][:3]
    ['HB', 'HB+prior', 'RS']
    """
    _canvas.check_axes(ax)
    if not isinstance(result, SeedEffect):
        raise ArgumentError(f"result must be that of seed_effect(), got {type(result).__name__}.")
    names = list(result.table["algorithm"])
    means = result.seed_means()
    row = means["algorithm"].map({name: i for i, name in enumerate(names)}).to_numpy(dtype=np.intp)
    affected = means["algorithm"].isin(result.affected).to_numpy()
    series = [
        _seeds("seeds", row[~affected], means["mean"].to_numpy()[~affected], affected=False),
        _seeds("seeds that decide", row[affected], means["mean"].to_numpy()[affected], affected=True),
    ]
    chance = _TWO_SIDED * means.groupby("algorithm", observed=True)["chance"].mean().reindex(names).to_numpy()
    zero = np.zeros(len(names))
    series.append(
        _rows.Series(
            name="95 % of the seeds, if only chance decides",
            row=np.arange(len(names)),
            centre=zero,
            low=-chance,
            high=chance,
            colour=_style.NEUTRAL,
            marker="|",
            offset=1,
        )
    )
    unit = "standard deviations" if result.standardized else "units of the score"
    content = _rows.Rows(
        labels=tuple((_style.one_line(name),) for name in names),
        series=tuple(one for one in series if len(one.row)),
        lanes=2,
        legend=True,
        reference=0.0,
        axis_label=f"Mean score of a seed minus that of the algorithm, in {unit}",
    )
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _ROW * len(names) + _AROUND)
    return _rows.draw_rows(content, ax)


def _seeds(name: str, row: np.ndarray, mean: np.ndarray, *, affected: bool) -> _rows.Series:
    return _rows.Series(
        name=name,
        row=row,
        centre=mean,
        low=mean,
        high=mean,
        colour=_style.WARM if affected else _style.ACCENT,
        marker=_style.marker(1 if affected else 0),
        hollow=not affected,
        offset=0,
    )


def information_plot(result: BenchmarkInformation, *, most: int = _rows.MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Draw how much of the variance between runs the algorithms explain on each benchmark.

    Parameters
    ----------
    result : BenchmarkInformation
        From `lmemtest.studies.checks.benchmark_information.benchmark_information`.
    most : int, >= 2
        Rows; of more benchmarks, those with the largest and the smallest shares are drawn, and a row and the axis label
        say how many were left out.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        One row per benchmark, by share from the top; the x axis is in percent.

    Raises
    ------
    ArgumentError
        If `result` is not a benchmark information, `most` is below two, or `ax` is too small for readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.sanity import information_plot
    >>> from lmemtest.studies.checks.benchmark_information import benchmark_information
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> ax = information_plot(benchmark_information(runs))
    >>> ax.get_yticklabels()[0].get_text()
    'sgd-cancer'
    """
    _canvas.check_axes(ax)
    if not isinstance(result, BenchmarkInformation):
        raise ArgumentError(f"result must be that of benchmark_information(), got {type(result).__name__}.")
    most = check_positive_int(most, "most", minimum=2)
    table = result.table.sort_values("share", ascending=False, kind="stable", ignore_index=True)
    shown = _rows.Shown.ends(len(table), most)
    labels = shown.labels([_style.one_line(name) for name in table["benchmark"]])
    table = table.take(shown.kept.tolist())
    series = []
    for found, name in ((True, "algorithms differ"), (False, "no difference found")):
        mask = (table["informative"] == found).to_numpy(dtype=bool, na_value=False)  # missing: no test was possible
        part = table[mask]
        if not len(part):
            continue
        series.append(
            _rows.Series(
                name=name,
                row=shown.place[mask],
                centre=100.0 * part["share"].to_numpy(),
                low=100.0 * part["share_low"].to_numpy(),
                high=100.0 * part["share_high"].to_numpy(),
                colour=_style.ACCENT if found else _style.NEUTRAL,
                marker=_style.marker(0 if found else 1),
                hollow=not found,
            )
        )
    label = f"Variance between runs that algorithms explain, % ({100.0 * result.level:g} % interval)"
    if len(series) > 1:
        label += f"\nColours: Welch's F-test, {ADJUSTMENT_NAMES[result.adjust]} adjustment, level {result.alpha:g}."
    content = _rows.Rows(
        labels=labels,
        series=tuple(series),
        headers=shown.headers,
        legend=len(series) > 1,
        reference=0.0,
        axis_label=label + shown.sentence("benchmarks, those in the middle,"),
    )
    return _rows.draw_rows(content, ax)
