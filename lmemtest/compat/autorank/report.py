"""The report as text: what was tested and why, each population, what differs; every number from the result."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.compat.autorank.decisions import decisions, differ, distinct, is_significant
from lmemtest.compat.autorank.result import UNDEFINED, RankResult, check, check_result
from lmemtest.core.rounding import below, written
from lmemtest.core.words import joined
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

EFFECT_NAMES = {"cohen_d": "Cohen's d", "cliff_delta": "Cliff's delta", "akinshin_gamma": "Akinshin's gamma"}
# Of a column of centres: its name and symbol, and the column, symbol and name of the spread beside it.
CENTRES = {
    "mean": ("mean value", "M", "std", "SD", "standard deviation"),
    "median": ("median", "MD", "mad", "MAD", "median absolute deviation"),
}
NUMBERS = ("meanrank", "mean", "median", "std", "mad", "ci_lower", "ci_upper")
SCALED = "median absolute deviations of the pair (scaled by 1.4826)"
HYPOTHESES = {
    "ttest": ("paired t-test", "that the mean values are equal"),
    "wilcoxon": ("two-sided Wilcoxon signed-rank test", "that the paired differences are symmetric about zero"),
    "anova": ("repeated-measures ANOVA", "that all mean values are equal"),
    "friedman": ("Friedman test", "that no population tends to have higher or lower ranks than another"),
    "lmem": ("smallest adjusted p-value of the pairs", "that all marginal means are equal"),
}
METHODS = {
    "ttest": "The mean values are compared by a paired t-test.",
    "wilcoxon": "The populations are compared by a two-sided Wilcoxon signed-rank test of their paired differences, "
    "those of zero left out.",
    "anova": "A repeated-measures ANOVA tests all mean values together, Tukey's HSD with the residual variance of the "
    "ANOVA each pair; both take the variances of all differences for equal (sphericity).",
    "friedman": "Friedman's test compares the ranks of all populations together, Nemenyi's test each pair: mean ranks "
    "that differ by more than the critical difference CD={cd} differ significantly.",
    "lmem": "The recommended mixed model compares the marginal means of all pairs, p-values adjusted for all.",
    "bayes": "A Bayesian signed-rank test estimates for each pair the posterior probabilities that one population is "
    "smaller, {equal}or larger, and decides for an outcome whose probability is at least 1 - alpha = {chance}.",
}
PAIRS = {"nemenyi": "Nemenyi's test", "tukeyhsd": "Tukey's HSD"}


def report_text(result: RankResult, *, decimal_places: int = 3) -> str:
    """The report that `create_report` prints, one line per step of the analysis."""
    check_result(result)
    check(decimal_places=decimal_places)
    if result.omnibus not in METHODS:
        raise ArgumentError(f"result.omnibus must be {' or '.join(map(repr, METHODS))}, got {result.omnibus!r}.")
    decimals, is_bayes = int(decimal_places), result.omnibus == "bayes"
    level = f" The family-wise significance level is alpha={written(result.alpha, '.4g')}."
    parts = [
        f"{len(result.rankdf)} populations were compared on {result.num_samples} paired samples."
        f"{'' if is_bayes else level}",
        _normality(result, decimals),
        _variances(result, decimals),
        _method(result, decimals),
        _populations(result, decimals),
        *(_posterior_findings(result) if is_bayes else _findings(result, decimals)),
        f"Computed with lmemtest {importlib.import_module('lmemtest').__version__}.",
    ]
    return "\n".join(part for part in parts if part)


def _number(value: Any, decimals: int) -> str:
    return written(float(value), f".{decimals}f")


def _p(value: Any, decimals: int) -> str:
    """A p-value with its sign, never as zero."""
    if value is None or np.isnan(value):
        return "p not defined"
    least = 10.0**-decimals
    return f"p<{_number(least, decimals)}" if below(value, least) else f"p={_number(value, decimals)}"


def _centre(table: pd.DataFrame) -> str:
    """The column of centres; empty if there is none."""
    return next((name for name in CENTRES if name in table.columns), "")


# ---------------------------------------------------------------------- what was done


def _normality(result: RankResult, decimals: int) -> str:
    """What the Shapiro-Wilk tests found; without their p-values nothing."""
    if result.omnibus == "lmem" or result.pvals_shapiro is None or len(result.pvals_shapiro) != len(result.rankdf):
        return ""
    tested = list(zip(distinct(result.rankdf.index), result.pvals_shapiro, strict=True))
    level = f"at the level {written(result.alpha_normality, '.3g')} (alpha divided by the number of populations)"
    rejected = [f"{name} ({_p(p, decimals)})" for name, p in tested if below(p, result.alpha_normality)]
    constant = [name for name, p in tested if np.isnan(p)]
    sentences = []
    if rejected:
        sentences.append(f"Shapiro-Wilk tests {level} reject normality for {joined(rejected, len(rejected))}.")
    if constant:
        verb = "does" if len(constant) == 1 else "do"
        sentences.append(f"{joined(constant, len(constant))} {verb} not vary.")
    least = _p(min(result.pvals_shapiro), decimals)
    return " ".join(sentences) or f"No Shapiro-Wilk test {level} rejects normality (smallest {least})."


def _variances(result: RankResult, decimals: int) -> str:
    """What the test of equal variances found, which two populations do not need."""
    if len(result.rankdf) == 2 or result.homogeneity_test is None or result.pval_homogeneity is None:
        return ""
    verb, p = "does not reject" if result.homoscedastic else "rejects", _p(result.pval_homogeneity, decimals)
    return f"{result.homogeneity_test.title()}'s test {verb} equal variances ({p})."


def _method(result: RankResult, decimals: int) -> str:
    """Which tests, why these, and what is practically equivalent."""
    sentences = [
        METHODS[result.omnibus].format(
            cd=_number(np.nan if result.cd is None else result.cd, decimals),
            equal="" if result.rope == 0 else "practically equivalent, ",
            chance=written(1.0 - result.alpha, ".4g"),
        )
    ]
    if result.force_mode is not None and result.omnibus != "lmem":
        kind = {"parametric": "means", "nonparametric": "ranks and medians"}.get(result.force_mode, "")
        sentences.append(
            f"Methods for {kind} were asked for (force_mode='{result.force_mode}'), whatever these tests say."
        )
    elif result.omnibus in ("wilcoxon", "friedman") and result.all_normal is not None:
        why = "Variances differ" if result.all_normal else "Not all populations are normal"
        sentences.append(f"{why} by these tests.")
    if result.omnibus == "bayes" and result.rope == 0:
        sentences.append("There is no region of practical equivalence.")
    elif result.omnibus == "bayes" and result.rope is not None:
        of_means = _centre(result.rankdf) == "mean"
        spread = "standard deviations of the pair" if of_means else SCALED
        unit = "" if result.rope_mode == "absolute" else f" pooled {spread}"
        limit = written(float(result.rope), ".4g")
        sentences.append(f"Differences of at most {limit}{unit} count as practically equivalent (ROPE).")
    return " ".join(sentences)


def _populations(result: RankResult, decimals: int) -> str:
    """Every population with its centre, interval, spread and mean rank, best first."""
    table, names, centre = result.rankdf, distinct(result.rankdf.index), _centre(result.rankdf)
    rows, has_ranks = list(range(len(table))), "meanrank" in table.columns
    if has_ranks and table["meanrank"].iloc[0] > table["meanrank"].iloc[-1]:
        rows.reverse()  # of results built by hand
    described, symbols = [], ["MR: mean rank, 1 is best"] if has_ranks else []
    if centre:
        name, symbol, spread, spread_symbol, spread_name = CENTRES[centre]
        symbols[:0] = [f"{symbol}: {name}, {_interval(result)}", f"{spread_symbol}: {spread_name}"]
    for row in rows:
        values = {column: _number(table[column].iloc[row], decimals) for column in NUMBERS if column in table.columns}
        parts = [f"MR={values['meanrank']}"] if has_ranks else []
        if centre:
            interval = f"[{values['ci_lower']}, {values['ci_upper']}]"
            parts[:0] = [f"{symbol}={values[centre]} {interval}", f"{spread_symbol}={values[spread]}"]
        described.append(f"{names[row]} ({', '.join(parts)})")
    return f"Best first, the populations are {joined(described, len(described))} ({'; '.join(symbols)})."


def _interval(result: RankResult) -> str:
    """What the brackets after a centre are."""
    if result.posthoc == "tukeyhsd":
        return "in brackets its comparison interval: two that do not overlap differ significantly"
    level = written(100.0 * (1.0 - result.alpha), ".4g")
    if result.omnibus == "lmem":
        return f"in brackets its {level} % interval"
    return f"in brackets its interval, at least {level} % confidence for all together"


# ---------------------------------------------------------------------- what came of it


def _findings(result: RankResult, decimals: int) -> Iterable[str]:
    """The test of all populations, and of pairs if it rejects."""
    test, hypothesis = HYPOTHESES[result.omnibus]
    rejects = is_significant(result)
    verb = "rejects" if rejects else "does not reject"
    yield f"The {test} {verb} the hypothesis {hypothesis} ({_p(result.pvalue, decimals)})."
    if not rejects:
        yield "The data show no difference between the populations, which is not evidence that there is none."
    elif len(result.rankdf) == 2:
        yield _difference(result, decimals)
    else:
        yield _groups(result)
        yield _effects(result, decimals)


def _difference(result: RankResult, decimals: int) -> str:
    """Two populations that differ significantly."""
    table, centre = result.rankdf, _centre(result.rankdf)
    values, what = table[centre or "meanrank"].to_numpy(dtype=float), CENTRES[centre][0] if centre else "mean rank"
    first, second = distinct(table.index)
    if values[0] == values[1]:
        return f"{first} and {second} differ significantly, though each has the {what} {_number(values[0], decimals)}."
    larger, smaller = (first, second) if values[0] > values[1] else (second, first)
    size, word = float(table["effect_size"].iloc[1]), table["magnitude"].iloc[1]
    kind = EFFECT_NAMES.get(result.effect_size or "", "effect size")
    effect = f"{kind} is {_number(abs(size), decimals)} ({word})."
    if word == UNDEFINED:
        effect = f"{kind} is not defined, since the populations do not spread."
    if result.omnibus == "wilcoxon":
        return f"{first} and {second} differ significantly; {larger} has the larger {what}. {effect}"
    return f"The {what} of {larger} is significantly larger than that of {smaller}. {effect}"


def _groups(result: RankResult) -> str:
    """Which populations do not differ significantly; of all others it is said that they do."""
    test = PAIRS.get(result.posthoc or "", "tests of the pairs")
    groups = [joined(group, len(group)) for group in decisions(result).groups if len(group) > 1]
    if not groups:
        return f"By {test}, all pairs differ significantly."
    if not differ(result).any():
        return f"By {test}, no pair differs significantly, although the test of all populations rejects."
    within = "within this group" if len(groups) == 1 else "within each of these groups"
    return f"By {test}, differences {within} are not significant, all others are: {'; '.join(groups)}."


def _effects(result: RankResult, decimals: int) -> str:
    """Effect sizes beside the first population."""
    table, names = result.rankdf, distinct(result.rankdf.index)
    if "effect_size" not in table.columns or result.effect_size not in EFFECT_NAMES:
        return ""
    sizes = [
        f"{name} not defined (no spread)" if word == UNDEFINED else f"{name} {_number(size, decimals)} ({word})"
        for name, size, word in zip(names, table["effect_size"], table["magnitude"], strict=True)
    ]
    return f"Effect sizes ({EFFECT_NAMES[result.effect_size]}) of {names[0]} over the others: {', '.join(sizes[1:])}."


def _posterior_findings(result: RankResult) -> Iterable[str]:
    """Decisions about the pairs, from the matrix of decisions."""
    if result.decision_matrix is None:
        return
    names, cells = distinct(result.rankdf.index), result.decision_matrix.to_numpy(dtype=object)
    for name, row in zip(names, cells, strict=True):
        smaller = [other for other, cell in zip(names, row, strict=True) if cell == "smaller"]
        if smaller:
            yield f"{name} is decided to be larger than {joined(smaller, len(smaller))}."
    pairs = list(combinations(range(len(names)), 2))
    equal, undecided = (
        [f"{names[i]} and {names[j]}" for i, j in pairs if cells[i, j] == decision]
        for decision in ("equal", "inconclusive")
    )
    if equal:
        yield f"Decided to be practically equivalent: {'; '.join(equal)}."
    if undecided and len(undecided) == len(pairs):
        which = "The comparison is" if len(pairs) == 1 else "All comparisons are"
        yield f"{which} inconclusive: no outcome is probable enough."
    elif undecided:
        yield f"Inconclusive: {'; '.join(undecided)}."
