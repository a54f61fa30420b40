"""Small multiples of tuning curves show their numbers and keep inside their rectangle."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from figures import lines
from matplotlib.path import Path
from pytest import approx

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots.tuning import tuning_curves_plot
from lmemtest.tuning.costs import BudgetCurve, read_at

LONG = "a very long name with $\\alpha$ and _under_ <b>bold</b> {x} that nothing has room for, number {}"


def trials(benchmarks, algorithms, n=48, *, seed=1):
    rng = np.random.default_rng(seed)
    parts = [
        pd.DataFrame({"task": b, "tool": a, "loss": rng.gamma(2.0, 1.0 + 0.1 * j, n) * 10.0 ** (i % 4 - 2)})
        for i, b in enumerate(benchmarks)
        for j, a in enumerate(algorithms)
    ]
    return pd.concat(parts, ignore_index=True).assign(cost=rng.lognormal(size=n * len(parts)))


def names(prefix, count):
    return [f"{prefix}{i:02d}" for i in range(count)]


def curves_of(frame, **options):
    return tuning.curves(frame, score="loss", direction="minimize", by=["task", "tool"], **options)


def over_seeds(n=12):
    rng = np.random.default_rng(2)
    rows = [(t, a, s, b, rng.normal()) for t in "xy" for a in "AB" for s in range(n) for b in (1, 3, 9, 27)]
    frame = pd.DataFrame(rows, columns=["task", "tool", "seed", "budget", "loss"])
    return curves_of(frame, unit="seed", seed="seed", budget="budget")


CASES = {
    "two": lambda: curves_of(trials(names("task", 2), names("tool", 2))),
    "five": lambda: curves_of(trials(names("task", 5), names("tool", 5), 20)),
    "one": lambda: tuning.curves(trials(["a"], ["b"]), score="loss", direction="minimize", by="tool"),
    "one k": lambda: curves_of(trials(["a"], ["b"]), k=[2]),
    "cost": lambda: curves_of(trials(names("task", 3), names("tool", 2)), cost="cost"),
    "few trials": lambda: curves_of(trials(names("task", 2), names("tool", 2), 2)),
    "mean": lambda: curves_of(trials(names("task", 2), names("tool", 2)), statistic="mean", bounds=(0, 1000)),
    "maximise": lambda: tuning.curves(
        trials(names("task", 2), names("tool", 2)), score="loss", direction="maximize", by=["task", "tool"]
    ),
    "long names": lambda: curves_of(
        trials([LONG.replace("{}", str(i)) for i in range(4)], [LONG.replace("{}", f"{i}") for i in range(3)])
    ),
    "odd names": lambda: curves_of(trials(["_漢字", "x\ny $"], ["_漢字", "$a$"])),
    "equal scores": lambda: curves_of(trials(["a"], ["b"]).assign(loss=0.5)),
    "large offset": lambda: curves_of(trials(["a", "b"], ["b"]).assign(loss=lambda f: 1e6 + 1e-3 * f["loss"])),
    "seeds": over_seeds,
}


@pytest.mark.parametrize("case", CASES)
def test_names_and_words_fit_for_every_kind_of_curve(case, assert_fits):
    curves = CASES[case]()
    assert_fits(lambda ax: tuning_curves_plot(curves, ax=ax), (4.5, 4.5))


def test_twenty_algorithms_on_twenty_benchmarks_are_readable_and_distinguishable(assert_readable):
    ax = tuning_curves_plot(curves_of(trials(names("task", 20), names("tool", 20), 6)))
    assert_readable(ax)
    lines = [line for line in ax.child_axes[0].lines if line.get_label() == "_estimate"]
    assert len({(line.get_color(), str(line.get_linestyle()), line._dash_pattern[1].__str__()) for line in lines}) == 20
    assert [text.get_text() for text in ax.get_legend().get_texts()] == names("tool", 20)


def test_panels_show_their_curves():
    curves = CASES["two"]()
    ax = tuning_curves_plot(curves)
    assert [panel.get_title(loc="left") for panel in ax.child_axes] == ["task00", "task01"]
    for panel, group in zip(ax.child_axes, curves.panels(), strict=True):
        drawn = lines(panel, "_estimate")
        for line, curve, colour in zip(drawn, group, _style.PALETTE, strict=False):
            assert line.get_color() == colour
            assert (line.get_xdata().min(), line.get_xdata().max()) == (1, 48)
            k = np.array([1, 1.5, 2, 2.7, 7.3, 8.1, 30.3, 48])
            read = np.interp(k, line.get_xdata(), line.get_ydata())
            assert list(read) == approx(list(curve.curve.at(k).estimate))
        bands = [c for c in panel.collections if c.get_label() == "_band"]
        for band, curve in zip(bands, group, strict=True):
            corners = band.get_paths()[0].vertices
            assert corners[:, 0].max() == approx(curve.curve.k_max, rel=1e-6)
            assert corners[:, 1].max() == approx(curve.band_high[~curve.trivial].max())
            shown = Path(corners)
            exact = curve.curve.at(np.geomspace(1.003, 8.1, 60))
            for k, low, high in zip(exact.k, exact.band_low, exact.band_high, strict=True):
                room = 1e-6 * (high - low)
                assert shown.contains_points([(k, low + room), (k, high - room)]).all(), k
                assert not shown.contains_points([(k, low - room), (k, high + room)]).any(), k


def test_what_is_trivial_is_grey_and_told():
    curves = CASES["two"]()
    ax = tuning_curves_plot(curves)
    grey = [c for c in ax.child_axes[0].collections if c.get_label() == "_trivial"]
    assert len(grey) == 2
    for band, curve in zip(grey, curves.panels()[0], strict=True):
        corners = band.get_paths()[0].vertices
        assert (corners[:, 0].min(), corners[:, 0].max()) == approx((curve.curve.k_max, 48), rel=1e-6)
    words = " ".join(text.get_text() for text in ax.texts)
    assert "Grey: a limit is the end of the support" in words
    within = tuning_curves_plot(curves_of(trials(["a"], ["b"]), k=[1, 2, 4]))
    assert "Grey" not in " ".join(text.get_text() for text in within.texts)


@pytest.mark.parametrize("case", ["cost", "mean", "maximise"])
def test_what_is_drawn_between_budgets_is_the_exact_band(case):
    """Straight lines between whole k left out a part of the band; between costs, limits jump apart from estimates."""
    curves = CASES[case]()
    ax = tuning_curves_plot(curves)
    for panel, group in zip(ax.child_axes, curves.panels(), strict=True):
        drawn = lines(panel, "_estimate")
        bands = [c for c in panel.collections if c.get_label() == "_band"]
        for line, band, curve in zip(drawn, bands, group, strict=True):
            where = np.geomspace(curve.grid[0], curve.grid[-1], 42)[1:-1]
            exact = BudgetCurve(key=("",), level=curve.level, **read_at(curve.curve, curve.cost, where))
            shown = np.interp(where, line.get_xdata(), line.get_ydata())
            assert shown == approx(exact.estimate, rel=2e-3 if case == "mean" else 1e-9)
            if case == "mean":
                continue
            for x, low, high in zip(
                *(v[~exact.trivial] for v in (where, exact.band_low, exact.band_high)), strict=True
            ):
                inside = [(x, low + 1e-6 * (high - low)), (x, high - 1e-6 * (high - low))]
                assert any(path.contains_points(inside).all() for path in band.get_paths())


def test_the_axis_is_logarithmic_where_budgets_span_much():
    assert {p.get_xscale() for p in tuning_curves_plot(CASES["two"]()).child_axes} == {"log"}
    assert {p.get_xscale() for p in tuning_curves_plot(CASES["five"]()).child_axes} == {"linear"}


@pytest.mark.parametrize("last", [3, 20])
def test_trials_have_whole_ticks(last):
    for panel in tuning_curves_plot(curves_of(trials(["a"], ["b"]), k=list(range(1, last + 1)))).child_axes:
        assert panel.get_xscale() == "linear"
        assert len(panel.get_xticks()) >= 2
        assert (panel.get_xticks() == panel.get_xticks().round()).all()


def test_curves_over_seeds_are_steps_and_say_so():
    ax = tuning_curves_plot(CASES["seeds"]())
    lines = [line for panel in ax.child_axes for line in panel.lines if line.get_label() == "_estimate"]
    assert {line.get_drawstyle() for line in lines} == {"steps-post"}
    words = [text.get_text() for text in ax.texts]
    assert "Budget" in words
    assert any("over seeds" in text for text in words)
    assert "at all budgets at once (Bonferroni)" in " ".join(words)


def test_only_their_result_is_drawn_and_in_room_enough():
    with pytest.raises(ArgumentError) as caught:
        tuning_curves_plot({})
    assert str(caught.value) == (
        "curves must be the result of tuning.curves(), got dict. Two searches are drawn by tuning.compare(...).plot()."
    )
    with pytest.raises(ArgumentError, match="ax is too small: 2 panels needs larger axes, it is"):
        tuning_curves_plot(CASES["two"](), ax=_canvas.new_axes(1.0, 0.4))
