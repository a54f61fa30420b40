"""Reliability of a ranking over the number of benchmarks, one line per number of seeds."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest._rounding import written
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Look, Panel, draw_lines, looks
from lmemtest.studies.variation.ranking_reliability import TARGETS, RankingReliability
from lmemtest.words import counted

_POINTS = 200


@_canvas.draws(RankingReliability, source="ranking_reliability()")
def ranking_reliability_plot(result: RankingReliability, /, *, ax: Axes | None = None) -> Axes:
    """Draw how the reliability of the ranking grows with benchmarks and seeds.

    Parameters
    ----------
    result : RankingReliability
        From `lmemtest.ranking_reliability`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: a line for each number of seeds of the table, named at its right end;
        the study itself as a dot with its interval; dashed lines at 0.8 and 0.9.

    Examples
    --------
    >>> import lmemtest as lt
    >>> found = lt.ranking_reliability(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> [text.get_text() for text in found.plot().child_axes[0].texts]
    ['0.8', '0.9', '1 seed', '25 seeds']
    """
    seeds = [float(n) for n in dict.fromkeys(result.table["n_seeds"])]
    most = float(max(result.table["n_benchmarks"].max(), result.n_benchmarks))
    x = np.linspace(1.0, most, _POINTS)
    every = dict(zip(seeds, looks(len(seeds)), strict=True))
    curves = [
        Curve(
            name=f"{written(n, '.4g')} seed{'s' * (n != 1)}",
            x=x,
            y=np.array([result.at(b, n) for b in x]),
            look=look,
            width=0.14,
        )
        for n, look in every.items()
    ]
    study = Curve(
        x=np.array([float(result.n_benchmarks)]),
        y=np.array([result.reliability]),
        low=np.array([result.ci_low]),
        high=np.array([result.ci_high]),
        bars=True,
        opacity=1.0,
        look=every.get(result.n_seeds, Look(_style.INK)),
        marker="o",
        size=0.6,
        width=0.0,
        label="_study",
        band_label="_interval",
        front=4,
    )
    panel = Panel(
        x=Axis(limits=(0.0, 1.02 * most), whole=True),
        y=Axis(limits=(0.0, 1.0)),
        curves=(*curves, study),
        levels=tuple(Level(at=target, words=f"{target:g}") for target in TARGETS),
    )
    lines = Lines(
        what=f"a plot of {counted(len(curves), 'line')}",
        panels=(panel,),
        beside=True,
        x_label="Benchmarks",
        y_label=("Reliability of the ranking", "Reliability"),
        foot=f"Dot: this study with its {_style.nobreak(f'{100 * result.level:g} %')} interval.",
    )
    return draw_lines(lines, ax)
