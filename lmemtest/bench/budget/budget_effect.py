"""Does the score depend on the budget, and alike for all algorithms? By the mean over benchmarks and by direction."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.budget.budget_model import (
    FORMS,
    LINES,
    MOST_BUDGETS,
    BudgetCurves,
    Fitted,
    budget_curves,
    budget_tests,
)
from lmemtest.bench.budget.curves import to_axis
from lmemtest.core.caller import advice
from lmemtest.core.codes import Keys, group_means, group_numbers
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import format_level, format_number, format_p, p_text, sentence
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.hypotheses.mean_vectors import fewest_directions, mean_about_groups

if TYPE_CHECKING:
    from lmemtest.bench.budget.budget_model import BudgetTest
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index


_POINTS = 25  # of a curve: enough for a smooth line
_MOST_DRAWN = 60  # budgets that are drawn as they are
_MOST_PAIRS = 10_000
_LEVEL = 0.95


@guided
@one_blas_thread()
def budget_effect(
    runs: Runs,
    *,
    budget: str | None = None,
    form: str = "auto",
    alpha: float = 0.05,
) -> Answer:
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
        Level of the decision.

    Returns
    -------
    Answer
        - ``decision``: "none" (no effect of the budget was shown), "simple" (it has one), "interaction" (it has one
          that differs between algorithms).
        - ``effect``, ``interaction``, ``lack_of_fit``: the `BudgetTest` of each question, None where the design has
          none; ``tests`` has a row for each: question, f_ratio, df_num, df_den, mean_p, better, worse, agreement,
          direction_p, n, uses_direction, p_raw, p_value, significant. ``fits``: whether the budget means do not
          contradict the form.
        - ``slopes``, per algorithm: ``algorithm``, ``estimate``, ``se``, ``df``, ``ci_low``, ``ci_high``; a difference
          over what ``per`` says: one unit of budget, a doubling, or the whole range.
        - ``change``, ``change_low``, ``change_high``: of the mean score of all algorithms from the lowest to the
          highest budget by the form that is tested, with an interval at ``change_level``, which is what the questions
          and their tests leave of the level, so that a line's interval excludes zero exactly if the mean alone shows an
          effect, whatever the rest shows. NaN where scores are relative to the benchmark.
        - ``difference``: the changes of no two algorithms over the whole range differ by more (level of the change, all
          pairs together); NaN where that is not known.
        - ``curves``, mean scores: ``algorithm``, ``budget``, ``mean``, ``ci_low``, ``ci_high`` (95 %, each by itself);
          ``observed``: ``algorithm``, ``budget``, ``mean`` over instances with equal weight, ``n``; empty with many
          budgets.
        - ``form`` (what was tested), ``drawn`` (of slopes and curves: the form, or with ``form="auto"`` the means at
          each budget, with more than 50 a spline, where they contradict the line), ``alpha``, ``score``, ``direction``,
          ``budget``, ``range`` (lowest and highest budget), ``sample``, ``n_sample``, ``n_obs``.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If there is no budget column, or an option does not apply.
    DataError
        If the effect cannot be identified: one budget, one run per algorithm on one benchmark, algorithms without
        common budgets; or if it does not vary at all.

    Notes
    -----
    On every benchmark the runs of an algorithm give one curve over the budget (least squares within runs), and these
    curves are the data: benchmarks are the sample (runs, if there is one benchmark). For a line this gives the
    F-ratios of the mixed model with random levels and slopes of benchmarks, of algorithms on them and of runs, where
    the table is balanced and no variance is estimated as zero.

    Two questions: does the mean score of the algorithms change ("effect"), and does it change differently for them
    ("interaction")? Each is tested by the mean effect, an F-test with Box's degrees of freedom whatever the covariance
    of the effects, and by their direction, an exact test over all signs that no unit can influence; p is twice the
    smaller one. The questions share the level by Holm's rule, so that a claim is wrong with probability `alpha` at
    most. With so few benchmarks that directions cannot reach their share (up to 7 at 5 %), means decide alone. "Lack of
    fit" tests the deviations of the budget means from the form in the same way, and is no part of the decision.

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, Appendix C; Matthews, Altman, Campbell &
    Royston (1990), doi:10.1136/bmj.300.6719.230; Ibragimov & Müller (2010), doi:10.1198/jbes.2009.08046; Holm (1979),
    https://www.jstor.org/stable/4615733

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.budget.budget_effect import budget_effect
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> result = budget_effect(runs)
    >>> result.decision in ("none", "simple", "interaction")
    True
    """
    check_choice(form, "form", FORMS)
    alpha = check_fraction(alpha, "alpha")
    curves = budget_curves(runs, budget, form)
    tests, left_out = budget_tests(curves, alpha)
    significant = {test.question for test in tests if below(test.p_value, alpha)}
    drawn, fitted = curves.form, curves.fitted
    if form == "auto" and curves.free is not None and "lack of fit" in significant:
        # of curves and slopes alone, which costs the tests no level: they stay with the line
        drawn, fitted = "categorical" if len(curves.budgets) <= MOST_BUDGETS else "spline", curves.free
    change, difference = _over_the_range(curves, tests, alpha)
    slopes, per = _slopes(curves, fitted, drawn)
    table = pd.DataFrame(map(asdict, tests)).drop(columns="deciding")
    counts = table[["better", "worse"]].astype("Int64")
    table[["better", "worse"]] = counts.mask(counts < 0)
    table["significant"] = pd.array(np.asarray(below(table["p_value"], alpha)), dtype="boolean")
    by_question = {test.question.replace(" ", "_"): test for test in tests}
    decision = "interaction" if "interaction" in significant else "simple" if "effect" in significant else "none"
    answer = Answer(
        question="budget_effect",
        title=f"Does {curves.runs.budget} matter? Decision: {decision}",
        tables={
            "tests": table,
            "slopes": slopes,
            "curves": _curves(curves, fitted, drawn),
            "observed": _observed(curves),
        },
        values={
            "decision": decision,
            **{name: by_question.get(name) for name in ("effect", "interaction", "lack_of_fit")},
            "fits": "lack of fit" not in significant,
            "per": per,
            **change,
            "difference": difference,
            "form": curves.form,
            "drawn": drawn,
            "alpha": alpha,
            "score": curves.runs.score,
            "direction": curves.runs.direction,
            "budget": str(curves.runs.budget),
            "roster": curves.runs.roster,
            "range": curves.ends,
            "sample": curves.sample,
            "n_sample": len(curves.group),
            "n_obs": curves.n_obs,
        },
        notes=(*curves.notes, *left_out, *_cautions(curves, tests, fitted, alpha)),
        formats={"f_ratio": ".4g", "df_num": ".3g", "df_den": ".3g", "agreement": ".2f"},
        figure="budget_effect_plot",
    )
    each = [slope_sentence(answer, row) for row in slopes.to_dict("records")]
    texts = (decision_sentence(answer), effect_sentence(answer), *each, fit_sentence(answer))
    return replace(answer, facts=method_notes(answer), findings=tuple(filter(None, texts)))


