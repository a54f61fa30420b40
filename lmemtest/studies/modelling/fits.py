"""One model of a search by maximum likelihood, begun at the estimates of a neighbour, and its test against it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest.data.compress import compress
from lmemtest.engine.blocks import Shape
from lmemtest.engine.theta import lower_root, pack, unpack
from lmemtest.errors import NestingError
from lmemtest.inference.hypotheses.glrt import glrt
from lmemtest.model.fitting import fit_cells
from lmemtest.studies.modelling.identify import check_identified

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit
    from lmemtest.model.spec import ModelSpec

    Array = NDArray[np.float64]

# Where a new standard deviation begins, in residual ones: not zero, where the search sees no slope.
_NEW_ROOT = 0.3
# Below this a p-value of quadrature or of a product of small numbers is rounding; its chi-squared tail is used to rank.
_TRUSTED = 1e-12
_UNDERFLOW = 1e-290
_ZERO = 1e-6  # likelihoods of two searches agree to about this
# Models whose criteria differ by less are equally good: the optimiser's last digits do not choose.
TIE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """What is kept of a fit by maximum likelihood, or why there is none (`problem`).

    `singular` lists random effects with a variance of zero or a correlation of one; `factors` has effects and relative
    Cholesky factor by groups, where a neighbour's search begins.
    """

    formula: str
    problem: str = ""
    llf: float = math.nan
    n_params: int = 0
    singular: tuple[str, ...] = ()
    converged: bool = True
    factors: Mapping[frozenset[str], tuple[tuple[str, ...], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, fit: LmmFit) -> Fitted:
        """What is kept of a fit."""
        factors = unpack(fit.theta, fit.problem.shapes)
        return cls(
            formula=fit.formula,
            llf=float(fit.llf),
            n_params=int(fit.n_params),
            singular=fit.singular_terms,
            converged=bool(fit.converged),
            factors={
                frozenset(term.group.split(":")): (tuple(term.names), L)
                for term, L in zip(fit.design.random, factors, strict=True)
            },
        )

    @classmethod
    def failed(cls, model: ModelSpec, problem: str) -> Fitted:
        """What is said of a model that has no fit."""
        return cls(formula=model.formula, problem=problem, converged=False)

    @property
    def ok(self) -> bool:
        return not self.problem

    @property
    def aic(self) -> float:
        return -2.0 * self.llf + 2.0 * self.n_params

    def bic(self, n: int) -> float:
        return -2.0 * self.llf + math.log(n) * self.n_params


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """A likelihood-ratio test between neighbours; NaN where one is not contained in the other."""

    statistic: float
    df: int
    p_value: float
    reference: str
    log_p: float


# ---------------------------------------------------------------------- one fit


def fit_ml(model: ModelSpec, runs: Runs, near: Fitted | None = None, *, check: bool = True) -> LmmFit:
    """Fit a model by maximum likelihood, from the estimates of a neighbour."""
    if check:
        check_identified(model, runs)
    cells = compress(runs, by=model.columns, score=model.response, transform=model.parsed.response_transform)
    design = model.design(cells.frame, cells.n)
    start = None if near is None or not design.random else _start(design.random, near)
    return fit_cells(
        model.formula,
        design,
        cells,
        data=runs,
        weights=None,
        dispersion=model.dispersion,
        reml=False,
        start=start,
        restarts=None if near is None else 0,  # a neighbour's estimates are a better start than three others
    )


def _start(random: Sequence[Any], near: Fitted) -> Array:
    """Factors of a neighbour, with moderate standard deviations for what it lacks."""
    parts = []
    for term in random:
        names, root = near.factors.get(frozenset(term.group.split(":")), ((), np.empty((0, 0))))
        spread = np.sqrt(np.mean(term.basis**2, axis=0))
        L = np.diag(_NEW_ROOT / np.where(spread > 0, spread, 1.0))
        shared = [name for name in names if name in term.names]
        mine, theirs = ([list(where).index(name) for name in shared] for where in (term.names, names))
        if shared:
            S = L @ L.T
            S[np.ix_(mine, mine)] = (root @ root.T)[np.ix_(theirs, theirs)]
            L = lower_root(np.linalg.cholesky(S + 1e-8 * np.diag(np.diag(S) + 1e-8)))
        parts.append(L)
    return pack(parts, [Shape(len(L), term.diagonal) for L, term in zip(parts, random, strict=True)])


# ---------------------------------------------------------------------- tests


def compare(null: LmmFit, alternative: LmmFit, *, inside: bool = False, seed: int = 0) -> Comparison:
    """`glrt` with its automatic reference, and the logarithm of the p-value, which ranks where p is zero."""
    df = int(alternative.n_params - null.n_params)
    if inside:
        # the variances that the null has are free in the alternative, in the interior of its covariance matrix
        statistic = max(0.0, 2.0 * (float(alternative.llf) - float(null.llf)))
        components: tuple[tuple[float, int], ...] = ((1.0, df),)
        p, reference = math.exp(log_tail(statistic, components)), "chi2"
    else:
        try:
            test = glrt(null, alternative, rng=seed)
        except NestingError:
            return Comparison(statistic=math.nan, df=df, p_value=math.nan, reference="not nested", log_p=math.nan)
        statistic, p, reference = test.statistic, test.p_value, test.reference
        components = test.components or ((0.5, 0), (0.5, df))
    if statistic <= _ZERO:  # a mixture has 0.5 just above 0 and 1 at 0, and rounding must not choose
        return Comparison(statistic=0.0, df=df, p_value=1.0, reference=reference, log_p=0.0)
    log_p = math.log(p) if p > _TRUSTED else min(log_tail(statistic, components), math.log(_TRUSTED))
    return Comparison(statistic=statistic, df=df, p_value=p, reference=reference, log_p=log_p)


def log_tail(statistic: float, components: Sequence[tuple[float, int]]) -> float:
    """Logarithm of the upper tail of a mixture of chi-squared distributions, however small it is.

    >>> round(log_tail(3.841458820694124, [(1.0, 1)]), 6), round(log_tail(5000.0, [(0.5, 0), (0.5, 1)]), 3)
    (-2.995732, -2505.178)
    """
    if statistic <= 0:
        return 0.0
    logs = [math.log(weight) + _log_chi2_tail(statistic, df) for weight, df in components if df > 0]
    return float(special.logsumexp(logs)) if logs else -math.inf


def _log_chi2_tail(x: float, df: int) -> float:
    tail = float(special.chdtrc(df, x))
    if tail > _UNDERFLOW:
        return math.log(tail)
    a, z = df / 2.0, x / 2.0
    # Gamma(a, z) = exp(-z) z^a / (z + 1 - a - 1 (1 - a) / (z + 3 - a - 2 (2 - a) / ...)), here from far inside
    fraction = 0.0
    for i in range(200, 0, -1):
        fraction = i * (i - a) / (z + 2 * i + 1 - a - fraction)
    return -z + a * math.log(z) - math.log(z + 1 - a - fraction) - float(special.gammaln(a))
