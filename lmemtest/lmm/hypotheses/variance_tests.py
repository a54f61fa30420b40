r"""Tests of variances: are several equal, and is there one between groups?

*Several*: of samples SciPy's tests of Bartlett and Levene; where only sums of squares are there, Bartlett's.

*Between groups*: the exact F-test and interval of one variance ratio. Model ``y = block means + u_group + e`` with
``Var u = s2 l``. With P0 the projection off the block means, mu_s the positive eigenvalues of Z'P0Z and c_s the squared
coordinates of Z'P0y over mu_s,

    F(l) = [sum_s c_s / (1 + l mu_s) / r] / [SSE / d]  ~  F(r, d)   at the true l, balanced or not,

so F(0) is an exact test on the boundary l = 0 and inverting F(l) gives an exact interval (Wald 1940; Harville & Fenech
1985). In balanced tables the restricted likelihood ratio is a monotone function of F(0): both tests are one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array, Index
from lmemtest.core.rounding import tolerance
from lmemtest.core.validate import check_fraction
from lmemtest.errors import DesignError

_ZERO = 1e-9  # relative to the largest eigenvalue
_MANY_GROUPS = 100  # whose matrix is decomposed by its rank, where groups are of one size
_ROUNDING = 1e-12  # of the total sum of squares: no variation is left
_STEPS, _CLOSE = 200, 1e-15  # of Newton, at most, and the relative step that ends them


# --------------------------------------------------------------------------------------------------- several variances


def likelihood_ratio(squares: Array, df: Array) -> float:
    """Twice the log likelihood ratio of variances of their own against a common one.

    >>> round(likelihood_ratio(np.array([10.0, 40.0]), np.array([10.0, 10.0])), 4)  # 20 ln 2.5 - 10 ln 1 - 10 ln 4
    4.4629
    """
    return float(df.sum() * np.log(squares.sum() / df.sum()) - df @ np.log(squares / df))


def equal_variances(x: Array, test: str) -> tuple[float, float]:
    """Statistic and p-value of "bartlett", or of "levene" by the median, for columns of equal length; NaN of constants.

    Two values in each column, equally often, have no spread of their distances for Levene's test: p is 0 or 1.

    >>> x = np.array([[1.0, 3.0], [2.0, 6.0], [4.0, 1.0], [3.0, 9.0]])
    >>> tuple(round(value, 4) for value in equal_variances(x, "bartlett"))
    (2.2205, 0.1362)
    """
    from scipy import stats

    if (np.ptp(x, axis=0) <= tolerance(x)).all():
        return float("nan"), float("nan")
    distance = np.abs(x - np.median(x, axis=0))
    if test == "levene" and distance.std(axis=0).max() <= tolerance(x):
        differ = distance.mean(axis=0).std() > tolerance(x)
        return (float("inf"), 0.0) if differ else (0.0, 1.0)
    statistic, p_value = (stats.bartlett if test == "bartlett" else stats.levene)(*x.T)
    return float(statistic), float(p_value)


def bartlett(squares: Array, df: Array) -> float:
    """The p-value of Bartlett's test: the ratio over its small-sample factor is nearly chi-squared (1937).

    >>> round(bartlett(np.array([10.0, 40.0]), np.array([10.0, 10.0])), 4)
    0.0392
    """
    free = len(df) - 1.0
    factor = 1.0 + (float((1.0 / df).sum()) - 1.0 / float(df.sum())) / (3.0 * free)
    return float(special.chdtrc(free, max(likelihood_ratio(squares, df), 0.0) / factor))


# ----------------------------------------------------------------------------------------------------------- one ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceRatio:
    """Test and interval of the variance between groups over the residual variance.

    ``statistic`` is F(0) (NaN if the scores do not vary within blocks) with its degrees of freedom, ``p_value`` its
    chance if there is no variance between groups, ``ratio`` where F(l) = 1 (the estimate of the analysis of variance, 0
    if it is negative), with an exact equal-tailed interval at 1 - `alpha`, cut at 0, whose upper end can be infinite.
    """

    statistic: float
    df_num: float
    df_den: float
    p_value: float
    ratio: float
    ratio_low: float
    ratio_high: float
    alpha: float

    @property
    def share(self) -> float:
        """Share of the variance within blocks that lies between groups."""
        return _share(self.ratio)

    @property
    def share_interval(self) -> tuple[float, float]:
        """Interval of `share`."""
        return _share(self.ratio_low), _share(self.ratio_high)


def variance_ratio(
    y: Array,
    blocks: Index,
    groups: Index,
    *,
    parts: Index | None = None,
    scaled: bool = False,
    alpha: float = 0.05,
) -> VarianceRatio:
    """Test whether groups differ beyond chance, and how much.

    ``y`` are scores, ``blocks`` codes of the fixed blocks (an instance, say) whose means are free, ``groups`` of the
    random groups (a seed, say), ``parts`` of parts of the table that share no block and no group: the work is then that
    of the largest part. ``scaled``: `y` was divided by its standard deviation in every block. The total sum of squares
    is then fixed, and r and d shrink by the factor ``1 - 2 / (r + d)``: the beta distribution with the exact mean and
    variance of the share between groups (Kendall & Babington Smith 1939, for ranks). Not exact, but within 1.5 points
    of a nominal 5 % from 3 groups on 2 blocks on, where the uncorrected test rejects in 14 %.

    Raises
    ------
    DesignError
        If nothing is left to estimate a variance from: no group in two blocks, or no rows beyond the groups.

    References
    ----------
    Wald (1940), Ann. Math. Stat. 11, 96-100; Harville & Fenech (1985), Biometrics 41, 137-152, doi:10.2307/2530650;
    Kendall & Babington Smith (1939), doi:10.1214/aos/1177732186

    Examples
    --------
    >>> y = np.array([1.0, 1.2, 2.0, 2.1, 3.1, 2.9])
    >>> result = variance_ratio(y, np.zeros(6, dtype=int), np.array([0, 0, 1, 1, 2, 2]))
    >>> result.df_num, result.df_den, round(result.statistic, 1), round(result.p_value, 4)
    (2.0, 3.0, 120.3, 0.0014)
    """
    check_fraction(alpha, "alpha")
    y = np.asarray(y, dtype=float)
    where = np.zeros(len(y), dtype=np.intp) if parts is None else parts
    pieces = [_decompose(y[where == part], blocks[where == part], groups[where == part]) for part in np.unique(where)]
    mu = np.concatenate([piece[0] for piece in pieces])
    squares = np.concatenate([piece[1] for piece in pieces])
    total = sum(piece[2] for piece in pieces)
    r = sum(piece[3] for piece in pieces)
    d = sum(piece[4] for piece in pieces) - r
    if r < 1 or d < 1:
        raise DesignError(
            f"{len(np.unique(groups)):,} groups in {len(np.unique(blocks)):,} blocks of {len(y):,} rows leave "
            f"{max(r, 0)} degrees of freedom between groups and {max(d, 0)} for chance; a test needs one of each. "
            "Add groups that occur in several blocks, or repeated rows."
        )
    df_num, df_den = float(r), float(d)
    if scaled:
        df_num, df_den = (df * (1.0 - 2.0 / (r + d)) for df in (r, d))
    if df_num <= 0:
        raise DesignError("scores that were scaled in two blocks of two groups hold nothing but signs; add a third.")
    rest = max(total - float(squares.sum()), 0.0)
    flat = total <= _ROUNDING * float(np.sum(y**2))
    if flat or rest <= _ROUNDING * total:  # no variation, or groups explain everything
        value = float("nan") if flat else float("inf")
        return VarianceRatio(
            statistic=value,
            df_num=df_num,
            df_den=df_den,
            p_value=value if flat else 0.0,
            ratio=value,
            ratio_low=value,
            ratio_high=value,
            alpha=alpha,
        )

    squares = squares / r / (rest / d)  # F at a ratio of the variances is the sum of squares / (1 + ratio mu)
    statistic, tail = float(squares.sum()), 0.5 * alpha
    low, high = (float(special.fdtri(df_num, df_den, q)) for q in (1.0 - tail, tail))
    return VarianceRatio(
        statistic=statistic,
        df_num=df_num,
        df_den=df_den,
        p_value=float(special.fdtrc(df_num, df_den, statistic)),
        ratio=_ratio_at(1.0, squares, mu),
        ratio_low=_ratio_at(low, squares, mu),
        ratio_high=_ratio_at(high, squares, mu),
        alpha=alpha,
    )


def _decompose(y: Array, blocks: Index, groups: Index) -> tuple[Array, Array, float, int, int]:
    """Eigenvalues, squared coordinates, sum of squares off the blocks, rank of the groups, rows minus blocks."""
    block = np.unique(blocks, return_inverse=True)[1]
    group = np.unique(groups, return_inverse=True)[1]
    n_blocks, n_groups = int(block.max()) + 1, int(group.max()) + 1
    size = np.bincount(block)
    residual = y - (np.bincount(block, weights=y) / size)[block]
    counts = np.bincount(group * n_blocks + block, minlength=n_groups * n_blocks).reshape(n_groups, n_blocks)
    sums = np.bincount(group, weights=residual, minlength=n_groups)
    of_group = counts.sum(axis=1).astype(float)
    if n_groups > max(_MANY_GROUPS, n_blocks) and np.all(of_group == of_group[0]):
        values, squares = _of_equal_groups(counts / np.sqrt(size), sums.astype(float), float(of_group[0]))
    else:
        values, vectors = np.linalg.eigh(np.diag(of_group) - (counts / size) @ counts.T)
        squares = (vectors.T @ sums) ** 2
    keep = values > _ZERO * max(float(values.max()), 1.0)
    mu = values[keep]
    return mu, squares[keep] / mu, float(residual @ residual), int(keep.sum()), len(y) - n_blocks


def _of_equal_groups(N: Array, sums: Array, n: float) -> tuple[Array, Array]:
    """Eigenvalues of ``n I - N N'`` with many more rows than columns, and squared coordinates of ``sums``.

    Beyond the columns of N all are n, and share what is left of the squares.
    """
    U, singular, _ = np.linalg.svd(N, full_matrices=False)
    in_space = (U.T @ sums) ** 2
    beyond = len(sums) - len(singular)
    rest = max(float(sums @ sums - in_space.sum()), 0.0) / beyond
    return np.append(n - singular**2, np.full(beyond, n)), np.append(in_space, np.full(beyond, rest))


def _ratio_at(target: float, squares: Array, mu: Array) -> float:
    """The ratio of the variances at which F, which falls with it and is convex, is `target`; 0 where it starts below.

    Newton's steps come from the left and never pass it.
    """
    ratio = 0.0
    for _ in range(_STEPS):
        weight = 1.0 / (1.0 + ratio * mu)
        step = (squares @ weight - target) / (squares * mu @ weight**2)
        if step <= _CLOSE * (ratio + 1.0 / mu.max()):
            break
        ratio += float(step)
    return ratio


def _share(ratio: float) -> float:
    return 1.0 if np.isinf(ratio) else ratio / (1.0 + ratio)
