"""Does the score depend on the budget, and alike for all algorithms? By the mean over benchmarks and by direction."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._result import Result, result
from lmemtest._rounding import below
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction
from lmemtest.inference.hypotheses.mean_vectors import MeanVector, fewest_directions
from lmemtest.studies.budget.budget_model import FORMS, LINES, MOST_BUDGETS, Courses, Fitted, budget_courses
from lmemtest.studies.budget.budget_tests import BudgetTest, budget_tests
from lmemtest.studies.budget.budget_words import (
    effect_sentence,
    fit_sentence,
    method_notes,
    slope_sentence,
    verdict_sentence,
)
from lmemtest.words import format_level, format_p

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

    Array = NDArray[np.float64]

VERDICTS = ("none", "simple", "interaction")
_POINTS = 25  # of a curve: enough for a smooth line
_MOST_DRAWN = 60  # budgets that are drawn as they are
_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Change of the mean score from the lowest to the highest budget by the form that is tested, with an interval.

    Attributes
    ----------
    estimate, ci_low, ci_high : float
    level : float
        What the questions and their tests leave of the level, so that a line's interval excludes zero exactly if the
        mean alone shows an effect whatever the rest shows.
    """

    estimate: float
    ci_low: float
    ci_high: float
    level: float


@result
class BudgetEffect(Result):
    """Whether the budget matters, and for all algorithms alike.

    Attributes
    ----------
    verdict : {"none", "simple", "interaction"}
        No effect of the budget was shown; it has one; it has one that differs between algorithms.
    tests : tuple of BudgetTest
        "effect", "interaction" and "lack of fit", as far as the design has them.
    slopes : pandas.DataFrame
        Per algorithm: ``algorithm``, ``estimate``, ``se``, ``df``, ``ci_low``, ``ci_high``; what `per` says.
    per : str
        What an estimate is a difference over: one unit of budget, a doubling, or the whole range.
    change : Change or None
        Of the mean of all algorithms; None where scores are relative to the benchmark.
    difference : float
        The changes of no two algorithms over the whole range differ by more (level of `change`, all pairs together);
        NaN where that is not known.
    curves : pandas.DataFrame
        Mean scores: ``algorithm``, ``budget``, ``mean``, ``ci_low``, ``ci_high`` (95 %, each by itself).
    observed : pandas.DataFrame
        ``algorithm``, ``budget``, ``mean`` over instances with equal weight, ``n``; empty with many budgets.
    form : str
        What was tested.
    drawn : str
        Form of `slopes` and `curves`: `form`, or with ``form="auto"`` the means at each budget (a spline, with more
        than 50) where they contradict the line.
    alpha : float
    score, direction, budget, clusters : str
    range : tuple
        Lowest and highest budget.
    n_clusters, n_obs : int
    notes : tuple of str
    """

    parts = {"tests": "_table", "slopes": "slopes", "curves": "curves", "observed": "observed"}
    formats = {"f_ratio": ".4g", "df_num": ".3g", "df_den": ".3g", "agreement": ".2f"}
    figure = "fidelity_plot"

    verdict: str
    tests: tuple[BudgetTest, ...]
    slopes: pd.DataFrame
    per: str
    change: Change | None
    difference: float
    curves: pd.DataFrame
    observed: pd.DataFrame
    form: str
    drawn: str
    alpha: float
    score: str
    direction: str
    budget: str
    range: tuple[str, str]
    clusters: str
    n_clusters: int
    n_obs: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, question: str) -> BudgetTest:
        """The test of a question."""
        for test in self.tests:
            if test.question == question:
                return test
        raise KeyError(f"no test of {question!r}; there are: {', '.join(t.question for t in self.tests)}")

    def get(self, question: str) -> BudgetTest | None:
        """The test of a question, None where it was not asked."""
        return next((test for test in self.tests if test.question == question), None)

    def _table(self) -> pd.DataFrame:
        """One row per question: question, f_ratio, df_num, df_den, mean_p, better, worse, agreement, direction_p, n,
        uses_direction, p_value, p_adjusted, significant."""
        import pandas as pd

        names = [field.name for field in fields(BudgetTest) if field.name != "deciding"]
        table = pd.DataFrame([[getattr(test, name) for name in names] for test in self.tests], columns=names)
        counts = table[["better", "worse"]].astype("Int64")
        table[["better", "worse"]] = counts.mask(counts < 0)
        significant = pd.Series(below(table["p_adjusted"], self.alpha), index=table.index, dtype="boolean")
        return table.assign(significant=significant.mask(table["p_adjusted"].isna()))

    @property
    def fits(self) -> bool:
        """Whether the budget means do not contradict the form."""
        lack = self.get("lack of fit")
        return lack is None or not below(lack.p_adjusted, self.alpha)

    @property
    def title(self) -> str:
        """The question and the verdict."""
        return f"Does {self.budget} matter? Verdict: {self.verdict}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the tests are and how they share the level."""
        return method_notes(self)

    def sentences(self) -> tuple[str, ...]:
        """The verdict, the effect on the mean and on each algorithm, and where the form does not fit."""
        slopes = [slope_sentence(self, row) for row in self.slopes.to_dict("records")]
        texts = (verdict_sentence(self), effect_sentence(self), *slopes, fit_sentence(self))
        return tuple(text for text in texts if text)


