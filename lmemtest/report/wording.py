"""Results into sentences for readers who do not read tables of tests: what templates/*.j2 say, and when.

Every statement about who differs from whom is read from one matrix, `analysis.decisions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import compress
from typing import TYPE_CHECKING, Any

from lmemtest.bench.benchmark.observed_advantages import cautious_check, leaders, turns
from lmemtest.bench.data.budget_mix import common_budgets_advice, trials_advice
from lmemtest.bench.data.scales import fold
from lmemtest.bench.modelling.adequacy import ZERO, of_advantages
from lmemtest.bench.robustness.variants import hypothesis_on, what_differs
from lmemtest.bench.variation.variance_shares import own_difference_sd, share_of_benchmarks
from lmemtest.core.caller import advice
from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_NAMES, ERROR_NAMES
from lmemtest.core.rounding import below, in_tie_order, written
from lmemtest.core.verdicts import Finding, Verdict, ahead_or_behind
from lmemtest.core.words import IN_SENTENCE, counted, format_number, joined, p_text, percent, plural
from lmemtest.report.document import Text, strong
from lmemtest.report.prose import sentence_of, texts

if TYPE_CHECKING:
    from lmemtest.core.arrays import Mask
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
    >>> writer(0.246)(-0.29331), writer(1234.5)(98765.4), writer(0.0)(0.25), writer(0.04)(0.5375)
    ('-0.29', '98,765', '0.2500', '0.538')
    """
    if not (math.isfinite(se) and 1e-6 < se < 1e9):
        return lambda x: format_number(x)
    decimals = max(0, 1 - math.floor(math.log10(se)))

    return lambda x: written(x, f",.{decimals}f")


def better(analysis: Analysis) -> str:
    """What is better: lower or higher."""
    return "lower" if analysis.runs.direction == "minimize" else "higher"


def measured(analysis: Analysis) -> str:
    """What the means are means of: the score, or what it was before curves were reduced."""
    score = analysis.means.score
    text = analysis.runs.study.measured if score == analysis.runs.score else score
    return "score" if text.lower() in ("mean", "average") else text  # not "the mean mean"


def alpha_text(analysis: Analysis) -> str:
    """The level of the decisions in percent."""
    return f"{100 * analysis.alpha:.3g} %"


# ------------------------------------------------------------------------------------------------ the headline


def answer(analysis: Analysis) -> tuple[Text, ...]:
    """Who is best, by how much, for what and with which error rate: the results in a few sentences."""
    if analysis.incomparable:
        return _answer(analysis)
    return (*_answer(analysis), *_by_how_much(analysis), *by_ranks(analysis), *sample_texts(analysis))


def headline(analysis: Analysis) -> tuple[Text, ...]:
    """The answer in a few sentences, with what a reader must know before using it."""
    warning = warned(analysis)
    first, last = ((), warning) if len(analysis.comparable) < 2 else (warning, ())
    apart, ignored = _never_met(analysis), ignored_columns(analysis)
    if analysis.incomparable:
        return (*first, *answer(analysis), *apart, *ignored, *last)
    scale = () if analysis.check.scales_differ else _mind_the_scale(analysis)
    reservations = (*_reservations(analysis), *scale, *_mind_the_skew(analysis), *_mind_the_families(analysis))
    return (*first, *answer(analysis), *apart, *ignored, *reservations, *last)


def ignored_columns(analysis: Analysis) -> tuple[Text, ...]:
    """Columns without a role that may make rows depend on each other."""
    return tuple((finding.message,) for finding in analysis.check.findings if finding.kind == "ignored_columns")


def sample_texts(analysis: Analysis) -> tuple[Text, ...]:
    """What the comparison is about: which scores, which population, which error rate."""
    return texts(
        "headline.sample",
        curve=analysis.runs.curve,
        budgets=analysis.budgets,
        budget=analysis.runs.budget,
        benchmark=analysis.runs.benchmark,
        n_benchmarks=analysis.n_benchmarks,
        few_benchmarks=analysis.n_benchmarks < FEW_BENCHMARKS,
        sample=analysis.sample,
        these_only=analysis.these_only,
        claim=analysis.claim,
        error=error_text(analysis),
    )


