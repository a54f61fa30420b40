r"""Sign flips: which algorithms are better on average, if all that is known of a benchmark is that it may favour any.

Notation: d_b is the vector of the differences of all pairs of algorithms on benchmark b, one mean each, and s_b = +-1.
Under the null hypothesis d_b and -d_b have the same distribution, and benchmarks are independent; so all tables
(s_b d_b) are equally likely, however much one algorithm varies and whatever goes together with what. A pair has

    t = sum_b s_b d_b / sqrt(n / (n - 1) * sum_b (s_b d_b - mean)^2),

where the sum of squares of d does not change with the signs, so t is a function of the sum alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.core.replicates import check_replicates
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, written
from lmemtest.core.table import Format
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_fraction, check_positive_int
from lmemtest.core.words import counted, format_level, format_number, format_p, p_text, plural
from lmemtest.errors import DataError
from lmemtest.lmm.distributions.sign_patterns import sign_patterns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array


__all__ = ["SignFlipTest", "max_t_p_values", "sign_flip_test"]

_ROUNDING = 1e-12  # of the largest score of a benchmark: differences below it are rounding, and the scores equal
_NO_SCATTER = 1e-12  # 1 - r^2 below it: all differences of a pair agree, and t is infinite
_SAME = 1e-12  # of t (1 + t^2): the error of t from that of r^2
_CHUNK = 400_000  # flips times pairs held at once: 3 MB an array, near the processor
_USUAL = 0.05  # the level that a note on few benchmarks speaks of


@result
class SignFlipTest(Result):
    """Tests of all pairs of algorithms by the signs of whole benchmarks, or families of benchmarks.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair of algorithms. ``left``, ``right``, ``n_benchmarks`` (or families, on which both ran),
        ``estimate`` (left - right, mean over them), ``t_ratio`` (with the pair's own standard deviation), ``p_value``
        (adjusted for all pairs; NaN with fewer than two common benchmarks).
    statistic, p_value : float
        The largest ``|t|`` of all pairs, and that no algorithm is better than another: the smallest adjusted p-value.
    n_benchmarks, unit : int, {"benchmark", "family"}
        Benchmarks (or families) on which two algorithms differ; on others no sign matters.
    n_draws, exact : int, bool
        Patterns of signs, and whether these are all there are (up to the sign of all together), or drawn at random.
    smallest : float
        The smallest p-value that these patterns allow.
    score, direction, hypothesis : str
        What was compared, and the null hypothesis that this tests.
    notes : tuple of str
        What else a reader must know.
    """

    table: pd.DataFrame
    statistic: float
    p_value: float
    n_benchmarks: int
    n_draws: int
    exact: bool
    smallest: float
    score: str
    direction: str
    hypothesis: str
    unit: str = "benchmark"
    notes: tuple[str, ...] = ()

    formats: ClassVar[Mapping[str, Format]] = {"p_value": format_p}

    def sentences(self, alpha: float = 0.05) -> tuple[str, ...]:
        """One plain sentence per pair that was tested.

        Parameters
        ----------
        alpha : float in (0, 1)
            Chance of any false difference among all pairs.
        """
        alpha = check_fraction(alpha, "alpha")
        found = []
        for row in self.table.to_dict("records"):
            left, right, p = row["left"], row["right"], row["p_value"]
            if not np.isfinite(p):
                continue
            if below(p, alpha):
                better = (row["estimate"] < 0) == (self.direction == "minimize")
                first, second = (left, right) if better else (right, left)
                gap = format_number(abs(row["estimate"]))
                found.append(f"{first} is better than {second} by {gap} on average ({p_text(p)}).")
            else:
                found.append(f"No difference is found between {left} and {right} ({p_text(p)}).")
        return tuple(found)

    @property
    def title(self) -> str:
        return "Sign-flip test of all pairs"

    @property
    def facts(self) -> tuple[str, ...]:
        flips = f"all {self.n_draws:,}" if self.exact else f"{self.n_draws:,} random"
        return (
            f"Response {self.score}; {flips} patterns of signs of {counted(self.n_benchmarks, self.unit)}; "
            "t of each pair with its own standard deviation; p-values adjusted for all pairs by the step-down "
            "maximum of |t|.",
            f"Null hypothesis: {self.hypothesis}.",
        )


@one_blas_thread()
def sign_flip_test(runs: Runs, *, n_draws: int = 9999, rng: int | np.random.Generator | None = None) -> SignFlipTest:
    """Test all pairs of algorithms by flipping the signs of whole benchmarks.

    Parameters
    ----------
    runs : Runs
        With a benchmark. Of each benchmark the mean over its runs (at common instances and budgets) is used. Where
        the runs have five families or more, these take the place of benchmarks, each with the mean over its own.
    n_draws : int
        Random patterns of signs. Where there are no more than so many all are taken: up to 14 benchmarks by default.
    rng : int, numpy.random.Generator or None
        Source of the signs; not used where all patterns are taken.

    Returns
    -------
    SignFlipTest

    Raises
    ------
    ArgumentError
        If `runs` is a plain table, has no benchmark, or `n_draws` is not a positive whole number.
    DataError
        If no two algorithms have two benchmarks in common, or all their scores are equal.

    Notes
    -----
    The null hypothesis of a pair: over benchmarks like these neither algorithm is better; on a single one it may be,
    by whatever amount, as likely as the other. More exactly, differences on a benchmark are symmetric about zero.
    Nothing is asked of how much each algorithm varies, of how the differences of several pairs go together, or of
    normal distributions. The chance of any false difference among all pairs is at most the level, whichever pairs
    differ, if the differences of the others are symmetric together (Romano & Wolf 2005); this is exact for any number
    of benchmarks. Advantages that are zero on average but skewed are no part of the hypothesis.

    For two algorithms an exchange of their names (`permutation_test`) is a flip of signs. For three or more it takes
    them to be alike in every way, also in how much they vary: a narrower hypothesis.

    B benchmarks have 2^(B - 1) patterns of signs, so no p-value is below one over that: 1/16 with five, 1/32 with six.

    References
    ----------
    Westfall & Young (1993), Resampling-based multiple testing, algorithm 2.8; Romano & Wolf (2005), Exact and
    approximate stepdown methods for multiple hypothesis testing, doi:10.1198/016214504000000539; Winkler et al. (2014),
    Permutation inference for the general linear model, doi:10.1016/j.neuroimage.2014.01.060 (sign flips: "independent
    and symmetric errors").

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 9], "tool": ["A", "B"] * 8,
    ...          "task": list("aabbccddeeffgghh")}
    >>> runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> test = lt.sign_flip_test(runs)
    >>> test.n_benchmarks, test.exact, test.p_value
    (6, True, 0.03125)
    >>> test.sentences()
    ('A is better than B by 1.250 on average (p = 0.031).',)
    """
    require_runs(runs)
    n_draws = check_positive_int(n_draws, "n_draws")
    check_replicates(rng=rng, n_jobs=1, progress=None)
    runs.study.require("benchmark", "there are no signs to flip")
    sample = runs.study.sampled
    names, D = _differences(sample.runs)
    count = np.isfinite(D).sum(axis=0)
    tested = count > 1
    if not tested.any():
        raise DataError(
            f"no two algorithms have two {sample.nouns} in common, so there is nothing to flip. Each pair needs runs "
            f"on the same values of {sample.column!r}."
        )
    moving = (np.nan_to_num(D[:, tested]) != 0.0).any(axis=1)
    if not moving.any():
        raise DataError(f"the algorithms have the same mean score on every {sample.noun}: there is nothing to test.")
    signs, exact = sign_patterns(int(moving.sum()), n_draws, rng)
    t, p = np.full(D.shape[1], np.nan), np.full(D.shape[1], np.nan)
    t[tested], p[tested] = max_t_p_values(D[:, tested], signs, moving=moving, exact=exact)
    i, j = np.triu_indices(len(names), k=1)
    mean = np.where(count > 0, np.nansum(D, axis=0) / np.maximum(count, 1), np.nan)
    columns = {"left": names[i], "right": names[j], "n_benchmarks": count, "estimate": mean}
    return SignFlipTest(
        table=pd.DataFrame({**columns, "t_ratio": t, "p_value": p}),
        statistic=float(np.nanmax(np.abs(t))),
        p_value=float(np.nanmin(p)),
        n_benchmarks=int(moving.sum()),
        n_draws=len(signs),
        exact=exact,
        smallest=1.0 / (len(signs) + (not exact)),
        score=runs.score,
        direction=runs.direction,
        hypothesis=f"over {sample.nouns} like these no algorithm is better than another; on a single {sample.noun} one "
        f"may be, by whatever amount, as likely as the other (differences on a {sample.noun} are symmetric about zero)",
        unit=sample.noun,
        notes=(*sample.notes, *sample.weights, *_notes(moving, exact, int((~tested).sum()), sample.noun)),
    )


def max_t_p_values(
    D: Array, signs: Array, *, moving: NDArray[np.bool_] | None = None, exact: bool
) -> tuple[Array, Array]:
    """t ratios of all pairs and their step-down p-values by the largest |t|.

    ``D`` are differences, ``(benchmarks, pairs)``, NaN where one of the two did not run, with two or more in every
    column; ``signs`` patterns for the benchmarks that are `moving` (by default all), `exact` if they are all of them.

    Examples
    --------
    >>> D = np.array([[1.0, 0.1], [2.0, -0.1], [3.0, 0.3], [2.5, 0.2]])
    >>> t, p = max_t_p_values(D, sign_patterns(4, 8, None)[0], exact=True)
    >>> t.round(3), p
    (array([4.977, 1.464]), array([0.125, 0.375]))
    """
    count = np.isfinite(D).sum(axis=0)
    X = np.nan_to_num(D if moving is None else D[moving])  # a benchmark that does not move adds zeros
    squares = (X**2).sum(axis=0)
    total = X.sum(axis=0)
    t = np.copysign(_absolute_t(total, squares, count), total)
    order = np.argsort(-np.abs(t), kind="stable")
    observed = np.abs(t)[order]
    with np.errstate(invalid="ignore"):
        reached = np.where(np.isinf(observed), np.inf, observed - _SAME * observed * (1.0 + observed**2))
    ascending, extreme = order[::-1], np.zeros(len(order))
    X, squares, count, reached = X[:, ascending], squares[ascending], count[ascending], reached[::-1]
    step = max(_CHUNK // len(order), 1)
    for start in range(0, len(signs), step):
        drawn = _absolute_t(signs[start : start + step] @ X, squares, count)
        largest = np.maximum.accumulate(drawn, axis=1)  # of this pair and those that are less clear
        extreme += (largest >= reached).sum(axis=0)
    extreme = extreme[::-1]
    p = extreme / len(signs) if exact else (1.0 + extreme) / (len(signs) + 1.0)
    out = np.empty(len(order))
    out[order] = np.maximum.accumulate(p)
    return t, out


def _absolute_t(total: Array, squares: Array, count: NDArray[np.intp]) -> Array:
    """|t| from sums of differences and of their squares; 0 where all are zero."""
    r2 = total**2
    r2 /= np.where(squares > 0.0, count * squares, 1.0)
    rest = 1.0 - r2
    rest[rest <= _NO_SCATTER] = 0.0
    r2 *= count - 1.0
    with np.errstate(divide="ignore"):
        r2 /= rest
    return np.sqrt(r2, out=r2)


def _differences(runs: Runs) -> tuple[NDArray[np.object_], Array]:
    """Names, and differences of all pairs: a mean per benchmark, over the instances and budgets that both have."""
    where = [*runs.instance, *([runs.budget] if runs.budget else [])]
    cells = runs.study.cells([*where, runs.algorithm])
    wide = cells.frame.assign(**{"": cells.mean}).pivot(index=where, columns=runs.algorithm, values="")
    Y = wide[list(runs.algorithms)].to_numpy(dtype=float)
    benchmark = wide.index.get_level_values(str(runs.benchmark)).to_numpy()
    i, j = np.triu_indices(Y.shape[1], k=1)
    means = pd.DataFrame(Y[:, i] - Y[:, j]).groupby(benchmark).mean().to_numpy()
    scale = pd.DataFrame(np.abs(Y)).groupby(benchmark).max().max(axis=1).to_numpy()[:, None]
    names = np.array([format_level(name) for name in runs.algorithms], dtype=object)
    return names, np.where(np.abs(means) <= _ROUNDING * scale, 0.0, means)


def _notes(moving: NDArray[np.bool_], exact: bool, untested: int, noun: str) -> list[str]:
    notes = []
    n = int(moving.sum())
    smallest = 2.0 ** (1 - n)
    if smallest > 0.001:
        text = (
            f"{counted(n, noun)} have {2 ** (n - 1):,} patterns of signs, so no p-value is below "
            f"{written(smallest, '.2g')}"
        )
        too_few = f" and no difference can be significant at 5 %; six {plural(noun)} are the fewest for that"
        notes.append(f"{text}{too_few if not below(smallest, _USUAL) else ''}.")
    for number, of, what in (
        (int((~moving).sum()), noun, "no differences, so the sign does not matter there"),
        (untested, "pair", f"fewer than two common {plural(noun)} and no test"),
    ):
        if number:
            notes.append(f"{counted(number, of)} {'has' if number == 1 else 'have'} {what}.")
    if not exact:
        notes.append("The patterns are drawn at random; another rng= gives slightly different p-values.")
    return notes
