"""Looks at a growing study: the path of each comparison, and the boundary that it has to reach."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from study import make_runs

import lmemtest as lt
from lmemtest.bench.looks.monitor import Monitoring
from lmemtest.plots import _style


def study(k: int, sizes: tuple[int, ...], **options: object) -> Monitoring:
    runs = make_runs(k, 20, 3, shift=0.4 * np.arange(k), rng=3)
    found = None
    for n in sizes:
        part = runs.filter(**{runs.benchmark: runs.levels(runs.benchmark)[:n]})
        found = lt.monitor(part, maximum=20, looks=5, earlier=found, **options)
    return found


def test_lines_are_scores_ahead_of_the_first_and_the_boundary_goes_on_to_the_end() -> None:
    found = study(4, (5, 10))
    ax = found.plot()
    panel = ax.child_axes[0]
    paths = [line for line in panel.lines if line.get_label() == "_path"]
    assert len(paths) == 3
    path, first = found.to_frame("path"), found.decisions.levels[0]
    for line, name in zip(paths, found.decisions.levels[1:], strict=True):
        rows = path[
            ((path["left"] == first) & (path["right"] == name)) | ((path["left"] == name) & (path["right"] == first))
        ]
        assert line.get_xdata() == approx([5.0, 10.0])
        assert np.abs(line.get_ydata()) == approx(rows["z"].abs().to_numpy())
        assert line.get_ydata()[-1] > 0.0  # the first is ahead
    done, ahead = (line for line in panel.lines if line.get_label() == "_boundary")
    assert (done.get_linestyle(), ahead.get_linestyle()) == ("-", ":")
    assert done.get_xdata() == approx([5.0, 10.0])
    assert ahead.get_xdata() == approx([10.0, 15.0, 20.0])
    assert np.all(np.diff(found.to_frame("boundary")["z"]) < 0.0)


def test_a_control_is_what_others_are_compared_with_and_many_are_counted() -> None:
    control = study(3, (5, 10), control="A")
    assert sum(line.get_label() == "_path" for line in control.plot().child_axes[0].lines) == 2
    many = study(14, (5, 10)).plot()
    assert sum(line.get_label() == "_path" for line in many.child_axes[0].lines) == 10
    foot = " ".join(text.get_text() for text in many.texts).replace("\n", " ")
    assert "3 algorithms further behind are left out" in foot


@pytest.mark.parametrize("width", ["column", "page"])
def test_it_fits_the_widths_of_papers(width: str) -> None:
    drawn = study(5, (5, 10)).plot(width=width)
    assert min(text.get_fontsize() for text in drawn.texts) >= 6.0


def test_an_algorithm_keeps_its_colour_from_look_to_look_and_in_other_figures():
    runs = lt.datasets.load_hpo_runs().filter(budget=4, prior="good")
    places = _style.places(runs.algorithms)
    for count in (10, None):
        found = lt.monitor(runs.filter(benchmark=runs.levels("benchmark")[:count]), maximum=30, looks=3)
        (panel,) = found.plot().child_axes
        drawn = {line.get_gid(): line.get_color() for line in panel.lines if line.get_label() == "_path"}
        of_pairs = {_style.part(name): _style.colour(place) for name, place in places.items()}
        assert len(drawn) > 1
        assert drawn == {gid: of_pairs[gid] for gid in drawn}
