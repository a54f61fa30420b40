"""Performance profiles: the share of runs, or of benchmarks, that are better than a score, for every score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.resampling import Resampling, Weighted, band_of, intervals
from lmemtest.core.result import Answer
from lmemtest.core.validate import check_choice
from lmemtest.core.words import joined
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array


COUNTED = ("runs", "benchmarks")
_POINTS = 101
_SHOWN = 5  # scores in the printed table
_EQUAL = 1e-9  # shares that differ by less are equal


def performance_profiles(resampling: Resampling, taus: Any, *, of: str, method: str, level: float) -> Answer:
    """The profiles of `AggregateScores.profiles`."""
    check_choice(of, "of", COUNTED)
    blocks = resampling.blocks
    places = _taus(taus, blocks.runs)

    def profile(weighted: Weighted) -> Array:
        count = weighted.beyond if of == "runs" else weighted.blocks_beyond
        return count(places, blocks.direction)

    parts, shares = [], np.empty((len(blocks.algorithms), len(places)))
    for a, name in enumerate(blocks.algorithms):
        shares[a] = profile(resampling.observed(a))[0]
        draws = np.concatenate([profile(part) for part in resampling.draws(a)])
        without = ((stratum, profile(part)) for stratum, part in resampling.left_out(a))
        low, high = np.clip(intervals(draws, shares[a], without, method, level), 0.0, 1.0)
        columns = {"algorithm": name, "tau": places, "share": shares[a], "ci_low": low, "ci_high": high}
        parts.append(pd.DataFrame(columns))
    table = pd.concat(parts, ignore_index=True)
    at = np.unique(np.linspace(0, len(places) - 1, min(_SHOWN, len(places))).round().astype(int))
    units = of if of == "runs" else blocks.units
    band = f"Pointwise {band_of(resampling, method, level)}"
    cut = (f"{_SHOWN} of {len(places)} scores; all are in to_frame().",) if len(places) > _SHOWN else ()
    return Answer(
        question="profiles",
        title=f"Share of {units} with {blocks.score} {'below' if blocks.direction == 'minimize' else 'above'} tau",
        tables={"table": table},
        values={"of": units, "algorithms": blocks.algorithms, "taus": tuple(places.tolist()), "shares": shares,
                "method": method, "level": level, "score": blocks.score, "direction": blocks.direction, "band": band},
        facts=(*cut, band),
        findings=(_ahead(shares, blocks.algorithms, units),),
        notes=blocks.notes,
        printed=table[np.tile(np.isin(np.arange(len(places)), at), len(shares))].reset_index(drop=True),
        formats=dict.fromkeys(["share", "ci_low", "ci_high"], ".3f"),
        figure="performance_profile_plot",
    )  # fmt: skip


def _ahead(shares: Array, algorithms: tuple[str, ...], units: str) -> str:
    """Whose profile is never below another one."""
    first = (shares >= shares.max(axis=0) - _EQUAL).all(axis=1)
    if not first.any():
        return (
            "No algorithm is ahead at every score: profiles cross, so which is better depends on the scores that count."
        )
    names = [name for name, ahead in zip(algorithms, first, strict=True) if ahead]
    verb = "is" if len(names) == 1 else "are"
    return f"{joined(names)} {verb} ahead at every score: no other has a larger share of better {units}."


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
