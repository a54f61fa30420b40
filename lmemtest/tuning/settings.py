"""What a tuning curve shows and how sure it is: the settings that curves, comparisons and plans share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.core.caller import advice
from lmemtest.core.result import Result
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.tuning.band import CdfBand, check_from_k
from lmemtest.tuning.band import band as make_band
from lmemtest.tuning.checks import check_direction, check_statistic, name_of
from lmemtest.tuning.order_statistics import BANDS

_ROWS = 12  # of a printed curve; to_frame() has all


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of a curve: what `CurveResult` describes."""

    direction: str
    statistic: str | float
    level: float
    band: str
    from_k: float | None

    @property
    def sign(self) -> float:
        """What turns scores so that larger is better."""
        return 1.0 if self.direction == "maximize" else -1.0

    @property
    def q(self) -> float:
        """The quantile of the curve; 0.5 for the mean, which has none."""
        return 0.5 if isinstance(self.statistic, str) else self.statistic

    @property
    def quantile(self) -> float:
        """`q` when scores are turned so that larger is better.

        The best of k scores y is at most its q-quantile with probability q; that of -y is at most its own with 1 - q.
        """
        return self.q if self.direction == "maximize" else 1.0 - self.q

    @property
    def name(self) -> str:
        """What the curve shows, in words."""
        best = "largest" if self.direction == "maximize" else "smallest"
        return f"{name_of(self.statistic)} of the {best} of k scores"

    def band_for(self, n_scores: int) -> CdfBand:
        """The band of so many scores."""
        return make_band(n_scores, band=self.band, level=self.level, from_k=self.from_k, quantile=self.quantile)


def check_settings(direction: Any, statistic: Any, level: Any, band: Any, from_k: Any) -> Settings:
    """The settings, or an error that says what is wrong with them."""
    direction, statistic = check_direction(direction), check_statistic(statistic)
    level, band = check_fraction(level, "level"), check_choice(band, "band", BANDS)
    if from_k is not None and statistic == "mean":
        raise ArgumentError(
            "from_k is for quantile curves: the mean of the best of k reads the whole distribution function. "
            "Use statistic='median', or from_k=None."
        )
    from_k = None if from_k is None else check_from_k(from_k, band)
    return Settings(direction=direction, statistic=statistic, level=level, band=band, from_k=from_k)


def check_rank_settings(
    direction: Any, statistic: Any, level: Any, band: Any, from_k: Any, *, no_mean: str
) -> Settings:
    """The settings of a quantile curve whose scores are not needed; the median is the same story for both directions.

    `no_mean` says why there is no answer for the mean.
    """
    statistic = check_statistic(statistic)
    if statistic == "mean":
        raise ArgumentError(no_mean)
    if direction is None and statistic not in ("median", 0.5):
        raise ArgumentError(
            f"direction must be given for the {name_of(statistic)}: 'maximize' or 'minimize'. The best score is the "
            "largest or the smallest one, and only for medians both have limits for the same k."
        )
    return check_settings("maximize" if direction is None else direction, statistic, level, band, from_k)


class CurveResult(Result):
    """A result that has `settings`, and lets them be read as its own attributes."""

    __slots__ = ()
    settings: Settings

    @property
    def direction(self) -> str:
        """Which end of the score is better: "maximize" or "minimize"."""
        return self.settings.direction

    @property
    def statistic(self) -> str | float:
        """What of the distribution of the best of k is shown: "median", "mean" or a quantile q, in both directions."""
        return self.settings.statistic

    @property
    def level(self) -> float:
        """Probability that a band holds, as asked for."""
        return self.settings.level

    @property
    def band(self) -> str:
        """Shape of the band."""
        return self.settings.band

    @property
    def from_k(self) -> float | None:
        """Smallest k that the band is calibrated for."""
        return self.settings.from_k


def thinned(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A dozen rows of a table by budget, evenly on the log scale, and how many they are unless they are all."""
    count = len(frame)
    if count <= _ROWS:
        return frame, ()
    rows = np.unique(np.round(np.geomspace(1, count, _ROWS)).astype(int)) - 1
    return frame.iloc[rows], (f"{len(rows)} of {count} budgets{advice('all_rows')}.",)
