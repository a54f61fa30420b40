"""Performance profiles: the share of runs, or of benchmarks, that are better than a score, for every score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.bench.ranking.resampling import Resampling, Weighted, band_of, intervals
from lmemtest.core.result import Result, result
from lmemtest.core.validate import check_choice
from lmemtest.core.words import joined
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array


COUNTED = ("runs", "benchmarks")
_POINTS = 101
_SHOWN = 5  # scores in the printed table
_EQUAL = 1e-9  # shares that differ by less are equal


@result
class PerformanceProfiles(Result):
    """Performance profiles of algorithms.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per algorithm and score: ``algorithm``, ``tau``, ``share`` (better than tau), ``ci_low``, ``ci_high``
        (pointwise: each holds at its own tau only).
    of : {"runs", "benchmarks", "families"}
        What is counted.
    algorithms : tuple of str
    taus : tuple of float
    resampling : Resampling
        What was drawn again.
    method : {"percentile", "basic", "bca"}
    level : float
    score, direction : str
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "performance_profile_plot"
    formats = dict.fromkeys(["share", "ci_low", "ci_high"], ".3f")

    table: pd.DataFrame
    of: str
    algorithms: tuple[str, ...]
    taus: tuple[float, ...]
    resampling: Resampling
    method: str
    level: float
    score: str
    direction: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is counted."""
        return f"Share of {self.of} with {self.score} {'below' if self.direction == 'minimize' else 'above'} tau"

    @property
    def facts(self) -> tuple[str, ...]:
        """Which scores are printed, and what the bands mean."""
        cut = (f"{_SHOWN} of {len(self.taus)} scores; all are in to_frame().",) if len(self.taus) > _SHOWN else ()
        return (*cut, self.band)

    @property
    def band(self) -> str:
        """What the bands mean, for the foot of a figure."""
        return f"Pointwise {band_of(self.resampling, self.method, self.level)}"

    def shares(self) -> Array:
        """The profiles, ``(algorithms, taus)``."""
        return self.table["share"].to_numpy(dtype=float).reshape(len(self.algorithms), len(self.taus))

    def sentences(self) -> tuple[str, ...]:
        """Whose profile is never below another one."""
        shares = self.shares()
        first = (shares >= shares.max(axis=0) - _EQUAL).all(axis=1)
        if not first.any():
            return (
                "No algorithm is ahead at every score: profiles cross, so which is better depends on the scores that "
                "count.",
            )
        names = [name for name, ahead in zip(self.algorithms, first, strict=True) if ahead]
        verb = "is" if len(names) == 1 else "are"
        return (f"{joined(names)} {verb} ahead at every score: no other has a larger share of better {self.of}.",)

    def shown(self) -> pd.DataFrame:
        """The profiles at a few scores."""
        at = np.unique(np.linspace(0, len(self.taus) - 1, min(_SHOWN, len(self.taus))).round().astype(int))
        kept = np.zeros(len(self.taus), dtype=bool)
        kept[at] = True
        return self.table[np.tile(kept, len(self.algorithms))].reset_index(drop=True)


def performance_profiles(
    resampling: Resampling, taus: Any, *, of: str, method: str, level: float
) -> PerformanceProfiles:
    """The profiles of `AggregateScores.profiles`."""
    import pandas as pd

    check_choice(of, "of", COUNTED)
    blocks = resampling.blocks
    places = _taus(taus, blocks.runs)

    def profile(weighted: Weighted) -> Array:
        count = weighted.beyond if of == "runs" else weighted.blocks_beyond
        return count(places, blocks.direction)

    parts = []
    for a, name in enumerate(blocks.algorithms):
        share = profile(resampling.observed(a))[0]
        draws = np.concatenate([profile(part) for part in resampling.draws(a)])
        without = ((stratum, profile(part)) for stratum, part in resampling.left_out(a))
        low, high = np.clip(intervals(draws, share, without, method, level), 0.0, 1.0)
        parts.append(pd.DataFrame({"algorithm": name, "tau": places, "share": share, "ci_low": low, "ci_high": high}))
    return PerformanceProfiles(
        table=pd.concat(parts, ignore_index=True),
        of=of if of == "runs" else blocks.units,
        algorithms=blocks.algorithms,
        taus=tuple(places.tolist()),
        resampling=resampling,
        method=method,
        level=level,
        score=blocks.score,
        direction=blocks.direction,
        notes=blocks.notes,
    )


def _taus(given: Any, scores: Array) -> Array:
    """Scores at which to count, ascending."""
    if given is None:
        return np.linspace(np.nanmin(scores), np.nanmax(scores), _POINTS)
    try:
        taus = np.unique(np.array(given, dtype=float))
    except (TypeError, ValueError):
        taus = np.empty(0)
    if not len(taus) or not np.isfinite(taus).all() or np.asarray(given).dtype == bool:
        raise ArgumentError(f"taus must be finite scores, at least one, or None, got {given!r}.")
    return taus