def _intervals(values: Array, group: Index, level: float) -> pd.DataFrame:
    """Means of columns over the units that have them: estimate, se, df, ci_low, ci_high, one row per column."""
    rows = np.full((values.shape[1], 5), np.nan)
    for row, column in zip(rows, values.T, strict=True):
        finite = np.isfinite(column)
        if not finite.any():
            continue
        groups = np.unique(group[finite], return_inverse=True)[1]
        mean, residuals, df, size = mean_about_groups(column[finite, None], groups)
        row[0] = mean[0]
        if df > 0:
            se = float(np.sqrt(np.square(residuals).sum() / (df * size)))
            half = float(t_quantile(0.5 * (1.0 - level), float(df))) * se
            row[1:] = se, df, row[0] - half, row[0] + half
    return pd.DataFrame(rows, columns=["estimate", "se", "df", "ci_low", "ci_high"])


def _over_the_range(
    curves: BudgetCurves, tests: tuple[BudgetTest, ...], alpha: float
) -> tuple[dict[str, float], float]:
    """The change of the mean, and the largest difference of two changes that is not excluded."""
    questions = sum(test.question != "lack of fit" for test in tests)
    level = 1.0 - alpha / (questions * (2 if tests[0].uses_direction else 1))  # of one test of the mean among them
    changes = curves.changes
    whole = np.isfinite(changes).all(axis=1)
    change = dict.fromkeys(("change", "change_low", "change_high"), float("nan")) | {"change_level": level}
    if not curves.relative and whole.any():
        row = _intervals(changes[whole].mean(axis=1)[:, None], curves.group[whole], level).iloc[0]
        change |= {"change": row["estimate"], "change_low": row["ci_low"], "change_high": row["ci_high"]}
    left, right = np.triu_indices(changes.shape[1], 1)
    if not 0 < len(left) <= _MOST_PAIRS:
        return change, float("nan")
    pairs = _intervals(changes[:, left] - changes[:, right], curves.group, 1.0 - (1.0 - level) / len(left))
    # NaN where some pair has no interval
    return change, float(pairs[["ci_low", "ci_high"]].abs().to_numpy().max())