def cautions(analysis: Analysis) -> tuple[Text, ...]:
    """What a reader must know before using the answer, beyond what the checks of the table found."""
    ignored = ignored_columns(analysis)
    if analysis.incomparable:
        return (*_never_met(analysis), *ignored)
    scale, skew = _mind_the_scale(analysis), _mind_the_skew(analysis)
    return (*_never_met(analysis), *ignored, *_reservations(analysis), *scale, *skew, *_mind_the_families(analysis))


_MOST_FAMILIES = 3  # that a sentence names
_ASSUMPTIONS = {  # what a check of the fit calls into question
    "normality": "the normality of {}",
    "scale": "the residual variance {}",
    "advantages": "the variance of the advantages {}",
    "bounds": "{} at a bound",
    "groups": "the few levels of {}",
    "influence": "the influence of single groups",
    "collinearity": "the collinearity of {}",
}


def fit_problems(analysis: Analysis) -> list[Finding]:
    """The checks of the fit that call for action: advantages that vary unequally do not where pairs allow for them."""
    checks = analysis.diagnosis.checks if analysis.diagnosis is not None else ()
    allowed = {"advantages"} if analysis.pairs.errors == "moderated" else set()
    return [check for check in checks if check.severity == "warning" and check.kind not in allowed]


def fit_warnings(analysis: Analysis) -> list[str]:
    """What these checks call into question."""
    return [
        _ASSUMPTIONS.get(check.kind, f"{check.kind}: {{}}").format(check.subject) for check in fit_problems(analysis)
    ]


def against_the_best(analysis: Analysis) -> tuple[str, list[str], list[str], list[str]]:
    """The first algorithm; those significantly worse; those tested against it that are not; those without a test."""
    best, *others = analysis.comparable
    codes = analysis.decisions.pairs([best] * len(others), others)
    worse, untested = ahead_or_behind(codes), codes == Verdict.NOT_TESTED

    def those(which: Mask) -> list[str]:
        return list(compress(others, which))

    return best, those(worse), those(~worse & ~untested), those(untested)


def _answer(analysis: Analysis) -> tuple[Text, ...]:
    best, worse, level, untested = against_the_best(analysis) if len(analysis.comparable) > 1 else ("", [], [], [])
    return texts(
        "headline.answer",
        best=best,
        worse=worse,
        level=level,
        untested=untested,
        better=better(analysis),
        extreme="lowest" if better(analysis) == "lower" else "highest",
        measured=measured(analysis),
        why_incomparable=why_incomparable(analysis) if analysis.incomparable else "",
        few_decide=few_decide(analysis),
        on_ranks=analysis.on_ranks,
        some_differ=analysis.decisions.n_significant > 0,
        most_named=IN_SENTENCE,
    )


def why_incomparable(analysis: Analysis) -> str:
    """What the means are over, where that is not the same thing for all algorithms or not the one to compare."""
    use = analysis.budgets
    rows = [(row.algorithm, row.first, row.last) for row in use.ranges.itertuples()]
    _, first, last = rows[0] if use.trials else ("", "", "")
    return sentence_of(
        "headline.incomparable",
        budgets=use,
        budget=analysis.runs.budget,
        first=first,
        last=last,
        ranges=[f"{name} {low} to {high}" for name, low, high in rows],
        advice=trials_advice() if use.trials else common_budgets_advice(analysis.runs),
    )


def _by_how_much(analysis: Analysis) -> tuple[Text, ...]:
    ranked = analysis.comparable
    if len(ranked) < 2:
        return ()
    best, worse, _, _ = against_the_best(analysis)
    second, apart = runner_up(analysis), analysis.means.apart()
    return texts(
        "headline.lead",
        several=len(ranked) > 2 and not apart,
        second=lead(analysis, best, second),
        beaten=lead(analysis, best, worse[0]) if worse and worse[0] != second else None,
        not_shown=_not_shown(analysis),
        unidentified=[] if apart else [name for name in analysis.decisions.levels if name not in ranked],
        score=analysis.runs.score,
    )


