"""Real result objects without a fit, and measures of what a figure shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.plots import _canvas, detached_figures

LONG_NAMES = (
    "a very long algorithm name with $\\alpha$ and _under_ <b>bold</b> 1",
    "a very long algorithm name with $\\alpha$ and _under_ <b>bold</b> 2",
    "_ünïcödé {braces} naïve Bayes № 7 — Ωμέγα, кириллица & more $",
    "漢字 optimizer",
    "x",
)


def make_means(
    names: Sequence[str],
    means: Sequence[float],
    se: float | Sequence[float] = 0.1,
    *,
    direction: str | None = "minimize",
    groups: Sequence[str] = (),
    df: float = 50.0,
) -> Estimates:
    """Independent means with given standard errors; with `groups`, `means` runs over groups, then names."""
    means = np.asarray(means, dtype=float)
    se = np.broadcast_to(np.asarray(se, dtype=float), means.shape).copy()
    known = np.isfinite(means)
    se[~known] = np.nan
    cells = [{"algorithm": n} | ({"prior": g} if groups else {}) for g in (groups or [""]) for n in names]

    def estimable(rows: np.ndarray) -> np.ndarray:
        return ~(rows[:, ~known] != 0).any(axis=1)

    return Estimates.of(
        L=np.eye(len(means)),
        frame=pd.DataFrame(cells),
        b=np.where(known, means, 0.0),
        V=np.diag(np.where(known, se, 0.0) ** 2),
        df=df,
        estimable_function=estimable,
        by=("prior",) if groups else (),
        n_obs=1000,
        score="value",
        direction=direction,
        column="emmean",
    )


def make_pairs(*args: Any, **options: Any) -> Comparisons:
    """All pairs of `make_means`."""
    return make_means(*args, **options).pairs()


def make_decisions(*args: Any, **options: Any) -> Decisions:
    """The decisions of `make_means`."""
    return make_pairs(*args, **options).decisions()


def random_case(count: int, *, seed: int = 3) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, means and unequal standard errors that give overlapping groups with gaps."""
    rng = np.random.default_rng(seed)
    names = [f"optimizer_{i:02d}" for i in range(count)]
    return names, rng.normal(10, 1, count), rng.uniform(0.05, 0.3, count)


def make_effects(benchmarks: int, algorithms: int, *, seed: int = 1) -> pd.DataFrame:
    """A table for `benchmark_effects_plot`."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(benchmarks):
        for j in range(algorithms):
            effect, half = rng.normal(), rng.uniform(0.2, 0.8)
            rows.append((f"LC-{167190 + i}", f"alg_{j}", effect, effect - half, effect + half))
    return pd.DataFrame(rows, columns=["benchmark", "algorithm", "effect", "ci_low", "ci_high"])


@pytest.fixture(autouse=True)
def _plain_session() -> Any:
    """No pyplot, and a test that changes rcParams fails."""
    before = mpl.rcParams.copy()
    with detached_figures():
        yield
    assert mpl.rcParams.copy() == before


@pytest.fixture
def texts_of() -> Callable[[Any], list[Any]]:
    """Return the visible, non-empty texts of the figure of an axes."""
    return _texts_of


def _texts_of(ax: Any) -> list[Any]:
    """Record what is drawn: an axis also owns ticks that it does not draw."""
    drawn: list[Any] = []
    original = Text.draw

    def record(self: Any, renderer: Any) -> None:
        if self.get_visible() and self.get_text().strip():
            drawn.append(self)
        original(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", record)
        ax.figure.figure.draw_without_rendering()
    return drawn


@pytest.fixture
def assert_readable() -> Callable[[Any], None]:
    """Assert that no text leaves the figure, touches another text, or is read as mathtext or TeX."""

    def check(ax: Any) -> None:
        texts = _texts_of(ax)
        assert texts, "a figure without any text"
        boxes = [text.get_window_extent() for text in texts]
        whole = ax.figure.figure.bbox
        for text, box in zip(texts, boxes, strict=True):
            inside = box.x0 >= -0.5 and box.y0 >= -0.5 and box.x1 <= whole.x1 + 0.5 and box.y1 <= whole.y1 + 0.5
            assert inside, f"{text.get_text()!r} leaves the figure: {box} in {whole}"
            assert not text.get_parse_math() or "$" not in text.get_text()
            assert not text.get_usetex()
            assert text.get_fontsize() >= 3
        # boxes include the leading of the line, so half a pixel of overlap is none
        sides = np.array([box.extents for box in boxes])
        low, high = (
            np.maximum(sides[:, None, :2], sides[None, :, :2]),
            np.minimum(sides[:, None, 2:], sides[None, :, 2:]),
        )
        touching = np.triu((high - low > 0.5).all(axis=2), k=1)
        overlaps = [(texts[i].get_text(), texts[j].get_text()) for i, j in np.argwhere(touching)]
        assert not overlaps

    return check


@pytest.fixture
def assert_fits(assert_readable) -> Callable[..., None]:
    """Assert of one figure, new and in small axes: all text can be read, and nothing is cut at any resolution."""

    def check(draw: Callable[[Any], Any], small: tuple[float, float] = (3.9, 3.4)) -> None:
        assert_readable(draw(None))
        ax = _canvas.new_axes(*small)
        assert draw(ax) is ax
        assert_readable(ax)
        figure = ax.figure.figure
        for dpi in (60, 75, 150):
            figure.set_dpi(dpi)
            extents = ax.get_tightbbox()
            gaps = np.array([extents.x0, extents.y0, figure.bbox.x1 - extents.x1, figure.bbox.y1 - extents.y1])
            assert (gaps * 72 / dpi > -0.5).all(), (dpi, gaps.round(1))  # half a point: the white rim of a letter

    return check


@pytest.fixture
def two_five_twenty() -> dict[int, Sequence[str]]:
    """Names of algorithms: short ones, five that are long or odd, and many."""
    return {2: ("HB", "RS"), 5: LONG_NAMES, 20: [f"optimizer_{i:02d}" for i in range(20)]}


CASES: dict[str, tuple[Any, ...]] = {
    "two": (("HB", "PB"), (0.91, 0.9), 0.01),
    "three": (("HB", "PB", "RS"), (14.9, 14.2, 16.1), (0.3, 0.25, 0.4)),
    "five": random_case(5),
    "twenty": random_case(20),
    "long names": (LONG_NAMES, (1.0, 1.2, 1.4, 1.41, 1.9), 0.08),
    "all equal": (tuple("ABCDEFG"), (2.0,) * 7, 0.1),
    "outlier": (tuple("ABCDEFG"), (1.0, 1.01, 1.02, 1.015, 1.3, 1.31, 1e6), 0.1),
    "large offset": (tuple("ABCD"), (1e6, 1e6 + 1e-3, 1e6 + 2e-3, 1e6 + 4e-3), 3e-4),
    "missing": (("A", "B", "C", "D"), (1.0, np.nan, 1.2, 1.9), 0.1),
    "tiny": (tuple("ABC"), (1e-9, 3e-9, -2e-9), 1e-10),
    "numbers": ((1, 2.5, 10), (1.0, 2.0, 3.0), 0.2),
}


@pytest.fixture
def make() -> SimpleNamespace:
    """The makers above, for test modules, which cannot import this one."""
    return SimpleNamespace(
        means=make_means,
        pairs=make_pairs,
        decisions=make_decisions,
        effects=make_effects,
        cases=CASES,
        random_case=random_case,
    )