@one_blas_thread()
def budget_effect(
    runs: Runs,
    *,
    budget: str | None = None,
    form: str = "auto",
    alpha: float = 0.05,
) -> BudgetEffect:
    """Test whether scores depend on the budget, and whether they do so alike for all algorithms.

    Parameters
    ----------
    runs : Runs
        With two or more budgets, and several benchmarks or seeds.
    budget : str, optional
        The column to test; the budget of the runs by default.
    form : {"auto", "linear", "log", "categorical", "spline"}
        The mean score is a straight line over the budget, a straight line over its logarithm, has a value of its own
        at every budget, or is a smooth curve (cubic B-spline with four columns). "auto" tests a line: over the
        logarithm where the largest budget is at least eight times the smallest, else over the budget. It draws the
        line unless the budget means contradict it; then curves and slopes are those of the means.
    alpha : float in (0, 1)
        Level of the verdict.

    Returns
    -------
    BudgetEffect
        ``verdict``, ``to_frame()`` (one row per question), ``slopes``, ``curves``, ``sentences()``.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If there is no budget column, or an option does not apply.
    DataError
        If the effect cannot be identified: one budget, one run per algorithm on one benchmark, algorithms without
        common budgets; or if it does not vary at all.

    Notes
    -----
    On every benchmark the runs of an algorithm give one course over the budget (least squares within runs), and these
    courses are the data: benchmarks are the sample (runs, if there is one benchmark). For a line this gives the
    F-ratios of the mixed model with random levels and slopes of benchmarks, of algorithms on them and of runs, where
    the table is balanced and no variance is estimated as zero. Rows that count as independent observations find a
    budget effect in most tables whose slopes vary around zero.

    Two questions: does the mean score of the algorithms change ("effect"), and does it change differently for them
    ("interaction")? Each is tested by the mean effect, an F-test with Box's degrees of freedom whatever the covariance
    of the effects, and by their direction, an exact test over all signs that no unit can influence; p is twice the
    smaller one. The questions share the level by Holm's rule, so that a claim is wrong with probability `alpha` at
    most. With so few benchmarks that directions cannot reach their share (up to 7 at 5 %), means decide alone.
    "Lack of fit" tests the deviations of the budget means from the form in the same way; it is a check of the form and
    no part of the verdict.

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, Appendix C; Matthews, Altman, Campbell &
    Royston (1990), doi:10.1136/bmj.300.6719.230; Ibragimov & Müller (2010), doi:10.1198/jbes.2009.08046; Holm (1979),
    https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.budget.budget_effect import budget_effect
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> result = budget_effect(runs)
    >>> result.verdict in ("none", "simple", "interaction")
    True
    """
    check_choice(form, "form", FORMS)
    alpha = check_fraction(alpha, "alpha")
    courses = budget_courses(runs, budget, form)
    tests, left_out = budget_tests(courses, alpha)
    drawn, fitted = _drawn(courses, tests, form, alpha)
    change, difference = _over_the_range(courses, _level_of_one(tests, alpha))
    slopes, per = _slopes(courses, fitted, drawn)
    return BudgetEffect(
        verdict=_verdict(tests, alpha),
        tests=tests,
        slopes=slopes,
        per=per,
        change=change,
        difference=difference,
        curves=_curves(courses, fitted, drawn),
        observed=_observed(courses),
        form=courses.form,
        drawn=drawn,
        alpha=alpha,
        score=courses.runs.score,
        direction=courses.runs.direction,
        budget=str(courses.runs.budget),
        range=_ends(courses),
        clusters=courses.clusters,
        n_clusters=len(courses.group),
        n_obs=courses.n_obs,
        notes=(*courses.notes, *left_out, *_cautions(courses, tests, fitted, alpha)),
    )


