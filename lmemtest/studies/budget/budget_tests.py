"""The tests of the budget check: each question by the mean over benchmarks and by the direction on them.

A question is tested twice, by the mean of the effects and by their direction
(`lmemtest.inference.hypotheses.mean_vectors`): the mean is what a comparison over benchmarks is about, but benchmarks
of a large unit decide it; the direction is free of units. Twice the smaller p-value holds the level whatever the
dependence of the two (Bonferroni). Where there are too few benchmarks for a direction to reach its share of the level
at all, the mean has the whole of it; that is decided by the number of benchmarks alone. The two questions share the
level by Holm's rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.errors import DataError
from lmemtest.inference.hypotheses.mean_vectors import MeanTest, direction_test, fewest_directions, mean_test
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.studies.budget.budget_model import LINES, Courses

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
    p_value : float
        Of both together.
    p_adjusted : float
        After Holm, over the questions of the verdict.
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
    p_value: float
    p_adjusted: float
    deciding: int


def budget_tests(courses: Courses, alpha: float) -> tuple[tuple[BudgetTest, ...], tuple[str, ...]]:
    """Answer the questions about the budget."""
    effects = courses.fitted.coefficients
    whole: NDArray[np.bool_] = np.asarray(np.isfinite(effects).all(axis=(1, 2)))
    if not np.nan_to_num(effects).any():
        raise DataError(
            f"No score changes with {courses.runs.budget}: it is the same at every budget, so there is no effect to "
            "test. Is another column the score, or the budget?"
        )
    notes: list[str] = []
    asked = [*(() if courses.relative else ("effect",)), "interaction"]
    if whole.all():
        found = [_complete(courses, question, effects, alpha / len(asked)) for question in asked]
    elif effects.shape[2] == 1:
        found = [_patchy(courses, question, effects[:, :, 0], alpha / len(asked)) for question in asked]
    else:
        _check_enough(courses, int(whole.sum()))
        left = f"{len(whole) - whole.sum()} of {len(whole)} {courses.clusters}"
        notes.append(f"{left} lack an algorithm, or budgets that form={courses.form!r} needs, and are left out.")
        found = [_complete(courses, question, effects[whole], alpha / len(asked), whole) for question in asked]
    adjusted = adjust_raw(np.array([test.p_value for test in found]), "holm", len(found))
    tests = [_with_adjusted(test, float(p)) for test, p in zip(found, adjusted, strict=True)]
    lack = _lack_of_fit(courses, alpha)
    return (*tests, *(() if lack is None else (lack,))), tuple(notes)


def _with_adjusted(test: BudgetTest, p: float) -> BudgetTest:
    return replace(test, p_adjusted=p)


def _check_enough(courses: Courses, n: int) -> None:
    if n < 2:
        raise DataError(
            f"Only {n} of {len(courses.group)} {courses.clusters} have a curve of every algorithm, and "
            f"form={courses.form!r} compares them there. Use form='linear', or filter the runs to algorithms and "
            f"budgets that share {courses.clusters}."
        )


def _complete(
    courses: Courses, question: str, effects: Array, level: float, kept: NDArray[np.bool_] | None = None
) -> BudgetTest:
    """Of units with all algorithms, ``(units, algorithms, c)``."""
    group = courses.group if kept is None else _codes(courses.group[kept])
    mean = effects.mean(axis=1)
    if question == "effect":
        return _tested(question, mean, mean_test(mean, group), level, courses)
    differences = (effects - mean[:, None]).reshape(len(effects), -1)
    return _tested(question, differences, mean_test(differences, group), level, courses)


def _codes(group: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.unique(group, return_inverse=True)[1]


def _patchy(courses: Courses, question: str, slopes: Array, level: float) -> BudgetTest:
    """Where algorithms lack units: slopes by a mixed model, directions of what is there."""
    known = np.isfinite(slopes)
    known[known.sum(axis=1) == 0] = False
    own = np.where(known, slopes, 0.0)
    counts = np.maximum(known.sum(axis=1), 1)
    mean = own.sum(axis=1) / counts
    vectors = mean[:, None] if question == "effect" else np.where(known, own - mean[:, None], 0.0)
    paired = question == "effect" or bool((known.sum(axis=1) > 1).any())
    return _tested(question, vectors, _fitted_test(slopes, known, question), level, courses, paired=paired)


def _fitted_test(slopes: Array, known: Array, question: str) -> MeanTest:
    from lmemtest.inference.means.joint import f_test
    from lmemtest.model import fit_lmm

    unit, algorithm = np.nonzero(known)
    frame = pd.DataFrame(
        {"slope": slopes[known], "algorithm": [f"{a:06d}" for a in algorithm], "unit": [f"{u:06d}" for u in unit]}
    )
    random = " + (1 | unit)" if known.sum(axis=1).max() > 1 else ""
    fit = fit_lmm(f"slope ~ 0 + algorithm{random}", frame)
    k = slopes.shape[1]
    L = np.full((1, k), 1.0 / k) if question == "effect" else np.eye(k)[1:] - np.eye(k)[0]
    found = f_test(fit, L, ddf="satterthwaite")
    return MeanTest(
        f_ratio=found.f_ratio, df_num=float(found.df_num), df_den=float(found.df_den), p_value=float(found.p_value)
    )


def _lack_of_fit(courses: Courses, alpha: float) -> BudgetTest | None:
    """Whether budget means depart from the form: their deviations against how they vary between benchmarks."""
    if courses.free is None:
        return None
    width = courses.fitted.coefficients.shape[2]
    rest = courses.free.coefficients[:, :, width:]
    whole = np.isfinite(rest).all(axis=(1, 2))
    if whole.sum() < 2 or rest.shape[2] == 0:
        return None
    kept = rest[whole]
    if courses.relative:
        kept = kept - kept.mean(axis=1, keepdims=True)
    vectors, group = kept.reshape(len(kept), -1), _codes(courses.group[whole])
    size = float(np.abs(courses.fitted.coefficients[whole]).max())
    if np.abs(vectors).max() <= 1e-9 * size:  # lines to the last digit
        vectors = np.zeros_like(vectors)
    test = _tested("lack of fit", vectors, mean_test(vectors, group), alpha, courses)
    return _with_adjusted(test, test.p_value)


def _tested(
    question: str, vectors: Array, mean: MeanTest, level: float, courses: Courses, *, paired: bool = True
) -> BudgetTest:
    """Both tests and their p-value; runs of one algorithm each have no direction of differences."""
    direction = direction_test(vectors)
    n = len(vectors)
    uses = paired and n >= fewest_directions(level / 2.0)
    p = mean.p_value
    if paired and not np.abs(vectors).any():
        p = 1.0  # nothing to find: algorithms with the same courses do not differ, and exact lines fit
    elif uses:
        p = min(1.0, 2.0 * float(np.nanmin([p, direction.p_value])))
    if np.isnan(p):
        raise DataError(
            f"The effect of {courses.runs.budget} is the same on all {n} {courses.clusters} to the last digit, so how "
            f"much it varies is not known. Check for copied rows: lmemtest.check_all(runs). Or bring more "
            f"{courses.clusters}."
        )
    better = worse = -1
    if question == "effect" and courses.form in LINES:
        single = vectors[:, 0]
        good = -single if courses.runs.direction == "minimize" else single
        limit = 1e-12 * float(np.abs(single).max(initial=0.0))
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
        p_value=p,
        p_adjusted=p,
        deciding=deciding,
    )
