"""All signs of a few units, or random ones of many: what tests by sign flips and by random signs are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.core.validate import resolve_rng

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array


__all__ = ["sign_patterns"]


def sign_patterns(n: int, most: int, rng: int | np.random.Generator | None) -> tuple[Array, bool]:
    """Patterns of n signs, up to the sign of all, and whether they are all: at most `most`, else so many random ones.

    Of all patterns the first has plus signs only; random ones do not hold it.

    Examples
    --------
    >>> signs, exact = sign_patterns(3, 10, None)
    >>> exact, signs.astype(int).tolist()
    (True, [[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]])
    """
    if n - 1 < 60 and 2 ** (n - 1) <= most:
        bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)[::-1]) & 1
        return np.hstack([np.ones((len(bits), 1)), 1.0 - 2.0 * bits]), True
    return resolve_rng(rng).choice(np.array([-1.0, 1.0]), size=(most, n)), False
