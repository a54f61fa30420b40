"""Reliability of a ranking over the number of benchmarks, or families, one line per number of seeds."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.variation.ranking_reliability import TARGETS, RankingReliability
from lmemtest.core.rounding import written
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Look, Panel, draw_lines, looks

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
        the study itself as a dot with its interval; dashed lines at 0.8 and 0.9. Where families are the sample, they
        are counted instead of benchmarks, with a line for each number of benchmarks of a family, too.

    Examples
    --------
    >>> import lmemtest as lt
    >>> found = lt.ranking_reliability(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> [text.get_text() for text in found.plot().child_axes[0].texts]
    ['0.8', '0.9', '1 seed', '25 seeds']
    """
    here = float(result.n_families or result.n_benchmarks)
    counted_by = "n_families" if result.family else "n_benchmarks"
    most = float(max(result.table[counted_by].max(), here))
    x = np.linspace(1.0, most, _POINTS)
    each = result.table["n_benchmarks"].astype(float) if result.family else result.table["n_seeds"] * 0.0  # of a family
    sizes = list(dict.fromkeys(zip(each, result.table["n_seeds"].astype(float), strict=True)))
    every = dict(zip(sizes, looks(len(sizes)), strict=True))
    several, m = each.nunique() > 1, float(each.iloc[0])
    curves = [
        Curve(
            name=", ".join([_number(m, "benchmark")] * several + [_number(n, "seed")]),
            x=x,
            y=np.array([result.at(m, n, f) if result.family else result.at(f, n) for f in x]),
            look=look,
            width=0.14,
        )
        for (m, n), look in every.items()
    ]
    study = Curve(
        x=np.array([here]),
        y=np.array([result.reliability]),
        low=np.array([result.ci_low]),
        high=np.array([result.ci_high]),
        bars=True,
        opacity=1.0,
        look=every.get((result.n_benchmarks_each if result.family else 0.0, result.n_seeds), Look(_style.INK)),
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
        x_label="Families" if result.family else "Benchmarks",
        y_label=("Reliability of the ranking", "Reliability"),
        foot=f"Dot: this study with its {_style.nobreak(f'{100 * (1.0 - result.alpha):g} %')} interval."
        + f" {_number(m, 'benchmark')} in each family{' (harmonic mean)' * bool(m % 1)}." * bool(m and not several),
    )
    return draw_lines(lines, ax)


def _number(n: float, noun: str) -> str:
    return f"{written(n, '.4g')} {noun}{'s' * (n != 1)}"