def _not_shown(analysis: Analysis) -> dict[str, str] | None:
    """An algorithm that cannot be distinguished from the best although one closer to it can, by its standard error."""
    best, worse, level, _ = against_the_best(analysis)
    place = {name: i for i, name in enumerate(analysis.comparable)}
    beaten = min(worse, key=place.__getitem__, default=best)
    farther = [name for name in level if place[name] > place[beaten]]
    if not worse or not farther:
        return None
    gap, *_, wide = advantage(analysis, best, farther[0])
    narrow = advantage(analysis, best, beaten)[-1]
    write = writer(narrow)
    names = {"name": farther[0], "gap": write(gap), "se": write(wide), "than": beaten, "than_se": write(narrow)}
    return names if wide > narrow else None


def runner_up(analysis: Analysis) -> str:
    """The first algorithm after the best that has a test against it."""
    _, worse, level, _ = against_the_best(analysis)
    return next(name for name in analysis.comparable if name in worse or name in level)


def lead(analysis: Analysis, best: str, other: str) -> dict[str, Any]:
    """The lead over another algorithm as it is written; as a ratio, too, where the model is one of logarithms."""
    gap, low, high, p, se = advantage(analysis, best, other)
    write, base, ratio = writer(se), analysis.pairs.log_base, None
    if base is not None:  # a lead of the smaller score is a difference with its sign changed
        sign = -1.0 if analysis.runs.direction == "minimize" else 1.0
        middle, *ends = (format_number(base ** (sign * value), 3) for value in (gap, low, high))
        ratio = (middle, *sorted(ends, key=float))
    return {
        "name": other,
        "gap": write(gap),
        "level": f"{100 * analysis.pairs.level:.4g}",
        "low": write(low),
        "high": write(high),
        "p": p_text(p, level=analysis.alpha),
        "ratio": ratio,
    }


def advantage(analysis: Analysis, better: str, other: str) -> tuple[float, float, float, float, float]:
    """By how much one level is better than another: lead, its interval, adjusted p, standard error."""
    gap, low, high, se, p = analysis.pairs.leads(better, analysis.runs.direction)[other]
    return gap, low, high, p, se


def by_ranks(analysis: Analysis) -> tuple[Text, ...]:
    """Who is better by mean rank within benchmarks, where few benchmarks decide the means or ranks decide otherwise."""
    ranks, variants = analysis.on_ranks, analysis.agreement
    if ranks is None or variants is None or (variants.alike.all() and not few_decide(analysis)):
        return ()
    best, *others = ranks.levels
    return texts(
        "headline.by_ranks",
        best=best,
        worse=[name for name in others if ranks.significant.loc[best, name]],
        changed=int((~variants.alike).sum()),
        opposite=int(variants.opposite.sum()),
        n_pairs=int(variants.comparable.sum()),
        score=measured(analysis),
    )


def error_text(analysis: Analysis) -> str:
    """What the error rate is held for and on which condition, or why it is not; the limitations have the conditions."""
    decisive = of_advantages(analysis.runs, analysis.recommendation.spec.bars)
    return sentence_of(
        "headline.error",
        alpha=alpha_text(analysis),
        lacking=[str(bar) for bar in analysis.missing],
        coarsest=analysis.missing[:1] == tuple(decisive[:1]),
        sample=analysis.sample,
        few_decide=few_decide(analysis),
        nominal=analysis.means.errors == "moderated" or rests_on_rows(analysis),
        alike=assumes_alike(analysis),
        about_normal=analysis.shape is not None,
        n_levels=len(analysis.decisions.levels),
        adjust=analysis.pairs.adjust,
    )


def assumes_alike(analysis: Analysis) -> bool:
    """Whether all pairs are judged by one variance between benchmarks."""
    return analysis.means.errors == "model" and analysis.sample.varies and len(analysis.decisions.levels) > 2


# --------------------------------------------------------------------------------------------- reservations


