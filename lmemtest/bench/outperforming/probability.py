"""Probability of outperforming: how often a run of A is better than one of B, and whether that is often enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.outperforming.over_benchmarks import OutperformingOverBenchmarks, over_benchmarks
from lmemtest.bench.outperforming.samples import Outperforming, of_samples
from lmemtest.bench.outperforming.verdict import check_gamma
from lmemtest.core.caller import advice
from lmemtest.core.hints import guided
from lmemtest.core.rounding import below
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_direction, check_flag, check_fraction, check_positive_int
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@guided
@one_blas_thread()
def probability_of_outperforming(
    a: ArrayLike | Runs,
    b: ArrayLike | None = None,
    paired: bool = True,
    gamma: float = 0.75,
    alpha: float = 0.05,
    *,
    algorithms: tuple[str, ...] | None = None,
    control: str | None = None,
    direction: str | None = None,
    method: str = "auto",
    n_draws: int = 10_000,
    rng: int | np.random.Generator | None = None,
) -> Outperforming | OutperformingOverBenchmarks:
    """How often a run of one algorithm is better than one of another, and whether that is often enough.

    Parameters
    ----------
    a, b : (n,) and (m,) float
        Scores of runs, finite, at least two each; in pairs by position where `paired`: the same data split, the same
        seed. Or `a` is a `Runs` and `b` is left out; its families of benchmarks are the sample from five on.
    paired : bool
        Whether the i-th scores belong together; with `Runs`, those with the same seed on the same benchmark.
    gamma : float in (0.5, 1)
        The probability from which an advantage matters.
    alpha : float in (0, 1)
        One less the level of the interval, which is two-sided: A is called better by chance in half of it.
    algorithms : tuple of str, optional
        With `Runs`: which to compare, two or more; all pairs of them, by default of all.
    control : str, optional
        With `Runs`: the one that is compared with all others, instead of all pairs.
    direction : {"maximize", "minimize"}, optional
        "maximize" by default; a `Runs` knows its own.
    method : str
        Of the interval. "auto" is "score" from five pairs on and "exact" below; "percentile" (the paper's) and "bca"
        draw again. Not paired: "score" ("auto"), "logit" or "percentile". With `Runs` of several benchmarks: "mixed"
        ("auto") or "percentile".
    n_draws : int
        Bootstrap draws.
    rng : int, numpy.random.Generator or None
        Source of the draws.

    Returns
    -------
    Outperforming or OutperformingOverBenchmarks
        The second from a `Runs`: by pair of algorithms and by benchmark.

    Raises
    ------
    ArgumentError
        If an argument breaks its rule: pairs of different lengths, gamma outside (0.5, 1).
    DataError
        If a score is missing or infinite.
    DesignError
        If the runs hold no pairs.

    Notes
    -----
    Measured coverage chose the defaults (page "Outperforming"). The score interval solves the score test of P with the
    share of ties estimated under the null (Tango 1998). Of runs that are not paired, and over benchmarks, it is
    Wilson's interval of as many pairs as the estimate's variance amounts to, with Student's quantile. With 0/1 scores P
    is (1 + risk difference) / 2, paired or not. Where families of benchmarks are the sample, each counts the same, with
    the mean over its benchmarks, and the quantile has as many degrees of freedom as there are families, less one.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3;
    Paule & Mandel (1982), Consensus values and weighting factors, J. Res. Natl. Bur. Stand. 87;
    Perme & Manevski (2019), Confidence intervals for the Mann-Whitney test, Stat. Methods Med. Res. 28;
    Tango (1998), Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design, Stat. Med. 17

    Examples
    --------
    >>> a = [0.81, 0.84, 0.79, 0.88, 0.83, 0.85, 0.82, 0.86, 0.80, 0.87]
    >>> b = [0.78, 0.82, 0.80, 0.83, 0.81, 0.80, 0.79, 0.84, 0.77, 0.85]
    >>> found = probability_of_outperforming(a, b)
    >>> found.estimate, round(found.ci_low, 3), round(found.ci_high, 3), found.conclusion
    (0.9, 0.596, 0.982, 'significant and may be meaningful')
    """
    gamma, alpha = check_gamma(gamma), check_fraction(alpha, "alpha")
    paired, n_draws = check_flag(paired, "paired"), check_positive_int(n_draws, "n_draws")
    if str(method) in ("percentile", "bca") and below((n_draws + 1) * 0.5 * alpha, 1.0):
        least = int(np.ceil(2.0 / alpha))
        more = advice("draws_of_tests", least=least)
        raise ArgumentError(f"{n_draws:,} draws have no quantile with {0.5 * alpha:.3g} beyond it. {more}")
    if isinstance(a, Runs):
        for name, value in (("b", b), ("direction", direction)):
            if value is not None:
                raise ArgumentError(f"{name} must be left out where a is a Runs, which has its own, got {value!r:.60}.")
        options: dict[str, Any] = {"method": method, "n_draws": n_draws, "rng": rng, "control": control}
        return over_benchmarks(a, algorithms, paired, gamma, alpha, **options)
    if b is None:
        raise ArgumentError(
            "b must be given: the scores of the runs that those of a are compared with. Or give a Runs as a."
        )
    for name, value in (("algorithms", algorithms), ("control", control)):
        if value is not None:
            raise ArgumentError(f"{name} belongs to a Runs as first argument, got {name}={value!r:.60}.")
    way = check_direction("maximize" if direction is None else direction)
    return of_samples(a, b, paired, gamma, alpha, direction=way, method=method, n_draws=n_draws, rng=rng)
