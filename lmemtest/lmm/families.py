"""Distributions of answers and counts given their mean: a family and its link, with all that a fit needs of them.

What a generalised mixed model sees of the rows of a cell, which share one linear predictor ``eta``, are their number
``n`` (of answers, or of counts) and their sum ``s``. Up to a constant their log-likelihood is

    binomial             s log p(eta) + (n - s) log(1 - p(eta))
    Poisson              s eta - n exp(eta)
    negative binomial    s eta - (s + n k) log(k + exp(eta)),    variance mu + mu^2 / k

and its first three derivatives are written out, so that nothing cancels where ``p`` is next to 0 or 1 (McCullagh &
Nelder 1989, ch. 2; Lawless 1987, doi:10.2307/3314912).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array, Mask
from lmemtest.core.validate import check_choice
from lmemtest.errors import ArgumentError

FamilyName = Literal["binomial", "poisson", "negative-binomial"]
LINKS: dict[str, tuple[str, ...]] = {
    "binomial": ("logit", "probit", "cloglog"),
    "poisson": ("log",),
    "negative-binomial": ("log",),
}
# Linear predictors beyond which a probability is 0 or 1, and a count has no double, for all purposes.
LARGEST = 30.0
# A tenth of the count whose logarithm that is: predictions are of single cells, too.
LARGEST_COUNT = 1e12


class Derivatives(NamedTuple):
    """A function of ``eta`` with its derivatives, ``(n_cells,)`` each."""

    value: Array
    first: Array
    second: Array
    third: Array


def _logit(eta: Array) -> tuple[Derivatives, Derivatives]:
    small = np.exp(-np.abs(eta))
    near, beyond = 1.0 / (1.0 + small), np.log1p(small)
    p, q = np.where(eta > 0.0, (near, small * near), (small * near, near))
    second = -p * q
    third = second * (q - p)
    return (
        Derivatives(np.minimum(eta, 0.0) - beyond, q, second, third),
        Derivatives(np.minimum(-eta, 0.0) - beyond, -p, second, third),
    )


def _probit(eta: Array) -> Derivatives:
    value = special.log_ndtr(eta)
    ratio = np.exp(-0.5 * eta**2 - 0.5 * np.log(2.0 * np.pi) - value)
    second = -ratio * (eta + ratio)
    return Derivatives(value, ratio, second, -second * (eta + ratio) - ratio * (1.0 + second))


def _cloglog(eta: Array) -> Derivatives:
    t = np.exp(eta)
    rest = -np.expm1(-t)
    first = t * np.exp(-t) / rest
    small = t < 1e-4  # where the differences below would cancel, their series
    second = np.where(small, t * (t / 6.0 - 0.5), first * (1.0 - t - first))
    third = np.where(small, t * (t / 3.0 - 0.5), second * (1.0 - t - first) - first * (t + second))
    return Derivatives(np.log(rest), first, second, third)


def _no_event(eta: Array) -> Derivatives:
    t = -np.exp(eta)
    return Derivatives(t, t, t, t)


def _mirrored(at: Derivatives) -> Derivatives:
    """The same function of ``-eta``, from its derivatives there."""
    return Derivatives(at.value, -at.first, at.second, -at.third)


# log p and log(1 - p) of each link.
_PROBABILITIES: dict[str, Callable[[Array], tuple[Derivatives, Derivatives]]] = {
    "logit": _logit,
    "probit": lambda eta: (_probit(eta), _mirrored(_probit(-eta))),
    "cloglog": lambda eta: (_cloglog(eta), _no_event(eta)),
}


@dataclass(frozen=True, slots=True)
class Family:
    """A distribution and its link.

    Attributes
    ----------
    name : {"binomial", "poisson", "negative-binomial"}
        Right or wrong answers, or successes among trials; counts; counts that scatter more than Poisson's.
    link : {"logit", "probit", "cloglog", "log"}
        What of the mean is linear in the effects.
    size : float > 0
        ``k`` of the negative binomial; infinite for the others.
    """

    name: FamilyName
    link: str
    size: float = np.inf

    @classmethod
    def of(cls, name: str, link: str | None = None) -> Family:
        """A family by its name, with its canonical link or another one.

        Raises
        ------
        ArgumentError
            If the family is unknown, or has no such link.

        Examples
        --------
        >>> Family.of("binomial").link, Family.of("binomial", "probit").link
        ('logit', 'probit')
        """
        check_choice(name, "family", tuple(LINKS))
        return cls(name, LINKS[name][0] if link is None else check_choice(link, "link", LINKS[name]))  # type: ignore[arg-type]

    @property
    def binomial(self) -> bool:
        """Whether the mean is a probability."""
        return self.name == "binomial"

    def mean(self, eta: Array) -> Array:
        """Mean of a row: a probability, or an expected count."""
        if self.link == "logit":
            return np.asarray(special.expit(eta))
        if self.link == "probit":
            return np.asarray(special.ndtr(eta))
        return np.asarray(np.exp(eta) if self.link == "log" else -np.expm1(-np.exp(eta)))

    def slope(self, eta: Array) -> Array:
        """Derivative of the mean in ``eta``."""
        if self.link == "logit":
            return np.asarray(special.expit(eta) * special.expit(-eta))
        if self.link == "probit":
            return np.asarray(np.exp(-0.5 * eta**2) / np.sqrt(2.0 * np.pi))
        return np.asarray(np.exp(eta) if self.link == "log" else np.exp(eta - np.exp(eta)))

    def bend(self, eta: Array) -> Array:
        """Second derivative of the mean in ``eta``."""
        slope = self.slope(eta)
        if self.link == "logit":
            return np.asarray(slope * (special.expit(-eta) - special.expit(eta)))
        if self.link == "probit":
            return np.asarray(-eta * slope)
        return np.asarray(slope if self.link == "log" else slope * (1.0 - np.exp(eta)))

    def predictor(self, mean: Array) -> Array:
        """The link: ``eta`` of a mean inside its domain."""
        if self.link == "logit":
            return np.asarray(special.logit(mean))
        if self.link == "probit":
            return np.asarray(special.ndtri(mean))
        return np.asarray(np.log(mean) if self.link == "log" else np.log(-np.log1p(-mean)))

    def log_likelihood(self, eta: Array, total: Array, n: Array) -> Derivatives:
        """Log-likelihood of each cell up to its constant, with three derivatives in ``eta``."""
        if self.binomial:
            right, wrong = _PROBABILITIES[self.link](eta)
            failed = n - total
            return Derivatives(*(total * a + failed * b for a, b in zip(right, wrong, strict=True)))
        mu = np.exp(eta)
        if self.name == "poisson":
            return Derivatives(total * eta - n * mu, total - n * mu, -n * mu, -n * mu)
        k, all_of = self.size, total + n * self.size
        share = mu / (k + mu)
        bend = -all_of * share * (1.0 - share)
        return Derivatives(
            total * eta - all_of * np.logaddexp(np.log(k), eta),
            total - all_of * share,
            bend,
            bend * (1.0 - 2.0 * share),
        )

    def information(self, eta: Array, n: Array) -> Array:
        """Expected information on ``eta`` of ``n`` rows: the squared slope of the mean over the variance, times n."""
        if self.link == "logit":
            return n * self.slope(eta)
        if self.binomial:
            right, wrong = _PROBABILITIES[self.link](eta)  # slope^2 / (p (1 - p)) without a ratio of zeros
            return np.asarray(-n * right.first * wrong.first)
        mu = np.exp(eta)
        return n * mu if self.name == "poisson" else np.asarray(n * mu / (1.0 + mu / self.size))

    def draw(self, rng: np.random.Generator, eta: Array, n: Array) -> Array:
        """Sums of the ``n`` answers or counts of each cell."""
        count = n.astype(np.int64)
        if self.binomial:
            return rng.binomial(count, self.mean(eta)).astype(float)
        if self.name == "poisson":
            return rng.poisson(n * self.mean(eta)).astype(float)
        k = self.size * n
        return rng.negative_binomial(k, self.size / (self.size + self.mean(eta))).astype(float)

    def outside(self, score: Array, trials: Array) -> tuple[Mask, str]:
        """Which scores are none of this family, and the rule that they break."""
        whole = score == np.round(score)
        if not self.binomial:
            if (whole & (score >= 0)).all():
                return score > LARGEST_COUNT, f"counts must be at most {LARGEST_COUNT:g}"
            return ~(whole & (score >= 0)), "counts must be whole numbers of at least 0"
        if trials.max(initial=1.0) <= 1.0:
            return ~((score == 0) | (score == 1)), "answers must be 0 or 1 (or name the column of trials, trials=)"
        return ~(whole & (score >= 0) & (score <= trials)), "successes must be whole numbers from 0 to the trials"


def check_family(family: object, link: object) -> Family:
    """A family by name or as it is; a link goes with a name."""
    if isinstance(family, Family):
        if link is not None:
            raise ArgumentError(
                f"link={link!r} is given beside a Family, which has its own ({family.link}). Leave it out."
            )
        return family
    return Family.of(family, link)  # type: ignore[arg-type]


def constant_of(family: Family, score: Array, trials: Array, rows: Array) -> float:
    """What the log-likelihoods of rows with these scores (successes, counts) add whatever ``eta`` is."""
    if family.binomial:
        each = -np.log1p(trials) - special.betaln(trials - score + 1.0, score + 1.0)
    else:
        each = -special.gammaln(score + 1.0)
    if family.name == "negative-binomial":
        k = family.size
        each = each + special.gammaln(score + k) - special.gammaln(k) + k * np.log(k)
    return float(rows @ each)
