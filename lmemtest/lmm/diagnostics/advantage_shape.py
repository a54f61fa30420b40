"""Are the advantages of the algorithms about normal over the benchmarks? Two ways in which means go wrong otherwise.

*Few benchmarks decide.* Where scores have unlike units, or an algorithm rarely breaks down, one benchmark holds most of
the sum of squared advantages. Its share of it is Cochran's statistic of an outlying variance: with ``n`` normal vectors
of the same covariance S it is Beta(f/2, (n - 1) f/2), Bonferroni over the benchmarks, with ``f = tr(S)^2 / tr(S^2)``
(Box 1954), so an erratic algorithm alone does not count as one outlying benchmark.

*Skewed advantages.* An algorithm that gains a little on most benchmarks and loses much on few is found better too
often, by samples without such a loss. The skewness of each algorithm's advantages is compared with that of normal
samples (D'Agostino 1970), Bonferroni over the algorithms.

A sample without an outlying benchmark shows neither: that is an assumption, and no test can replace it.

References
----------
Cochran (1941), doi:10.1111/j.1469-1809.1941.tb02271.x; Box (1954), doi:10.1214/aoms/1177728717; D'Agostino (1970),
doi:10.1093/biomet/57.3.679
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.rounding import below

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array


_FEW_P = _SKEW_P = 0.01  # the headline speaks of it, of one in a hundred tables that do not deserve it
FEWEST_SKEWED = 8  # below it the normal approximation of the skewness is poor


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvantageShape:
    """How far the advantages are from normal.

    ``top`` of the ``n`` clusters (a tenth, at least one), with the largest deviations, hold ``share`` of the sum of
    squared advantages; ``concentration_p`` is that of the largest one. ``skewed`` is the algorithm with the most skewed
    advantages (None below eight clusters), with its ``skewness`` and ``skewness_p``, adjusted for all algorithms.
    """

    n: int
    top: int
    share: float
    concentration_p: float
    skewed: str | None
    skewness: float
    skewness_p: float

    @property
    def few_decide(self) -> bool:
        """Whether one cluster holds more of the squares than normal advantages would leave to it."""
        return bool(below(self.concentration_p, _FEW_P))

    @property
    def is_skewed(self) -> bool:
        """Whether the advantages of some algorithm are more skewed than normal ones."""
        return bool(below(self.skewness_p, _SKEW_P))


def advantage_shape(scores: Array, labels: Sequence[str]) -> AdvantageShape | None:
    """The shape of advantages ``(n clusters, k algorithms)``; None if they do not vary or there are fewer than three.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(1).normal(size=(20, 3))
    >>> advantage_shape(scores, "ABC").few_decide
    False
    >>> scores[0] = [30.0, -10.0, -20.0]
    >>> found = advantage_shape(scores, "ABC")
    >>> found.few_decide, found.top, round(found.share, 2), found.is_skewed
    (True, 2, 0.93, True)
    """
    centred = scores - scores.mean(axis=0)
    n, squares = len(scores), np.square(centred).sum(axis=1)
    total = float(squares.sum())
    if n < 3 or not total > 0.0:
        return None
    gram = centred.T @ centred
    f = float(np.trace(gram)) ** 2 / float(np.square(gram).sum())
    largest, top = float(squares.max()) / total, max(1, round(n / 10))
    p = n * float(special.betainc((n - 1) * f / 2.0, f / 2.0, max(0.0, 1.0 - largest)))
    skewed, skewness, skewness_p = _most_skewed(centred, labels)
    return AdvantageShape(
        n=n,
        top=top,
        share=float(np.sort(squares)[-top:].sum()) / total,
        concentration_p=min(1.0, p),
        skewed=skewed,
        skewness=skewness,
        skewness_p=skewness_p,
    )


def skewness_score(values: Array) -> tuple[Array, Array]:
    """Skewness of columns that vary, and its score, which is standard normal if they are (from eight rows on)."""
    n, centred = len(values), values - values.mean(axis=0)
    skewness = np.mean((centred / np.sqrt(np.mean(centred**2, axis=0))) ** 3, axis=0)
    y = skewness * np.sqrt((n + 1.0) * (n + 3.0) / (6.0 * (n - 2.0)))
    kurtosis = 3.0 * (n**2 + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0) / ((n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0))
    square = np.sqrt(2.0 * (kurtosis - 1.0)) - 1.0
    return skewness, np.arcsinh(y / np.sqrt(2.0 / (square - 1.0))) / np.sqrt(0.5 * np.log(square))


def _most_skewed(centred: Array, labels: Sequence[str]) -> tuple[str | None, float, float]:
    """The label with the most skewed column, its skewness and adjusted p-value by D'Agostino's transformation."""
    n, k = centred.shape
    spread = np.sqrt(np.mean(centred**2, axis=0))
    varying = np.flatnonzero(spread > 1e-9 * spread.max())
    if n < FEWEST_SKEWED or not len(varying):
        return None, float("nan"), float("nan")
    skewness, z = skewness_score(centred[:, varying])
    at = int(np.argmax(np.round(np.abs(z), 9)))  # two algorithms mirror each other: the first, on every machine
    tests = 1 if k == 2 else len(varying)
    p = min(1.0, 2.0 * tests * float(special.ndtr(-abs(z[at]))))
    return str(labels[varying[at]]), float(skewness[at]), p
