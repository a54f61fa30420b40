"""The report: one sentence after the other, each of them no more than the tests support.

A hypothesis is rejected or not rejected, never accepted. Sentences are plain text; `latex` escapes them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lmemtest.compat.autorank._numbers import UNDEFINED
from lmemtest.compat.autorank.checks import check_decimal_places, check_result
from lmemtest.compat.autorank.decisions import decisions, differ, distinct
from lmemtest.compat.autorank.result import RankResult
from lmemtest.core.rounding import below, written
from lmemtest.core.words import joined
from lmemtest.errors import ArgumentError

EFFECT_NAMES = {"cohen_d": "Cohen's d", "cliff_delta": "Cliff's delta", "akinshin_gamma": "Akinshin's gamma"}
CENTRES = {"mean": ("mean value", "M", "std", "SD"), "median": ("median", "MD", "mad", "MAD")}
SPREADS = {"std": "standard deviation", "mad": "median absolute deviation"}
HYPOTHESES = {
    "ttest": ("paired t-test", "that the mean values are equal"),
    "wilcoxon": ("two-sided Wilcoxon signed-rank test", "that the paired differences are symmetric about zero"),
    "anova": ("repeated-measures ANOVA", "that all mean values are equal"),
    "friedman": ("Friedman test", "that no population tends to have higher or lower ranks than another"),
    "lmem": ("smallest adjusted p-value of the pairs", "that all marginal means are equal"),
}
NOTHING_SHOWN = "The data show no difference between the populations, which is not evidence that there is none."


def report_text(result: RankResult, *, decimal_places: int = 3) -> str:
    """The report that `create_report` prints, one line per step of the analysis."""
    check_result(result)
    return "\n".join(Report(result, check_decimal_places(decimal_places)).lines())


class Report:
    """The sentences of a result, with its numbers to some decimals."""

    def __init__(self, result: RankResult, decimals: int) -> None:
        self.result = result
        self.table = result.rankdf
        self.names = distinct(self.table.index)
        self.decimals = decimals
        self.centre = next((name for name in CENTRES if name in self.table.columns), None)

    def lines(self) -> list[str]:
        """All of the report."""
        result = self.result
        if result.omnibus not in (*HYPOTHESES, "bayes"):
            raise ArgumentError(
                f"result.omnibus must be {' or '.join(map(repr, (*HYPOTHESES, 'bayes')))}, got {result.omnibus!r}."
            )
        parts = [self.size(), self.normality(), self.variances(), self.method(), self.populations()]
        parts += [*self.posterior_findings()] if result.omnibus == "bayes" else [*self.findings()]
        version = importlib.import_module("lmemtest").__version__
        return [part for part in (*parts, f"Computed with lmemtest {version}.") if part]

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

    def described(self, row: int) -> str:
        """A population with its centre, interval, spread and mean rank."""
        numbers = self.table.iloc[row]
        parts = []
        if self.centre is not None:
            _, symbol, spread, spread_symbol = CENTRES[self.centre]
            low, high = self.number(numbers["ci_lower"]), self.number(numbers["ci_upper"])
            parts += [f"{symbol}={self.number(numbers[self.centre])} [{low}, {high}]"]
            parts += [f"{spread_symbol}={self.number(numbers[spread])}"]
        if "meanrank" in self.table.columns:
            parts.append(f"MR={self.number(numbers['meanrank'])}")
        return f"{self.names[row]} ({', '.join(parts)})"

    # ------------------------------------------------------------------ what was done

    def size(self) -> str:
        """How much was compared, and how surely."""
        level = "" if self.result.omnibus == "bayes" else (
            f" The family-wise significance level is alpha={written(self.result.alpha, '.4g')}."
        )  # fmt: skip
        return f"{len(self.table)} populations were compared on {self.result.num_samples} paired samples.{level}"

    def normality(self) -> str:
        """What the Shapiro-Wilk tests found; without their p-values nothing."""
        result = self.result
        if result.omnibus == "lmem" or result.pvals_shapiro is None or len(result.pvals_shapiro) != len(self.table):
            return ""
        tested = list(zip(self.names, result.pvals_shapiro, strict=True))
        level = f"at the level {written(result.alpha_normality, '.3g')} (alpha divided by the number of populations)"
        rejected = [f"{name} ({self.p(p)})" for name, p in tested if below(p, result.alpha_normality)]
        constant = [name for name, p in tested if np.isnan(p)]
        flat = f" {joined(constant, len(constant))} {_verb(constant, 'does', 'do')} not vary." if constant else ""
        if rejected:
            return f"Shapiro-Wilk tests {level} reject normality for {joined(rejected, len(rejected))}.{flat}"
        if constant:
            return flat.strip()
        least = min(p for _, p in tested)
        return f"No Shapiro-Wilk test {level} rejects normality (smallest {self.p(least)})."

    def variances(self) -> str:
        """What the test of equal variances found, which two populations do not need."""
        result = self.result
        if len(self.table) == 2 or result.homogeneity_test is None or result.pval_homogeneity is None:
            return ""
        verb = "does not reject" if result.homoscedastic else "rejects"
        return f"{result.homogeneity_test.title()}'s test {verb} equal variances ({self.p(result.pval_homogeneity)})."

    def method(self) -> str:
        """Which tests, and why these."""
        result = self.result
        cd = self.number(np.nan if result.cd is None else result.cd)
        equal = "" if result.rope == 0 else "practically equivalent, "
        says = {
            "ttest": "The mean values are compared by a paired t-test.",
            "wilcoxon": "The populations are compared by a two-sided Wilcoxon signed-rank test of their paired "
            "differences, those of zero left out.",
            "anova": "A repeated-measures ANOVA tests all mean values together, Tukey's HSD with the residual variance "
            "of the ANOVA each pair; both take the variances of all differences for equal (sphericity).",
            "friedman": "Friedman's test compares the ranks of all populations together, Nemenyi's test each pair: "
            f"mean ranks that differ by more than the critical difference CD={cd} differ significantly.",
            "lmem": "The recommended mixed model compares the marginal means of all pairs, p-values adjusted for all.",
            "bayes": "A Bayesian signed-rank test estimates for each pair the posterior probabilities that one "
            f"population is smaller, {equal}or larger, and decides for an outcome whose probability is at least "
            f"1 - alpha = {written(1.0 - result.alpha, '.4g')}.",
        }
        return " ".join(part for part in (says[result.omnibus], self.reason(), self.rope()) if part)

    def reason(self) -> str:
        """Why these tests."""
        result = self.result
        if result.force_mode is not None and result.omnibus != "lmem":
            kind = {"parametric": "means", "nonparametric": "ranks and medians"}.get(result.force_mode, "")
            return f"Methods for {kind} were asked for (force_mode='{result.force_mode}'), whatever these tests say."
        if result.omnibus in ("wilcoxon", "friedman") and result.all_normal is not None:
            return f"{'Variances differ' if result.all_normal else 'Not all populations are normal'} by these tests."
        return ""

    def rope(self) -> str:
        """What is practically equivalent."""
        result = self.result
        if result.omnibus != "bayes" or result.rope is None:
            return ""
        if result.rope == 0:
            return "There is no region of practical equivalence."
        unit = "" if result.rope_mode == "absolute" else (
            " pooled standard deviations of the pair" if self.centre == "mean"
            else " pooled median absolute deviations of the pair (scaled by 1.4826)"
        )  # fmt: skip
        return (
            f"Differences of at most {written(float(result.rope), '.4g')}{unit} count as practically equivalent (ROPE)."
        )

    def populations(self) -> str:
        """Every population with its numbers, best first."""
        rows = list(range(len(self.table)))
        if "meanrank" in self.table.columns and self.table["meanrank"].iloc[0] > self.table["meanrank"].iloc[-1]:
            rows.reverse()  # of results built by hand
        listed = [self.described(row) for row in rows]
        symbols = ["MR: mean rank, 1 is best"] if "meanrank" in self.table.columns else []
        if self.centre is not None:
            name, symbol, spread, spread_symbol = CENTRES[self.centre]
            symbols[:0] = [f"{symbol}: {name}, {self.interval()}", f"{spread_symbol}: {SPREADS[spread]}"]
        return f"Best first, the populations are {joined(listed, len(listed))} ({'; '.join(symbols)})."

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
        result = self.result
        test, hypothesis = HYPOTHESES[result.omnibus]
        rejects = result.pvalue is not None and below(result.pvalue, result.alpha)
        verb = "rejects" if rejects else "does not reject"
        yield f"The {test} {verb} the hypothesis {hypothesis} ({self.p(result.pvalue)})."
        if not rejects:
            yield NOTHING_SHOWN
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
        if word == UNDEFINED:
            effect = f"{kind} is not defined, since the populations do not spread."
        else:
            effect = f"{kind} is {self.number(abs(size))} ({word})."
        if self.result.omnibus == "wilcoxon":
            return f"{first} and {second} differ significantly; {larger} has the larger {what}. {effect}"
        return f"The {what} of {larger} is significantly larger than that of {smaller}. {effect}"

    def groups(self) -> str:
        """Which populations do not differ significantly; of all others it is said that they do."""
        found = decisions(self.result)
        groups = [joined(group, len(group)) for group in found.groups if len(group) > 1]
        if not groups:
            return f"By {self.by()}, all pairs differ significantly."
        if not differ(self.result).any():
            return f"By {self.by()}, no pair differs significantly, although the test of all populations rejects."
        within = "within this group" if len(groups) == 1 else "within each of these groups"
        return f"By {self.by()}, differences {within} are not significant, all others are: {'; '.join(groups)}."

    def by(self) -> str:
        """The test of pairs."""
        return {"nemenyi": "Nemenyi's test", "tukeyhsd": "Tukey's HSD"}.get(
            self.result.posthoc or "", "tests of the pairs"
        )

    def effects(self) -> str:
        """Effect sizes beside the first population."""
        result = self.result
        if "effect_size" not in self.table.columns or result.effect_size not in EFFECT_NAMES:
            return ""
        sizes = self.table["effect_size"].to_numpy(dtype=float)[1:]
        words = self.table["magnitude"].tolist()[1:]
        listed = [
            f"{name} not defined (no spread)" if word == UNDEFINED else f"{name} {self.number(size)} ({word})"
            for name, size, word in zip(self.names[1:], sizes, words, strict=True)
        ]
        kind = EFFECT_NAMES[result.effect_size]
        return f"Effect sizes ({kind}) of {self.names[0]} over the others: {', '.join(listed)}."

    def posterior_findings(self) -> Iterable[str]:
        """Decisions about the pairs, from the matrix of decisions."""
        matrix = self.result.decision_matrix
        if matrix is None:
            return
        cells = matrix.to_numpy(dtype=object)
        for row, name in enumerate(self.names):
            smaller = [other for other, cell in zip(self.names, cells[row], strict=True) if cell == "smaller"]
            if smaller:
                yield f"{name} is decided to be larger than {joined(smaller, len(smaller))}."
        equal, open_pairs = self.pairs(cells, "equal"), self.pairs(cells, "inconclusive")
        if equal:
            yield f"Decided to be practically equivalent: {'; '.join(equal)}."
        if open_pairs:
            total = len(self.names) * (len(self.names) - 1) // 2
            some = "The comparison is" if total == 1 else "All comparisons are" if len(open_pairs) == total else (
                f"Inconclusive: {'; '.join(open_pairs)}."
            )  # fmt: skip
            yield some if some.endswith(".") else f"{some} inconclusive: no outcome is probable enough."

    def pairs(self, cells: Any, decision: str) -> list[str]:
        """Pairs with a decision, in words."""
        k = len(self.names)
        return [
            f"{self.names[i]} and {self.names[j]}" for i in range(k) for j in range(i + 1, k) if cells[i, j] == decision
        ]


def _verb(names: Sequence[Any], one: str, several: str) -> str:
    return one if len(names) == 1 else several
