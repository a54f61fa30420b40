"""Random generators for replicates."""

import numpy as np


def generators(rng: int | np.random.Generator | None, n: int) -> list[np.random.Generator]:
    """One for each of n replicates, so that what a replicate draws depends on its position alone."""
    entropy = np.random.default_rng(rng).integers(2**32, size=4).tolist()
    return [np.random.default_rng(seed) for seed in np.random.SeedSequence(entropy).spawn(n)]