def warned(analysis: Analysis) -> tuple[Text, ...]:
    """The worst that the checks of the table found, with its number: it stands before the answer that it can change."""
    told = {"no_common_benchmark", "irregular_budgets", *(("single_trials",) if analysis.incomparable else ())}
    problems = [outcome for outcome in analysis.check.to_fix if outcome.findings[0].kind not in told]
    if not problems:
        return ()
    first, *others = problems
    text: Text = (strong(analysis.check.in_sum(first)), f" {first.advice}".rstrip())
    if first.findings[0].kind == "score_scale" and not analysis.incomparable:
        text = next(iter(_mind_the_scale(analysis)), text)
    more = f" Also found: {joined([outcome.check for outcome in others])} (see What to fix first)." if others else ""
    return ((*text, more),)


def _never_met(analysis: Analysis) -> tuple[Text, ...]:
    """Pairs without a common benchmark, which get no verdict."""
    met = analysis.runs.study.crossing if analysis.means.apart() else None
    if met is None:
        return ()
    return texts("headline.apart", apart=len(met.apart), n_pairs=met.n_pairs, pairs=met.shown())


def _reservations(analysis: Analysis) -> tuple[Text, ...]:
    """Budgets, the number of benchmarks, metafeatures, and other populations, scores and policies for failed runs."""
    check, worse, beaten = cautious(analysis), [], []
    if check is not None:
        worse = against_the_best(analysis)[1]
        beaten = check.table["algorithm"][below(check.table["p_value"], analysis.alpha)].tolist()
    return texts(
        "headline.reservations",
        runs=analysis.runs,
        budgets=analysis.budgets,
        n_benchmarks=analysis.n_benchmarks,
        check=check,
        rests_on=rests_on(analysis),
        contradicted=contradicted(analysis, check) if check is not None else [],
        worse=worse,
        beaten=beaten,
        lost=[name for name in worse if name not in beaten],
        turning=turning(analysis),
        most_levels=MOST_LEVELS,
        populations=analysis.populations,
        agreement=analysis.agreement,
        sensitivity=analysis.sensitivity,
    )


def turning(analysis: Analysis) -> list[tuple[str, Any, list[str]]]:
    """Metafeatures on which the comparison depends, by their tests, and who is first at their levels."""
    by_column = analysis.effects.wins_by if analysis.effects is not None else {}
    return [
        (
            column,
            test,
            [f"{joined(leaders(wins))} with {column} = {level}" for level, wins in by_level.items()]
            if len(by_level) <= MOST_LEVELS
            else [],
        )
        for column, by_level in by_column.items()
        if (test := analysis.interactions.get(column)) is not None
        and test.significant(analysis.alpha)
        and turns(by_level)
    ]


def rests_on_rows(analysis: Analysis) -> bool:
    """Whether the variation of advantages was estimated as zero from so few benchmarks that this is no evidence."""
    return analysis.sample.zero and not analysis.sample.families and analysis.n_benchmarks < FEW_FOR_ZERO


def rests_on(analysis: Analysis) -> str:
    """What a test rests on, if advantages do not vary between benchmarks: instances, or rows; empty if they do."""
    if not rests_on_rows(analysis):
        return ""
    advantages = analysis.components["share"][analysis.components["kind"] == "interaction"]
    return "instances" if (advantages > ZERO).any() else "rows"


def cautious(analysis: Analysis) -> Answer | None:
    """The t-tests over benchmark means, where the model rests on rows although benchmarks are few, or claims more."""
    if analysis.effects is None or len(analysis.comparable) < 2 or analysis.incomparable:
        return None
    if analysis.runs.study.families:  # means of benchmarks are no independent numbers there
        return None
    check = cautious_check(analysis.effects, analysis.comparable[0])
    return check if rests_on_rows(analysis) or contradicted(analysis, check) else None


def unconfirmed(analysis: Analysis) -> list[str]:
    """Algorithms that the model calls worse than the leader, and the cautious check does not."""
    check = cautious(analysis)
    if check is None or not rests_on(analysis):
        return [] if check is None else contradicted(analysis, check)
    beaten = set(check.table["algorithm"][below(check.table["p_value"], analysis.alpha)])
    return [name for name in against_the_best(analysis)[1] if name not in beaten]


