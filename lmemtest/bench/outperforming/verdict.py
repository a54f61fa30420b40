"""What is asked of two algorithms, and the four conclusions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest.core.caller import named
from lmemtest.core.rounding import below, written
from lmemtest.core.validate import is_number
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NOT_SIGNIFICANT = "not significant"
NOT_MEANINGFUL = "significant but not meaningful"
POSSIBLY_MEANINGFUL = "significant and may be meaningful"
MEANINGFUL = "significant and meaningful"
CONCLUSIONS = (MEANINGFUL, POSSIBLY_MEANINGFUL, NOT_MEANINGFUL, NOT_SIGNIFICANT)


def conclusions(ci_low: ArrayLike, ci_high: ArrayLike, gamma: float) -> NDArray[np.object_]:
    """What intervals say; without an interval nothing is significant.

    Bouthillier et al. (2021) have three zones: their "significant and meaningful" is an interval that reaches beyond
    gamma. Here it is one that is beyond gamma, and "may be meaningful" if it only reaches there.
    """
    low, high = np.atleast_1d(ci_low), np.atleast_1d(ci_high)
    zones = ~below(0.5, low), ~below(gamma, high), ~below(gamma, low)
    return np.select(zones, (NOT_SIGNIFICANT, NOT_MEANINGFUL, POSSIBLY_MEANINGFUL), MEANINGFUL).astype(object)


def in_words(gamma: float, note: str = "") -> str:
    """What the conclusions ask of an interval, `note` on where gamma comes from."""
    limit = f"gamma = {written(gamma, '.3g')}{note}"
    return f"Significant: the interval is above 0.5; meaningful: above {limit}; may be meaningful: it holds gamma."


def meaning(conclusion: str, ci_high: float, gamma: float, left: str = "A", right: str = "B") -> tuple[str, ...]:
    """What a conclusion does not say."""
    limit = written(gamma, ".3g")
    if conclusion == MEANINGFUL:
        return ()
    if conclusion == POSSIBLY_MEANINGFUL:
        return (f"A probability above {limit} is neither shown nor excluded.",)
    if conclusion == NOT_MEANINGFUL:
        return (f"{left} is more often better, but with a probability of at most {limit}.",)
    if below(ci_high, 0.5):
        return (f"{right} is significantly more often better; exchange the two to judge it by gamma.",)
    return (f"That {left} is not shown to be better does not show that they are equal.",)


def check_gamma(gamma: Any) -> float:
    """Check a probability from which an advantage matters."""
    numeric = is_number(gamma)
    if numeric and below(0.5, float(gamma)) and below(float(gamma), 1.0):
        return float(gamma)
    hint = f"Write {float(gamma) / 100.0:g}?" if numeric and 50.0 < gamma < 100.0 else "The usual value is 0.75."
    raise ArgumentError(
        f"{named('gamma')} must be a number between 0.5 and 1 (both excluded), since at one half neither algorithm is "
        f"better, got {gamma!r}. {hint}"
    )


def adjusted_gamma(gamma: float, alpha: float, comparisons: int, beta: float = 0.05) -> float:
    """The gamma that as many runs detect at alpha / comparisons as detect `gamma` at alpha; 1 at most.

    Bouthillier et al. propose to raise gamma with the number of comparisons and leave open how. Noether's number of
    runs stays the same if gamma - 1/2 grows as the sum of the two normal quantiles does.

    Examples
    --------
    >>> adjusted_gamma(0.75, 0.05, 1), round(adjusted_gamma(0.75, 0.05, 10), 3)
    (0.75, 0.821)
    """
    one, all_of_them = (special.ndtri(1.0 - a) - special.ndtri(beta) for a in (alpha, alpha / comparisons))
    return gamma if comparisons == 1 else min(1.0, 0.5 + (gamma - 0.5) * float(all_of_them / one))