def _slopes(curves: BudgetCurves, fitted: Fitted, drawn: str) -> tuple[pd.DataFrame, str]:
    budget = curves.runs.budget
    if drawn in LINES:
        x = to_axis(np.array(curves.budgets, dtype=float), drawn)
        values = fitted.coefficients[:, :, 0] / np.linalg.norm(x - x.mean())  # the length of a unit of the axis
        per = f"for one more unit of {budget}"
        if drawn == "log":
            values, per = values * np.log(2.0), f"for twice the {budget}"
    else:
        ends = fitted.at([curves.budgets[0], curves.budgets[-1]])
        values, per = ends[:, :, 1] - ends[:, :, 0], f"from {budget} {' to '.join(curves.ends)}"
    table = _intervals(values, curves.group, _LEVEL)
    table.insert(0, "algorithm", list(curves.algorithms))
    return table, per


def _curves(curves: BudgetCurves, fitted: Fitted, drawn: str) -> pd.DataFrame:
    budgets: list[Any] = list(curves.budgets)
    if drawn != "categorical" and len(budgets) > 2:
        low, high = float(budgets[0]), float(budgets[-1])
        spread = np.geomspace if curves.axis == "log" else np.linspace
        budgets = [low, *spread(low, high, _POINTS)[1:-1].tolist(), high]
    scores = fitted.at(budgets)
    intervals = _intervals(scores.reshape(len(scores), -1), curves.group, _LEVEL).rename(columns={"estimate": "mean"})
    frame = Keys.product({"algorithm": curves.algorithms, "budget": tuple(budgets)}).frame()
    return pd.concat([frame, intervals[["mean", "ci_low", "ci_high"]]], axis=1)


def _observed(curves: BudgetCurves) -> pd.DataFrame:
    """Means over instances, each with its mean over runs; nothing where runs have budgets of their own."""
    runs, names = curves.runs, ["algorithm", "budget"]
    cells = runs.study.cells([*runs.study.instance, runs.algorithm, str(runs.budget)])
    frame = pd.DataFrame({"algorithm": cells.frame[runs.algorithm], "budget": cells.frame[str(runs.budget)]})
    frame = frame.assign(mean=cells.mean, n=cells.n)
    if len(curves.budgets) > _MOST_DRAWN:
        frame = frame.iloc[:0]
    n = np.bincount(group_numbers(frame, names), weights=frame["n"]).astype(int)
    return group_means(frame, names, "mean")[0].assign(n=n)


def _cautions(curves: BudgetCurves, tests: tuple[BudgetTest, ...], fitted: Fitted, alpha: float) -> list[str]:
    notes = []
    budget = curves.runs.budget
    if curves.relative:
        notes.append(
            f"Scores are relative to the benchmark at every {budget} (ranks, for instance), so {budget} cannot change "
            "their mean, only the share of each algorithm: whether it does so is the only question tested."
        )
    if curves.sample == "runs":
        notes.append("There is one benchmark, so the decision holds there and says nothing about others.")
    elif not tests[0].uses_direction:
        questions = sum(test.question != "lack of fit" for test in tests)
        n, enough = tests[0].n, fewest_directions(alpha / (2 * questions))
        notes.append(
            f"There are only {n} {curves.sample}: directions on them cannot have a p-value below "
            f"{format_p(2.0 ** (1 - n))}, so means decide alone; {enough} {curves.sample} would do."
        )
    if curves.free is not None and fitted is curves.fitted:
        notes += _reversed(curves, curves.free)
    return notes


