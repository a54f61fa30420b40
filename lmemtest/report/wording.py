"""Results into sentences for readers who do not read tables of tests.

Every statement about who differs from whom is read from one matrix, `analysis.separation.significant`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from lmemtest._options import ADJUSTMENT_NAMES, DDF_NAMES
from lmemtest._rounding import below, in_tie_order, written
from lmemtest.report.document import Strong, Text
from lmemtest.studies.benchmark.cautious_check import CautiousCheck, cautious_check
from lmemtest.studies.benchmark.observed_advantages import leaders, turns
from lmemtest.studies.checks.budget_mix import common_budgets_advice, trials_advice
from lmemtest.studies.modelling.adequacy import ZERO
from lmemtest.studies.scores.scale_agreement import hypothesis_on, what_differs
from lmemtest.studies.variation.model_components import own_difference_sd, share_of_benchmarks
from lmemtest.words import IN_SENTENCE, counted, format_number, joined, p_text, percent

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis
    from lmemtest.studies.benchmark.observed_advantages import ObservedAdvantages

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


def unit_noun(analysis: Analysis) -> str:
    """What the tables of observed means have rows for: benchmarks, or instances where there are metafeatures."""
    return "instance" if analysis.runs.metafeatures else "benchmark"


def n_benchmarks(analysis: Analysis) -> int:
    """Levels of the benchmark column; 1 without one."""
    runs = analysis.runs
    return len(runs.levels(runs.benchmark)) if runs.benchmark else 1


def rests_on_rows(analysis: Analysis) -> bool:
    """Whether the variation of advantages was estimated as zero from so few benchmarks that this is no evidence."""
    return analysis.sample.zero and n_benchmarks(analysis) < FEW_FOR_ZERO


# ------------------------------------------------------------------------------------------------ the headline


def headline(analysis: Analysis) -> tuple[Text, ...]:
    """The answer in a few sentences, with what a reader must know before using it."""
    return (
        _who(analysis),
        *_by_how_much(analysis),
        *_over_what(analysis),
        *([] if incomparable_budgets(analysis) else [_how_sure(analysis)]),
        *_reservations(analysis),
    )


def _best_split(analysis: Analysis) -> tuple[str, list[str], list[str]]:
    """The first level; those that are significantly worse; those that were tested and are not."""
    levels = comparable(analysis)
    best = levels[0]
    significant, undecided = analysis.separation.significant.loc[best], analysis.separation.undecided.loc[best]
    worse = [level for level in levels[1:] if significant[level]]
    return best, worse, [level for level in levels[1:] if not significant[level] and not undecided[level]]


def untested(analysis: Analysis) -> list[str]:
    """Levels that are comparable with others, but have no test against the first."""
    best, *rest = comparable(analysis)
    return [level for level in rest if analysis.separation.undecided.loc[best, level]]


def runner_up(analysis: Analysis) -> str:
    """The first level after the best that it can be compared with."""
    _, worse, level = _best_split(analysis)
    return next(name for name in comparable(analysis) if name in worse or name in level)


def comparable(analysis: Analysis) -> list[str]:
    """Algorithms whose differences are estimable, best first: a difference may be where the means are not."""
    levels = list(analysis.separation.levels)
    gaps: dict[str, dict[str, float]] = {level: {level: 0.0} for level in levels}
    table = analysis.pairs.to_frame()
    for left, right, gap in zip(table["left"], table["right"], table["estimate"], strict=True):
        if math.isfinite(gap):
            gaps[left][right], gaps[right][left] = -gap, gap
    first = max(levels, key=lambda level: len(gaps[level]))  # estimable differences make classes: the largest
    found = [level for level in levels if level in gaps[first]]
    means = dict(zip(levels, analysis.separation.means, strict=True))
    if all(math.isfinite(means[level]) for level in found):
        return found  # in the order of the tables, also where rounding decides
    sign = 1.0 if analysis.runs.direction == "minimize" else -1.0
    return in_tie_order(found, lambda level: sign * gaps[first][level])


def _extreme(analysis: Analysis) -> str:
    return "lowest" if analysis.runs.direction == "minimize" else "highest"


def _who(analysis: Analysis) -> Text:
    if len(comparable(analysis)) < 2:
        return ("The algorithms cannot be compared: the data do not identify any of their differences in this model.",)
    best, worse, level = _best_split(analysis)
    response = analysis.means.score
    if incomparable_budgets(analysis):
        return (
            Strong("The means cannot be compared as they stand"),
            f": {best} has the {_extreme(analysis)} mean {response}, but {why_incomparable(analysis)}",
        )
    comparative = "lower" if analysis.runs.direction == "minimize" else "higher"
    if silent := untested(analysis):
        claims = [f"it is significantly better than {joined(worse)}"] if worse else []
        claims += [f"it is not distinguishable from {joined(level)}"] if level else []
        claims += [f"{joined(silent)} could not be tested against it, so nothing is claimed there"]
        return (Strong(f"{best} has the {_extreme(analysis)} mean {response}"), f": {'; '.join(claims)}.")
    if not level and len(worse) == 1:
        return (Strong(f"{best} is better than {worse[0]}"), f": its mean {response} is significantly {comparative}.")
    if not level:
        named = f" ({joined(worse)})" if len(worse) <= IN_SENTENCE else ""
        return (
            Strong(f"{best} is the best of the {len(worse) + 1} algorithms"),
            f": its mean {response} is the {_extreme(analysis)} and differs significantly from each of the other "
            f"{len(worse)}{named}.",
        )
    if not worse and len(level) == 1:
        return (
            Strong(f"{best} and {level[0]} are not distinguishable"),
            f": {best} has the {comparative} mean {response}, but the difference is not significant.",
        )
    if not worse:
        some = analysis.separation.significant.to_numpy().any()
        rest = f"from {joined(level)}" if len(level) <= IN_SENTENCE else f"from any of the other {len(level)}"
        return (
            Strong("No algorithm can be called best"),
            f": {best} has the {_extreme(analysis)} mean {response}, but it does not differ significantly {rest}"
            + (", although some of the others differ from each other." if some else "."),
        )
    return (
        Strong(f"{best} has the {_extreme(analysis)} mean {response}"),
        f": it is significantly better than {joined(worse)}, but is not distinguishable from {joined(level)}.",
    )


def incomparable_budgets(analysis: Analysis) -> bool:
    """Whether the means are over unlike things, of which the model takes no notice: no verdict follows from them."""
    use = analysis.budgets
    return use.trials or (use.differ and use.role == "none")


def why_incomparable(analysis: Analysis) -> str:
    """What the means are over, where that is not the same thing for all algorithms or not the one to compare."""
    use, budget = analysis.budgets, analysis.runs.budget
    if use.trials:
        first, last = next(iter(use.ranges.values()))
        return (
            f"it is the mean over single trials ({budget} {first} to {last}), in which scores go up and down, and not "
            f"the best that was found. {trials_advice()}"
        )
    return (
        f"the algorithms were scored at different budgets ({_ranges(analysis)}) and the model has no term for the "
        f"budget. {common_budgets_advice(analysis.runs)}"
    )


def _ranges(analysis: Analysis) -> str:
    return joined(f"{name} {low} to {high}" for name, (low, high) in analysis.budgets.ranges.items())


def _over_what(analysis: Analysis) -> list[Text]:
    """What each mean is a mean over, where runs have several budgets."""
    use = analysis.budgets
    if use.n < 2 or use.role == "covariate" or incomparable_budgets(analysis) or not use.shared:
        return []
    budget = analysis.runs.budget
    return [
        (
            f"Each mean is over the scores at {use.n:,} values of {budget}, so whole curves are compared, not final "
            "scores.",
        )
    ]


def _by_how_much(analysis: Analysis) -> tuple[Text, ...]:
    ranked = comparable(analysis)
    if len(ranked) < 2 or incomparable_budgets(analysis):
        return ()
    best, worse, level = _best_split(analysis)
    second = runner_up(analysis)
    who = "" if len(ranked) == 2 or analysis.means.apart() else "the runner-up, "
    comma = "," if who else ""
    text = f"Its estimated lead over {who}{second}{comma} is {_lead(analysis, best, second)}"
    if worse and level and worse[0] != second:
        text += f"; over {worse[0]}, the first that it clearly beats, it is {_lead(analysis, best, worse[0])}"
    others = [level for level in analysis.separation.levels if level not in ranked]
    if others and not analysis.means.apart():
        text += f". The data do not identify how {joined(others)} compare{'s' * (len(others) == 1)} with these"
    return ((f"{text}.",),)


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
    ends = sorted((sign * found["ci_low"], sign * found["ci_high"]))
    return sign * found["estimate"], ends[0], ends[1], float(found["p_value"]), float(found["se"])


def _how_sure(analysis: Analysis) -> Text:
    sure, sample = error_text(analysis), analysis.sample
    if n_benchmarks(analysis) < 2:
        scope = "" if analysis.runs.benchmark else " (no benchmark column was given)"
        return (f"This is about new runs on this one benchmark{scope} and says nothing about others; {sure}.",)
    if not sample.varies:
        return (
            f"This is about exactly these {counted(sample.size, sample.noun)}: the model does not allow algorithms "
            f"to do better on some benchmarks than on others, so it says nothing about new ones; {sure}.",
        )
    few = n_benchmarks(analysis) < FEW_BENCHMARKS
    caution = f" With only {n_benchmarks(analysis)} benchmarks, generalising to others is risky." if few else ""
    return (
        f"This is about the average over {sample.noun}s like the {sample.size:,} studied here, not about each of them; "
        f"{sure}.{caution}",
    )


def error_text(analysis: Analysis) -> str:
    """What the error rate is held for, or why it is not."""
    missing = analysis.missing
    if not missing.terms:
        held = family_text(analysis)
        return held.replace("is controlled at", "is nominally") if rests_on_rows(analysis) else held
    alpha, terms = f"{100 * analysis.alpha:.3g} %", joined(missing.terms)
    if not missing.coarsest:
        return (
            f"the model lacks {terms}, so it counts correlated rows as independent: its p-values can be too small, and "
            f"the nominal {alpha} error rate is not guaranteed"
        )
    what = "instances of one benchmark" if analysis.sample.noun == "instance" else "correlated rows"
    return (
        f"the model lacks {terms}, so its p-values count {what} as independent and are too small: the chance of "
        f"false differences is not controlled at {alpha}"
    )


def family_text(analysis: Analysis) -> str:
    """What the error rate is held for, and on which condition; the rest of the conditions is in `level_text`."""
    alpha, moderated = f"{100 * analysis.alpha:.3g} %", analysis.means.vcov == "moderated"
    rate = f"is nominally {alpha}" if moderated else f"is controlled at {alpha}"
    if len(analysis.separation.levels) == 2:
        return f"the chance of a false difference {rate}"
    alike = ", if all algorithms vary alike between benchmarks" if _assumes_alike(analysis) else ""
    if analysis.pairs.adjust == "none":
        return f"the chance of a false difference {rate} for each pair, not for all together{alike}"
    if analysis.pairs.adjust == "fdr":
        return f"the expected share of false differences among those claimed {rate}{alike}"
    return f"the chance of any false difference among all pairs {rate}{alike}"


def _assumes_alike(analysis: Analysis) -> bool:
    """Whether all pairs are judged by one variance between benchmarks."""
    return analysis.means.vcov == "model" and analysis.sample.varies and len(analysis.separation.levels) > 2


def level_text(analysis: Analysis) -> str:
    """All that the level of the decisions assumes, in sentences."""
    alpha, two = f"{100 * analysis.alpha:.3g} %", len(analysis.separation.levels) == 2
    moderate = analysis.means.moderate
    if moderate is None:
        if not _assumes_alike(analysis):
            return "Advantages are taken to vary between benchmarks about normally."
        return (
            f"The {alpha} hold if advantages vary between benchmarks to the same degree for all algorithms, and about "
            "normally. Where one algorithm is far more erratic than the others, comparisons with it are tested too "
            "liberally and those among the others too conservatively; moderated standard errors do not assume this."
        )
    label = f"levels of {moderate.robust.label}"
    how = (
        "The difference is judged by the larger of its scatter over the benchmarks and the model's variance"
        if two
        else "Every difference is judged by its own scatter over the benchmarks and by what the variances of its two "
        "algorithms predict, so algorithms may vary to different degrees"
    )
    few = n_benchmarks(analysis) < FEW_BENCHMARKS
    size = (
        f"with the {n_benchmarks(analysis)} benchmarks here it is less reliable than with 6 or more"
        if few
        else "in simulations from 6 benchmarks on, erratic algorithms and variants of one method among them, a nominal "
        "5 % was at most about 5 to 7 % (docs/validation.md)"
    )
    return (
        f"{how}. Different {label} are taken as independent of each other, apart from what the model holds in common, "
        f"and their advantages as about normal. The {alpha} are nominal: {size}."
    )


def _reservations(analysis: Analysis) -> list[Text]:
    texts = [
        *_never_met(analysis),
        *_left_out(analysis),
        *_uneven_budgets(analysis),
        *_on_rows(analysis),
        *_reversal(analysis),
        *_other_scale(analysis),
    ]
    if n_benchmarks(analysis) > 1 and analysis.check.scales_differ:
        texts.append(_scales(analysis))
    elif any(finding.severity == "warning" for finding in analysis.check.findings):
        texts.append(("The checks of the table found something that can change the conclusion (see Data and checks).",))
    return texts


def _never_met(analysis: Analysis) -> list[Text]:
    """Pairs without a common benchmark, which get no verdict."""
    met = analysis.runs.study.crossing if analysis.means.apart() else None
    if met is None:
        return []
    count = len(met.apart)
    them = "this pair" if count == 1 else "these"
    text = (
        f": {count:,} of the {met.n_pairs:,} pairs of algorithms {'has' if count == 1 else 'have'} no benchmark in "
        f"common ({met.shown()}); their differences may just as well be differences between benchmarks, so nothing "
        f"is claimed about {them}."
    )
    return [(Strong("No common benchmark"), text)]


def _left_out(analysis: Analysis) -> list[Text]:
    """Columns that structure the rows and have no role on purpose."""
    return [(finding.message,) for finding in analysis.check.findings if finding.kind == "ignored_columns"]


def _uneven_budgets(analysis: Analysis) -> list[Text]:
    """Runs at different budgets, where the first sentence has not said so."""
    use = analysis.budgets
    if use.shared or use.role != "none" or incomparable_budgets(analysis):
        return []
    text = (
        f": runs were scored at different budgets ({use.n:,} distinct values), and the model has no term for the "
        "budget, so a difference between algorithms may be one between budgets."
    )
    return [(Strong("Mind the budgets"), text)]


def _on_rows(analysis: Analysis) -> list[Text]:
    check = cautious(analysis)
    if check is None:
        return []
    if not rests_on_rows(analysis):
        return [
            (
                Strong("Mind the assumption of equal variation"),
                ": the model takes the advantages of all algorithms to vary between benchmarks to the same degree; a "
                f"cautious check over benchmark means, which does not, does not confirm that {check.leader} is better "
                f"than {joined(contradicted(analysis, check))}: claim no difference there.",
            )
        ]
    _, worse, _ = _best_split(analysis)
    beaten = check.beaten(analysis.alpha)
    lost = [name for name in worse if name not in beaten]
    if lost:
        verdict = f"does not confirm that {check.leader} is better than {joined(lost)}"
    elif worse:
        verdict = f"confirms that {check.leader} is better than {joined(worse)}"
    elif beaten:
        verdict = f"finds {check.leader} better than {joined(beaten)}, which the model does not: claim no difference"
    else:
        verdict = f"finds no algorithm worse than {check.leader} either"
    return [
        (
            Strong("Mind the number of benchmarks"),
            f": the change of advantages between the {n_benchmarks(analysis)} benchmarks is estimated as zero, so the "
            f"test rests on the {finer_units(analysis)} rather than on the number of benchmarks and tends to be too "
            f"optimistic; a cautious check over benchmark means {verdict}.",
        )
    ]


def finer_units(analysis: Analysis) -> str:
    """What a test rests on, if advantages do not change between benchmarks: instances, or rows."""
    return "instances" if any(c.kind == "interaction" and c.share > ZERO for c in analysis.components) else "rows"


def cautious(analysis: Analysis) -> CautiousCheck | None:
    """The t-tests over benchmark means, where the model rests on rows although benchmarks are few, or claims more."""
    if analysis.effects is None or len(comparable(analysis)) < 2 or incomparable_budgets(analysis):
        return None
    check = cautious_check(analysis.effects, comparable(analysis)[0])
    return check if rests_on_rows(analysis) or contradicted(analysis, check) else None


def contradicted(analysis: Analysis, check: CautiousCheck) -> list[str]:
    """Algorithms that the model calls worse than the leader, and the check is far from calling so.

    The check has fewer degrees of freedom, so a p-value a little above the level is no contradiction.
    """
    if not (analysis.sample.varies and n_benchmarks(analysis) > 1):
        return []  # what the model lacks is said elsewhere
    p = dict(zip(check.table["algorithm"], check.table["p_value"], strict=True))
    _, worse, _ = _best_split(analysis)
    return [name for name in worse if p.get(name, math.nan) > CONTRADICTED * analysis.alpha]


def _reversal(analysis: Analysis) -> list[Text]:
    """A sentence for each metafeature on which the comparison depends, by its test, and at whose levels others lead."""
    by = analysis.effects.wins_by if analysis.effects is not None and not incomparable_budgets(analysis) else {}
    texts: list[Text] = []
    for column, by_level in by.items():
        test = analysis.interactions.get(column)
        if test is None or not test.significant(analysis.alpha) or not turns(by_level):
            continue
        known = ""
        if len(by_level) <= MOST_LEVELS:
            parts = [f"{joined(leaders(wins))} with {column} = {level}" for level, wins in by_level.items()]
            known = f": the best observed mean belongs most often to {joined(parts, most=MOST_LEVELS)}"
        texts.append((Strong(f"The comparison depends on {column}"), f" ({test.result}){known}."))
    return texts


def _other_scale(analysis: Analysis) -> list[Text]:
    """Say so where the raw score decides otherwise than the normalised one."""
    found = analysis.agreement
    if found is None or incomparable_budgets(analysis) or found.disagreements().empty:
        return []
    return [(Strong("Mind the score"), f": this is about mean {found.score}. {found.overview()}")]


def tested(analysis: Analysis) -> tuple[str, str]:
    """The null hypothesis of a pair on a score that is relative to others, and when it is not equal mean scores.

    Both are empty for a score that was measured.
    """
    scale = analysis.runs.scale
    if scale is not None:
        return hypothesis_on(scale), what_differs(scale.method)
    if analysis.check.kind.kind == "ranks":
        return "mean ranks are equal", what_differs("rank")
    return "", ""


def _scales(analysis: Analysis) -> Text:
    ratio = format_number(analysis.check.scale_ratio, 2)
    known = "; ".join(filter(None, (largest_text(analysis), _seldom_first(analysis))))
    clauses = f": {known}" if known else ""
    return (
        Strong("Mind the scale"),
        f": scores scatter {ratio} times as much on one benchmark as on another, so few benchmarks may dominate the "
        f"average (see Limitations){clauses}.",
    )


def largest_text(analysis: Analysis) -> str:
    """How much of the squared deviations the benchmarks with the largest ones hold."""
    effects = analysis.effects
    if effects is None:
        return ""
    table = effects.to_frame()
    squares = (table["effect"] ** 2).groupby(table["benchmark"].map(effects.benchmark_of)).sum()
    top = max(1, round(len(squares) / 10))
    if not squares.sum() > 0:
        return ""
    share = percent(float(squares.nlargest(top).sum() / squares.sum()))
    which = "the one" if top == 1 else f"the {top}"
    return (
        f"{which} with the largest deviations, of {len(squares)}, hold{'s' * (top == 1)} {share} of the sum of "
        "squared deviations"
    )


def _seldom_first(analysis: Analysis) -> str:
    """Say so where the best average does not belong to the one who wins most often."""
    effects, levels = analysis.effects, comparable(analysis)
    if effects is None or len(levels) < 2 or effects.wins[levels[0]] == max(effects.wins.values()):
        return ""
    often = max(effects.wins, key=effects.wins.__getitem__)
    return (
        f"{levels[0]} has the best observed mean on {effects.wins[levels[0]]} of the {effects.n_instances} "
        f"{unit_noun(analysis)}s only, {often} on {effects.wins[often]}"
    )


# ------------------------------------------------------------------------------------------ other sentences


def joint_sentence(analysis: Analysis) -> str:
    """The F-test in words."""
    test = analysis.joint
    if analysis.means.apart():
        return "There is no joint test of all algorithms, because some have no benchmark in common."
    if analysis.means.vcov != "model" and analysis.pairs.to_frame()["p_value"].notna().any():
        return _whether_any_differ(analysis)
    if test is None or not math.isfinite(test.p_value):
        return "The joint test is not possible: fewer than two means are estimable."
    den = "∞" if math.isinf(test.df_den) else written(test.df_den, ".1f")
    verdict = "are not all equal" if below(test.p_value, analysis.alpha) else "may all be equal"
    text = (
        f"Do the algorithms differ at all? F({test.df_num}, {den}) = {written(test.f_ratio, '.2f')}, "
        f"{p_text(test.p_value)}: "
        f"by this test the {test.df_num + 1} means {verdict}."
    )
    any_pair = bool(analysis.separation.significant.to_numpy().any())
    if any_pair != below(test.p_value, analysis.alpha):
        text += (
            " The pairwise tests disagree, which can happen near the threshold because they ask a different question: "
            "claims about pairs rest on the pairwise tests."
        )
    return text


def _whether_any_differ(analysis: Analysis) -> str:
    """The smallest adjusted p-value of the pairs, which is a test that all means are equal."""
    p = analysis.pairs.to_frame()["p_value"]
    if len(p) < 2:
        return ""
    if analysis.pairs.adjust in ("none", "fdr"):
        return ""
    least = float(p.min())
    verdict = "are not all equal" if below(least, analysis.alpha) else "may all be equal"
    return (
        f"Do the algorithms differ at all? The smallest p-value of a pair, adjusted for all pairs, says that the means "
        f"{verdict} ({p_text(least)})."
    )


def pairs_sentence(analysis: Analysis, significant: int) -> str:
    """How many of the differences are significant, and how many have no verdict."""
    if incomparable_budgets(analysis):
        return "The table compares the means as they stand, and decides nothing about the algorithms."
    table = analysis.pairs.to_frame()
    level = f"at {100 * analysis.alpha:.3g} % ({adjustment_text(analysis)})"
    if len(table) == 1:
        return f"The difference is {'' if significant else 'not '}significant {level}."
    verb = "is" if significant == 1 else "are"
    return f"{significant:,} of {counted(len(table), 'difference')} {verb} significant {level}."


def order_sentence(analysis: Analysis) -> str:
    """How reliably the best beats the runner-up on a single new benchmark; empty where that cannot be said."""
    if len(comparable(analysis)) < 2 or analysis.check.scales_differ or incomparable_budgets(analysis):
        return ""  # one normal distribution does not describe differences on such different scales
    names = [comparable(analysis)[0], runner_up(analysis)]
    best, second = (_raw_level(analysis, name) for name in names)
    sd = own_difference_sd(analysis.fit, analysis.runs, best, second)
    if not math.isfinite(sd):
        return ""
    gap, *_, se = advantage(analysis, *names)
    write, noun = writer(se), _varying_noun(analysis)
    if sd <= 1e-4 * abs(gap):
        return (
            f"The change of the difference between {names[0]} and {names[1]} from {noun} to {noun} is estimated as "
            "zero; this does not show that there is none."
        )
    share = share_of_benchmarks(-gap, sd)
    alone = "" if len(analysis.separation.levels) == 2 else ", from the runs of these two,"
    return (
        f"From {noun} to {noun} the true difference between {names[0]} and {names[1]} is estimated{alone} to vary with "
        f"a standard deviation of {write(sd)} around its mean of {write(gap)}: taking these estimates at face "
        f"value, {names[0]} would be the better of the two on about {percent(share)} of such {noun}s."
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


def _raw_level(analysis: Analysis, name: str) -> object:
    return dict(zip(analysis.means.labels(), analysis.means.frame[analysis.runs.algorithm], strict=True))[name]


def winners_sentence(analysis: Analysis) -> str:
    """Who has the best observed mean, and on how many benchmarks."""
    effects = analysis.effects
    if effects is None:
        return ""
    ranked = sorted(effects.wins.items(), key=lambda item: -item[1])
    winners = [(name, wins) for name, wins in ranked if wins]
    noun = unit_noun(analysis)
    shared = sum(effects.wins.values()) > effects.n_instances
    if len(winners) == 1:
        return f"Observed, not tested: {winners[0][0]} has the best mean on all {counted(effects.n_instances, noun)}."
    counts = joined([f"{name} on {wins}" for name, wins in winners], most=8)
    never = [name for name, wins in ranked if not wins]
    text = f"Observed, not tested: of {counted(effects.n_instances, noun)}, the best mean belongs to {counts}"
    if len(never) > IN_SENTENCE:
        text += f"; the other {len(never)} are never first."
    else:
        text += f"; {joined(never)} {'is' if len(never) == 1 else 'are'} never first." if never else "."
    text += " Ties count for each algorithm that shares them." if shared else ""
    text += " Noise alone makes winners vary." if len(winners) > 1 else ""
    some = "the algorithms that ran there" if effects.incomplete else ""
    text += f" On {effects.incomplete} of them, the winner is among {some}." if some else ""
    return " ".join([text, *_by_metafeature(analysis, effects)])


def _by_metafeature(analysis: Analysis, effects: ObservedAdvantages) -> list[str]:
    """Winners apart for the levels of a metafeature, where they differ, with the test of the difference."""
    sentences = []
    for column, by_level in effects.wins_by.items():
        test = analysis.interactions.get(column)
        if test is None or not turns(by_level) or len(by_level) > MOST_LEVELS:
            continue
        parts = []
        for level, wins in by_level.items():
            ranked = sorted(((name, count) for name, count in wins.items() if count), key=lambda item: -item[1])
            parts.append(f"with {column} = {level}, {joined([f'{name} on {count}' for name, count in ranked])}")
        start = (
            f"The comparison depends on {column}"
            if test.significant(analysis.alpha)
            else f"Dependence on {column} is not shown"
        )
        sentences.append(f"{start} ({test.result}); observed: {'; '.join(parts)}.")
    return sentences


def variation_sentences(analysis: Analysis) -> tuple[str, ...]:
    """Where the variation comes from, the largest sources first."""
    ranked = in_tie_order(analysis.components, lambda c: c.share, descending=True)
    parts = [f"{percent(c.share)} {c.meaning}" for c in ranked if c.share >= 0.005]
    zero = [c.meaning for c in ranked if c.share < 0.005]
    sentences = [f"Of the variation of the scores that the algorithms' means do not explain: {'; '.join(parts)}."]
    if zero:
        sentences.append(f"Estimated as about zero: {'; '.join(zero)}.")
    return tuple(sentences)


def adjustment_text(analysis: Analysis) -> str:
    """The adjustment and the degrees of freedom by name; a single pair is not adjusted."""
    ddf = f"{DDF_NAMES[analysis.pairs.ddf]} degrees of freedom"
    if len(analysis.separation.levels) == 2:
        return ddf
    errors = "moderated standard errors, " if analysis.means.vcov == "moderated" else ""
    return f"{errors}{ADJUSTMENT_NAMES[analysis.pairs.adjust]} adjustment, {ddf}"
