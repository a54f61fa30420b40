"""Names are cut to the most characters that fit, without a measurement of each candidate."""

import numpy as np
import pytest

from lmemtest.plots import _canvas, _style

NAMES = [
    "optimizer=bayesian,kernel=matern52,acquisition=lognei,init=sobol",
    "iiiiiiiiiiiiWWWWWWWWWWWW",
    "a b  c d e f",
    "ü" * 30,
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("head", [0.5, 0.75, 0.25, 1.0, 0.0])
def test_the_most_characters_that_fit_are_kept(name, head):
    ruler = _style.Ruler(_canvas.scratch_axes(), 9.0)
    for room in np.linspace(5.0, ruler.width(name) - 1.0, 9):
        cuts = [_style._cut(name, keep, head) for keep in range(len(name))]
        fitting = [cut for cut in cuts if ruler.width(cut) <= room] or cuts[:1]
        assert _style._ellipsis(name, room, ruler, head) == fitting[-1]


def test_a_long_name_is_measured_a_few_times(monkeypatch):
    ruler = _style.Ruler(_canvas.scratch_axes(), 9.0)
    measured, width = [], _style.Ruler.width
    monkeypatch.setattr(_style.Ruler, "width", lambda self, text: measured.append(text) or width(self, text))
    _style._ellipsis(NAMES[0] * 40, 150.0, ruler, 0.5)
    assert len(measured) <= 5
