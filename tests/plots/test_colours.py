"""An algorithm has one colour in all figures of the same runs, those of a part of them included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.colors import to_hex
from study import make_runs

import lmemtest as lt
from lmemtest.plots import _style

pytestmark = pytest.mark.level(2)

PART = ["B", "D", "E"]
FIGURES: dict[str, Callable[[lt.Runs], Any]] = {
    "anytime": lambda runs: lt.anytime(runs).plot(),
    "budget effect": lambda runs: lt.budget_effect(runs).plot(),
    "relative ranks": lambda runs: lt.anytime(runs).ranks().plot(),
    "behind the best": lambda runs: lt.plots.forest_plot(_fitted(runs).pairs()),
    "profiles": lambda runs: lt.aggregate_scores(_last(runs).normalize("minmax")).profiles().plot(),
    "distributions": lambda runs: lt.score_distributions(_last(runs), by=["benchmark", "algorithm"]).plot(),
}


def _last(runs: lt.Runs) -> lt.Runs:
    return runs.filter(budget=3)


def _fitted(runs: lt.Runs) -> Any:
    return lt.fit_lmm("loss ~ algorithm + (1 | benchmark)", _last(runs)).emmeans("algorithm")


def _colours(ax: Any) -> set[str]:
    """Those of the palette that the figure uses, in lines, dots and patches."""
    drawn = set()
    for artist in ax.figure.findobj():
        for name in ("get_color", "get_facecolor", "get_edgecolor", "get_markeredgecolor"):
            if not artist.get_visible() or not hasattr(artist, name):
                continue
            value = getattr(artist, name)()
            for one in value if getattr(value, "ndim", 1) == 2 else [value]:
                if isinstance(one, str) and one in ("none", "auto"):
                    continue
                drawn.add(to_hex(one))
    return drawn & {to_hex(colour) for colour in _style.PALETTE}


@pytest.mark.parametrize("name", FIGURES)
def test_a_part_of_the_algorithms_keeps_the_colours_of_the_whole(name: str) -> None:
    whole = make_runs(6, 5, 4, budgets=3, shift=[0.0, 0.6, 1.2, 1.8, 2.4, 3.0])
    part = whole.filter(algorithm=PART)
    assert part.algorithms == tuple(PART)
    own = {to_hex(_style.colour(whole.roster.index(algorithm))) for algorithm in PART}
    first_three = {to_hex(_style.colour(place)) for place in range(3)}
    found = _colours(FIGURES[name](part))
    assert own <= found
    assert not (first_three - own) & found