def contradicted(analysis: Analysis, check: Answer) -> list[str]:
    """Algorithms that the model calls worse than the leader, and the check is far from calling so.

    The check has fewer degrees of freedom, so a p-value a little above the level is no contradiction.
    """
    if not (analysis.sample.varies and analysis.n_benchmarks > 1):
        return []  # what the model lacks is said elsewhere
    p = dict(zip(check.table["algorithm"], check.table["p_value"], strict=True))
    _, worse, *_ = against_the_best(analysis)
    return [name for name in worse if p.get(name, math.nan) > CONTRADICTED * analysis.alpha]


def few_decide(analysis: Analysis) -> bool:
    """Whether one benchmark holds more of the squared advantages than normal ones would leave to it."""
    return analysis.shape is not None and analysis.shape.few_decide


def _mind_the_scale(analysis: Analysis) -> tuple[Text, ...]:
    """Few benchmarks that decide the means, or scores of unlike scale."""
    unlike = analysis.n_benchmarks > 1 and analysis.check.scales_differ
    if not unlike and not few_decide(analysis):
        return ()
    beside = analysis.agreement if analysis.on_ranks is not None and not by_ranks(analysis) else None
    effects, best, seldom = analysis.effects, analysis.comparable[0], ""
    if effects is not None and len(analysis.comparable) > 1 and effects.wins[best] < max(effects.wins.values()):
        seldom = leaders(effects.wins)[0]  # the best average does not belong to the one who wins most often
    return texts(
        "headline.scale",
        scatter=fold(analysis.check.scale_ratio) if unlike else "",
        largest=largest_text(analysis),
        few_decide=few_decide(analysis),
        ranks_alike=beside.overview if beside is not None else "",
        best=best,
        seldom=seldom,
        wins=effects.wins if effects is not None else {},
        n_units=effects.n_instances if effects is not None else 0,
        unit=analysis.unit,
    )


def largest_text(analysis: Analysis) -> str:
    """How much of the squared advantages the benchmarks with the largest ones hold."""
    return sentence_of("headline.largest", shape=analysis.shape, nouns=analysis.sample.nouns)


def _mind_the_skew(analysis: Analysis) -> tuple[Text, ...]:
    """Skewed advantages of one algorithm, where the sample shows them."""
    shape = analysis.shape
    if shape is None or not shape.is_skewed or shape.few_decide:
        return ()
    return texts("headline.skew", shape=shape, nouns=analysis.sample.nouns)


def _mind_the_families(analysis: Analysis) -> tuple[Text, ...]:
    """Groups of benchmarks that share their advantages and were not named as families."""
    groups = analysis.undeclared
    if groups is None or not groups.shows:
        return ()
    names = [f"'{name}'" for name in dict.fromkeys(groups.families["family"])]
    return texts(
        "headline.families",
        groups=groups,
        nouns=plural(str(analysis.runs.benchmark)),
        names=joined(names, most=_MOST_FAMILIES),
        significant=groups.significant,
        here=analysis.decisions.n_significant,
        n_pairs=len(analysis.pairs.to_frame()),
        role=advice("role_of", role="family", column=groups.column or "..."),
    )


def tested(analysis: Analysis) -> tuple[str, str]:
    """The null hypothesis of a pair on a score that is relative to others, and when it is not equal mean scores.

    Both are empty for a score that was measured.
    """
    scale = analysis.runs.scale
    if scale is not None:
        return hypothesis_on(scale), what_differs(scale.method, target=bool(scale.target))
    return ("mean ranks are equal", what_differs("rank")) if analysis.check.kind.kind == "ranks" else ("", "")


# ------------------------------------------------------------------------------------------ other sentences


