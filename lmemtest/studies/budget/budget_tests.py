"""The tests of the budget check: each question by the mean over benchmarks and by the direction on them.

A question is tested twice, by the mean of the effects and by their direction
(`lmemtest.inference.hypotheses.mean_vectors`): the mean is what a comparison over benchmarks is about, but benchmarks
of a large unit decide it; the direction is free of units. Twice the smaller p-value holds the level whatever the
dependence of the two (Bonferroni). Where there are too few benchmarks for a direction to reach its share of the level
at all, the mean has the whole of it; that is decided by the number of benchmarks alone. The two questions share the
level by Holm's rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.errors import DataError
from lmemtest.inference.hypotheses.mean_vectors import MeanTest, direction_test, fewest_directions, mean_test
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.studies.budget.budget_model import LINES, BudgetCurves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_HELD = 0.9  # of the squared effects: who decides a mean


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTest:
    """One question about the effects of the budget, tested by their mean and by their direction.

    Attributes
    ----------
    question : {"effect", "interaction", "lack of fit"}
        Does the mean score of the algorithms change with the budget; does it change differently for them; does it
        depart from the form of the curves?
    f_ratio, df_num, df_den, mean_p : float
        F-test of the mean effect over the sample; NaN where effects do not vary.
    better, worse : int
        Benchmarks (runs) with an effect to the better and to the worse; -1 where effects are no single slopes.
    agreement : float
        Of directions, from 0 to 1.
    direction_p : float
    n : int
        Benchmarks, or runs.
    uses_direction : bool
        Whether there are enough of them for the direction to count.
    p_raw : float
        Of both together.
    p_value : float
        After Holm, over the questions of the decision.
    deciding : int
        Benchmarks (runs) that hold 90 % of the squared effects.
    """

    question: str
    f_ratio: float
    df_num: float
    df_den: float
    mean_p: float
    better: int
    worse: int
    agreement: float
    direction_p: float
    n: int
    uses_direction: bool
    p_raw: float
    p_value: float
    deciding: int


def budget_tests(curves: BudgetCurves, alpha: float) -> tuple[tuple[BudgetTest, ...], tuple[str, ...]]:
    """Answer the questions about the budget; with what is left out in words."""
    effects, n = curves.fitted.coefficients, len(curves.group)
    if not np.nan_to_num(effects).any():
        raise DataError(
            f"No score changes with {curves.runs.budget}: it is the same at every budget, so there is no effect to "
            "test. Is another column the score, or the budget?"
        )
    asked = [*(() if curves.relative else ("effect",)), "interaction"]
    level, notes = alpha / len(asked), tuple[str, ...]()
    whole: NDArray[np.bool_] = np.asarray(np.isfinite(effects).all(axis=(1, 2)))
    if effects.shape[2] == 1 and not whole.all():
        tests = [_patchy(curves, question, effects[:, :, 0], level) for question in asked]
    else:
        kept = int(whole.sum())
        if not whole.all():
            notes = (
                f"{n - kept} of {n} {curves.clusters} lack an algorithm, or budgets that form={curves.form!r} needs, "
                "and are left out.",
            )
        if kept < 2 and notes:
            raise DataError(
                f"Only {kept} of {n} {curves.clusters} have a curve of every algorithm, and form={curves.form!r} "
                "compares them there. Use form='linear', or filter the runs to algorithms and budgets that share "
                f"{curves.clusters}."
            )
        mean = effects[whole].mean(axis=1)
        vectors = {"effect": mean, "interaction": (effects[whole] - mean[:, None]).reshape(kept, -1)}
        tests = [_of_vectors(curves, question, vectors[question], whole, level) for question in asked]
    adjusted = adjust_raw(np.array([test.p_raw for test in tests]), "holm", len(tests))
    tests = [replace(test, p_value=float(p)) for test, p in zip(tests, adjusted, strict=True)]
    if curves.free is not None:
        # do budget means depart from the form: their deviations against how they vary between benchmarks
        rest = curves.free.coefficients[:, :, effects.shape[2] :]
        whole = np.asarray(np.isfinite(rest).all(axis=(1, 2)))
        if whole.sum() > 1 and rest.shape[2]:
            centre = rest[whole].mean(axis=1, keepdims=True) if curves.relative else 0.0
            deviations = (rest[whole] - centre).reshape(int(whole.sum()), -1)
            if np.abs(deviations).max() <= 1e-9 * float(np.abs(effects[whole]).max()):  # lines to the last digit
                deviations = np.zeros_like(deviations)
            tests.append(_of_vectors(curves, "lack of fit", deviations, whole, alpha))
    return tuple(tests), notes


def _of_vectors(
    curves: BudgetCurves, question: str, vectors: Array, units: NDArray[np.bool_], level: float
) -> BudgetTest:
    """A question about the effects of some units, which have all algorithms."""
    group = np.unique(curves.group[units], return_inverse=True)[1]
    return _tested(question, vectors, mean_test(vectors, group), level, curves)


def _patchy(curves: BudgetCurves, question: str, slopes: Array, level: float) -> BudgetTest:
    """Where algorithms lack units: slopes by a mixed model, directions of what is there."""
    from lmemtest.inference.means.joint import f_test
    from lmemtest.model import ModelSpec

    known = np.isfinite(slopes)
    unit, algorithm = np.nonzero(known)
    frame = pd.DataFrame(
        {"slope": slopes[known], "algorithm": [f"{a:06d}" for a in algorithm], "unit": [f"{u:06d}" for u in unit]}
    )
    several, k = known.sum(axis=1) > 1, slopes.shape[1]
    spec = ModelSpec.parse("slope ~ 0 + algorithm")
    fit = (spec.with_term("(1 | unit)") if several.any() else spec).fit(frame)
    L = np.full((1, k), 1.0 / k) if question == "effect" else np.eye(k)[1:] - np.eye(k)[0]
    found = f_test(fit, L, ddf="satterthwaite")
    model = MeanTest(
        f_ratio=found.f_ratio, df_num=float(found.df_num), df_den=float(found.df_den), p_value=float(found.p_value)
    )
    mean = np.nansum(slopes, axis=1) / np.maximum(known.sum(axis=1), 1)
    if question == "effect":
        return _tested(question, mean[:, None], model, level, curves)
    differences = np.where(known, slopes - mean[:, None], 0.0)
    return _tested(question, differences, model, level, curves, paired=bool(several.any()))


def _tested(
    question: str, vectors: Array, mean: MeanTest, level: float, curves: BudgetCurves, *, paired: bool = True
) -> BudgetTest:
    """Both tests and their p-value; runs of one algorithm each have no direction of differences."""
    direction = direction_test(vectors)
    n = len(vectors)
    uses = paired and n >= fewest_directions(level / 2.0)
    p = mean.p_value
    if paired and not np.abs(vectors).any():
        p = 1.0  # nothing to find: algorithms with the same curves do not differ, and exact lines fit
    elif uses:
        p = min(1.0, 2.0 * float(np.nanmin([p, direction.p_value])))
    if np.isnan(p):
        raise DataError(
            f"The effect of {curves.runs.budget} is the same on all {n} {curves.clusters} to the last digit, so how "
            f"much it varies is not known. Check for copied rows: lmemtest.check(runs). Or bring more "
            f"{curves.clusters}."
        )
    better = worse = -1
    if question == "effect" and curves.form in LINES:
        good = -vectors[:, 0] if curves.runs.direction == "minimize" else vectors[:, 0]
        limit = 1e-12 * float(np.abs(good).max(initial=0.0))
        better, worse = int((good > limit).sum()), int((good < -limit).sum())
    squares = np.sort(np.square(vectors).sum(axis=1))[::-1]
    deciding = int(np.searchsorted(np.cumsum(squares), _HELD * squares.sum() * (1 - 1e-9)) + 1) if squares.any() else n
    return BudgetTest(
        question=question,
        f_ratio=mean.f_ratio,
        df_num=mean.df_num,
        df_den=mean.df_den,
        mean_p=mean.p_value,
        better=better,
        worse=worse,
        agreement=direction.agreement,
        direction_p=direction.p_value,
        n=n,
        uses_direction=uses,
        p_raw=p,
        p_value=p,
        deciding=deciding,
    )
