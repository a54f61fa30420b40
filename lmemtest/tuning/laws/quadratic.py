r"""The quadratic distribution: what random search scores look like near the best one.

Near its optimum a smooth function is a quadratic, and a ball of radius r in c dimensions has a volume proportional to
r^c. So a score within a fraction x of the way from the best to the worst has probability x^(c/2): with
``x = (y - a) / (b - a)``,

    convex  (minimize):  F(y) = x^(c/2),
    concave (maximize):  F(y) = 1 - (1 - x)^(c/2),

where c counts the hyperparameters that matter. Minimizing y is maximizing -y with the ends exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from lmemtest.core.arrays import Array
from lmemtest.core.validate import check_direction, check_number, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.tuning.checks import check_k, check_probabilities, plain

Number = float | Array

LARGEST_C = 1000.0  # beyond it x^(c/2) is a point mass in double precision


def check_shape(a: Any, b: Any, c: Any, convex: Any) -> None:
    """Check the parameters that both distributions share."""
    a, b = check_number(a, "a"), check_number(b, "b")
    if not a <= b or not math.isfinite(b - a):
        raise ArgumentError(f"a must be at most b, got a={a!r} and b={b!r}. a is the lower end of the scores.")
    check_number(c, "c", low=0, high=LARGEST_C, open="low")
    if not isinstance(convex, (bool, np.bool_)):
        raise ArgumentError(f"convex must be True (minimize) or False (maximize), got {convex!r}.")


def best_below(q: float, k: Array) -> Array:
    """Probability of a score below the q-quantile of the smallest of k; 1 - (1 - q)^(1/k) would lose its digits."""
    with np.errstate(divide="ignore"):
        return -np.expm1(np.log1p(-q) / k)


def best_above(q: float, k: Array) -> Array:
    """Probability of a score above the q-quantile of the largest of k."""
    return best_below(1.0 - q, k) if q == 0.0 else -np.expm1(np.log(q) / k)


class QuadraticLaw:
    """What both quadratic laws share; they give probabilities and quantiles by distance from the best expected score.

    ``near=True`` is the side of the best: a probability of scores that are better, a quantile counted from the best.
    """

    __slots__ = ()

    convex: bool
    logpdf: Callable[..., Any]

    def _share(self, y: ArrayLike, near: bool) -> Array:
        raise NotImplementedError

    def _at(self, p: Array, near: bool) -> Array:
        raise NotImplementedError

    def _best(self, budgets: Array, near: bool) -> Array:
        raise NotImplementedError

    def _draws(self, size: Any, rng: np.random.Generator) -> Any:
        raise NotImplementedError

    def pdf(self, y: ArrayLike) -> Number:
        """Density at `y`; infinite at a point mass and, without noise and for c < 2, at the best score."""
        return plain(np.exp(self.logpdf(y)))

    def cdf(self, y: ArrayLike) -> Number:
        """Probability of a score of at most `y`."""
        return plain(self._share(y, near=self.convex))

    def sf(self, y: ArrayLike) -> Number:
        """Probability of a score above `y`, with full relative accuracy."""
        return plain(self._share(y, near=not self.convex))

    def ppf(self, q: ArrayLike) -> Number:
        """Quantile: the smallest score with `cdf` of at least `q`."""
        return plain(self._at(check_probabilities(q, "q"), near=self.convex))

    def isf(self, q: ArrayLike) -> Number:
        """Score that is exceeded with probability `q`; accurate where ``ppf(1 - q)`` has no digits left."""
        return plain(self._at(check_probabilities(q, "q"), near=not self.convex))

    def sample(self, size: int | tuple[int, ...] | None = None, *, rng: int | np.random.Generator | None = None) -> Any:
        """Independent scores of shape `size`; one float for None."""
        return plain(self._draws(size, resolve_rng(rng)))

    def quantile_curve(self, k: ArrayLike, *, q: float = 0.5, direction: str | None = None) -> Number:
        """Quantile of the best of `k` scores.

        Parameters
        ----------
        k : positive float or array of them
            Trials of the search; need not be whole.
        q : float in [0, 1]
            Which quantile; 0.5 is the median tuning curve. It is that of the best score in both directions: the best of
            `k` is at most the curve with probability q.
        direction : {"minimize", "maximize"}, optional
            Which scores are better; by default "minimize" if `convex`.

        Returns
        -------
        float or array
            One value per `k`.
        """
        budgets, q = check_k(k, flat=False), check_number(q, "q", low=0, high=1)
        return self.ppf(best_below(q, budgets)) if self._minimizes(direction) else self.isf(best_above(q, budgets))

    def mean_curve(self, k: ArrayLike, *, direction: str | None = None) -> Number:
        """Expected best of `k` scores: in closed form, with noise by quadrature; arguments as of `quantile_curve`.

        Examples
        --------
        >>> QuadraticDistribution(0.0, 1.0, 2, convex=True).mean_curve([1, 3]).tolist()  # uniform: 1 / (k + 1)
        [0.5, 0.25]
        """
        budgets = check_k(k, flat=False)
        return plain(self._best(budgets, near=self._minimizes(direction) == self.convex))

    def _minimizes(self, direction: str | None) -> bool:
        if direction is None:
            return bool(self.convex)
        return check_direction(direction) == "minimize"


@dataclass(frozen=True, slots=True)
class QuadraticDistribution(QuadraticLaw):
    """Scores of random search on a smooth function without noise.

    Parameters
    ----------
    a, b : float, a <= b
        Lower and upper end of the scores. If they are the same, the law is the point mass there.
    c : float in (0, 1000]
        Effective number of hyperparameters. Whole in theory: the rank of the Hessian at the optimum, plus two for
        each hyperparameter whose best value is at the edge of the search space.
    convex : bool
        True: the shape near a minimum, dense near `b` for c > 2. False: near a maximum.

    Notes
    -----
    The best score that any search can reach is `a` if convex, else `b`. For c < 2 the density is unbounded there.

    References
    ----------
    Lourie, He & Cho (2025), Hyperparameter loss surfaces are simple near their optima, COLM 2025,
    arXiv:2510.02721; Bergstra & Bengio (2012), Random search for hyper-parameter optimization, JMLR 13.

    Examples
    --------
    >>> law = QuadraticDistribution(0.0, 1.0, 4, convex=True)
    >>> law.cdf(0.5), law.ppf(0.25), law.mean
    (0.25, 0.5, 0.6666666666666666)
    >>> law.quantile_curve([1, 10, 100]).round(3)
    array([0.707, 0.259, 0.083])
    """

    a: float
    b: float
    c: float
    convex: bool = False

    def __post_init__(self) -> None:
        check_shape(self.a, self.b, self.c, self.convex)

    @property
    def mean(self) -> float:
        """Expected score."""
        far = (self.b - self.a) * self.c / (self.c + 2.0)
        return self.a + far if self.convex else self.b - far

    @property
    def variance(self) -> float:
        """Variance of a score."""
        h = 0.5 * self.c
        return float((self.b - self.a) ** 2 * h / ((h + 1.0) ** 2 * (h + 2.0)))

    def _distance(self, y: ArrayLike) -> Array:
        """How far `y` is from the best score, as a share of the range; may lie outside [0, 1]."""
        y = np.asarray(y, dtype=float)
        if self.a == self.b:  # at the point itself F is 1 and 1 - F is 0
            side = y >= self.a if self.convex else y < self.b
            return np.where(np.isnan(y), np.nan, side.astype(float))
        return (y - self.a if self.convex else self.b - y) / (self.b - self.a)

    def _share(self, y: ArrayLike, near: bool) -> Array:
        x = np.clip(self._distance(y), 0.0, 1.0)
        if near:
            return np.asarray(x ** (0.5 * self.c))
        with np.errstate(divide="ignore"):
            return np.asarray(0.0 - np.expm1(0.5 * self.c * np.log(x)))

    def logpdf(self, y: ArrayLike) -> Number:
        """Logarithm of the density; -inf outside [a, b]."""
        if self.a == self.b:
            return plain(np.where(np.isnan(y), np.nan, np.where(np.asarray(y) == self.a, np.inf, -np.inf)))
        x, h = self._distance(y), 0.5 * self.c
        inside = (x >= 0.0) & (x <= 1.0)
        out = np.where(np.isnan(x), np.nan, -np.inf)
        value = math.log(h) - math.log(self.b - self.a) + special.xlogy(h - 1.0, np.where(inside, x, 1.0))
        return plain(np.where(inside, value, out))

    def _at(self, p: Array, near: bool) -> Array:
        if near:
            return self._score(p ** (2.0 / self.c))
        with np.errstate(divide="ignore"):
            return self._score(np.exp(np.log1p(-p) * (2.0 / self.c)))

    def _score(self, x: Array) -> Array:
        """The score at distance `x`; exactly at the ends for 0 and 1."""
        best, worst = (self.a, self.b) if self.convex else (self.b, self.a)
        return np.clip(np.where(x < 1.0, best + (worst - best) * x, worst), self.a, self.b)

    def _best(self, budgets: Array, near: bool) -> Array:
        r = 2.0 / self.c
        # near: E of U^r for the smallest of k uniforms, r B(r, k + 1), without the cancellation of gamma functions
        x = r * special.beta(r, budgets + 1.0) if near else budgets / (budgets + r)
        return self._score(np.asarray(x, dtype=float))

    def _draws(self, size: Any, rng: np.random.Generator) -> Any:
        return self._at(np.asarray(rng.random(size)), near=True)
