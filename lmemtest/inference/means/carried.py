"""Means of scores relative to a baseline, with the baseline's own noise in their standard errors.

The baseline's mean is 0 on every benchmark because it was subtracted there, not because it is known: what chance did to
it is in all other scores. Its estimate is 0, so that subtracting it changes no mean, and gives each the standard error
of its difference from the baseline, in which that chance is counted. Differences of two others stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lmemtest.data.runs import Runs
from lmemtest.words import format_level

if TYPE_CHECKING:
    from lmemtest.inference.means.estimates import Estimates

__all__ = ["carried"]

E = TypeVar("E", bound="Estimates")

_ZERO = 1e-8  # of the spread of the scores: an estimate that is 0 but for rounding
_NEAR = 0.1  # of its standard error: random effects of shared seeds pull a mean off 0 where its runs are fewer


def carried(fit: Any, means: E, spread: float) -> tuple[E, tuple[str, ...]]:
    """The means as differences from the baseline's, which are 0, and a note; as they are where there is no baseline."""
    runs, parsed = fit.data, fit.design.parsed
    if not isinstance(runs, Runs) or runs.scale is None or runs.scale.baseline is None:
        return means, ()
    baseline, frame = runs.scale.baseline, means.frame
    if parsed.response != runs.score or parsed.response_function or runs.algorithm not in frame:
        return means, ()
    others = [name for name in frame.columns if name != runs.algorithm]
    keys = list(zip(*(frame[name] for name in others), strict=True)) if others else [()] * len(frame)
    names = frame[runs.algorithm].map(format_level).to_numpy()
    at = {keys[row]: row for row in np.flatnonzero(names == format_level(baseline))}
    zero = {key for key, row in at.items() if abs(means.estimate[row]) <= max(_ZERO * spread, _NEAR * means.se[row])}
    if not zero:
        return means, ()
    L = means.L.copy()
    for row, key in enumerate(keys):
        if key in zero:
            L[row] = means.L[row] - means.L[at[key]]
    found = replace(means, L=L).with_errors()
    own = np.isin(np.arange(len(L)), [at[key] for key in zero])
    certain: dict[str, Any] = {
        name: np.where(own, 0.0, getattr(found, name)) for name in ("estimate", "se", "ci_low", "ci_high")
    }
    return replace(found, df=np.where(own, np.inf, found.df), **certain), (
        f"Means are improvements on {format_level(baseline)}, whose own mean is 0 by definition: their standard errors "
        f"are those of the differences from it, with its noise.",
    )
