"""The result of the budget check in sentences, each of which names the tests behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._rounding import written
from lmemtest.words import format_number, p_text, sentence

if TYPE_CHECKING:
    from lmemtest.studies.budget.budget_effect import BudgetEffect
    from lmemtest.studies.budget.budget_tests import BudgetTest

FORM_WORDS = {
    "linear": "a straight line over {budget}",
    "log": "a straight line over the logarithm of {budget}",
    "categorical": "a mean for every {budget}",
    "spline": "a smooth curve over {budget}",
}


def decision_sentence(result: BudgetEffect) -> str:
    """What was shown and by which tests; what could not be shown, and how large it may be."""
    budget, score = result.budget, result.score
    effect, different = result.get("effect"), result["interaction"]
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
            f"{budget} changes {score} ({_tested(result, effect)}); that it does so differently for different "
            f"algorithms was not shown ({tested}){most}. Keep it in the model as an effect of its own, or compare at "
            f"one budget.{_disagreement(result, effect)}"
        )
    text = f"No effect of {budget} on {score} was shown ({_tested(result, effect)})"
    if result.change is not None and np.isfinite(result.change.ci_low):
        low, high = format_number(result.change.ci_low), format_number(result.change.ci_high)
        text += f"; mean changes from {low} to {high} between {budget} {' and '.join(result.range)} are not excluded"
        text += f" ({100 * result.change.level:.4g} % interval)"
    text += f".{one_way(result, effect)} No difference between algorithms was shown either ({tested}){most}."
    return text + ("" if result.fits else f" But {_misfit(result)}; {_more(result)}.")


def effect_sentence(result: BudgetEffect) -> str:
    """Beside an interaction, the effect on the mean of the algorithms; else empty."""
    effect = result.get("effect")
    if result.decision != "interaction" or effect is None:
        return ""
    if effect.p_value < result.alpha:
        return f"The mean of the algorithms changes with {result.budget} ({_tested(result, effect)})."
    return f"That the mean of the algorithms changes with {result.budget} was not shown ({_tested(result, effect)})."


def slope_sentence(result: BudgetEffect, row: dict[Any, Any]) -> str:
    """The effect on one algorithm, with its interval."""
    low, high, estimate = row["ci_low"], row["ci_high"], row["estimate"]
    if not np.isfinite(estimate):
        return f"{row['algorithm']}: the effect of {result.budget} is not estimable."
    way = "worse" if (estimate > 0) == (result.direction == "minimize") else "better"
    kind = f"gets {way} by {format_number(abs(estimate))}" if estimate else "does not change"
    text = f"{row['algorithm']}: {result.score} {kind} {result.per}"
    if not np.isfinite(low):
        return f"{text} (how much that varies is not known)."
    shown = "" if low > 0 or high < 0 else ", which does not exclude 0"
    return f"{text} (95 % interval of the change {format_number(low)} to {format_number(high)}{shown})."


def fit_sentence(result: BudgetEffect) -> str:
    """Whether the budget means contradict the form; empty where they do not, or where that was not tested."""
    if result.fits:
        return ""
    if result.drawn == result.form:
        return sentence(f"{_misfit(result)}; {_more(result)}")
    drawn = FORM_WORDS[result.drawn].format(budget=result.budget)
    return sentence(f"{_misfit(result)}, so curves and changes are those of {drawn}; the decision is about the trend")


def short_fit(result: BudgetEffect) -> str:
    """The same for a figure; empty where there is nothing to say."""
    if result.fits:
        return ""
    form = "the curve" if result.form == "spline" else "a straight line"
    return f"{form} does not fit, {p_text(result['lack of fit'].p_value)}"


def method_notes(result: BudgetEffect) -> tuple[str, ...]:
    """What the tests are and how they share the level."""
    form = FORM_WORDS[result.form].format(budget=result.budget)
    together = "p_raw is twice the smaller one" if result.tests[0].uses_direction else "p_raw is that of the mean"
    return (
        f"n = {result.n_obs:,} rows, {result.n_clusters:,} {result.clusters}. Effects are those of {form}. mean_p: "
        "F-test of the mean effect, Box's degrees of freedom; direction_p: exact test of their direction, free of "
        f"units; {together}; p_value: Holm, level {100 * result.alpha:g} % for the decision.",
    )


def tests_text(result: BudgetEffect, test: BudgetTest) -> str:
    """The tests of the mean and of the direction."""
    mean = "mean: no variation"
    if np.isfinite(test.mean_p):
        df_num, df_den, ratio = (written(value, ".3g") for value in (test.df_num, test.df_den, test.f_ratio))
        mean = f"mean: F({df_num}, {df_den}) = {ratio}, {p_text(test.mean_p)}"
    sample = f"{test.n} {result.clusters}"
    if test.better >= 0:
        way = "better" if test.better >= test.worse else "worse"
        direction = f"{way} on {max(test.better, test.worse)} of {sample}"
    elif np.isfinite(test.agreement):
        direction = f"agreement {written(test.agreement, '.2f')} of {sample}"
    else:
        direction = f"none on {sample}"
    return f"{mean}; direction: {direction}, {p_text(test.direction_p) if test.uses_direction else 'too few to test'}"


def one_way(result: BudgetEffect, test: BudgetTest) -> str:
    """An effect of one sign on all benchmarks, which are too few to show it for others."""
    if min(test.better, test.worse) != 0 or test.better == test.worse:
        return ""
    way, other = ("better", "worse") if test.better else ("worse", "better")
    n = max(test.better, test.worse)
    here = f"On every one of the {n}" if n == test.n else f"On {n} of {test.n}"
    rest = "" if n == test.n else f" and on none {other}"
    return f" {here} {result.clusters} it gets {way}{rest}, which are too few to show that for others."


def _tested(result: BudgetEffect, test: BudgetTest) -> str:
    both = f"; adjusted {p_text(test.p_value)}" if test.uses_direction or test.p_value != test.mean_p else ""
    return f"{tests_text(result, test)}{both}"


def _disagreement(result: BudgetEffect, test: BudgetTest) -> str:
    """What it means if one test shows it and the other does not."""
    if not test.uses_direction or not np.isfinite(test.mean_p):
        return ""
    if test.mean_p >= result.alpha > test.direction_p:
        python = "runs.normalize(by='benchmark')"
        advice = in_words_of(python=python, command_line="a score between 0 and 1 on every benchmark")
        return (
            f" Only the direction shows it: {test.deciding} of {test.n} {result.clusters} hold 90 % of the squared "
            f"effects and decide the mean, as where {result.clusters} have scales of their own. Means speak for all of "
            f"them on one scale: {advice}."
        )
    if test.direction_p >= result.alpha > test.mean_p:
        return f" Only the mean shows it; the direction is not the same on most {result.clusters}."
    return ""


def _misfit(result: BudgetEffect) -> str:
    form = FORM_WORDS[result.form].format(budget=result.budget)
    return f"{form} does not describe the mean scores (lack of fit, {_tested(result, result['lack of fit'])})"


def _more(result: BudgetEffect) -> str:
    if len(result.observed) == 0 or result.form == "spline":
        return f"form={'categorical' if len(result.observed) else 'spline'!r} follows more than that"
    return "form='categorical' looks for more than a trend"
