r"""Is the mean of a sample of vectors zero? On average (an F-test), and in direction (a test free of scale).

A benchmark has a vector ``e_i`` of effects, such as the slope over the budget of every algorithm on it. Two questions
can be asked of a sample of them, and they are not the same where benchmarks have different units:

- *mean*: is ``E e_i = 0``? ``F = n |e|^2 / tr S`` with the mean ``e`` and the covariance ``S`` of the vectors, whatever
  that covariance is: Box's moments give ``df = tr(S)^2 / tr(S^2)`` and ``df (n - 1)`` degrees of freedom (the
  correction of Greenhouse & Geisser for repeated measures). With one column this is the t-test; with several, few
  vectors give rather too few degrees of freedom, so that the test is conservative. A benchmark with effects a
  hundred times as large as the others decides mean and error.
- *direction*: does every benchmark point anywhere, or do they point the same way? Each vector is divided by its length
  and the statistic is the length of their sum. If effects scatter symmetrically about zero, a benchmark could as well
  have had the opposite vector, whatever its scale, so the distribution over all ``2^n`` signs is exact. With one column
  this is the sign test.

References
----------
Box (1954), Annals of Mathematical Statistics 25, 484-498, doi:10.1214/aoms/1177728717; Greenhouse & Geisser (1959),
Psychometrika 24, 95-112, doi:10.1007/BF02289823; Möttönen & Oja (1995), Journal of Nonparametric Statistics 5,
201-213, doi:10.1080/10485259508832643
"""

from __future__ import annotations

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array, Index
from lmemtest.core.proportions import sign_test
from lmemtest.core.resampling import sign_patterns
from lmemtest.lmm.means.f_tests import FTest

_MOST_SIGNS = 16  # vectors whose 2^(n - 1) signs are all looked at; beyond, the sum is as good as normal
_SAME = 1e-9  # relative: lengths of sums that differ by less are the same
_ZERO = 1e-12  # of the longest vector: no effect

_NO_TEST = FTest(f_ratio=np.nan, df_num=np.nan, df_den=np.nan, p_value=np.nan, f_scale=np.nan, ddf="moments")


def mean_about_groups(vectors: Array, group: Index) -> tuple[Array, Array, int, float]:
    """Mean of vectors over groups of equal weight, residuals about the groups, their degrees of freedom, and a size.

    The size is the number of vectors in a single group with as precise a mean: the squared standard errors of the mean
    are the sums of squared residuals over degrees of freedom and size.
    """
    counts = np.bincount(group)
    means = np.stack([vectors[group == g].mean(axis=0) for g in range(len(counts))])
    size = len(counts) ** 2 / float((1.0 / counts).sum())
    return means.mean(axis=0), vectors - means[group], len(vectors) - len(counts), size


def mean_test(vectors: Array, group: Index) -> FTest:
    """Test whether the mean of vectors, over groups within which they vary, is zero: exact for one normal column."""
    mean, residuals, f, size = mean_about_groups(vectors, group)
    rest = residuals if len(vectors) < vectors.shape[1] else residuals.T
    gram = rest @ rest.T
    total, square = float(np.trace(gram)), float(np.square(gram).sum())
    if f < 1 or total <= (_ZERO * float(np.abs(vectors).max(initial=0.0))) ** 2 * vectors.size:
        return _NO_TEST
    df = total**2 / square
    return FTest.of(size * float(mean @ mean) * f / total, df, df * f, "moments")


def between_groups(vectors: Array, group: Index) -> FTest:
    """Test whether the means of vectors differ between groups: exact for one normal column, else by Box's moments.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([[1.0], [2.0], [3.0], [5.0], [6.0], [7.0]])
    >>> found = between_groups(one, np.array([0, 0, 0, 1, 1, 1]))
    >>> round(found.f_ratio, 6), found.df_num, found.df_den, round(found.p_value, 4)
    (24.0, 1.0, 4.0, 0.008)
    """
    counts = np.bincount(group)
    means = np.stack([vectors[group == g].mean(axis=0) for g in range(len(counts))])
    inside = vectors - means[group]
    between, within = len(counts) - 1, len(vectors) - len(counts)
    gram = inside.T @ inside
    total = float(np.trace(gram))
    if between < 1 or within < 1 or total <= (_ZERO * float(np.abs(vectors).max(initial=0.0))) ** 2 * vectors.size:
        return _NO_TEST
    squares = float(counts @ np.square(means - vectors.mean(axis=0)).sum(axis=1))
    ratio, df = squares / between / (total / within), total**2 / float(np.square(gram).sum())
    return FTest.of(ratio, df * between, df * within, "moments")


def direction_test(vectors: Array) -> tuple[float, float, int]:
    """Test whether vectors point the same way: over all signs, for more than 16 vectors from the normal limit.

    The agreement, which is the length of the mean of the unit vectors (1 if all point the same way, NaN without
    vectors), the p-value, and the number of vectors that are not zero.
    """
    length = np.linalg.norm(vectors, axis=1)
    kept = length > _ZERO * float(length.max(initial=0.0))
    n = int(kept.sum())
    if n == 0:
        return float("nan"), 1.0, 0
    units = vectors[kept] / length[kept, None]
    total = float(np.linalg.norm(units.sum(axis=0)))
    if np.linalg.matrix_rank(units, tol=1e-6) == 1:
        positive = int((units @ units[0] > 0).sum())
        p = min(1.0, 2.0 * float(sign_test(max(positive, n - positive), min(positive, n - positive))))
    elif n <= _MOST_SIGNS:
        sums = np.square(sign_patterns(n, 2**_MOST_SIGNS, None)[0] @ units).sum(axis=1)
        p = float(np.mean(sums >= total**2 * (1.0 - _SAME)))
    else:
        p = max(_normal_limit(units, total**2), 2.0 ** (1 - n))
    return total / n, p, n


def fewest_directions(level: float) -> int:
    """Vectors with which the direction test can reach a level at all: its smallest p-value is ``2^(1 - n)``."""
    return int(np.ceil(1.0 - np.log2(level) - _SAME))


def _normal_limit(units: Array, square: float) -> float:
    """P-value of the squared length of a signed sum, by a gamma distribution with its mean and variance."""
    gram = units @ units.T
    n = len(units)
    variance = 2.0 * (float(np.square(gram).sum()) - n)
    return float(special.gammaincc(n**2 / variance, square * n / variance))