def _reversed(curves: BudgetCurves, free: Fitted) -> list[str]:
    """Where curves put two algorithms in another order than the means at the lowest or highest budget."""
    sign = 1.0 if curves.runs.direction == "minimize" else -1.0
    for budget in (curves.budgets[-1], curves.budgets[0]):
        fitted, seen = (sign * f.at([budget])[:, :, 0] for f in (curves.fitted, free))
        both = np.isfinite(fitted) & np.isfinite(seen)
        if not both.any(axis=0).all():
            continue
        fitted, seen = (np.where(both, scores, 0.0).sum(axis=0) / both.sum(axis=0) for scores in (fitted, seen))
        tiny = 1e-9 * float(np.abs(seen).max())
        order = np.argsort(fitted, kind="stable")
        for i, j in product(order, order[::-1]):
            if fitted[j] - fitted[i] > tiny and seen[i] - seen[j] > tiny:
                left, right = (format_level(curves.algorithms[k]) for k in (i, j))
                return [
                    f"At {curves.runs.budget} {format_level(budget)} the fitted curves put {left} ahead of {right}, "
                    f"and the observed means {right} ahead of {left}."
                ]
    return []


FORM_WORDS = {
    "linear": "a straight line over {budget}",
    "log": "a straight line over the logarithm of {budget}",
    "categorical": "a mean for every {budget}",
    "spline": "a smooth curve over {budget}",
}


def decision_sentence(result: Answer) -> str:
    """What was shown and by which tests; what could not be shown, and how large it may be."""
    budget, score = result.budget, result.score
    effect, different = result.effect, result.interaction
    tested = _tested(result, different)
    if result.decision == "interaction":
        return (
            f"{budget} changes {score} differently for different algorithms ({tested}), so which algorithm is better "
            f"may depend on it. Compare at stated budgets, or keep the interaction.{_disagreement(result, different)}"
        )
    most = ""
    if np.isfinite(result.difference):
        most = f"; over the whole range their changes may differ by up to {format_number(result.difference)}"
    if effect is None:
        return f"No difference between algorithms in the effect of {budget} on {score} was shown ({tested}){most}."
    if result.decision == "simple":
        return (
            f"{budget} changes {score} ({_tested(result, effect)}); no difference between algorithms in this "
            f"effect was shown ({tested}){most}. Keep it in the model as a separate effect, or compare at one "
            f"budget.{_disagreement(result, effect)}"
        )
    text = f"No effect of {budget} on {score} was shown ({_tested(result, effect)})"
    if np.isfinite(result.change_low):
        low, high = format_number(result.change_low), format_number(result.change_high)
        text += f"; changes of the mean by {low} to {high} between {budget} {' and '.join(result.range)}"
        text += f" are not excluded ({100 * result.change_level:.4g} % interval)"
    text += f".{one_way(result, effect)} No difference between algorithms was shown either ({tested}){most}."
    return text + ("" if result.fits else f" But {_misfit(result)}; {_more(result)}.")


def effect_sentence(result: Answer) -> str:
    """Beside an interaction, the effect on the mean of the algorithms; else empty."""
    effect = result.effect
    if result.decision != "interaction" or effect is None:
        return ""
    changes = f"the mean of the algorithms changes with {result.budget}"
    claim = changes if effect.p_value < result.alpha else f"that {changes} was not shown"
    return sentence(f"{claim} ({_tested(result, effect)})")


def slope_sentence(result: Answer, row: dict[Any, Any]) -> str:
    """The effect on one algorithm, with its interval."""
    low, high, estimate = row["ci_low"], row["ci_high"], row["estimate"]
    if not np.isfinite(estimate):
        return f"{row['algorithm']}: the effect of {result.budget} is not estimable."
    way = "worse" if (estimate > 0) == (result.direction == "minimize") else "better"
    kind = f"gets {way} by {format_number(abs(estimate))}" if estimate else "does not change"
    text = f"{row['algorithm']}: {result.score} {kind} {result.per}"
    if not np.isfinite(low):
        return f"{text} (how much that varies is not known)."
    reservation = "" if low > 0 or high < 0 else ", which does not exclude 0"
    return f"{text} (95 % interval of the change {format_number(low)} to {format_number(high)}{reservation})."


