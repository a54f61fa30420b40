"""Classical tests in Autorank's steps: assumptions, then the tests that they, or the caller, call for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from lmemtest.compat.autorank import _numbers
from lmemtest.compat.autorank.checks import complete
from lmemtest.compat.autorank.result import ComparisonResult, RankResult
from lmemtest.compat.autorank.table import means, medians, rank_table
from lmemtest.core.rounding import below
from lmemtest.core.words import p_text


def rank_frequentist(
    data: pd.DataFrame,
    alpha: float,
    verbose: bool,
    all_normal: bool,
    order: str,
    effect_size: str | None,
    force_mode: str | None,
) -> tuple[RankResult, list[int]]:
    """The tests that the data, or the caller, call for; with the columns of the rows of its table."""
    test = "bartlett" if all_normal else "levene"
    p = _numbers.equal_variances_p(data.to_numpy(), test)
    homoscedastic = not below(p, alpha)
    verb = "does not reject" if homoscedastic else "rejects"
    say(verbose, f"{test.title()}'s test {verb} equal variances ({p_text(p)}, alpha={alpha:g})")
    if force_mode is not None:
        say(verbose, f"Tests are {force_mode}, as asked for, whatever the tests of normality and variances say")
    if data.shape[1] == 2:
        found = rank_two(data, alpha, verbose, all_normal, order, effect_size, force_mode)
    elif is_parametric(all_normal and homoscedastic, force_mode):
        found = rank_multiple_normal_homoscedastic(data, alpha, verbose, order, effect_size, force_mode)
    else:
        found = rank_multiple_nonparametric(data, alpha, verbose, all_normal, order, effect_size, force_mode)
    rankdf, pvalue, cd, omnibus, posthoc, kind, positions = found
    result = RankResult(
        rankdf, pvalue, cd, omnibus, posthoc, all_normal, [], homoscedastic, p, test, alpha, 0, 0, effect_size=kind
    )
    return result, positions


def say(verbose: bool, line: str) -> None:
    """Print a line for those who asked for it."""
    if verbose:
        print(line)


def is_parametric(as_tested: bool, force_mode: str | None) -> bool:
    """Whether means are compared: by the tests of the assumptions, unless the caller decided."""
    return as_tested if force_mode is None else force_mode == "parametric"


def test_normality(data: pd.DataFrame, alpha: float, verbose: bool) -> tuple[bool, list[float]]:
    """Shapiro-Wilk tests: whether none rejects at alpha, and the p-values in the order of the columns."""
    p_values = _numbers.shapiro_p(complete(data))
    if verbose:
        for column, p in zip(data.columns, p_values, strict=True):
            verb = "does not vary" if np.isnan(p) else "deviates from normal" if below(p, alpha) else "may be normal"
            print(f"Shapiro-Wilk: {column} {verb} ({p_text(p)}, alpha={alpha:g})")
    return not any(np.isnan(p) or below(p, alpha) for p in p_values), p_values


test_normality.__test__ = False  # type: ignore[attr-defined]  # its name is Autorank's, and no test of pytest's


def rank_two(
    data: pd.DataFrame,
    alpha: float,
    verbose: bool,
    all_normal: bool,
    order: str,
    effect_size: str | None,
    force_mode: str | None,
) -> ComparisonResult:
    """Paired t-test or, two-sided, Wilcoxon's signed-rank test; differences of zero are left out of the latter."""
    x = complete(data)
    parametric = is_parametric(all_normal, force_mode)
    omnibus = "ttest" if parametric else "wilcoxon"
    p = _numbers.anova_p(x) if parametric else _numbers.wilcoxon_p(x)
    _say_p(verbose, "paired t-test" if parametric else "Wilcoxon's signed-rank test (two-sided)", p, alpha)
    centre, by = (means(x, alpha / 2), "mean") if parametric else (medians(x, alpha / 2), "meanrank")
    rankdf, kind, positions = rank_table(data, centre, order, effect_size, by=by)
    return ComparisonResult(rankdf, p, None, omnibus, None, kind, positions)


def rank_multiple_normal_homoscedastic(
    data: pd.DataFrame, alpha: float, verbose: bool, order: str, effect_size: str | None, force_mode: str | None
) -> ComparisonResult:
    """Repeated-measures ANOVA and Tukey's HSD with its error; intervals that do not overlap differ significantly."""
    del force_mode  # has decided already that this is called
    x = complete(data)
    p = _numbers.anova_p(x)
    _say_p(verbose, "repeated-measures ANOVA", p, alpha)
    centre, half = means(x, alpha), _numbers.tukey_difference(x, alpha) / 2.0
    centre |= {"ci_lower": centre["mean"] - half, "ci_upper": centre["mean"] + half}
    rankdf, kind, positions = rank_table(data, centre, order, effect_size, by="mean")
    return ComparisonResult(rankdf, p, None, "anova", "tukeyhsd", kind, positions)


def rank_multiple_nonparametric(
    data: pd.DataFrame,
    alpha: float,
    verbose: bool,
    all_normal: bool,
    order: str,
    effect_size: str | None,
    force_mode: str | None,
    plot_order: list[Any] | None = None,
) -> ComparisonResult:
    """Friedman's test and the critical difference of Nemenyi's; `plot_order` is taken, and changes nothing."""
    del plot_order
    x = complete(data)
    n, k = x.shape
    p = _numbers.friedman_p(x)
    _say_p(verbose, "Friedman's test", p, alpha)
    cd = _numbers.nemenyi_difference(alpha, k, n)
    centre = (means if is_parametric(all_normal, force_mode) else medians)(x, alpha / k)
    rankdf, kind, positions = rank_table(data, centre, order, effect_size, by="meanrank")
    return ComparisonResult(rankdf, p, cd, "friedman", "nemenyi", kind, positions)


def _say_p(verbose: bool, test: str, p: float, alpha: float) -> None:
    say(verbose, f"The {test} {'rejects' if below(p, alpha) else 'does not reject'} ({p_text(p)}, alpha={alpha:g})")