def _verdict(tests: tuple[BudgetTest, ...], alpha: float) -> str:
    shown = {test.question for test in tests if below(test.p_adjusted, alpha)}
    return "interaction" if "interaction" in shown else "simple" if "effect" in shown else "none"


def _drawn(courses: Courses, tests: tuple[BudgetTest, ...], form: str, alpha: float) -> tuple[str, Fitted]:
    """The form of curves and slopes, which costs the tests no level: they stay with the line."""
    lack = next((test for test in tests if test.question == "lack of fit"), None)
    if form != "auto" or courses.free is None or lack is None or not below(lack.p_adjusted, alpha):
        return courses.form, courses.fitted
    return "categorical" if len(courses.budgets) <= MOST_BUDGETS else "spline", courses.free


def _ends(courses: Courses) -> tuple[str, str]:

    return format_level(courses.budgets[0]), format_level(courses.budgets[-1])


def _intervals(values: Array, group: NDArray[np.intp], level: float) -> tuple[Array, Array, Array, Array]:
    """Means of columns over the units that have them: estimate, standard error, df, half width; ``(m,)`` each."""
    from lmemtest.inference.distributions.student import t_quantile

    out = np.full((4, values.shape[1]), np.nan)
    for j, column in enumerate(values.T):
        known = np.isfinite(column)
        if not known.any():
            continue
        found = MeanVector.of(column[known, None], np.unique(group[known], return_inverse=True)[1])
        out[0, j] = found.mean[0]
        if found.df > 0:
            se = float(found.errors()[0])
            out[1:, j] = se, found.df, float(t_quantile(0.5 * (1.0 - level), float(found.df))) * se
    return out[0], out[1], out[2], out[3]


def _level_of_one(tests: tuple[BudgetTest, ...], alpha: float) -> float:
    """Confidence of intervals that agree with one test of the mean among the questions and their tests."""
    questions = sum(test.question != "lack of fit" for test in tests)
    return 1.0 - alpha / (questions * (2 if tests[0].uses_direction else 1))


def _over_the_range(courses: Courses, level: float) -> tuple[Change | None, float]:
    ends = courses.fitted.at([courses.budgets[0], courses.budgets[-1]])
    changes = ends[:, :, 1] - ends[:, :, 0]
    whole = np.isfinite(changes).all(axis=1)
    change = None
    if not courses.relative and whole.any():
        estimate, _, _, half = _intervals(changes[whole].mean(axis=1)[:, None], courses.group[whole], level)
        low, high = float((estimate - half)[0]), float((estimate + half)[0])
        change = Change(estimate=float(estimate[0]), ci_low=low, ci_high=high, level=level)
    pairs = list(combinations(range(changes.shape[1]), 2))
    if not pairs or len(pairs) > 10_000:
        return change, float("nan")
    left, right = np.array(pairs).T
    estimate, _, _, half = _intervals(
        changes[:, left] - changes[:, right], courses.group, 1.0 - (1.0 - level) / len(pairs)
    )
    limits = np.abs(estimate) + half
    return change, float(limits.max())  # NaN where some pair has no interval


def _slopes(courses: Courses, fitted: Fitted, drawn: str) -> tuple[pd.DataFrame, str]:
    import pandas as pd

    if drawn in LINES:
        values = fitted.coefficients[:, :, 0] / courses.step
        per = f"for one more unit of {courses.runs.budget}"
        if drawn == "log":
            values, per = values * np.log(2.0), f"for twice the {courses.runs.budget}"
    else:
        ends = fitted.at([courses.budgets[0], courses.budgets[-1]])
        values = ends[:, :, 1] - ends[:, :, 0]
        per = f"from {courses.runs.budget} {' to '.join(_ends(courses))}"
    estimate, se, df, half = _intervals(values, courses.group, _LEVEL)
    columns = {"estimate": estimate, "se": se, "df": df, "ci_low": estimate - half, "ci_high": estimate + half}
    return pd.DataFrame({"algorithm": list(courses.algorithms), **columns}), per


