"""Results into sentences for readers who do not read tables of tests.

Every statement about who differs from whom is read from one matrix, `analysis.decisions.significant`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.bench.benchmark.observed_advantages import cautious_check, leaders, turns
from lmemtest.bench.checks.budget_mix import common_budgets_advice, trials_advice
from lmemtest.bench.data.scales import fold
from lmemtest.bench.modelling.adequacy import ZERO, of_advantages
from lmemtest.bench.robustness.scores import hypothesis_on, what_differs
from lmemtest.bench.variation.model_components import own_difference_sd, share_of_benchmarks
from lmemtest.core.caller import advice
from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_NAMES, ERROR_NAMES
from lmemtest.core.rounding import below, in_tie_order, written
from lmemtest.core.words import IN_SENTENCE, counted, format_number, joined, p_text, percent
from lmemtest.report.document import Strong, Text

if TYPE_CHECKING:
    from lmemtest.core.result import Answer
    from lmemtest.report.analysis import Analysis

FEW_BENCHMARKS = 6  # below it, the variance between benchmarks rests on fewer than five degrees of freedom
MOST_LEVELS = 6  # of a metafeature, whose winners are listed one by one
FEW_FOR_ZERO = 12  # benchmarks: below it, a variance between them is estimated as zero too often to be believed
CONTRADICTED = 2.0  # times alpha: a p-value of the cautious check above it contradicts a claim of the model


def writer(se: float) -> Callable[[float], str]:
    """How to write estimates whose standard error is `se`: to its second digit.

    Examples
    --------
    >>> writer(0.246)(-0.29331), writer(1234.5)(98765.4), writer(0.0)(0.25)
    ('-0.29', '98,765', '0.2500')
    """
    if not (math.isfinite(se) and 1e-6 < se < 1e9):
        return lambda x: format_number(x)
    decimals = max(0, 1 - math.floor(math.log10(se)))

    def write(x: float) -> str:
        text = f"{x:,.{decimals}f}"
        return text if text.strip("-0.") else text.lstrip("-")

    return write


def rests_on_rows(analysis: Analysis) -> bool:
    """Whether the variation of advantages was estimated as zero from so few benchmarks that this is no evidence."""
    return analysis.sample.zero and not analysis.sample.families and analysis.n_benchmarks < FEW_FOR_ZERO


def better(analysis: Analysis) -> str:
    """What is better: lower or higher."""
    return "lower" if analysis.runs.direction == "minimize" else "higher"


# ------------------------------------------------------------------------------------------------ the headline


def headline(analysis: Analysis) -> tuple[Text, ...]:
    """The answer in a few sentences, with what a reader must know before using it."""
    answered = len(analysis.comparable) > 1
    found: list[Text | None] = [warned(analysis) if answered else None, _who(analysis)]
    if analysis.incomparable:
        found += [_never_met(analysis), *_left_out(analysis)]
    else:
        found += [
            _by_how_much(analysis),
            _by_ranks(analysis),
            _over_what(analysis),
            _how_sure(analysis),
            _never_met(analysis),
        ]
        found += [*_left_out(analysis), _uneven_budgets(analysis), _on_rows(analysis), *_reversal(analysis)]
        found += [_other_population(analysis), _other_scale(analysis), _failed_runs(analysis)]
        found += [None if analysis.check.scales_differ else _mind_the_scale(analysis)]
        found += [_mind_the_skew(analysis), _mind_the_families(analysis)]
    return tuple(text for text in (*found, None if answered else warned(analysis)) if text)


def against_the_best(analysis: Analysis) -> tuple[str, list[str], list[str], list[str]]:
    """The first algorithm; those significantly worse; those tested against it that are not; those without a test."""
    best, *others = analysis.comparable
    significant, undecided = analysis.decisions.significant.loc[best], analysis.decisions.undecided.loc[best]
    level = [name for name in others if not significant[name] and not undecided[name]]
    return best, [n for n in others if significant[n]], level, [n for n in others if undecided[n]]


def _who(analysis: Analysis) -> Text:
    if len(analysis.comparable) < 2:
        return ("The algorithms cannot be compared: the data do not identify any of their differences in this model.",)
    best, worse, level, silent = against_the_best(analysis)
    extreme = "lowest" if better(analysis) == "lower" else "highest"
    response = measured(analysis)
    leads = f"{best} has the {extreme} mean {response}"
    if analysis.incomparable:
        return (Strong("The means cannot be compared as they stand"), f": {leads}, but {why_incomparable(analysis)}")
    if silent:
        claims = [f"it is significantly better than {joined(worse)}"] if worse else []
        claims += [f"it is not distinguishable from {joined(level)}"] if level else []
        claims += [f"{joined(silent)} could not be tested against it, so nothing is claimed there"]
        return (Strong(leads), f": {'; '.join(claims)}.")
    if not level and len(worse) == 1:
        verdict = f": its mean {response} is significantly {better(analysis)}."
        return (Strong(f"{best} is better than {worse[0]}"), verdict)
    if not level:
        named = f" ({joined(worse)})" if len(worse) <= IN_SENTENCE else ""
        return (
            Strong(f"{best} is the best of the {len(worse) + 1} algorithms"),
            f": its mean {response} is the {extreme} and differs significantly from each of the other "
            f"{len(worse)}{named}.",
        )
    if worse:
        verdict = f": it is significantly better than {joined(worse)}, but is not distinguishable from {joined(level)}."
        return (Strong(leads), verdict)
    if len(level) == 1:
        return (
            Strong(f"{best} and {level[0]} are not distinguishable"),
            f": {best} has the {better(analysis)} mean {response}, but the difference is not significant.",
        )
    rest = f"from {joined(level)}" if len(level) <= IN_SENTENCE else f"from any of the other {len(level)}"
    some = analysis.decisions.significant.to_numpy().any()
    end = ", although some of the others differ from each other." if some else "."
    scale = f" by mean {response}" if few_decide(analysis) and analysis.on_ranks is not None else ""
    return (
        Strong(f"No algorithm can be called best{scale}"),
        f": {leads}, but it does not differ significantly {rest}{end}",
    )


def measured(analysis: Analysis) -> str:
    """What the means are means of: the score, or what it was before curves were reduced."""
    curve, score = analysis.runs.curve, analysis.means.score
    return curve.what if curve is not None and score == analysis.runs.score and analysis.runs.scale is None else score


def why_incomparable(analysis: Analysis) -> str:
    """What the means are over, where that is not the same thing for all algorithms or not the one to compare."""
    use = analysis.budgets
    if use.trials:
        _, first, last = use.ranges.iloc[0]
        return (
            f"it is the mean over single trials ({analysis.runs.budget} {first} to {last}), in which scores go up and "
            f"down, and not the best that was found. {trials_advice()}"
        )
    ranges = joined(f"{row.algorithm} {row.first} to {row.last}" for row in use.ranges.itertuples())
    return (
        f"the algorithms were scored at different budgets ({ranges}) and the model has no term for the budget. "
        f"{common_budgets_advice(analysis.runs)}"
    )


def _by_how_much(analysis: Analysis) -> Text | None:
    ranked = analysis.comparable
    if len(ranked) < 2:
        return None
    best, worse, level, _ = against_the_best(analysis)
    second = runner_up(analysis)
    who = second if len(ranked) == 2 or analysis.means.apart() else f"the runner-up, {second},"
    text = f"Its estimated lead over {who} is {_lead(analysis, best, second)}"
    if worse and level and worse[0] != second:
        beaten = f"over {worse[0]}, the best of those that it is significantly better than,"
        text += f"; {beaten} it is {_lead(analysis, best, worse[0])}"
    text += _why_not(analysis, best, worse, level)
    others = [name for name in analysis.decisions.levels if name not in ranked]
    if others and not analysis.means.apart():
        text += f". The data do not identify how {joined(others)} compare{'s' * (len(others) == 1)} with these"
    return (f"{text}.",)


def _why_not(analysis: Analysis, best: str, worse: list[str], level: list[str]) -> str:
    """Why an algorithm cannot be distinguished from the best although one closer to it can."""
    place = {name: i for i, name in enumerate(analysis.comparable)}
    if not worse:
        return ""
    beaten = min(worse, key=place.__getitem__)
    farther = [name for name in level if place[name] > place[beaten]]
    if not farther:
        return ""
    gap, *_, wide = advantage(analysis, best, farther[0])
    narrow = advantage(analysis, best, beaten)[-1]
    if not wide > narrow:
        return ""
    write = writer(narrow)
    return (
        f". Over {farther[0]} the lead is larger, {write(gap)}, but so is its standard error ({write(wide)}, over "
        f"{beaten} {write(narrow)}), so it is not shown"
    )


def runner_up(analysis: Analysis) -> str:
    """The first algorithm after the best that has a test against it."""
    _, worse, level, _ = against_the_best(analysis)
    return next(name for name in analysis.comparable if name in worse or name in level)


def _lead(analysis: Analysis, best: str, other: str) -> str:
    gap, low, high, p, se = advantage(analysis, best, other)
    write = writer(se)
    text = f"{write(gap)} ({100 * analysis.pairs.level:.4g} % CI {write(low)} to {write(high)}, {p_text(p)})"
    base = analysis.pairs.log_base
    if base is None:
        return text
    # a lead of the smaller score is a difference with its sign changed
    sign = -1.0 if analysis.runs.direction == "minimize" else 1.0
    ratio, *ends = (format_number(base ** (sign * value), 3) for value in (gap, low, high))
    first, last = sorted(ends, key=float)
    return f"{text}, which is {ratio} ({first} to {last}) times the {analysis.runs.score} of {other}"


def advantage(analysis: Analysis, better: str, other: str) -> tuple[float, float, float, float, float]:
    """By how much one level is better than another: lead, its interval, adjusted p, standard error."""
    table = analysis.pairs.to_frame()
    row = table[(table["left"] == better) & (table["right"] == other)]
    sign = -1.0 if analysis.runs.direction == "minimize" else 1.0
    if row.empty:
        row, sign = table[(table["left"] == other) & (table["right"] == better)], -sign
    found = row.iloc[0]
    low, high = sorted((sign * found["ci_low"], sign * found["ci_high"]))
    return sign * found["estimate"], low, high, float(found["p_value"]), float(found["se"])


def _over_what(analysis: Analysis) -> Text | None:
    """What each mean is a mean over, where runs have several budgets."""
    curve, use = analysis.runs.curve, analysis.budgets
    if curve is not None:
        whole = " This compares whole curves, not final scores." * (curve.how in ("mean", "area") and curve.n[1] > 1)
        mind: list[Strong | str] = [" ", Strong("Mind the runs that stop"), f": {curve.early}"] if curve.early else []
        return (f"{curve.sentence}{whole}", *mind)
    if use.n < 2 or use.role == "covariate" or not use.shared:
        return None
    return (
        f"Each mean is over the scores at {use.n:,} values of {analysis.runs.budget}, so whole curves are compared, "
        "not final scores.",
    )


def _how_sure(analysis: Analysis) -> Text:
    sure, sample, n = error_text(analysis), analysis.sample, analysis.n_benchmarks
    if n < 2:
        scope = "" if analysis.runs.benchmark else " (no benchmark column was given)"
        return (f"This is about new runs on this one benchmark{scope} and says nothing about others; {sure}.",)
    if not sample.varies:
        return (
            f"This is about exactly these {counted(sample.size, sample.noun)}: the model does not allow algorithms "
            f"to do better on some benchmarks than on others, so it says nothing about new ones; {sure}.",
        )
    caution = f" With only {n} benchmarks, generalising to others is risky." if n < FEW_BENCHMARKS else ""
    about = f"{analysis.claim}, on average over" if analysis.claim else "the average over"
    return (
        f"This is about {about} {sample.nouns} like the {sample.size:,} studied here, not about each of them; "
        f"{sure}.{caution}",
    )


def error_text(analysis: Analysis) -> str:
    """What the error rate is held for and on which condition, or why it is not; `level_text` has the conditions."""
    alpha, lacking = f"{100 * analysis.alpha:.3g} %", analysis.missing
    lacks = f"the model lacks {joined(map(str, lacking))}" if lacking else ""
    if lacking and lacking[0] != of_advantages(analysis.runs, analysis.recommendation.spec.bars)[0]:
        return (
            f"{lacks}, so it counts correlated rows as independent: its p-values can be too small, and the nominal "
            f"{alpha} error rate is not guaranteed"
        )
    if lacking:
        what = "instances of one benchmark" if analysis.sample.noun == "instance" else "correlated rows"
        return (
            f"{lacks}, so its p-values count {what} as independent and are too small: "
            f"the chance of false differences is not controlled at {alpha}"
        )
    if few_decide(analysis):
        return (
            f"few {analysis.sample.nouns} decide the means, so the chance of false differences is not controlled at "
            f"{alpha}"
        )
    nominal = analysis.means.errors == "moderated" or rests_on_rows(analysis)
    rate = f"is nominally {alpha}" if nominal else f"is controlled at {alpha}"
    alike = ", if all algorithms vary alike between benchmarks" if assumes_alike(analysis) else ""
    if analysis.shape is not None:
        alike += f"{' and' if alike else ', if'} advantages are about normal"
    if len(analysis.decisions.levels) == 2:
        return f"the chance of a false difference {rate}{alike}"
    if analysis.pairs.adjust == "none":
        return f"the chance of a false difference {rate} for each pair, not for all together{alike}"
    if analysis.pairs.adjust == "fdr":
        return f"the expected share of false differences among those claimed {rate}{alike}"
    return f"the chance of any false difference among all pairs {rate}{alike}"


def assumes_alike(analysis: Analysis) -> bool:
    """Whether all pairs are judged by one variance between benchmarks."""
    return analysis.means.errors == "model" and analysis.sample.varies and len(analysis.decisions.levels) > 2


# --------------------------------------------------------------------------------------------- reservations


def warned(analysis: Analysis) -> Text | None:
    """The worst that the checks of the table found, with its number: it stands before the answer that it can change."""
    told = {"no_common_benchmark", "irregular_budgets", *(("single_trials",) if analysis.incomparable else ())}
    problems = [outcome for outcome in analysis.check.to_fix if outcome.findings[0].kind not in told]
    if not problems:
        return None
    first, *others = problems
    text: Text = (Strong(analysis.check.in_sum(first)), f" {first.advice}".rstrip())
    if first.findings[0].kind == "score_scale" and not analysis.incomparable:
        text = _mind_the_scale(analysis) or text
    more = f" Also found: {joined([outcome.check for outcome in others])} (see Data and checks)." if others else ""
    return (*text, more)


def _never_met(analysis: Analysis) -> Text | None:
    """Pairs without a common benchmark, which get no verdict."""
    met = analysis.runs.study.crossing if analysis.means.apart() else None
    if met is None:
        return None
    count = len(met.apart)
    return (
        Strong("No common benchmark"),
        f": {count:,} of the {met.n_pairs:,} pairs of algorithms {'has' if count == 1 else 'have'} no benchmark in "
        f"common ({met.shown()}); their differences may just as well be differences between benchmarks, so nothing "
        f"is claimed about {'this pair' if count == 1 else 'these'}.",
    )


def _left_out(analysis: Analysis) -> list[Text]:
    """Columns that structure the rows and have no role on purpose."""
    return [(finding.message,) for finding in analysis.check.findings if finding.kind == "ignored_columns"]


def _uneven_budgets(analysis: Analysis) -> Text | None:
    """Runs at different budgets, where the first sentence has not said so."""
    use = analysis.budgets
    if use.shared or use.role != "none":
        return None
    return (
        Strong("Mind the budgets"),
        f": runs were scored at different budgets ({use.n:,} distinct values), and the model has no term for the "
        "budget, so a difference between algorithms may be one between budgets.",
    )


def _on_rows(analysis: Analysis) -> Text | None:
    check = cautious(analysis)
    if check is None:
        return None
    if not rests_on_rows(analysis):
        return (
            Strong("Mind the assumption of equal variation"),
            ": the model takes the advantages of all algorithms to vary between benchmarks to the same degree; a "
            f"cautious check over benchmark means, which does not, does not confirm that {check.leader} is better "
            f"than {joined(contradicted(analysis, check))}: claim no difference there.",
        )
    _, worse, *_ = against_the_best(analysis)
    beaten = check.table["algorithm"][below(check.table["p_value"], analysis.alpha)].tolist()
    lost = [name for name in worse if name not in beaten]
    if lost:
        verdict = f"does not confirm that {check.leader} is better than {joined(lost)}"
    elif worse:
        verdict = f"confirms that {check.leader} is better than {joined(worse)}"
    elif beaten:
        verdict = f"finds {check.leader} better than {joined(beaten)}, which the model does not: claim no difference"
    else:
        verdict = f"finds no algorithm worse than {check.leader} either"
    return (
        Strong("Mind the number of benchmarks"),
        f": the change of advantages between the {analysis.n_benchmarks} benchmarks is estimated as zero, so the "
        f"test rests on the {finer_units(analysis)} rather than on the number of benchmarks and tends to be too "
        f"optimistic; a cautious check over benchmark means {verdict}.",
    )


def finer_units(analysis: Analysis) -> str:
    """What a test rests on, if advantages do not change between benchmarks: instances, or rows."""
    return "instances" if any(c.kind == "interaction" and c.share > ZERO for c in analysis.components) else "rows"


def cautious(analysis: Analysis) -> Answer | None:
    """The t-tests over benchmark means, where the model rests on rows although benchmarks are few, or claims more."""
    if analysis.effects is None or len(analysis.comparable) < 2 or analysis.incomparable:
        return None
    if analysis.runs.study.families:  # means of benchmarks are no independent numbers there
        return None
    check = cautious_check(analysis.effects, analysis.comparable[0])
    return check if rests_on_rows(analysis) or contradicted(analysis, check) else None


def contradicted(analysis: Analysis, check: Answer) -> list[str]:
    """Algorithms that the model calls worse than the leader, and the check is far from calling so.

    The check has fewer degrees of freedom, so a p-value a little above the level is no contradiction.
    """
    if not (analysis.sample.varies and analysis.n_benchmarks > 1):
        return []  # what the model lacks is said elsewhere
    p = dict(zip(check.table["algorithm"], check.table["p_value"], strict=True))
    _, worse, *_ = against_the_best(analysis)
    return [name for name in worse if p.get(name, math.nan) > CONTRADICTED * analysis.alpha]


def _reversal(analysis: Analysis) -> list[Text]:
    """A sentence for each metafeature on which the comparison depends, by its test, and at whose levels others lead."""
    texts: list[Text] = []
    for column, by_level in (analysis.effects.wins_by if analysis.effects is not None else {}).items():
        test = analysis.interactions.get(column)
        if test is None or not test.significant(analysis.alpha) or not turns(by_level):
            continue
        known = ""
        if len(by_level) <= MOST_LEVELS:
            parts = [f"{joined(leaders(wins))} with {column} = {level}" for level, wins in by_level.items()]
            known = f": the best observed mean belongs most often to {joined(parts, most=MOST_LEVELS)}"
        texts.append((Strong(f"The comparison depends on {column}"), f" ({test.result}){known}."))
    return texts


def _other_population(analysis: Analysis) -> Text | None:
    """Say so where a claim about the other population is decided otherwise."""
    found = analysis.populations
    if found is None or found.alike.all():
        return None
    return (Strong("Mind the population"), f". {found.overview} {found.counts}")


def _mind_the_scale(analysis: Analysis) -> Text | None:
    """Few benchmarks that decide the means, or scores of unlike scale."""
    apart, few = analysis.n_benchmarks > 1 and analysis.check.scales_differ, few_decide(analysis)
    if not apart and not few:
        return None
    known = [largest_text(analysis)] if few or apart else []
    if apart:
        known.insert(0, f"the scatter of scores differs {fold(analysis.check.scale_ratio)} between benchmarks")
    known = [*filter(None, known)]
    text = f": {' and '.join(known)}, so few benchmarks {'' if few else 'may '}decide the average."
    alike = ""
    if not _by_ranks(analysis) and analysis.on_ranks is not None and analysis.agreement is not None:
        alike = f" {analysis.agreement.overview}"
    return (Strong("Mind the scale"), f"{text}{alike}{_seldom_first(analysis)}")


def _by_ranks(analysis: Analysis) -> Text | None:
    """Who is better by mean rank within benchmarks, where few benchmarks decide the means or ranks decide otherwise."""
    decided, found = analysis.on_ranks, analysis.agreement
    if decided is None or found is None or (found.alike.all() and not few_decide(analysis)):
        return None
    best, *others = decided.levels
    worse = [name for name in others if decided.significant.loc[best, name]]
    if worse:
        verdict = f"{best} is significantly better than {joined(worse)}"
    else:
        verdict = f"{best} is first and not significantly better than any other"
    changed, n = int((~found.alike).sum()), int(found.comparable.sum())
    score = analysis.means.score
    opposite = int(found.opposite.sum())
    more = f", {opposite:,} of them in the opposite direction" if opposite else ""
    if changed:
        are = "is" if changed == 1 else "are"
        compared = f"{changed:,} of {counted(n, 'pair')} {are} decided otherwise than by mean {score}{more}"
    else:
        compared = f"{'all ' + counted(n, 'pair') if n > 1 else 'the pair'} {'are' if n > 1 else 'is'} decided alike"
    return (Strong("By mean rank"), f", where every benchmark counts the same, {verdict}; {compared}.")


def _mind_the_skew(analysis: Analysis) -> Text | None:
    """Skewed advantages of one algorithm, where the sample shows them."""
    shape = analysis.shape
    if shape is None or not shape.is_skewed or shape.few_decide:
        return None
    return (
        Strong("Mind the skew"),
        f": the advantages of {shape.skewed} over the {analysis.sample.nouns} are more skewed than normal ones "
        f"(skewness {written(shape.skewness, '.1f')}, {p_text(shape.skewness_p)}). In simulations with one such "
        "algorithm of five, a nominal 5 % was up to 14 %, mostly in favour of the one with rare large losses.",
    )


def _mind_the_families(analysis: Analysis) -> Text | None:
    """Groups of benchmarks that share their advantages and were not named as families."""
    found = analysis.undeclared
    if found is None or not found.shows:
        return None
    column = found.column or "..."
    role = advice("role_of", role="family", column=column)
    column_first = "" if found.column else " (a column with these groups)"
    counts = ""
    if found.significant is not None:
        now, n = int(np.triu(analysis.decisions.significant.to_numpy()).sum()), len(analysis.pairs.to_frame())
        counts = f" With these groups as the sample {found.significant:,} of {counted(n, 'pair')} differ; here {now:,}."
    return (
        Strong("Mind the families"),
        f": {found.findings[0]}, and advantages are shared within these groups, so a claim about new "
        f"groups is less certain than this one.{counts} If they are families, say so: {role}{column_first}.",
    )


def few_decide(analysis: Analysis) -> bool:
    """Whether one benchmark holds more of the squared advantages than normal ones would leave to it."""
    return analysis.shape is not None and analysis.shape.few_decide


def _other_scale(analysis: Analysis) -> Text | None:
    """Say so where the raw score decides otherwise than the normalised one."""
    found = analysis.agreement
    if analysis.runs.scale is None or found is None or found.alike.all():
        return None
    return (Strong("Mind the score"), f": this is about mean {analysis.runs.score}. {found.overview}")


def _failed_runs(analysis: Analysis) -> Text | None:
    """Say so where decisions depend on what a failed run counts."""
    found = analysis.sensitivity
    if found is None or found.alike.all():
        return None
    return (Strong("Mind the failed runs"), f": {found.overview}")


def tested(analysis: Analysis) -> tuple[str, str]:
    """The null hypothesis of a pair on a score that is relative to others, and when it is not equal mean scores.

    Both are empty for a score that was measured.
    """
    scale = analysis.runs.scale
    if scale is not None:
        return hypothesis_on(scale), what_differs(scale.method, target=bool(scale.target))
    return ("mean ranks are equal", what_differs("rank")) if analysis.check.kind.kind == "ranks" else ("", "")


def largest_text(analysis: Analysis) -> str:
    """How much of the squared advantages the benchmarks with the largest ones hold."""
    shape = analysis.shape
    if shape is None:
        return ""
    which, noun = "the one" if shape.top == 1 else f"the {shape.top}", analysis.sample.nouns
    return (
        f"{which} of {shape.n} {noun} with the largest deviations hold{'s' * (shape.top == 1)} {percent(shape.share)} "
        "of the sum of squared deviations"
    )


def _seldom_first(analysis: Analysis) -> str:
    """Say so where the best average does not belong to the one who wins most often."""
    effects, best = analysis.effects, analysis.comparable[0]
    if effects is None or len(analysis.comparable) < 2 or effects.wins[best] == max(effects.wins.values()):
        return ""
    often = leaders(effects.wins)[0]
    return (
        f" {best} has the best observed mean on only {effects.wins[best]} of the {effects.n_instances} "
        f"{analysis.unit}s, {often} on {effects.wins[often]}."
    )


# ------------------------------------------------------------------------------------------ other sentences


def joint_sentence(analysis: Analysis) -> str:
    """Whether the algorithms differ at all: the F-test in words, or the smallest adjusted p-value of the pairs."""
    test, p = analysis.joint, analysis.pairs.to_frame()["p_value"]
    asked = "Do the algorithms differ at all?"

    def verdict(p: float) -> str:
        return "are not all equal" if below(p, analysis.alpha) else "may all be equal"

    if analysis.means.apart():
        return "There is no joint test of all algorithms, because some have no benchmark in common."
    if analysis.means.errors != "model" and p.notna().any():
        if len(p) < 2 or analysis.pairs.adjust in ("none", "fdr"):
            return ""
        return (
            f"{asked} The smallest p-value of a pair, adjusted for all pairs, says that the means "
            f"{verdict(float(p.min()))} ({p_text(float(p.min()))})."
        )
    if test is None or not math.isfinite(test.p_value):
        return "The joint test is not possible: fewer than two means are estimable."
    den = "∞" if math.isinf(test.df_den) else written(test.df_den, ".1f")
    text = (
        f"{asked} F({test.df_num}, {den}) = {written(test.f_ratio, '.2f')}, {p_text(test.p_value)}: by this test the "
        f"{test.df_num + 1} means {verdict(test.p_value)}."
    )
    if bool(analysis.decisions.significant.to_numpy().any()) != below(test.p_value, analysis.alpha):
        text += (
            " The pairwise tests disagree, which can happen near the threshold because they ask a different question: "
            "claims about pairs rest on the pairwise tests."
        )
    return text


def pairs_sentence(analysis: Analysis) -> str:
    """How many of the differences are significant."""
    if analysis.incomparable:
        return "The table compares the means as they stand, and decides nothing about the algorithms."
    n, found = len(analysis.pairs.to_frame()), int(np.triu(analysis.decisions.significant.to_numpy()).sum())
    how = f"{DDF_NAMES[analysis.pairs.ddf]} degrees of freedom"
    if len(analysis.decisions.levels) > 2:
        how = f"{ADJUSTMENT_NAMES[analysis.pairs.adjust]} adjustment, {how}"
        how = (
            f"{ERROR_NAMES[analysis.pairs.errors]} standard errors, {how}"
            if analysis.pairs.errors in ERROR_NAMES
            else how
        )
    level = f"at {100 * analysis.alpha:.3g} % ({how})"
    if n == 1:
        return f"The difference is {'' if found else 'not '}significant {level}."
    return f"{found:,} of {counted(n, 'difference')} {'is' if found == 1 else 'are'} significant {level}."


def order_sentence(analysis: Analysis) -> str:
    """How reliably the best beats the runner-up on a single new benchmark; empty where that cannot be said."""
    if len(analysis.comparable) < 2 or analysis.check.scales_differ or analysis.incomparable:
        return ""  # one normal distribution does not describe differences on such different scales
    if set(analysis.runs.family) & set(analysis.fit.design.factors):
        return ""  # nor differences that have a mean of their own in every family
    best, second = analysis.comparable[0], runner_up(analysis)
    raw = dict(zip(analysis.means.labels(), analysis.means.frame[analysis.runs.algorithm], strict=True))
    sd = own_difference_sd(analysis.fit, analysis.runs, raw[best], raw[second])
    if not math.isfinite(sd):
        return ""
    gap, *_, se = advantage(analysis, best, second)
    write, noun = writer(se), _varying_noun(analysis)
    if sd <= 1e-4 * abs(gap):
        return (
            f"The change of the difference between {best} and {second} from {noun} to {noun} is estimated as zero; "
            "this does not show that there is none."
        )
    alone = "" if len(analysis.decisions.levels) == 2 else ", from the runs of these two,"
    return (
        f"From {noun} to {noun} the true difference between {best} and {second} is estimated{alone} to vary with a "
        f"standard deviation of {write(sd)} around its mean of {write(gap)}: taking these estimates at face value, "
        f"{best} would be the better of the two on about {percent(share_of_benchmarks(-gap, sd))} of such {noun}s."
    )


def _varying_noun(analysis: Analysis) -> str:
    """Instances, where some term lets advantages change between those of one benchmark too."""
    runs, design = analysis.runs, analysis.fit.design
    finer = any(
        set(bar.groups) <= {runs.algorithm, *runs.instance}
        and set(bar.groups) & set(runs.metafeatures)
        and (runs.algorithm in bar.groups or len(term.names) > 1)
        for term, bar in zip(design.random, design.parsed.bars, strict=True)
    )
    return "instance" if finer else "benchmark"


def winners_sentence(analysis: Analysis) -> str:
    """Who has the best observed mean, and on how many benchmarks; by metafeature where this differs, with the test."""
    effects = analysis.effects
    if effects is None:
        return ""
    all_of_them = counted(effects.n_instances, analysis.unit)
    counts, winners = _counts(effects.wins)
    if len(winners) == 1:
        return f"Observed, not tested: {winners[0]} has the best mean on all {all_of_them}."
    text = f"Observed, not tested: of {all_of_them}, the best mean belongs to {joined(counts, most=8)}"
    never = [name for name, wins in effects.wins.items() if not wins]
    if len(never) > IN_SENTENCE:
        text += f"; the other {len(never)} are never first"
    elif never:
        text += f"; {joined(never)} {'is' if len(never) == 1 else 'are'} never first"
    text += "." + " Ties count for each algorithm that shares them." * (
        sum(effects.wins.values()) > effects.n_instances
    )
    text += " Noise alone makes winners vary."
    if effects.incomplete:
        text += f" On {effects.incomplete} of them, the winner is among the algorithms that ran there."
    for column, by_level in effects.wins_by.items():
        test = analysis.interactions.get(column)
        if test is None or not turns(by_level) or len(by_level) > MOST_LEVELS:
            continue
        parts = [f"with {column} = {level}, {joined(_counts(wins)[0])}" for level, wins in by_level.items()]
        shown = test.significant(analysis.alpha)
        start = f"The comparison depends on {column}" if shown else f"Dependence on {column} is not shown"
        text += f" {start} ({test.result}); observed: {'; '.join(parts)}."
    return text


def _counts(wins: dict[str, int]) -> tuple[list[str], list[str]]:
    """Wins in words, most first, and the names of those who win at all."""
    ranked = sorted(((name, count) for name, count in wins.items() if count), key=lambda item: -item[1])
    return [f"{name} on {count}" for name, count in ranked], [name for name, _ in ranked]


def variation_sentences(analysis: Analysis) -> tuple[str, ...]:
    """Where the variation comes from, the largest sources first."""
    ranked = in_tie_order(analysis.components, lambda c: c.share, descending=True)
    parts = [f"{percent(c.share)} {c.meaning}" for c in ranked if c.share >= 0.005]
    zero = [c.meaning for c in ranked if c.share < 0.005]
    text = f"Of the variation of the scores that the algorithms' means do not explain: {'; '.join(parts)}."
    return (text, f"Estimated as about zero: {'; '.join(zero)}.") if zero else (text,)
