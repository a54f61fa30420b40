"""Results into sentences for readers who do not read tables of tests.

Every statement about who differs from whom is read from one matrix, `analysis.separation.significant`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lmemtest._table import format_number, format_p
from lmemtest.inference.grid import DDF_NAMES
from lmemtest.inference.multiplicity import ADJUSTMENT_NAMES
from lmemtest.report.components import difference_sd, share_of_benchmarks
from lmemtest.report.document import Strong, Text

if TYPE_CHECKING:
    from lmemtest.report.analysis import Analysis
    from lmemtest.report.effects import BenchmarkEffects

LISTED = 5  # names in a sentence before it counts the rest
FEW_BENCHMARKS = 6  # below it, the variance between benchmarks rests on fewer than five degrees of freedom
MOST_LEVELS = 6  # of a metafeature, whose winners are listed one by one
SCALE_RATIO = 3.0  # of residual SDs between benchmarks: beyond it the noisiest decide (as in the checks)


def joined(names: Iterable[str], most: int = LISTED) -> str:
    """Names as in a sentence.

    Examples
    --------
    >>> joined(["A"]), joined(["A", "B", "C"]), joined("ABCDEFG")
    ('A', 'A, B and C', 'A, B, C, D and 3 others')
    """
    names = list(names)
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def p_text(p: float) -> str:
    """A p-value with its sign: ``p = 0.031`` or ``p < 0.001``.

    Examples
    --------
    >>> p_text(0.0312), p_text(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    text = format_p(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def percent(share: float) -> str:
    """A share in per cent, honest at both ends.

    Examples
    --------
    >>> percent(0.462), percent(0.0004), percent(0.0), percent(0.999)
    ('46 %', '<1 %', '0 %', '>99 %')
    """
    if 0.0 < share < 0.005:
        return "<1 %"
    if 0.995 < share < 1.0:
        return ">99 %"
    return f"{100 * share:.0f} %"


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "benchmark"), counted(12000, "row")
    ('1 benchmark', '12,000 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


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


def sample_noun(analysis: Analysis) -> str:
    """What the sample consists of: benchmarks, or instances where there are metafeatures."""
    return "instance" if analysis.runs.metafeatures else "benchmark"


def sample_size(analysis: Analysis) -> int:
    """Benchmarks, or instances where there are metafeatures; 1 without a benchmark column."""
    return analysis.effects.n_instances if analysis.effects is not None else 1


def n_benchmarks(analysis: Analysis) -> int:
    """Levels of the benchmark column; 1 without one."""
    runs = analysis.runs
    return len(runs.levels(runs.benchmark)) if runs.benchmark else 1


def generalises(analysis: Analysis) -> bool:
    """Whether the error behind the comparisons contains how advantages change between benchmarks."""
    if n_benchmarks(analysis) < 2:
        return False
    if any(component.kind == "interaction" for component in analysis.components):
        return True
    best, other = analysis.runs.algorithms[:2]
    if math.isfinite(difference_sd(analysis.fit, analysis.runs, best, other)):
        return True  # slopes of the algorithm by benchmark
    cells = analysis.check.cells["n"]
    return not analysis.runs.metafeatures and bool((cells <= 1).all())  # then the residual is that change


# ------------------------------------------------------------------------------------------------ the headline


def headline(analysis: Analysis) -> tuple[Text, ...]:
    """The answer in two to four sentences."""
    return (
        _who(analysis),
        *_by_how_much(analysis),
        _how_sure(analysis),
        *_reservation(analysis),
    )


def _best_split(analysis: Analysis) -> tuple[str, list[str], list[str]]:
    """The first level; those that are significantly worse; those that are not."""
    levels = _estimable(analysis)
    best = levels[0]
    row = analysis.separation.significant.loc[best]
    worse = [level for level in levels[1:] if row[level]]
    return best, worse, [level for level in levels[1:] if not row[level]]


def _estimable(analysis: Analysis) -> list[str]:
    return [v for v, m in zip(analysis.separation.levels, analysis.separation.means, strict=True) if math.isfinite(m)]


def _extreme(analysis: Analysis) -> str:
    return "lowest" if analysis.runs.direction == "minimize" else "highest"


def _who(analysis: Analysis) -> Text:
    if len(_estimable(analysis)) < 2:
        return ("The algorithms cannot be compared: the data do not identify two of their means in this model.",)
    best, worse, level = _best_split(analysis)
    response = analysis.means.response
    comparative = "lower" if analysis.runs.direction == "minimize" else "higher"
    if not level and len(worse) == 1:
        return (Strong(f"{best} is better than {worse[0]}"), f": its mean {response} is significantly {comparative}.")
    if not level:
        named = f" ({joined(worse)})" if len(worse) <= LISTED else ""
        return (
            Strong(f"{best} is the best of the {len(worse) + 1} algorithms"),
            f": its mean {response} is the {_extreme(analysis)} and differs significantly from each of the other "
            f"{len(worse)}{named}.",
        )
    if not worse and len(level) == 1:
        return (
            Strong(f"{best} and {level[0]} cannot be told apart"),
            f": {best} has the {comparative} mean {response}, but the difference is not significant.",
        )
    if not worse:
        some = analysis.separation.significant.to_numpy().any()
        rest = f"from {joined(level)}" if len(level) <= LISTED else f"from any of the other {len(level)}"
        return (
            Strong("No algorithm can be called best"),
            f": {best} has the {_extreme(analysis)} mean {response}, but it does not differ significantly {rest}"
            + (", although some of the others differ from each other." if some else "."),
        )
    return (
        Strong(f"{best} has the {_extreme(analysis)} mean {response}"),
        f": it is significantly better than {joined(worse)}, but cannot be told apart from {joined(level)}.",
    )


def _by_how_much(analysis: Analysis) -> tuple[Text, ...]:
    if len(_estimable(analysis)) < 2:
        return ()
    best, worse, level = _best_split(analysis)
    who = "" if len(analysis.separation.levels) == 2 else "the runner-up, "
    second = _estimable(analysis)[1]
    comma = "," if who else ""
    text = f"Its estimated lead over {who}{second}{comma} is {_lead(analysis, best, second)}"
    if worse and level:
        text += f"; over {worse[0]}, the first that it clearly beats, it is {_lead(analysis, best, worse[0])}"
    return ((f"{text}.",),)


def _lead(analysis: Analysis, best: str, other: str) -> str:
    gap, low, high, p, se = advantage(analysis, best, other)
    write = writer(se)
    return f"{write(gap)} ({100 * analysis.pairs.level:.4g} % CI {write(low)} to {write(high)}, {p_text(p)})"


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
    family = family_text(analysis)
    noun, size = sample_noun(analysis), sample_size(analysis)
    if n_benchmarks(analysis) < 2:
        scope = (
            "this one benchmark only" if analysis.runs.benchmark else "these runs only (no benchmark column was given)"
        )
        return (f"This holds for {scope} and says nothing about others; {family}.",)
    if not generalises(analysis):
        return (
            f"This holds for exactly these {counted(size, noun)}: the model does not allow for algorithms doing better "
            f"on some benchmarks than on others, so it says nothing about new ones; {family}.",
        )
    few = n_benchmarks(analysis) < FEW_BENCHMARKS
    caution = f" With only {n_benchmarks(analysis)} benchmarks it can hardly be carried over to others." if few else ""
    return (
        f"This is about the average over {noun}s like the {size:,} studied here, not about each of them; "
        f"{family}.{caution}",
    )


def family_text(analysis: Analysis) -> str:
    """What the error rate is held for."""
    alpha = f"{100 * analysis.alpha:.3g} %"
    if len(analysis.separation.levels) == 2:
        return f"the chance of a false difference is held at {alpha}"
    if analysis.pairs.adjust == "none":
        return f"the chance of a false difference is held at {alpha} for each pair, not for all together"
    if analysis.pairs.adjust == "fdr":
        return f"the expected share of false differences among those claimed is held at {alpha}"
    return f"the chance of any false difference among all pairs is held at {alpha}"


def _reservation(analysis: Analysis) -> tuple[Text, ...]:
    ratio = analysis.check.scale_ratio
    if n_benchmarks(analysis) > 1 and ratio > SCALE_RATIO:
        text: Text = (
            Strong("Mind the scale"),
            f": scores scatter {format_number(ratio, 2)} times as much on one benchmark as on another, so the average "
            f"is dominated by the noisiest benchmarks{_seldom_first(analysis)} (see Limitations).",
        )
        return (text,)
    if any(finding.severity == "warning" for finding in analysis.check.findings):
        return (("The checks of the table found something that can change the conclusion (see Data and checks).",),)
    return ()


def _seldom_first(analysis: Analysis) -> str:
    """Say so where the best average does not belong to the one who wins most often."""
    effects, levels = analysis.effects, _estimable(analysis)
    if effects is None or len(levels) < 2 or effects.wins[levels[0]] == max(effects.wins.values()):
        return ""
    often = max(effects.wins, key=effects.wins.__getitem__)
    return (
        f": {levels[0]} has the best observed mean on {effects.wins[levels[0]]} of the {effects.n_instances} "
        f"{sample_noun(analysis)}s only, {often} on {effects.wins[often]}"
    )


# ------------------------------------------------------------------------------------------ other sentences


def joint_sentence(analysis: Analysis) -> str:
    """The F-test in words."""
    test = analysis.joint
    if not math.isfinite(test.pvalue):
        return "The joint test is not possible: fewer than two means are estimable."
    den = "∞" if math.isinf(test.df_den) else f"{test.df_den:.1f}"
    verdict = "are not all equal" if test.pvalue < analysis.alpha else "may all be equal"
    text = (
        f"Do the algorithms differ at all? F({test.df_num}, {den}) = {test.statistic:.2f}, {p_text(test.pvalue)}: "
        f"by this test the {test.n_means} means {verdict}."
    )
    any_pair = bool(analysis.separation.significant.to_numpy().any())
    if any_pair != (test.pvalue < analysis.alpha):
        text += (
            " The pairwise tests disagree, which happens near the border, as they ask a different question: "
            "claims about pairs rest on the pairwise tests."
        )
    return text


def order_sentence(analysis: Analysis) -> str:
    """How reliably the best beats the runner-up on a single new benchmark; empty where that cannot be said."""
    if len(_estimable(analysis)) < 2 or analysis.check.scale_ratio > SCALE_RATIO:
        return ""  # one normal distribution does not describe differences on such different scales
    best, second = (_raw_level(analysis, name) for name in _estimable(analysis)[:2])
    sd = difference_sd(analysis.fit, analysis.runs, best, second)
    names = _estimable(analysis)[:2]
    if not math.isfinite(sd):
        return ""
    gap, *_, se = advantage(analysis, *names)
    write = writer(se)
    if sd <= 1e-4 * abs(gap):
        return (
            f"The model finds no sign that the difference between {names[0]} and {names[1]} changes from "
            f"{sample_noun(analysis)} to {sample_noun(analysis)}."
        )
    share, noun = share_of_benchmarks(-gap, sd), sample_noun(analysis)
    return (
        f"From {noun} to {noun} the true difference between {names[0]} and {names[1]} is estimated to vary with a "
        f"standard deviation of {write(sd)} around its mean of {write(gap)}: taken at face value, {names[0]} would be "
        f"the better of the two on about {percent(share)} of such {noun}s."
    )


def _raw_level(analysis: Analysis, name: str) -> object:
    return dict(zip(analysis.means.labels(), analysis.means.frame[analysis.runs.algorithm], strict=True))[name]


def winners_sentence(analysis: Analysis) -> str:
    """Who has the best observed mean, and on how many benchmarks."""
    effects = analysis.effects
    if effects is None:
        return ""
    ranked = sorted(effects.wins.items(), key=lambda item: -item[1])
    winners = [(name, wins) for name, wins in ranked if wins]
    noun = sample_noun(analysis)
    shared = sum(effects.wins.values()) > effects.n_instances
    if len(winners) == 1:
        return f"{winners[0][0]} has the best observed mean on all {counted(effects.n_instances, noun)}."
    counts = joined([f"{name} on {wins}" for name, wins in winners], most=8)
    never = [name for name, wins in ranked if not wins]
    text = f"The winner varies: of {counted(effects.n_instances, noun)}, the best observed mean belongs to {counts}"
    if len(never) > LISTED:
        text += f"; the other {len(never)} are never first."
    else:
        text += f"; {joined(never)} {'is' if len(never) == 1 else 'are'} never first." if never else "."
    text += " Ties count for each algorithm that shares them." if shared else ""
    return " ".join([text, *_by_metafeature(effects)])


def _by_metafeature(effects: BenchmarkEffects) -> list[str]:
    """Winners apart for the levels of a metafeature, where they differ."""
    sentences = []
    for column, by_level in effects.wins_by.items():
        first = {max(wins, key=wins.__getitem__) for wins in by_level.values()}
        if not 2 <= len(by_level) <= MOST_LEVELS or len(first) == 1:
            continue
        parts = []
        for level, wins in by_level.items():
            ranked = sorted(((name, count) for name, count in wins.items() if count), key=lambda item: -item[1])
            parts.append(f"with {column} = {level}, {joined([f'{name} on {count}' for name, count in ranked])}")
        sentences.append(f"It depends on {column}: {'; '.join(parts)}.")
    return sentences


def variation_sentences(analysis: Analysis) -> tuple[str, ...]:
    """Where the variation comes from, the largest sources first."""
    ranked = sorted(analysis.components, key=lambda c: -c.share)
    parts = [f"{percent(c.share)} {c.meaning}" for c in ranked if c.share >= 0.005]
    zero = [c.meaning for c in ranked if c.share < 0.005]
    sentences = [f"Of the variation of the scores that the algorithms' means do not explain: {'; '.join(parts)}."]
    if zero:
        sentences.append(f"Hardly any: {'; '.join(zero)}.")
    return tuple(sentences)


def adjustment_text(analysis: Analysis) -> str:
    """The adjustment and the degrees of freedom by name."""
    return f"{ADJUSTMENT_NAMES[analysis.pairs.adjust]} adjustment, {DDF_NAMES[analysis.pairs.ddf]} degrees of freedom"
