"""How often, by how much, and over the whole distribution: is one algorithm better than another, by its single runs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.outperforming.effect_size import KINDS, effect_size
from lmemtest.bench.outperforming.over_benchmarks import over_benchmarks
from lmemtest.bench.outperforming.samples import of_samples
from lmemtest.bench.outperforming.stochastic_order import stochastic_order
from lmemtest.bench.outperforming.verdict import check_gamma
from lmemtest.core.caller import advice
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import (
    check_choice,
    check_direction,
    check_flag,
    check_fraction,
    check_options_of,
    check_positive_int,
)
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

PROBABILITY, ORDER = "probability", "stochastic_order"
MEASURES = (PROBABILITY, *KINDS, ORDER)


@guided
@one_blas_thread()
def outperforming(
    a: ArrayLike | Runs,
    b: ArrayLike | None = None,
    measure: str = PROBABILITY,
    *,
    paired: bool = True,
    gamma: float = 0.75,
    alpha: float = 0.05,
    algorithms: tuple[str, ...] | None = None,
    control: str | None = None,
    direction: str | None = None,
    method: str = "auto",
    sample: str = "runs",
    tau: float = 0.2,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> Answer:
    """How much better single runs of one algorithm are than those of another: how often, by how much, at all quantiles.

    Parameters
    ----------
    a, b : (n,) and (m,) float
        Scores of runs, finite, at least two each; in pairs by position where `paired`: the same data split, the same
        seed. Or `a` is a `Runs` and `b` is left out, not for effect sizes; "stochastic_order" takes a `Runs`, or a wide
        table (a column per algorithm, a row per benchmark) of means by benchmark.
    measure : str
        "probability" that a run of A is better, ties counted half, and whether that is often enough. An effect size of
        two samples: "cohen_d", "hedges_g", "cohen_dz" (paired), "cliff_delta", "akinshin_gamma" or "rank_biserial"
        (paired). "stochastic_order": whether A is better over the whole distribution of its runs.
    paired : bool
        Whether the i-th scores belong together; with `Runs`, those with the same seed on the same benchmark. Not for
        "stochastic_order", which takes samples as independent. Of effect sizes the intervals depend on it, and of the
        estimates only that of "hedges_g", a little.
    gamma : float in (0.5, 1)
        For "probability": from which one an advantage matters.
    alpha : float in (0, 1)
        One less the level of the interval, which is two-sided: A is called better by chance in half of it. Of all pairs
        of a `Runs` together, by Bonferroni; of "stochastic_order" of all claims: ordered pairs times benchmarks.
    algorithms : tuple of str, optional
        For "probability" with `Runs`: which to compare, two or more; all pairs of them, by default of all.
    control : str, optional
        Likewise: the one that is compared with all others, instead of all pairs.
    direction : {"maximize", "minimize"}, optional
        "maximize" by default, needed for a wide table; a `Runs` knows its own, and an effect size has none: it is
        positive where `a` is larger.
    method : str
        For "probability": of the interval. "auto" is "score" from five pairs on and "exact" below; "percentile" (the
        paper's) and "bca" draw again. Not paired: "score" ("auto"), "logit" or "percentile". With `Runs` of several
        benchmarks: "mixed" ("auto") or "percentile".
    sample : {"runs", "benchmarks"}
        For "stochastic_order": "runs" compares the runs on each benchmark by themselves, as independent samples.
        "benchmarks" compares the distributions of mean scores over benchmarks, which are drawn for all algorithms
        together; their scores must mean the same everywhere (`Runs.normalize`).
    tau : float in (0, 0.5]
        For "stochastic_order": claims need an `eps_min` below it; 0.5 asks that less is violated than not, 0.2 more.
    n_draws : int, optional
        Draws: 10,000 of a probability; 2,000 of "akinshin_gamma"; bootstrap draws and permutations of
        "stochastic_order", 2,000 or as many as put 5 draws beyond the bound.
    rng : int, numpy.random.Generator or None
        Source of the draws.

    Returns
    -------
    Answer
        Of "probability" and two samples: `estimate`, the share of the pairs in which A is better (of all pairs of runs
        where they are not paired), `ci_low`, `ci_high`, `ties` and `conclusion` in one row of `table`; `n`, the runs of
        A and of B; `effects`, effect sizes that are positive where A is better, and of scores of 0 and 1 the difference
        of the shares of ones, ``risk difference``, first. The conclusion is about A being better: "not significant";
        where ``ci_low > 0.5`` "significant but not meaningful" (``ci_high <= gamma``), "significant and may be
        meaningful", or "significant and meaningful" (``ci_low > gamma``).

        Of "probability" and a `Runs`, whose families of benchmarks are the sample from five on:

        - `table`, one row per pair, of which left is the one that is more often better unless `algorithms` named two or
          `control` one: ``left``, ``right``, ``n_families`` (where they are the sample), ``n_benchmarks``, ``n_pairs``
          of runs, ``mean`` of the benchmarks' probabilities that a run of left is better (of the means by family, where
          families are the sample), ``estimate`` of the method with ``ci_low`` and ``ci_high``, ``conclusion``,
          ``better_on``: at least so many benchmarks (partial conjunction, Bonferroni, at half of alpha as either side
          of the interval), ``better_on_most``: the largest number that so many runs can show. For scores of 0 and 1
          ``risk_difference``, 2 estimate - 1, as well;
        - `benchmarks`, one row per pair and benchmark: ``left``, ``right``, ``family`` (where families are the sample),
          ``benchmark``, ``wins``, ``ties``, ``losses`` of left, ``estimate``, ``ci_low``, ``ci_high`` at level
          1 - alpha, ``p_raw`` (one-sided), ``p_value`` (Holm over the benchmarks);
        - `replicability`, one row per pair and number u: ``p_bonferroni``, ``p_fisher`` of "left is better on at least
          u benchmarks";
        - `alpha_adjusted`, alpha over the number of pairs, and `gamma_adjusted`, the gamma that as many runs detect at
          it; `method`, `band` (what the intervals are), `family` (the column of the families that are the sample),
          `noun` ("result" in place of "run" where a table without seeds has one score per algorithm and benchmark).

        Of effect sizes: `kind`, `estimate` (positive where `a` is larger; NaN where it has no value, see `notes`),
        `ci_low` and `ci_high` (infinite where the samples do not bound the effect, NaN where it has no value),
        `magnitude` ("negligible", "small", "medium" or "large" by convention: a unit says little about what matters in
        an application), `n_a`, `n_b`; in its table, too. Exchanging `a` and `b` changes the sign of the estimate and of
        both limits, and nothing else.

        Of "stochastic_order": `table`, one row per benchmark and ordered pair: ``benchmark`` ("all" for means by
        benchmark), ``left``, ``right``, ``n_left``, ``n_right``, ``violation_ratio`` of left over right, ``eps_min``
        (its upper confidence bound), ``p_raw`` (permutation test of equal distributions against left being better),
        ``p_value`` (Bonferroni), ``decision``: whether left is almost stochastically better; missing where a sample is
        a single run. ``open``: what is missing for it ("eps_min", "p_value", "eps_min and p_value"; empty where it is).
        `family`: the claims that `alpha` is shared by. A matrix of one benchmark is
        ``table.pivot(index="left", columns="right", values="eps_min")``.

    Raises
    ------
    ArgumentError
        If an argument breaks its rule: pairs of different lengths, gamma outside (0.5, 1), an option of another
        measure, or `n_draws` that are too few for the level of one claim.
    DataError
        If a score is missing or infinite, or runs have no budget in common.
    DesignError
        If the runs hold no pairs. Of "stochastic_order": if an algorithm is missing on a benchmark, or there is one
        run, or one benchmark, of each, or the bounds of so many claims would take more than 15 minutes.

    Notes
    -----
    **Probability.** Measured coverage chose the defaults (page "Outperforming"). The score interval solves the score
    test of P with the share of ties estimated under the null (Tango 1998). Of runs that are not paired, and over
    benchmarks, it is Wilson's interval of as many pairs as the estimate's variance amounts to, with Student's quantile.
    With 0/1 scores P is (1 + risk difference) / 2, paired or not. Where families of benchmarks are the sample, each
    counts the same, with the mean over its benchmarks, and the quantile has as many degrees of freedom as there are
    families, less one.

    **Effect sizes.** Zero over zero is zero, without an interval; any other difference over no spread has no value.

    - d and g, not paired: the noncentral t distribution, exact for normal values with equal variances (Steiger &
      Fouladi 1997). g is d times gamma(f/2) / (sqrt(f/2) gamma((f-1)/2)) with f = n + m - 2 degrees of freedom; both
      estimate the same, so they share the interval.
    - d_z: the noncentral t distribution, exact for normal differences.
    - d and g of pairs: the interval of d_z times the ratio of the two standard deviations (Algina & Keselman 2003). It
      excludes zero exactly where the paired t-test rejects. The bias of g is corrected with
      f = (n - 1) (s_a^2 + s_b^2)^2 / (s_a^4 + s_b^4 + 2 s_ab^2), between n - 1 and 2 (n - 1) (Cousineau 2020).
    - Cliff's delta: the x for which (delta - x)^2 = t^2 (1 - x^2) / N, with N = (1 - delta^2) / v the number of signs
      that have the variance of delta: the interval of Feng & Cliff (2004). v is that of the two samples (Cliff 1993)
      with Welch's degrees of freedom, or that of pairs (Konietschke & Pauly 2012). Where v = 0, N is that of samples
      from one distribution, 3 n m / (n + m + 1).
    - Rank-biserial correlation: (W+ - W-) / (W+ + W-), zeros dropped (Kerby 2014): a mean of signs with the ranks as
      weights, thus the same interval with the normal quantile and N = (sum of ranks)^2 / (sum of their squares), and a
      correction for continuity. It excludes zero exactly where Wilcoxon's test does (normal, with this correction).
    - Akinshin's gamma: median absolute deviations are scaled by 1.4826 and pooled like variances; percentile bootstrap
      over pairs, or over both samples.

    **Stochastic order.** With the quantile functions F of left and G of right, of scores to maximize, the violation
    ratio is the integral of the square of (G - F) where it is positive over that of the square of (F - G). `eps_min` is
    the upper end of the one-sided percentile interval of the bootstrap, exact where the samples that can be drawn are
    fewer than the draws. Where both distributions are equal the ratio estimates nothing (0 / 0), and a bound on it
    claims too much however many runs there are: simulated with equal distributions and 5 to 20 runs, a normal bound, as
    published, is below one half in about 20 % of tables at a level of 5 %, a percentile bound in 3 to 11 %. A claim
    therefore also needs a permutation test, which is exact there, to reject that the distributions are equal; its
    statistic is the integral of the signed squares. Together they claim in 2.5 to 5.5 % at `tau` 0.5 and in 2 to 5 % at
    0.2 (docs/developers/leaderboards.md). Runs of two algorithms that share seeds are compared as if they did not,
    which makes fewer claims.

    What is done otherwise than in deepsig 1.2.8: the ratio is exact, not a sum over a grid of 199 points that leaves
    out scores beyond 200 runs, misplaces some quantiles by rounding and drops the first cell from the violation only,
    so that the ratios of both directions do not add up to 1; `alpha` is divided by the number of claims, where deepsig
    subtracts a share of it that vanishes with their number, and asks for certainty with two algorithms; directed
    claims are counted, all on all benchmarks; one or two runs decide nothing, where deepsig gives a bound of 0; draws
    of different seeds are independent, where those of neighbouring seeds are almost the same; scores to minimize are
    accepted, missing ones are not.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3;
    Paule & Mandel (1982), Consensus values and weighting factors, J. Res. Natl. Bur. Stand. 87;
    Perme & Manevski (2019), Confidence intervals for the Mann-Whitney test, Stat. Methods Med. Res. 28;
    Tango (1998), Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design, Stat. Med. 17;
    Algina & Keselman (2003), Educ. Psychol. Meas. 63, 537-553, doi:10.1177/0013164403256358;
    Cliff (1993), Psychol. Bull. 114, 494-509, doi:10.1037/0033-2909.114.3.494;
    Hedges (1981), J. Educ. Stat. 6, 107-128, doi:10.3102/10769986006002107;
    Kerby (2014), Compr. Psychol. 3, doi:10.2466/11.IT.3.1;
    Konietschke & Pauly (2012), Electron. J. Stat. 6, 1358-1372, doi:10.1214/12-EJS714;
    del Barrio, Cuesta-Albertos & Matrán (2018), An Optimal Transportation Approach for Assessing Almost Stochastic
    Order, in The Mathematics of the Uncertain, arXiv:1705.01788; Dror, Shlomov & Reichart (2019), Deep Dominance,
    doi:10.18653/v1/P19-1266; Ulmer, Hardmeier & Frellsen (2022), deep-significance, arXiv:2204.06815

    Examples
    --------
    >>> a = [0.81, 0.84, 0.79, 0.88, 0.83, 0.85, 0.82, 0.86, 0.80, 0.87]
    >>> b = [0.78, 0.82, 0.80, 0.83, 0.81, 0.80, 0.79, 0.84, 0.77, 0.85]
    >>> answer = outperforming(a, b)
    >>> answer.estimate, round(answer.ci_low, 3), round(answer.ci_high, 3), answer.conclusion
    (0.9, 0.596, 0.982, 'significant and may be meaningful')
    >>> answer = outperforming(a, b, "cohen_dz")
    >>> round(answer.estimate, 3), round(answer.ci_low, 3), round(answer.ci_high, 3), answer.magnitude
    (1.518, 0.573, 2.428, 'large')
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], budget=8, prior="good")
    >>> outperforming(runs.filter(benchmark="svm-cancer"), measure="stochastic_order", rng=1).sentences()
    ('HB is almost stochastically better than RS (eps_min = 0, p < 0.001).',)
    """
    check_choice(measure, "measure", MEASURES)
    gamma, alpha, paired = check_gamma(gamma), check_fraction(alpha, "alpha"), check_flag(paired, "paired")
    if n_draws is not None:
        check_positive_int(n_draws, "n_draws")
    check_options_of(
        "measure",
        measure,
        ("gamma", gamma, 0.75, (PROBABILITY,)),
        ("algorithms", algorithms, None, (PROBABILITY,)),
        ("control", control, None, (PROBABILITY,)),
        ("method", method, "auto", (PROBABILITY,)),
        ("direction", direction, None, (PROBABILITY, ORDER)),
        ("paired", paired, True, (PROBABILITY, *KINDS)),
        ("tau", tau, 0.2, (ORDER,)),
        ("sample", sample, "runs", (ORDER,)),
    )
    if measure == ORDER:
        if b is not None:
            raise ArgumentError(f"b must be left out with measure={ORDER!r}: a is a Runs or a wide table of scores.")
        options: dict[str, Any] = {"direction": direction, "sample": sample, "tau": tau, "alpha": alpha}
        return stochastic_order(a, n_draws=n_draws, rng=rng, **options)
    if isinstance(a, Runs) and measure in KINDS:
        raise ArgumentError(
            f"measure={measure!r} compares two samples, got a Runs. Of its pairs of algorithms: "
            f"lmemtest.rank(runs, effect_size={measure!r})."
        )
    if isinstance(a, Runs):
        for name, value in (("b", b), ("direction", direction)):
            if value is not None:
                raise ArgumentError(f"{name} must be left out where a is a Runs, which has its own, got {value!r:.60}.")
    elif b is None:
        raise ArgumentError(
            "b must be given: the scores of the runs that those of a are compared with. Or give a Runs as a."
        )
    if measure in KINDS:
        return effect_size(a, b, measure, paired=paired, alpha=alpha, n_draws=n_draws or 2_000, rng=rng)
    n_draws = n_draws or 10_000
    if str(method) in ("percentile", "bca") and below((n_draws + 1) * 0.5 * alpha, 1.0):
        more = advice("draws_of_tests", least=int(np.ceil(2.0 / alpha)))
        raise ArgumentError(f"{n_draws:,} draws have no quantile with {0.5 * alpha:.3g} beyond it. {more}")
    drawn: dict[str, Any] = {"method": method, "n_draws": n_draws, "rng": rng}
    if isinstance(a, Runs):
        return over_benchmarks(a, algorithms, paired, gamma, alpha, control=control, **drawn)
    for name, value in (("algorithms", algorithms), ("control", control)):
        if value is not None:
            raise ArgumentError(f"{name} belongs to a Runs as first argument, got {name}={value!r:.60}.")
    way = check_direction("maximize" if direction is None else direction)
    return of_samples(a, b, paired, gamma, alpha, direction=way, **drawn)
