"""The report as text: what was tested and why, each population, what differs; every number from the result."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np

from lmemtest.compat.autorank.decisions import decisions, differ, distinct, is_significant
from lmemtest.compat.autorank.result import UNDEFINED, RankResult, check, check_result
from lmemtest.core.rounding import below, written
from lmemtest.core.words import joined
from lmemtest.errors import ArgumentError

EFFECT_NAMES = {"cohen_d": "Cohen's d", "cliff_delta": "Cliff's delta", "akinshin_gamma": "Akinshin's gamma"}
# Of a column of centres: its name and symbol, and the column, symbol and name of the spread beside it.
CENTRES = {
    "mean": ("mean value", "M", "std", "SD", "standard deviation"),
    "median": ("median", "MD", "mad", "MAD", "median absolute deviation"),
}
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
    return "\n".join(Report(result, int(decimal_places)).lines())


class Report:
    """The sentences of a result, with its numbers to some decimals."""

    def __init__(self, result: RankResult, decimals: int) -> None:
        self.result = result
        self.table = result.rankdf
        self.names = distinct(self.table.index)
        self.decimals = decimals
        self.centre = next((name for name in CENTRES if name in self.table.columns), None)
        self.has_ranks = "meanrank" in self.table.columns

    def lines(self) -> list[str]:
        """All of the report."""
        omnibus = self.result.omnibus
        if omnibus not in METHODS:
            raise ArgumentError(f"result.omnibus must be {' or '.join(map(repr, METHODS))}, got {omnibus!r}.")
        level = f" The family-wise significance level is alpha={written(self.result.alpha, '.4g')}."
        parts = [
            f"{len(self.table)} populations were compared on {self.result.num_samples} paired samples."
            f"{'' if omnibus == 'bayes' else level}",
            self.normality(),
            self.variances(),
            self.method(),
            self.populations(),
            *(self.posterior_findings() if omnibus == "bayes" else self.findings()),
            f"Computed with lmemtest {importlib.import_module('lmemtest').__version__}.",
        ]
        return [part for part in parts if part]

    # ------------------------------------------------------------------ numbers

    def number(self, value: Any) -> str:
        """A number with the decimals of the report."""
        return written(float(value), f".{self.decimals}f")

    def p(self, value: Any) -> str:
        """A p-value with its sign, never as zero."""
        if value is None or np.isnan(value):
            return "p not defined"
        least = 10.0**-self.decimals
        return f"p<{self.number(least)}" if below(value, least) else f"p={self.number(value)}"

    # ------------------------------------------------------------------ what was done

    def normality(self) -> str:
        """What the Shapiro-Wilk tests found; without their p-values nothing."""
        result = self.result
        if result.omnibus == "lmem" or result.pvals_shapiro is None or len(result.pvals_shapiro) != len(self.table):
            return ""
        tested = list(zip(self.names, result.pvals_shapiro, strict=True))
        level = f"at the level {written(result.alpha_normality, '.3g')} (alpha divided by the number of populations)"
        rejected = [f"{name} ({self.p(p)})" for name, p in tested if below(p, result.alpha_normality)]
        constant = [name for name, p in tested if np.isnan(p)]
        sentences = []
        if rejected:
            sentences.append(f"Shapiro-Wilk tests {level} reject normality for {joined(rejected, len(rejected))}.")
        if constant:
            verb = "does" if len(constant) == 1 else "do"
            sentences.append(f"{joined(constant, len(constant))} {verb} not vary.")
        least = self.p(min(result.pvals_shapiro))
        return " ".join(sentences) or f"No Shapiro-Wilk test {level} rejects normality (smallest {least})."

    def variances(self) -> str:
        """What the test of equal variances found, which two populations do not need."""
        result = self.result
        if len(self.table) == 2 or result.homogeneity_test is None or result.pval_homogeneity is None:
            return ""
        verb = "does not reject" if result.homoscedastic else "rejects"
        return f"{result.homogeneity_test.title()}'s test {verb} equal variances ({self.p(result.pval_homogeneity)})."

    def method(self) -> str:
        """Which tests, why these, and what is practically equivalent."""
        result = self.result
        sentences = [
            METHODS[result.omnibus].format(
                cd=self.number(np.nan if result.cd is None else result.cd),
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
            spread = "standard deviations" if self.centre == "mean" else "median absolute deviations"
            scaled = "" if self.centre == "mean" else " (scaled by 1.4826)"
            unit = "" if result.rope_mode == "absolute" else f" pooled {spread} of the pair{scaled}"
            limit = written(float(result.rope), ".4g")
            sentences.append(f"Differences of at most {limit}{unit} count as practically equivalent (ROPE).")
        return " ".join(sentences)

    def populations(self) -> str:
        """Every population with its centre, interval, spread and mean rank, best first."""
        rows = list(range(len(self.table)))
        if self.has_ranks and self.table["meanrank"].iloc[0] > self.table["meanrank"].iloc[-1]:
            rows.reverse()  # of results built by hand
        described, symbols = [], ["MR: mean rank, 1 is best"] if self.has_ranks else []
        if self.centre is not None:
            name, symbol, spread, spread_symbol, spread_name = CENTRES[self.centre]
            symbols[:0] = [f"{symbol}: {name}, {self.interval()}", f"{spread_symbol}: {spread_name}"]
        for row in rows:
            values, parts = self.table.iloc[row], []
            if self.centre is not None:
                low, high = self.number(values["ci_lower"]), self.number(values["ci_upper"])
                parts.append(f"{symbol}={self.number(values[self.centre])} [{low}, {high}]")
                parts.append(f"{spread_symbol}={self.number(values[spread])}")
            if self.has_ranks:
                parts.append(f"MR={self.number(values['meanrank'])}")
            described.append(f"{self.names[row]} ({', '.join(parts)})")
        return f"Best first, the populations are {joined(described, len(described))} ({'; '.join(symbols)})."

    def interval(self) -> str:
        """What the brackets after a centre are."""
        if self.result.posthoc == "tukeyhsd":
            return "in brackets its comparison interval: two that do not overlap differ significantly"
        level = written(100.0 * (1.0 - self.result.alpha), ".4g")
        if self.result.omnibus == "lmem":
            return f"in brackets its {level} % interval"
        return f"in brackets its interval, at least {level} % confidence for all together"

    # ------------------------------------------------------------------ what was found

    def findings(self) -> Iterable[str]:
        """The test of all populations, and of pairs if it rejects."""
        test, hypothesis = HYPOTHESES[self.result.omnibus]
        rejects = is_significant(self.result)
        verb = "rejects" if rejects else "does not reject"
        yield f"The {test} {verb} the hypothesis {hypothesis} ({self.p(self.result.pvalue)})."
        if not rejects:
            yield "The data show no difference between the populations, which is not evidence that there is none."
        elif len(self.table) == 2:
            yield self.difference()
        else:
            yield self.groups()
            yield self.effects()

    def difference(self) -> str:
        """Two populations that differ significantly."""
        values = self.table[self.centre or "meanrank"].to_numpy(dtype=float)
        first, second = self.names
        what = CENTRES[self.centre][0] if self.centre else "mean rank"
        if values[0] == values[1]:
            return f"{first} and {second} differ significantly, though each has the {what} {self.number(values[0])}."
        larger, smaller = (first, second) if values[0] > values[1] else (second, first)
        size, word = float(self.table["effect_size"].iloc[1]), self.table["magnitude"].iloc[1]
        kind = EFFECT_NAMES.get(self.result.effect_size or "", "effect size")
        effect = f"{kind} is {self.number(abs(size))} ({word})."
        if word == UNDEFINED:
            effect = f"{kind} is not defined, since the populations do not spread."
        if self.result.omnibus == "wilcoxon":
            return f"{first} and {second} differ significantly; {larger} has the larger {what}. {effect}"
        return f"The {what} of {larger} is significantly larger than that of {smaller}. {effect}"

    def groups(self) -> str:
        """Which populations do not differ significantly; of all others it is said that they do."""
        test = PAIRS.get(self.result.posthoc or "", "tests of the pairs")
        groups = [joined(group, len(group)) for group in decisions(self.result).groups if len(group) > 1]
        if not groups:
            return f"By {test}, all pairs differ significantly."
        if not differ(self.result).any():
            return f"By {test}, no pair differs significantly, although the test of all populations rejects."
        within = "within this group" if len(groups) == 1 else "within each of these groups"
        return f"By {test}, differences {within} are not significant, all others are: {'; '.join(groups)}."

    def effects(self) -> str:
        """Effect sizes beside the first population."""
        if "effect_size" not in self.table.columns or self.result.effect_size not in EFFECT_NAMES:
            return ""
        sizes = [
            f"{name} not defined (no spread)" if word == UNDEFINED else f"{name} {self.number(size)} ({word})"
            for name, size, word in zip(self.names, self.table["effect_size"], self.table["magnitude"], strict=True)
        ]
        kind = EFFECT_NAMES[self.result.effect_size]
        return f"Effect sizes ({kind}) of {self.names[0]} over the others: {', '.join(sizes[1:])}."

    def posterior_findings(self) -> Iterable[str]:
        """Decisions about the pairs, from the matrix of decisions."""
        if self.result.decision_matrix is None:
            return
        cells = self.result.decision_matrix.to_numpy(dtype=object)
        for name, row in zip(self.names, cells, strict=True):
            smaller = [other for other, cell in zip(self.names, row, strict=True) if cell == "smaller"]
            if smaller:
                yield f"{name} is decided to be larger than {joined(smaller, len(smaller))}."
        pairs = list(combinations(range(len(self.names)), 2))
        equal, undecided = (
            [f"{self.names[i]} and {self.names[j]}" for i, j in pairs if cells[i, j] == decision]
            for decision in ("equal", "inconclusive")
        )
        if equal:
            yield f"Decided to be practically equivalent: {'; '.join(equal)}."
        if undecided and len(undecided) == len(pairs):
            which = "The comparison is" if len(pairs) == 1 else "All comparisons are"
            yield f"{which} inconclusive: no outcome is probable enough."
        elif undecided:
            yield f"Inconclusive: {'; '.join(undecided)}."