def joint_sentence(analysis: Analysis) -> str:
    """Whether the algorithms differ at all: the F-test in words, or the smallest adjusted p-value of the pairs."""
    test, p = analysis.joint, analysis.pairs.to_frame()["p_value"]
    by_pairs = analysis.means.errors != "model" and bool(p.notna().any())
    p_joint = float(p.min()) if by_pairs else math.nan if test is None else test.p_value
    all_equal = not below(p_joint, analysis.alpha)
    return sentence_of(
        "differences.joint",
        apart=bool(analysis.means.apart()),
        by_pairs=by_pairs,
        one_by_one=len(p) < 2 or analysis.pairs.adjust in ("none", "fdr"),
        test=test if math.isfinite(p_joint) else None,
        df_den="" if test is None else "∞" if math.isinf(test.df_den) else written(test.df_den, ".1f"),
        p=p_joint,
        all_equal=all_equal,
        disagree=(analysis.decisions.n_significant > 0) == all_equal,
    )


def pairs_sentence(analysis: Analysis) -> str:
    """How many of the differences are significant."""
    pairs = analysis.pairs
    return sentence_of(
        "differences.significant",
        incomparable=analysis.incomparable,
        n_pairs=len(pairs.to_frame()),
        significant=analysis.decisions.n_significant,
        alpha=alpha_text(analysis),
        errors=ERROR_NAMES.get(pairs.errors),
        adjustment=ADJUSTMENT_NAMES[pairs.adjust],
        ddf=DDF_NAMES[pairs.ddf],
        n_levels=len(analysis.decisions.levels),
    )


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
    return sentence_of(
        "differences.order",
        best=best,
        second=second,
        noun=_varying_noun(analysis),
        zero=sd <= 1e-4 * abs(gap),
        sd=writer(se)(sd),
        gap=writer(se)(gap),
        share=share_of_benchmarks(-gap, sd) if sd > 1e-4 * abs(gap) else 1.0,
        n_levels=len(analysis.decisions.levels),
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
    counts, winners = _counts(effects.wins)
    return sentence_of(
        "differences.winners",
        effects=effects,
        unit=analysis.unit,
        counts=counts,
        winners=winners,
        never=[name for name, wins in effects.wins.items() if not wins],
        most_named=IN_SENTENCE,
        ties=sum(effects.wins.values()) > effects.n_instances,
        by_column=[
            (
                column,
                test,
                [f"with {column} = {level}, {joined(_counts(wins)[0])}" for level, wins in by_level.items()],
            )
            for column, by_level in effects.wins_by.items()
            if (test := analysis.interactions.get(column)) is not None
            and turns(by_level)
            and len(by_level) <= MOST_LEVELS
        ],
        alpha=analysis.alpha,
    )


def _counts(wins: dict[str, int]) -> tuple[list[str], list[str]]:
    """Wins in words, most first, and the names of those who win at all."""
    ranked = sorted(((name, count) for name, count in wins.items() if count), key=lambda item: -item[1])
    return [f"{name} on {count}" for name, count in ranked], [name for name, _ in ranked]


def variation_sentence(analysis: Analysis) -> str:
    """Where the variation comes from, the largest sources first."""
    return sentence_of(
        "differences.variation",
        parts=variation_parts(analysis),
        zero=[c["meaning"] for c in _by_share(analysis) if c["share"] < 0.005],
    )


def variation_parts(analysis: Analysis) -> list[str]:
    """Sources of variation with their shares, the largest first."""
    return [f"{percent(c['share'])} {c['meaning']}" for c in _by_share(analysis) if c["share"] >= 0.005]


def _by_share(analysis: Analysis) -> list[dict[str, Any]]:
    rows: list[dict[Any, Any]] = analysis.components.to_dict("records")
    return in_tie_order(rows, lambda c: c["share"], descending=True)


def winners_gist(analysis: Analysis) -> str:
    """On how many benchmarks each algorithm has the best observed mean, for the first few."""
    effects = analysis.effects
    counts = _counts(effects.wins)[0] if effects is not None else []
    shown = counts if len(counts) <= IN_SENTENCE else counts[:3]
    rest = f" and {len(counts) - len(shown)} others on fewer" if len(counts) > len(shown) else ""
    n = counted(effects.n_instances, analysis.unit) if effects is not None else ""
    return f"Best observed mean, of {n}: {', '.join(shown)}{rest}." if counts else f"No best mean on {n}."
