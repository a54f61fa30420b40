r"""Sign flips: which algorithms are better on average, if all that is known of a benchmark is that it may favour any.

Notation: d_b is the vector of the differences of all pairs of algorithms on benchmark b, one mean each, and s_b = +-1.
Under the null hypothesis d_b and -d_b have the same distribution, and benchmarks are independent; so all tables
(s_b d_b) are equally likely, however much one algorithm varies and whatever goes together with what. A pair has

    t = sum_b s_b d_b / sqrt(n / (n - 1) * sum_b (s_b d_b - mean)^2),

where the sum of squares of d does not change with the signs, so t is a function of the sum alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.core.resampling import p_of_draws, sign_patterns
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.words import counted, format_level, format_number, format_p, p_text, plural
from lmemtest.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask


_ROUNDING = 1e-12  # of the largest score of a benchmark: differences below it are rounding, and the scores equal
_NO_SCATTER = 1e-12  # 1 - r^2 below it: all differences of a pair agree, and t is infinite
_SAME = 1e-12  # of t (1 + t^2): the error of t from that of r^2
_CHUNK = 400_000  # flips times pairs held at once: 3 MB an array, near the processor
_USUAL = 0.05  # the level that a note on few benchmarks speaks of


def sign_flips(runs: Runs, alpha: float, n_draws: int, rng: int | np.random.Generator | None) -> Answer:
    """`permutation_test` of all pairs of algorithms by the signs of whole benchmarks, or families of benchmarks."""
    require_runs(runs)
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
    table = pd.DataFrame({**columns, "t_ratio": t, "p_value": p})
    n, flips = int(moving.sum()), f"all {len(signs):,}" if exact else f"{len(signs):,} random"
    hypothesis = (
        f"over {sample.nouns} like these no algorithm is better than another; on a single {sample.noun} one may be, by "
        f"whatever amount, as likely as the other (differences on a {sample.noun} are symmetric about zero)"
    )
    return Answer(
        question="permutation_test",
        title="Sign-flip test of all pairs",
        tables={"table": table},
        values={
            "statistic": float(np.nanmax(np.abs(t))),
            "p_value": float(np.nanmin(p)),
            "n_benchmarks": n,
            "n_draws": len(signs),
            "exact": exact,
            "smallest": 1.0 / (len(signs) + (not exact)),
            "score": runs.score,
            "direction": runs.direction,
            "hypothesis": hypothesis,
            "unit": sample.noun,
        },
        facts=(
            f"Response {runs.score}; {flips} patterns of signs of {counted(n, sample.noun)}; "
            "t of each pair with its own standard deviation; p-values adjusted for all pairs by the step-down "
            "maximum of |t|.",
            f"Null hypothesis: {hypothesis}.",
        ),
        findings=tuple(_sentence(row, alpha, runs.direction) for row in table[tested].to_dict("records")),
        notes=(*sample.notes, *sample.weights, *_notes(moving, exact, int((~tested).sum()), sample.noun)),
        formats={"p_value": format_p},
    )


def _sentence(row: dict[Any, Any], alpha: float, direction: str) -> str:
    """Who is better, of a pair that was tested."""
    left, right, p = row["left"], row["right"], row["p_value"]
    if not below(p, alpha):
        return f"No difference is found between {left} and {right} ({p_text(p)})."
    better = (row["estimate"] < 0) == (direction == "minimize")
    first, second = (left, right) if better else (right, left)
    return f"{first} is better than {second} by {format_number(abs(row['estimate']))} on average ({p_text(p)})."


def max_t_p_values(D: Array, signs: Array, *, moving: Mask | None = None, exact: bool) -> tuple[Array, Array]:
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
    p = p_of_draws(extreme, len(signs), exact=exact)
    out = np.empty(len(order))
    out[order] = np.maximum.accumulate(p)
    return t, out


def _absolute_t(total: Array, squares: Array, count: Index) -> Array:
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


def _notes(moving: Mask, exact: bool, untested: int, noun: str) -> list[str]:
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
