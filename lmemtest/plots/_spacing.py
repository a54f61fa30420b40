"""Places for labels beside points: moved apart until they do not touch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spread(places: Sequence[float], gap: float, limits: tuple[float, float]) -> tuple[float, ...]:
    """Move ascending places as little as possible (in squares) so that neighbours are `gap` apart.

    With z = place - index * gap this is isotonic regression: pool adjacent violators, then clip. Where the limits do
    not hold all places, the gap gives way.

    >>> spread([20.0, 89.0, 90.0], 5.0, (0.0, 100.0)), spread([100.0, 100.0], 5.0, (0.0, 100.0))
    ((20.0, 87.0, 92.0), (95.0, 100.0))
    """
    count = len(places)
    gap = min(gap, (limits[1] - limits[0]) / max(count - 1, 1))
    pools: list[list[float]] = []  # (mean, size)
    for index, place in enumerate(places):
        pools.append([place - index * gap, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, size = pools.pop()
            total = pools[-1][1] + size
            pools[-1] = [(pools[-1][0] * pools[-1][1] + mean * size) / total, total]
    pooled = np.repeat([pool[0] for pool in pools], [int(pool[1]) for pool in pools])
    clipped = np.clip(pooled, limits[0], limits[1] - (count - 1) * gap)
    return tuple((clipped + gap * np.arange(count)).tolist())


def spread_downwards(places: Sequence[float], gap: float, height: float) -> tuple[float, ...]:
    """The same for descending places between 0 and `height`, from the top down.

    >>> spread_downwards([90.0, 89.0, 20.0], 5.0, 100.0)
    (92.0, 87.0, 20.0)
    """
    return tuple(-place for place in spread([-place for place in places], gap, (-height, 0.0)))
