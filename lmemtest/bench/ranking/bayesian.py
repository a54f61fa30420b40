"""Posterior probabilities that one of two algorithms is practically better, or that they are equivalent, by pair."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.ranking import hierarchical
from lmemtest.bench.ranking.signed_rank import signed_rank
from lmemtest.core.rounding import at_most, tolerance
from lmemtest.core.validate import check_choice, check_fraction, check_number, check_positive_int, resolve_rng
from lmemtest.core.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array


MODELS = ("signed_rank", "hierarchical")
ROPE_UNITS = ("score", "effect", "mad")


def bayesian_pairs(
    blocks: Blocks,
    *,
    model: str = "signed_rank",
    rope: float = 0.0,
    rope_unit: str = "score",
    alpha: float = 0.05,
    n_draws: int = 50_000,
    rng: int | np.random.Generator | None = None,
) -> pd.DataFrame:
    """Compare all pairs of algorithms by posterior probabilities with a region of practical equivalence (ROPE).

    Parameters
    ----------
    blocks : Blocks
        Scores of the algorithms on benchmarks. A pair is compared on the blocks that have scores of both.
    model : {"signed_rank", "hierarchical"}
        The signed-rank test looks at one difference per block, that of the mean scores, and assumes no distribution.
        The hierarchical model knows the runs behind it, and assumes normal advantages.
    rope : float, >= 0
        Differences of at most this size are practically equivalent. With 0 nothing is, and the probabilities are those
        of the direction.
    rope_unit : {"score", "effect", "mad"}
        `rope` is a difference of scores, or is multiplied by the pooled standard deviation, or (scaled) median absolute
        deviation, of the two algorithms' scores over blocks.
    alpha : float in (0, 1)
        An outcome with probability 1 - `alpha` or more is decided.
    n_draws : int
        Of the signed-rank test; the hierarchical model is integrated without draws.
    rng : int, numpy.random.Generator or None
        Of the signed-rank test.

    Returns
    -------
    pandas.DataFrame
        One row per pair, ``left`` before ``right`` in `blocks.algorithms`:

        - ``n_blocks`` with scores of both, and ``rope`` in units of the score;
        - ``p_left``, ``p_equal``, ``p_right``: posterior probability that "left is practically better", "they are
          equivalent", "right is practically better" is what happens most often on benchmarks of this kind;
        - ``verdict``: the `lmemtest.core.verdicts.Verdict` on left, compared with right: 1 better, 2 practically
          equivalent, -1 worse, 0 undecided;
        - hierarchical model only: ``advantage``, ``advantage_low``, ``advantage_high``, the mean advantage of left over
          benchmarks in units of the score, positive if left is better whatever the direction, with its credible
          interval at level 1 - `alpha`; ``p_mean_left``, the probability that it is positive; ``p_new_left``,
          ``p_new_equal``, ``p_new_right``, the predictive probability of each outcome on one new benchmark.

        Pairs with fewer than two blocks in common have no probabilities and are undecided.

    Raises
    ------
    ArgumentError
        If an argument is outside its domain.

    Notes
    -----
    **Three probabilities.** Suppose left is better by 1 on average, and advantages vary between benchmarks
    with a standard deviation of 2. With a thousand benchmarks ``p_left`` and ``p_mean_left`` are 1: left is better on
    most. But on 69 % of the benchmarks only, which is what ``p_new_left`` says.

    **False decisions.** A posterior probability is not an error rate. Each direction has `alpha` to itself, so of two
    equal algorithms one is called better in about 2 `alpha` of the studies, and nothing adjusts for the number of
    pairs. Measured with the signed-rank test at `alpha` = 0.05 on 20 blocks of equal algorithms, `rope` 0: in 12 to
    13 % of the studies with two algorithms, 25 to 26 % with three, 88 to 90 % with ten some algorithm was called better
    than another; with a `rope` of 0.1 "effect" in 10 to 13, 23 to 26 and 84 to 89 %; on 5 blocks (two algorithms,
    `rope` 0) in 19 to 26 %. (The ranges are those of normal, skewed, discrete and heteroscedastic scores.)

    **The unit of the ROPE.** What difference does not matter is known in the units of the score, and only there. The
    spread of scores over benchmarks, which "effect" and "mad" multiply, grows with each benchmark that is easier or
    harder than the others, and any two algorithms can be made "practically equivalent" by a mixed choice of benchmarks.
    So the default is no ROPE: without a limit that the user knows, nobody can say that a difference is negligible.

    References
    ----------
    Benavoli, Corani, Demšar & Zaffalon (2017), Journal of Machine Learning Research 18(77), 1-36;
    Corani, Benavoli, Demšar, Mangili & Zaffalon (2017), Machine Learning 106, 1817-1837, doi:10.1007/s10994-017-5641-9

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.data.blocks import blocks_of
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, algorithm=["RS", "HB", "HB+prior"])
    >>> pairs = bayesian_pairs(blocks_of(runs), rope=0.002, rng=1)
    >>> pairs[["left", "right", "p_left", "p_equal", "p_right", "verdict"]].round(2)
           left     right  p_left  p_equal  p_right  verdict
    0        HB  HB+prior     0.0      1.0      0.0        2
    1        HB        RS     1.0      0.0      0.0        1
    2  HB+prior        RS     1.0      0.0      0.0        1
    """
    import pandas as pd

    check_choice(model, "model", MODELS)
    rope = check_rope(rope)
    check_choice(rope_unit, "rope_unit", ROPE_UNITS)
    alpha = check_fraction(alpha, "alpha")
    n_draws = check_positive_int(n_draws, "n_draws")
    generator = resolve_rng(rng)
    pairs = list(combinations(range(len(blocks.algorithms)), 2))
    left, right = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    gains = blocks.gains
    both = np.isfinite(gains[:, left]) & np.isfinite(gains[:, right])
    n_blocks = both.sum(axis=0)
    limits = np.full(len(pairs), rope)
    if rope_unit != "score":
        limits *= [_spread(gains[here][:, pair], rope_unit) for here, pair in zip(both.T, pairs, strict=True)]
    tested = n_blocks >= 2
    p = np.full((len(pairs), 3), np.nan)
    more: dict[str, Any] = {}
    if model == "signed_rank":
        advantages = (gains[:, left] - gains[:, right]).T[tested]
        p[tested] = signed_rank(advantages, limits[tested], n_draws=n_draws, rng=generator, tie=tolerance(gains))
    else:
        p, more = _hierarchical(blocks, pairs, tested, limits, alpha)
    return pd.DataFrame(
        {
            "left": [blocks.algorithms[i] for i in left],
            "right": [blocks.algorithms[i] for i in right],
            "n_blocks": n_blocks,
            "rope": limits,
            "p_left": p[:, 0],
            "p_equal": p[:, 1],
            "p_right": p[:, 2],
            "verdict": posterior_verdicts(p, alpha),
            **more,
        }
    )


def check_rope(rope: Any) -> float:
    """Half the width of a region of practical equivalence."""
    return check_number(rope, "rope", low=0, meaning="the largest difference that does not matter")


def posterior_verdicts(p: Array, alpha: float) -> NDArray[np.int8]:
    """What the probabilities of left, neither and right, ``(pairs, 3)``, decide.

    >>> posterior_verdicts(np.array([[0.96, 0.03, 0.01], [0.5, 0.0, 0.5], [np.nan] * 3]), 0.05).tolist()
    [1, 0, 0]
    """
    probable = at_most(1.0 - p, alpha) & (p > 0.5)  # of three outcomes one at most is
    said = np.array([Verdict.BETTER, Verdict.EQUIVALENT, Verdict.WORSE], dtype=np.int8)
    return np.where(probable.any(axis=1), said[probable.argmax(axis=1)], np.int8(Verdict.NOT_SIGNIFICANT))


def _spread(scores: Array, unit: str) -> float:
    """The unit of a ROPE in units of the score: the root mean square of the spreads of two algorithms."""
    if len(scores) < 2:
        return float("nan")
    if unit == "effect":
        return float(np.sqrt(scores.var(axis=0, ddof=1).mean()))
    from scipy.stats import median_abs_deviation

    return float(np.sqrt(np.mean(median_abs_deviation(scores, axis=0, scale="normal") ** 2)))


def _hierarchical(
    blocks: Blocks, pairs: list[tuple[int, int]], tested: NDArray[np.bool_], limits: Array, alpha: float
) -> tuple[Array, dict[str, Array]]:
    p, new = (np.full((len(pairs), 3), np.nan) for _ in range(2))
    mean = np.full((len(pairs), 4), np.nan)
    for row in np.flatnonzero(tested):
        d, v = hierarchical.differences(blocks, *pairs[row])
        known = np.isfinite(d)
        rope = float(limits[row])
        found = hierarchical.posterior(d[known], v[known], rope=rope)
        p[row] = found.most_probable(rope)
        better, worse = found.new_above(rope), 1.0 - found.new_above(-rope)
        new[row] = better, 1.0 - better - worse, worse
        mean[row] = found.weight @ found.mean, *found.interval(1.0 - alpha), found.above(0.0)
    names = "advantage", "advantage_low", "advantage_high", "p_mean_left", "p_new_left", "p_new_equal", "p_new_right"
    return p, dict(zip(names, np.concatenate([mean, new], axis=1).T, strict=True))
