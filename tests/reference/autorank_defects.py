"""What Autorank 1.3.0 returns where it is wrong: small tables that show it, and other packages' values beside it.

    pip install autorank==1.3.0       (in an environment of its own)
    python autorank_defects.py > autorank_defects.json

It records what that release returns, which is not what anybody should return. `witness` holds what SciPy, statsmodels
or a closed form say about the same numbers.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from scipy import stats

mpl.use("Agg")

import autorank as ar
import matplotlib.pyplot as plt
from autorank import _util
from statsmodels.stats.multicomp import pairwise_tukeyhsd

TABLES, SEED = 2000, 20240901
SIZES = (5, 6, 7, 8, 10, 20, 50, 100, 200)
# Alike but for their place: normal, of equal variance, best last.
STEP = [4.1, 5.2, 4.8, 5.9, 5.0, 4.6]
NEAR = [4.3, 4.9, 4.9, 5.7, 5.3, 4.6]
ORDERED = {"low": STEP, "middle": [6.1, 7.3, 7.0, 8.2, 7.4, 7.1], "high": [10.1, 11.2, 10.8, 11.9, 11.0, 10.6]}
# Five populations of which four are alike: half a critical difference of Tukey's apart in two pairs and more.
FIVE = {
    "A": [1.4, 1.5, 1.3, -0.5, -0.3, 1.3],
    "B": [0.1, -1.2, 0.9, -1.9, 0.0, 0.5],
    "C": [0.3, 0.9, -0.5, -1.4, -1.4, 0.5],
    "D": [0.9, 0.1, -0.5, 0.3, -0.4, -0.3],
    "E": [4.4, 5.3, 4.2, 2.9, 5.3, 4.0],
}
# The rows are far apart and the differences within them small and regular.
PAIRED = {
    "A": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
    "B": [11.0, 21.1, 30.9, 41.0, 51.1, 60.9],
    "C": [12.1, 21.9, 32.0, 42.1, 51.9, 62.0],
}
# Columns that are sorted to (b, c, a), and only the scores of c are far from normal.
TURNED = {
    "a": [9.0, 8.1, 9.9, 8.6, 9.4, 8.3, 9.6, 8.8, 9.2, 9.1],
    "b": [1.0, 1.9, 0.2, 1.4, 0.6, 1.7, 0.4, 1.2, 0.9, 1.1],
    "c": [4.0, 4.0, 4.1, 4.0, 4.1, 4.0, 4.1, 4.0, 4.1, 6.9],
}
SKEWED = {"A": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 40.0], "B": [0.9, 1.8, 2.7, 3.6, 4.5, 5.4, 6.3, 35.2]}
TIED = {
    "A": [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0],
    "B": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.9],
    "C": [1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.2],
}
MISSING = {"A": [1.0, 2.0, 3.0, 4.0, None, 6.0], "B": [1.5, 2.4, 3.6, 4.4, 5.6, 6.5]}
Record = dict[str, Any]


def quiet(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, str]:
    """What a call returns, and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = call(*args, **options)
    plt.close("all")
    return found, out.getvalue()


def ranked(data: dict[Any, list[Any]], **options: Any) -> Any:
    return quiet(ar.autorank, pd.DataFrame(data, dtype=float), **options)[0]


def report_of(result: Any) -> str:
    return quiet(ar.create_report, result)[1]


def error_of(call: Callable[..., Any], *args: Any, **options: Any) -> Record:
    try:
        quiet(call, *args, **options)
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"error": None, "message": ""}


def column(result: Any, name: str) -> Record:
    return {str(k): v if isinstance(v, str) else float(v) for k, v in result.rankdf[name].items()}


