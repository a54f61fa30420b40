"""Means of scores relative to a baseline, with the baseline's own noise in their standard errors.

The baseline's mean is 0 on every benchmark because it was subtracted there, not because it is known: what chance did to
it is in all other scores. Subtracting its estimate gives each mean the standard error of its difference from the
baseline, in which that chance is counted. That estimate is 0, so that no mean changes, unless the baseline has other
seeds than the others and random effects of seeds pull it off 0. Differences of two others stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.words import format_level

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.lmm.means.estimates import Estimates

__all__ = ["carried"]


_ZERO = 1e-8  # of the spread of the scores: a mean that is 0 but for rounding


def carried(fit: Any, means: Estimates, spread: float) -> tuple[Estimates, tuple[str, ...]]:
    """The means as differences from the baseline's, which are 0, and a note; as they are where there is no baseline."""
    scope, parsed, frame = fit.scope, fit.design.parsed, means.frame
    if scope is None or scope.reference is None or scope.compared not in frame:
        return means, ()
    if parsed.response != scope.response or parsed.response_function:
        return means, ()
    reference = format_level(scope.reference)
    columns = [name for name in frame.columns if name != scope.compared]
    factors = [name for name in columns if name not in fit.design.numeric]
    keys, cells = _tuples(frame, columns), _tuples(frame, factors)
    known = scope.zero_at(factors, fit.design.numeric, _ZERO * spread)
    own = np.flatnonzero(frame[scope.compared].map(format_level).to_numpy() == reference)
    is_zero = np.abs(means.estimate) <= _ZERO * spread  # by definition, too: of balanced tables over their budgets
    at = {keys[row]: row for row in own if is_zero[row] or cells[row] in known}
    if not at:
        return means, ()
    L = means.L.copy()
    for row, key in enumerate(keys):
        if key in at:
            L[row] = means.L[row] - means.L[at[key]]
    found = replace(means, L=L).with_errors()
    each = found.alone()  # an improvement is a difference that stands by itself
    zero = np.isin(np.arange(len(L)), list(at.values()))
    certain: dict[str, Any] = {
        name: np.where(zero, 0.0, getattr(each, name)) for name in ("estimate", "se", "ci_low", "ci_high")
    }
    return replace(found, df=np.where(zero, np.inf, each.df), **certain), (
        f"Means are improvements on {reference}, whose own mean is 0 by definition: their standard errors "
        f"are those of the differences from it, with its noise.",
    )


def _tuples(frame: pd.DataFrame, columns: list[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(frame[name] for name in columns), strict=True)) if columns else [()] * len(frame)
