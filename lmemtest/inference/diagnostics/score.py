"""What a fit models: the kind of its score, and the function that the model takes of it.

Advice depends on both: scores that are 0 or 1 have no normal residuals and no logarithm, and a model of logarithms
needs no second one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest.data.points import Points
from lmemtest.data.runs import Runs
from lmemtest.data.scales import Remedy, remedies, scale_ratio, spreads
from lmemtest.data.score_kind import ScoreKind, score_kind, two_valued
from lmemtest.errors import LmemtestError
from lmemtest.words import format_number

if TYPE_CHECKING:
    from lmemtest.inference.diagnostics.rows import Rows
    from lmemtest.model import LmmFit

_LOGARITHMS = ("log", "log2", "log10", "log1p")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """The score of a fit.

    Attributes
    ----------
    kind : ScoreKind
        Of the table of the fit; of frames without roles only two values and "general" are known.
    logged : bool
        Whether the model is one of logarithms.
    positive : bool
        Whether all values that are modelled are positive.
    rarer : float
        Rows with the rarer one of two values; of other scores NaN.
    points : Points or None
        The runs of the fit, where it was given `Runs`.
    """

    kind: ScoreKind
    logged: bool
    positive: bool
    rarer: float = float("nan")
    points: Points | None = None

    @property
    def two_valued(self) -> bool:
        """Whether scores are right or wrong."""
        return self.kind.kind == "two-valued"

    @property
    def by_log(self) -> bool:
        """Whether the logarithm of the score is another model that could be fitted."""
        return self.positive and not self.logged and not self.kind.equal_by_nature

    def transformations(self) -> str:
        """How a skewed or heavy-tailed score can be transformed."""
        rank = in_words_of(python="runs.normalize('rank')", command_line="--normalize rank")
        return f"log, or {rank}" if self.by_log else rank

    def one_scale(self) -> str:
        """How scores are put on one scale over benchmarks, with the ratio that is left; empty where nothing does it."""
        if self.points is None:
            return ""
        found: tuple[Remedy, ...] = remedies(self.points, self.kind)
        if not found:
            return ""
        method, after = found[0]
        call = in_words_of(python=f"runs.normalize({method!r})", command_line=f"--normalize {method}")
        before = scale_ratio(spreads(self.points))
        return (
            f"{call}, after which scatter differs {format_number(after, 2)}-fold instead of {format_number(before, 3)}"
        )


def score_of(fit: LmmFit, rows: Rows) -> Score:
    """The score of a fit, from its runs where it has them."""
    y = fit.cells.mean[rows.cell] + rows.deviation
    parsed, points = fit.design.parsed, None
    logged = parsed.response_function in _LOGARITHMS
    # a cell of several rows has some below zero unless its mean is far above its spread
    lowest = y if rows.single else fit.cells.mean - np.sqrt(fit.cells.ss)
    positive = bool((lowest > 0).all())
    if isinstance(fit.data, Runs) and fit.data.score == parsed.response:
        with suppress(LmemtestError):  # the table is not what it was
            points = fit.data.study.points
    kind = _kind_of_values(fit) if points is None else score_kind(points)
    rarer = float("nan")
    if kind.kind == "two-valued":
        of_high = float(fit.cells.n @ (fit.cells.mean - kind.low)) / (kind.high - kind.low)
        rarer = min(of_high, fit.cells.n.sum() - of_high)
    return Score(kind=kind, logged=logged, positive=positive, rarer=rarer, points=points)


def _kind_of_values(fit: LmmFit) -> ScoreKind:
    cells = fit.cells
    low, high = (0.0, 1.0) if (cells.n > 1).any() else (float(cells.mean.min()), float(cells.mean.max()))
    if low < high and two_valued(cells.n, cells.mean, cells.ss, low, high) and 0 < cells.mean.mean() < cells.n.sum():
        return ScoreKind(kind="two-valued", evidence=f"Scores are {low:g} or {high:g}.", low=low, high=high)
    low, high = float(cells.mean.min()), float(cells.mean.max())
    return ScoreKind(kind="general", evidence="The roles of the columns are not known.", low=low, high=high)