def _curves(courses: Courses, fitted: Fitted, drawn: str) -> pd.DataFrame:
    from lmemtest.inference.means.reference_grid import product_frame

    budgets: list[Any] = list(courses.budgets)
    if drawn != "categorical" and len(budgets) > 2:
        low, high = float(budgets[0]), float(budgets[-1])
        spread = np.geomspace if courses.axis == "log" else np.linspace
        budgets = [low, *spread(low, high, _POINTS)[1:-1].tolist(), high]
    scores = fitted.at(budgets)
    estimate, _, _, half = _intervals(scores.reshape(len(scores), -1), courses.group, _LEVEL)
    frame = product_frame({"algorithm": courses.algorithms, "budget": tuple(budgets)})
    return frame.assign(mean=estimate, ci_low=estimate - half, ci_high=estimate + half)


def _observed(courses: Courses) -> pd.DataFrame:
    """Means over instances, each with its mean over runs; nothing where runs have budgets of their own."""
    import pandas as pd

    from lmemtest.data.cells import group_means, group_numbers

    runs = courses.runs
    budget = str(runs.budget)
    cells = runs.study.cells([*runs.study.instance, runs.algorithm, budget])
    frame = pd.DataFrame({"algorithm": cells.frame[runs.algorithm], "budget": cells.frame[budget]})
    frame = frame.assign(mean=cells.mean, n=np.asarray(cells.n, dtype=int))
    if len(courses.budgets) > _MOST_DRAWN:
        frame = frame.iloc[:0]
    means, _ = group_means(frame, ["algorithm", "budget"], "mean")
    n = np.bincount(group_numbers(frame, ["algorithm", "budget"]), weights=frame["n"]).astype(int)
    return means.assign(n=n)


def _cautions(courses: Courses, tests: tuple[BudgetTest, ...], fitted: Fitted, alpha: float) -> list[str]:
    notes = []
    budget = courses.runs.budget
    if courses.relative:
        notes.append(
            f"Scores are relative to the benchmark at every {budget} (ranks, for instance), so {budget} cannot change "
            "their mean, only the share of each algorithm: whether it does so is the one question that is tested."
        )
    questions = sum(test.question != "lack of fit" for test in tests)
    if courses.clusters == "runs":
        notes.append("There is one benchmark, so the verdict holds there and says nothing about others.")
    elif not tests[0].uses_direction:
        n, enough = tests[0].n, fewest_directions(alpha / (2 * questions))
        notes.append(
            f"There are only {n} benchmarks: directions on them cannot have a p-value below "
            f"{format_p(2.0 ** (1 - n))}, so means decide alone; {enough} benchmarks would do."
        )
    if courses.free is not None and fitted is courses.fitted:
        notes += _reversed(courses)
    return notes


def _reversed(courses: Courses) -> list[str]:
    """Where curves put two algorithms in another order than the means at the lowest or highest budget."""

    assert courses.free is not None
    for budget in (courses.budgets[-1], courses.budgets[0]):
        curve, seen = (f.at([budget])[:, :, 0] for f in (courses.fitted, courses.free))
        both = np.isfinite(curve) & np.isfinite(seen)
        if not both.any(axis=0).all():
            continue
        curve, seen = (np.where(both, scores, 0.0).sum(axis=0) / both.sum(axis=0) for scores in (curve, seen))
        sign = 1.0 if courses.runs.direction == "minimize" else -1.0
        tiny = 1e-9 * float(np.abs(seen).max())
        for i in np.argsort(sign * curve, kind="stable"):
            for j in np.argsort(sign * curve, kind="stable")[::-1]:
                if sign * (curve[j] - curve[i]) > tiny and sign * (seen[i] - seen[j]) > tiny:
                    left, right = (format_level(courses.algorithms[k]) for k in (i, j))
                    return [
                        f"At {courses.runs.budget} {format_level(budget)} the fitted curves put {left} ahead of "
                        f"{right}, and the observed means {right} ahead of {left}."
                    ]
    return []