def sentence(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def tukey_p(data: dict[str, list[float]]) -> dict[str, float]:
    """Adjusted p-values of unpaired comparisons, by statsmodels."""
    long = pd.DataFrame(data).melt()
    found = pairwise_tukeyhsd(long["value"], long["variable"])
    pairs = [(a, b) for i, a in enumerate(found.groupsunique) for b in found.groupsunique[i + 1 :]]
    return {f"{a} - {b}": float(p) for (a, b), p in zip(pairs, found.pvalues, strict=True)}


# ------------------------------------------------------------------------------------------------- one per defect


def order() -> Record:
    """By default the worst population comes first, and effect sizes are against it."""
    result = ranked(ORDERED)
    return {
        "call": "autorank(data)",
        "data": ORDERED,
        "autorank": {
            "order": list(result.rankdf.index),
            "meanrank": column(result, "meanrank"),
            "effect_size": column(result, "effect_size"),
        },
        "witness": {"best": "high", "mean": {name: float(np.mean(x)) for name, x in ORDERED.items()}},
    }


def normality() -> Record:
    """p-values of the normality tests are permuted the wrong way round, so the report names other populations."""
    result = ranked(TURNED)
    return {
        "call": "autorank(data); create_report(result)",
        "data": TURNED,
        "autorank": {
            "order": list(result.rankdf.index),
            "pvals_shapiro": [float(p) for p in result.pvals_shapiro],
            "sentence": sentence(report_of(result), "We rejected the null hypothesis that the population is normal"),
        },
        "witness": {"shapiro": {name: float(stats.shapiro(x).pvalue) for name, x in TURNED.items()}},
    }


def tukey_groups() -> Record:
    """Pairs count as different if their means differ by one half-width of an interval, where two are needed."""
    result = ranked(FIVE)
    _, names, groups = _util.get_sorted_rank_groups(result, False)
    named = [names[first : last + 1] for first, last in groups]
    apart = {pair: p for pair, p in tukey_p(FIVE).items() if not any(set(pair.split(" - ")) <= set(g) for g in named)}
    return {
        "call": "autorank(data); create_report(result)",
        "data": FIVE,
        "autorank": {
            "posthoc": result.posthoc,
            "half_width": float((result.rankdf["ci_upper"] - result.rankdf["ci_lower"]).iloc[0] / 2.0),
            "groups": named,
            "sentence": sentence(report_of(result), "Based post-hoc Tukey HSD test"),
        },
        "witness": {
            "p_adjusted": tukey_p(FIVE),
            "reported_and_not_significant": {pair: p for pair, p in apart.items() if p >= 0.05},
        },
    }


def tukey_alpha() -> Record:
    """The intervals of Tukey's test are the same at every alpha."""
    out = {}
    for alpha in (0.01, 0.05, 0.2):
        rows = ranked(FIVE, alpha=alpha, force_mode="parametric").rankdf  # else normality is refused at 0.2
        out[str(alpha)] = float((rows["ci_upper"] - rows["ci_lower"]).iloc[0] / 2.0)
    k, n = len(FIVE), len(FIVE["A"])
    error = np.mean([np.var(x, ddof=1) for x in FIVE.values()])
    half = {a: float(stats.studentized_range.ppf(1 - float(a), k, k * (n - 1)) * np.sqrt(error / n) / 2.0) for a in out}
    return {
        "call": "autorank(data, alpha=alpha, force_mode='parametric')",
        "data": FIVE,
        "autorank": {"half_width": out},
        "witness": {"half_width": half},
    }


def tukey_pairing() -> Record:
    """The omnibus test pairs the rows and the post-hoc test does not: one rejects what the other cannot see."""
    result = ranked(PAIRED)
    _, names, groups = _util.get_sorted_rank_groups(result, False)
    table = pd.DataFrame(PAIRED)
    pairs = (("A", "B"), ("A", "C"), ("B", "C"))
    return {
        "call": "autorank(data)",
        "data": PAIRED,
        "autorank": {
            "pvalue": float(result.pvalue),
            "groups": [names[first : last + 1] for first, last in groups],
            "half_width": float((result.rankdf["ci_upper"] - result.rankdf["ci_lower"]).iloc[0] / 2.0),
        },
        "witness": {
            "p_adjusted_unpaired": tukey_p(PAIRED),
            "p_paired_t": {f"{a} - {b}": float(stats.ttest_rel(table[a], table[b]).pvalue) for a, b in pairs},
        },
    }


def wilcoxon() -> Record:
    """The test is one-sided in the direction that the medians show."""
    result = ranked(SKEWED)
    return {
        "call": "autorank(data)",
        "data": SKEWED,
        "autorank": {"omnibus": result.omnibus, "pvalue": float(result.pvalue)},
        "witness": {"two_sided": float(stats.wilcoxon(SKEWED["A"], SKEWED["B"]).pvalue)},
    }


def wilcoxon_size() -> Record:
    """Rejections at 0.05 where both populations have one distribution."""
    rows = []
    for law, n in (("normal", 10), ("normal", 20), ("normal", 50), ("exponential", 20)):
        rng = np.random.default_rng(SEED)
        rejected = np.zeros(2)
        for _ in range(TABLES):
            data = pd.DataFrame(getattr(rng, f"standard_{law}")((n, 2)), columns=["A", "B"])
            found, _ = quiet(_util.rank_two, data, 0.05, False, False, "descending", None, "nonparametric")
            rejected += [found.pvalue < 0.05, stats.wilcoxon(data["A"], data["B"]).pvalue < 0.05]
        share = rejected / TABLES
        rows.append({"law": law, "n": n, "autorank": float(share[0]), "two_sided": float(share[1])})
    return {"call": "autorank(data, force_mode='nonparametric')", "tables": TABLES, "seed": SEED, "rates": rows}


def coverage(n: int, alpha: float = 0.05) -> tuple[int, int, float]:
    """Which ordered scores (from 1) are the ends of the interval of a median, and how often they enclose it."""
    ends = _util._confidence_interval(pd.Series(np.arange(1, n + 1)), alpha, is_normal=False)
    low, high = map(int, ends)
    below = stats.binom(n, 0.5)  # how many scores are below the median
    return low, high, float(below.cdf(high - 1) - below.cdf(low - 1))


def median_interval() -> Record:
    """Coverage of the median by an interval of nominal 95 %: simulated, and exact from its two order statistics."""
    rows = []
    for n in SIZES:
        rng = np.random.default_rng(SEED)
        low, high, exact = coverage(n)
        covered = 0
        for _ in range(TABLES):
            ends = _util._confidence_interval(pd.Series(rng.standard_normal(n)), 0.05, is_normal=False)
            covered += ends[0] <= 0.0 <= ends[1]
        rows.append({"n": n, "low": low, "high": high, "simulated": covered / TABLES, "exact": exact})
    every = [coverage(n)[2] for n in range(8, 501)]
    return {
        "call": "_confidence_interval(x, 0.05, is_normal=False)",
        "tables": TABLES,
        "seed": SEED,
        "coverage": rows,
        "exact_from_8_to_500": [min(every), max(every)],
        "exact_with_correction": [
            {"n": n, "populations": k, "nominal": 1.0 - 0.05 / k, "exact": coverage(n, 0.05 / k)[2]}
            for n in (20, 50)
            for k in (2, 3, 5)
        ],
    }


def missing_values() -> Record:
    """A missing value is no error, and its p-value of NaN is reported as significant."""
    result = ranked(MISSING)
    return {
        "call": "autorank(data); create_report(result)",
        "data": MISSING,
        "autorank": {
            "pvalue": None if np.isnan(result.pvalue) else float(result.pvalue),
            "all_normal": bool(result.all_normal),
            "sentence": sentence(report_of(result), "We reject the null hypothesis"),
        },
    }


def latex_above() -> Record:
    """A table with effect sizes against the row above is an error where the omnibus test is not significant."""
    same = {"A": STEP, "B": NEAR, "C": [4.2, 4.9, 5.0, 5.9, 5.3, 4.4]}
    result = ranked(same)
    return {
        "call": "latex_table(autorank(data), effect_size_relation='above')",
        "data": same,
        "autorank": {"pvalue": float(result.pvalue), **error_of(ar.latex_table, result, effect_size_relation="above")},
    }


def posterior_axes() -> Record:
    """Posterior maps cannot be drawn into given axes."""
    result = ranked(ORDERED, approach="bayesian", nsamples=500, random_state=1)
    axes = list(plt.subplots(2, 2)[1].ravel())
    return {
        "call": "plot_posterior_maps(autorank(data, approach='bayesian'), axes=axes)",
        "data": ORDERED,
        "autorank": error_of(ar.plot_posterior_maps, result, axes=axes),
    }


def no_deviation() -> Record:
    """Where median absolute deviations are zero, no difference is a large effect."""
    result = ranked(TIED)
    size = {k: None if np.isnan(v) else "Inf" if v > 0 else "-Inf" for k, v in column(result, "effect_size").items()}
    return {
        "call": "autorank(data)",
        "data": TIED,
        "autorank": {
            "median": column(result, "median"),
            "mad": column(result, "mad"),
            "effect_size": size,
            "magnitude": column(result, "magnitude"),
        },
    }


def column_names() -> Record:
    """Populations whose names are numbers: the test passes, the report fails."""
    two, three = list(SKEWED.values()), [STEP, NEAR, ORDERED["high"]]
    return {
        "call": "create_report(autorank(DataFrame(dict(enumerate(data)))))",
        "data": {"two": two, "three": three},
        "autorank": {
            "two": error_of(ar.create_report, ranked(dict(enumerate(two)))),
            "three": error_of(ar.create_report, ranked(dict(enumerate(three)))),
        },
    }


def escaping() -> Record:
    """Names are not escaped in LaTeX."""
    names = dict(zip(("50%_a", "b & c", "d#1"), ORDERED.values(), strict=True))
    text = quiet(ar.latex_table, ranked(names))[1]
    return {
        "call": "latex_table(autorank(data))",
        "data": names,
        "autorank": {"lines": [line for line in text.splitlines() if line.startswith(tuple(names))]},
    }


def posterior_maps() -> Record:
    """The map that is called P(A < B), with A in rows, shows how likely A is larger."""
    result = ranked(ORDERED, approach="bayesian", nsamples=500, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ar.plot_posterior_maps(result)
    maps = {}
    for ax in plt.gcf().axes[:3]:
        values = ax.images[0].get_array().filled(np.nan).astype(float)
        maps[ax.get_title()] = {
            "A": [label.get_text() for label in ax.get_yticklabels()],
            "B": [label.get_text() for label in ax.get_xticklabels()],
            "values": np.where(np.isnan(values), None, values).tolist(),
        }
    plt.close("all")
    return {
        "call": "plot_posterior_maps(autorank(data, approach='bayesian', nsamples=500, random_state=1))",
        "data": ORDERED,
        "autorank": maps,
        "witness": {"mean": {name: float(np.mean(x)) for name, x in ORDERED.items()}},
    }


def words() -> Record:
    """alpha for 1 - alpha, a null hypothesis that is turned round, and null hypotheses that are accepted."""
    bayes = report_of(ranked(ORDERED, approach="bayesian", nsamples=500, random_state=1))
    anova, two = report_of(ranked(ORDERED)), report_of(ranked({"A": STEP, "B": NEAR}))
    return {
        "call": "create_report(autorank(three)), create_report(autorank(three, approach='bayesian')), of two",
        "data": {"three": ORDERED, "two": {"A": STEP, "B": NEAR}},
        "autorank": {
            "alpha": sentence(bayes, "We used a bayesian signed rank test"),
            "turned_round": sentence(anova, "We reject the null hypothesis"),
            "normality_accepted": sentence(anova, "We failed to reject the null hypothesis that the population"),
            "null_accepted": sentence(two, "We failed to reject the null hypothesis (p"),
        },
    }


def two_populations() -> Record:
    """The private function that other packages call needs three populations; Wilcoxon's test has no figure."""
    data = pd.DataFrame(SKEWED)
    inner = error_of(_util.rank_multiple_nonparametric, data, 0.05, False, False, "descending", None, None)
    result = ranked(SKEWED)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drawn = ar.plot_stats(result, allow_insignificant=True)
    return {
        "call": "_util.rank_multiple_nonparametric(data, ...); plot_stats(autorank(data))",
        "data": SKEWED,
        "autorank": {
            "rank_multiple_nonparametric": inner,
            "plot_stats": None if drawn is None else type(drawn).__name__,
            "warning": str(caught[0].message),
            "get_sorted_rank_groups": error_of(_util.get_sorted_rank_groups, result, False),
        },
    }


def interval_widths() -> Record:
    """All bars of a figure have the width of the first; intervals are corrected once, the Bayesian ones twice."""
    frame = pd.DataFrame({"A": [9.1, 10.2, 9.8, 10.9, 10.0, 9.6], "B": [8.2, 10.4, 9.6, 11.8, 10.0, 9.2]})
    result = ranked(frame.to_dict("list"))
    with contextlib.redirect_stdout(io.StringIO()):
        ax = ar.plot_stats(result, allow_insignificant=True)
    bars = [np.diff(path.vertices[:, 0])[0] / 2.0 for path in ax.collections[0].get_paths()]
    plt.close("all")
    half = {a: float(frame["A"].sem() * stats.t.ppf(1 - a / 2, len(frame) - 1)) for a in (0.05, 0.025, 0.0125)}
    bayes = ranked(frame.to_dict("list"), approach="bayesian", nsamples=500, random_state=1)
    width = {name: (rows["ci_upper"] - rows["ci_lower"]).astype(float) / 2.0
             for name, rows in (("frequentist", result.rankdf), ("bayesian", bayes.rankdf))}  # fmt: skip
    return {
        "call": "autorank(data), frequentist and bayesian; plot_stats(result)",
        "data": frame.to_dict("list"),
        "autorank": {
            "printed_with_verbose_false": quiet(ar.autorank, frame)[1] != "",
            "half_width": width["frequentist"].to_dict(),
            "half_width_drawn": [float(bar) for bar in bars],
            "half_width_bayesian": width["bayesian"].to_dict(),
        },
        "witness": {f"half_width_of_A_at_{a:g}": value for a, value in half.items()},
    }


DEFECTS = (
    order, normality, tukey_groups, tukey_alpha, tukey_pairing, wilcoxon, wilcoxon_size, median_interval,
    missing_values, latex_above, posterior_axes, no_deviation, column_names, escaping, posterior_maps, words,
    two_populations, interval_widths,
)  # fmt: skip


def main() -> None:
    packages = ("autorank", "baycomp", "numpy", "pandas", "scipy", "statsmodels", "matplotlib")
    out: Record = {"versions": {"python": sys.version.split()[0]} | {name: version(name) for name in packages}}
    for defect in DEFECTS:
        out[defect.__name__] = {"what": defect.__doc__, **defect()}
    text = json.dumps(out, indent=1, allow_nan=False)
    print(re.sub(r"\[\n[^][{}]*\]", lambda found: " ".join(found[0].split()), text))  # short lists on one line


if __name__ == "__main__":
    main()