def fit_sentence(result: Answer) -> str:
    """Whether the budget means contradict the form; empty where they do not, or where that was not tested."""
    if result.fits:
        return ""
    if result.drawn == result.form:
        return sentence(f"{_misfit(result)}; {_more(result)}")
    drawn = FORM_WORDS[result.drawn].format(budget=result.budget)
    return sentence(f"{_misfit(result)}, so curves and changes are those of {drawn}; the decision is about the trend")


def short_fit(result: Answer) -> str:
    """The same for a figure; empty where there is nothing to say."""
    if result.fits:
        return ""
    form = "the curve" if result.form == "spline" else "a straight line"
    return f"{form} does not fit, {p_text(result.lack_of_fit.p_value)}"


def method_notes(result: Answer) -> tuple[str, ...]:
    """What the tests are and how they share the level."""
    form = FORM_WORDS[result.form].format(budget=result.budget)
    together = "p_raw is that of the mean"
    if (result.effect or result.interaction).uses_direction:
        together = "p_raw is twice the smaller one"
    return (
        f"n = {result.n_obs:,} rows, {result.n_sample:,} {result.sample}. Effects are those of {form}. mean_p: "
        "F-test of the mean effect, Box's degrees of freedom; direction_p: exact test of their direction, free of "
        f"units; {together}; p_value: Holm, level {100 * result.alpha:g} % for the decision.",
    )


def tests_text(result: Answer, test: BudgetTest) -> str:
    """The tests of the mean and of the direction."""
    mean = "mean: no variation"
    if np.isfinite(test.mean_p):
        df_num, df_den, ratio = (written(value, ".3g") for value in (test.df_num, test.df_den, test.f_ratio))
        mean = f"mean: F({df_num}, {df_den}) = {ratio}, {p_text(test.mean_p)}"
    sample = f"{test.n} {result.sample}"
    if test.better >= 0:
        way = "better" if test.better >= test.worse else "worse"
        direction = f"{way} on {max(test.better, test.worse)} of {sample}"
    elif np.isfinite(test.agreement):
        direction = f"agreement {written(test.agreement, '.2f')} of {sample}"
    else:
        direction = f"none on {sample}"
    return f"{mean}; direction: {direction}, {p_text(test.direction_p) if test.uses_direction else 'too few to test'}"


def one_way(result: Answer, test: BudgetTest) -> str:
    """An effect of one sign on all benchmarks, which are too few to show it for others."""
    if min(test.better, test.worse) != 0 or test.better == test.worse:
        return ""
    way, other = ("better", "worse") if test.better else ("worse", "better")
    n = max(test.better, test.worse)
    where = f"all {n} {result.sample}" if n == test.n else f"{n} of {test.n} {result.sample} and {other} on none"
    return f" It gets {way} on {where}, which are too few to generalise from."


def _tested(result: Answer, test: BudgetTest) -> str:
    both = f"; adjusted {p_text(test.p_value)}" if test.uses_direction or test.p_value != test.mean_p else ""
    return f"{tests_text(result, test)}{both}"


def _disagreement(result: Answer, test: BudgetTest) -> str:
    """What it means if one test shows it and the other does not."""
    if not test.uses_direction or not np.isfinite(test.mean_p):
        return ""
    if test.mean_p >= result.alpha > test.direction_p:
        return (
            f" Only the direction shows it: {test.deciding} of {test.n} {result.sample} hold 90 % of the squared "
            f"effects and decide the mean, as happens where {result.sample} have different scales. On one scale the "
            f"mean counts all of them: {advice('one_scale')}."
        )
    if test.direction_p >= result.alpha > test.mean_p:
        return f" Only the mean shows it; the direction is not the same on most {result.sample}."
    return ""


def _misfit(result: Answer) -> str:
    form = FORM_WORDS[result.form].format(budget=result.budget)
    return f"{form} does not describe the mean scores (lack of fit, {_tested(result, result.lack_of_fit)})"


def _more(result: Answer) -> str:
    if len(result.observed) == 0 or result.form == "spline":
        return f"form={'categorical' if len(result.observed) else 'spline'!r} follows more than that"
    return "form='categorical' looks for more than a trend"
