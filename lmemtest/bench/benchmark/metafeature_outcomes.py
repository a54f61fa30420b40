"""Does a metafeature decide which of two algorithms is better, and on which benchmarks does it not?

The analysis of outcomes: at every benchmark, level and budget the first algorithm is better, equal or worse than the
second; the mean outcome over the budgets is compared between levels on each benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.benchmark.outcomes import flip_p, mean_outcomes, test_points
from lmemtest.bench.benchmark.pair_scores import (
    Axes,
    contrasts_answer,
    level_pairs,
    n_budgets,
    of_pair,
    pair_scores,
    ran,
)
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, resolve_rng
from lmemtest.core.words import format_level, format_number, joined, listed, p_text, percent
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.distributions.studentized_range import ptukey
from lmemtest.lmm.means.adjust import adjust_raw, critical_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index
    from lmemtest.core.result import Answer


TESTS = {"two-sample": "two-sample t-test with pooled variance", "paired": "t-test of the differences within seeds"}
UNITS = ("run", "budget")
ADJUSTS = ("holm", "tukey", "sidak", "bonferroni", "fdr", "none")
FOLLOWS, UNCLEAR, NONE_FOUND, REVERSED = "follows", "unclear", "none found", "reversed"
_SHARES = {"better": 1.0, "equal": 0.0, "worse": -1.0}  # of the budgets, with what an outcome is there
_FEW_SEEDS = 7  # fewer have at most 32 different sign patterns: no p-value below 0.03


@one_blas_thread()
def metafeature_outcomes(
    runs: Runs,
    algorithms: Sequence[Any],
    metafeature: str,
    *,
    levels: Sequence[Any] | None = None,
    test: str = "two-sample",
    unit: str = "run",
    adjust: str | None = None,
    alpha: float = 0.05,
    n_draws: int = 9999,
    rng: int | np.random.Generator | None = None,
) -> Answer:
    """Compare the outcomes of two algorithms between the levels of a metafeature, benchmark by benchmark.

    Parameters
    ----------
    runs, algorithms, metafeature, levels, alpha, rng
        As in `lmemtest.metafeature_effect`; `alpha` is the level of the tests at the points too.
    test : {"two-sample", "paired"}
        How the outcome at a point is found: Student's two-sample test, which takes the runs of the two algorithms for
        independent; or the test of the differences within seeds, which is the right one where a seed means the same
        for both, for instance the same initial design.
    unit : {"run", "budget"}
        What the p-values of the contrasts take for independent: the runs of different seeds, by flipping the signs of
        their residuals; or the outcomes at the budgets (analysis of variance over budgets), which are not: the runs are
        the same.
    adjust : {"holm", "tukey", "sidak", "bonferroni", "fdr", "none"}, optional
        Adjustment over all contrasts; by default Holm with ``unit="run"`` and Tukey over all instances with
        ``unit="budget"``, where alone it is defined.
    n_draws : int
        Tables per contrast; the smallest p-value before adjustment is 1 / (n_draws + 1).

    Returns
    -------
    Answer
        An outcome of 1 means that the first algorithm is better, -1 that the second is. Tables:

        - ``contrasts``: one row per benchmark and pair of levels: ``benchmark``, ``level``, ``reference``,
          ``level_outcome`` and ``reference_outcome`` (mean outcomes over the budgets), ``contrast`` (their difference),
          ``p_raw`` and ``p_value`` (adjusted) of "no difference", ``decision``, ``singled_out``, ``no_room`` (mean
          outcomes lie between -1 and 1, and from where the benchmark is at one of the levels the mean contrast would
          lead out of this range, so the verdicts cannot follow). p-values are two-sided. Decisions: "follows"
          (significant, in the direction of the mean over benchmarks), "unclear" (not so, but significant in this
          direction in a one-sided test without adjustment), "reversed" (significant in the other direction without
          adjustment), "none found";
        - ``overall``: one row per pair of levels: ``level``, ``reference``, ``benchmarks`` (how many), ``contrast``
          (mean over benchmarks), ``se``, ``df``, ``t_ratio``, ``p_value`` (Holm over the pairs), ``ci_low``,
          ``ci_high``;
        - ``instances``: one row per benchmark and level: ``benchmark``, ``level``, ``budgets`` (how many), ``better``,
          ``equal``, ``worse`` (shares of them), ``outcome`` (their mean);
        - ``points``: one row per benchmark, level and budget: ``benchmark``, ``level``, ``budget``, ``outcome`` (1, 0,
          -1), ``advantage`` (of the first algorithm, on the scale of the score), ``t_ratio``, ``df``, ``p_value``.

        Values as in `lmemtest.metafeature_effect`, and ``test``, ``unit``, ``adjust``; ``linkage``, the average linkage
        of the benchmarks' mean outcomes in scipy's form, empty for one benchmark, and ``order``, the positions of the
        benchmarks in the order of its dendrogram, like beside like.

    Notes
    -----
    With ``unit="run"`` the hypothesis of a benchmark is that the difference of the algorithms is the same at both
    levels. Tables under it hold the common difference, and the residuals of whole runs with random signs, the same for
    all runs of a seed (a wild bootstrap clustered by seed): neither the budgets of a run nor the runs of a seed are
    taken for independent. With few budgets mean outcomes take few values, and the test is careful. Where other signs
    could change a decision, a note gives the Monte Carlo error (two standard errors) of the p-value that decides it.

    A benchmark can be singled out because it is noisy: "none found" is no proof of "none". The deviations of
    `metafeature_effect` say which benchmarks are different from the others.

    An outcome is a decision, not an effect: its mean depends on the number of runs and on their noise as well. At a
    level with noisier runs fewer differences are found. `metafeature_effect` compares the scores themselves.

    The method is that of Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), LMEMs for post-hoc analysis of HPO
    benchmarking, section 4.3, with p-values of its own (``unit="budget"`` gives theirs).

    References
    ----------
    Geburek et al. (2024), doi:10.48550/arXiv.2408.02533; Cameron, Gelbach & Miller (2008), doi:10.1162/rest.90.3.414;
    Holm (1979), Scand. J. Stat. 6, 65-70; Phipson & Smyth (2010), doi:10.2202/1544-6115.1585,
    on (1 + count) / (n_draws + 1)

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.benchmark.metafeature_outcomes import metafeature_outcomes
    >>> runs = lt.datasets.load_hpo_runs().filter(model=["forest", "svm"])
    >>> found = metafeature_outcomes(runs, algorithms=("HB+prior", "HB"), metafeature="prior", rng=1)
    >>> found.to_frame()[["benchmark", "level", "reference", "contrast", "decision"]].head(3).round(2)
             benchmark level reference  contrast decision
    0    forest-cancer  good       bad       0.9  follows
    1  forest-diabetes  good       bad       0.4  follows
    2    forest-digits  good       bad       0.8  follows
    """
    check_choice(test, "test", tuple(TESTS))
    check_choice(unit, "unit", UNITS)
    if adjust is None:
        adjust = "holm" if unit == "run" else "tukey"
    elif check_choice(adjust, "adjust", ADJUSTS) == "tukey" and unit == "run":
        raise ArgumentError(
            "adjust='tukey' needs means with a common standard error, which flipped signs do not give. "
            "Use adjust='holm', or unit='budget'."
        )
    alpha = check_fraction(alpha, "alpha")
    n_draws = check_positive_int(n_draws, "n_draws", minimum=99)
    generator = resolve_rng(rng)
    losses, axes, notes = pair_scores(runs, algorithms, metafeature, levels)
    if unit == "budget" and n_budgets(losses).max() < 2:
        raise ArgumentError("unit='budget' needs two or more budgets, the runs have one. Use unit='run'.")
    points = test_points(losses, test, alpha)
    means = mean_outcomes(points["outcome"])
    table, (b, late, early) = _contrasts(means, axes)
    contrast = table["contrast"].to_numpy()
    if unit == "budget":
        raw, p, how = _p_over_budgets(points["outcome"], contrast, b, late, early, adjust)
    else:
        options: dict[str, Any] = {"test": test, "alpha": alpha, "n": n_draws, "rng": generator}
        every = zip(b.tolist(), late.tolist(), early.tolist(), contrast.tolist(), strict=True)
        raw = np.array([flip_p(losses[i], *of, **options) for i, *of in every])
        p, how = adjust_raw(raw, adjust, len(raw)), _flip_notes(losses, len(raw), n_draws, adjust, alpha)
    over_benchmarks = _overall(table, axes["level"], alpha)
    table = table.assign(p_raw=raw, p_value=p)
    table, close = decided(table, over_benchmarks, alpha, n_draws if unit == "run" else None)
    table["no_room"] = _without_room(table, over_benchmarks)
    order, tree = _clusters(means)
    at_points, instances = _frames(points, means, axes)
    first, second = map(format_level, axes["algorithm"])
    rule = (
        f"Rule: a benchmark is singled out if the mean contrast over benchmarks differs from zero (t-test over "
        f"benchmarks, {percent(alpha)}, Holm over pairs of levels) and its own contrast is not significant "
        f"in the same direction in a one-sided test at {percent(alpha)} without adjustment (which would "
        "single out the more benchmarks the more there are)."
    )
    fact = (
        f"Outcome at each benchmark, {metafeature} and budget: 1 if {first} is better, -1 if {second} is, 0 "
        f"if neither is significant ({TESTS[test]}, alpha = {alpha:g}); averaged over "
        f"budgets. Contrast: level minus reference."
    )
    rows = over_benchmarks.to_dict("records")
    return contrasts_answer(
        axes,
        metafeature,
        {"contrasts": table, "overall": over_benchmarks, "instances": instances, "points": at_points},
        alpha=alpha,
        rule=rule,
        values={"method": "outcomes", "test": test, "unit": unit, "adjust": adjust, "order": order, "linkage": tree},
        title=f"{first} against {second}: outcomes by {metafeature}",
        facts=(fact, rule),
        findings=tuple(text for row in rows for text in _sentences(row, of_pair(table, row), first, second, alpha)),
        notes=(*notes, *how, *close),
        formats=dict.fromkeys(("level_outcome", "reference_outcome", "contrast"), ".3f") | {"p_raw": "p"},
    )


def _sentences(row: dict[Any, Any], part: pd.DataFrame, first: str, second: str, alpha: float) -> list[str]:
    """One sentence for a pair of levels, and one for the benchmarks that do not follow it."""
    level, reference = format_level(row["level"]), format_level(row["reference"])
    n, mean, p = int(row["benchmarks"]), float(row["contrast"]), float(row["p_value"])
    head = f"Over {n} benchmarks the mean outcome of {first} against {second} at {level}"
    if not np.isfinite(p):
        return [f"{head} minus that at {reference} is {format_number(mean)}; one benchmark gives no test of it."]
    side = "lower" if mean < 0 else "higher"
    interval = (
        f"{percent(1 - alpha)} CI of the contrast {written(row['ci_low'], '.3f')} to {written(row['ci_high'], '.3f')}"
    )
    if not below(p, alpha):
        return [f"{head} is not significantly different from that at {reference} ({interval}, {p_text(p)})."]
    out = [f"{head} is {side} than at {reference} by {written(abs(mean), '.3f')} ({interval}, {p_text(p)})."]
    odd = part[part["singled_out"]]
    if not len(odd):
        return [*out, f"None of the {n} benchmarks is singled out."]
    names = [f"{format_level(r['benchmark'])} ({r['contrast']:+.3f}, {r['decision']})" for r in odd.to_dict("records")]
    full = odd.loc[odd["no_room"], "benchmark"].tolist()
    unclear = int((part["decision"] == UNCLEAR).sum())
    more = f", {unclear} {'is' if unclear == 1 else 'are'} unclear" if unclear else ""
    out.append(f"{n - len(odd) - unclear} benchmarks follow{more}; singled out: {', '.join(names)}.")
    if full:
        out.append(
            f"Of these, {joined(map(format_level, full), 8)} {'has' if len(full) == 1 else 'have'} no room for the "
            "mean contrast: at one of the levels the outcome is too close to 1 or -1 already, so verdicts cannot show "
            "an effect of that size. method='model' compares the scores."
        )
    return out


# ---------------------------------------------------------------------- contrasts


def _contrasts(means: Array, axes: Axes) -> tuple[pd.DataFrame, tuple[Index, Index, Index]]:
    """One row per benchmark and pair of levels with the contrast, and the positions of these."""
    both = np.isfinite(means)
    pairs = level_pairs(axes["level"])
    where = [(i, late, early) for late, early in pairs for i in np.flatnonzero(both[:, late] & both[:, early])]
    if not where:
        first, second = map(format_level, axes["algorithm"])
        raise DataError(
            f"{first} and {second} have outcomes at two levels on no benchmark. test='paired' takes runs of both with "
            "the same seed; test='two-sample' needs two runs of each."
        )
    b, late, early = (np.array(part, dtype=np.intp) for part in zip(*where, strict=True))
    table = {
        "benchmark": [axes["benchmark"][i] for i in b],
        "level": [axes["level"][i] for i in late],
        "reference": [axes["level"][i] for i in early],
        "level_outcome": means[b, late],
        "reference_outcome": means[b, early],
        "contrast": means[b, late] - means[b, early],
    }
    return pd.DataFrame(table), (b, late, early)


def _flip_notes(losses: Array, m: int, n: int, adjust: str, alpha: float) -> list[str]:
    notes = [
        f"p-values of the contrasts: {n:,} tables with the common difference at both levels and random signs of the "
        f"residuals, flipped by seed; {ADJUSTMENT_NAMES[adjust]} adjustment over {m} contrast{'s' * (m > 1)}."
    ]
    if adjust in ("holm", "bonferroni", "sidak") and m / (n + 1.0) >= alpha:
        notes.append(
            f"The smallest p-value that {n:,} tables can give is not significant after the adjustment: use n_draws of "
            f"at least {int(np.ceil(2 * m / alpha)):,}."
        )
    seeds = int(ran(losses).any(axis=(1, 2)).sum(axis=1).min())
    if seeds < _FEW_SEEDS:
        notes.append(
            f"There are benchmarks with {seeds} seeds only, whose signs give {2 ** (seeds - 1):,} different tables, "
            "so small p-values are impossible there."
        )
    return notes


def _p_over_budgets(
    outcome: Array, contrast: Array, b: Index, late: Index, early: Index, adjust: str
) -> tuple[Array, Array, list[str]]:
    """Analysis of variance of the outcomes, budgets as repetitions: the p-values of the paper."""
    n = np.isfinite(outcome).sum(axis=2).astype(float)
    df = float((n[n > 0] - 1.0).sum())
    variance = float(np.nansum((outcome - mean_outcomes(outcome)[..., None]) ** 2)) / df
    se = np.sqrt(variance * (1.0 / n[b, late] + 1.0 / n[b, early]))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(np.abs(contrast) < 1e-12, 0.0, np.abs(contrast) / se)
    family, raw = int((n > 0).sum()), two_sided_p(t, df)
    if adjust == "tukey":
        p, over = ptukey(np.sqrt(2.0) * t, family, df, upper=True), f"all pairs of {family} instances"
    else:
        p, over = adjust_raw(raw, adjust, len(t)), f"{len(t)} contrasts"
    note = (
        f"p-values of the contrasts: analysis of variance with the budgets as repetitions, {ADJUSTMENT_NAMES[adjust]} "
        f"adjustment over {over}. The outcomes at the budgets are of the same runs and not independent, so these "
        "p-values are too small; unit='run' gives honest ones."
    )
    return raw, p, [note]


def _overall(table: pd.DataFrame, levels: tuple[Any, ...], alpha: float) -> pd.DataFrame:
    """One row per pair of levels: the mean contrast over benchmarks with its t-test and the interval of its step."""
    rows = []
    for late, early in level_pairs(levels):
        level, reference = levels[late], levels[early]
        part = of_pair(table, {"level": level, "reference": reference})["contrast"].to_numpy(dtype=float)
        if not len(part):
            continue
        m, mean = len(part), float(part.mean())
        se = float(part.std(ddof=1) / np.sqrt(m)) if m > 1 else np.nan
        t = np.nan if m < 2 else 0.0 if abs(mean) < 1e-12 else mean / se if se > 1e-12 else np.copysign(np.inf, mean)
        rows.append((level, reference, m, mean, se, m - 1.0, t))
    frame = pd.DataFrame(rows, columns=["level", "reference", "benchmarks", "contrast", "se", "df", "t_ratio"])
    t_ratio, df = frame["t_ratio"].to_numpy(dtype=float), np.maximum(frame["df"].to_numpy(dtype=float), 1.0)
    raw = two_sided_p(t_ratio, df)
    half = critical_values(df, raw, method="holm", n_tests=len(frame), level=1.0 - alpha) * frame["se"]
    low, high = frame["contrast"] - half, frame["contrast"] + half
    return frame.assign(p_value=adjust_raw(raw, "holm", len(frame)), ci_low=low, ci_high=high)


def _without_room(table: pd.DataFrame, over_benchmarks: pd.DataFrame) -> NDArray[np.bool_]:
    """Where no contrast was found that could not be as large as the mean, since outcomes end at -1 and 1."""
    mean = table[["level", "reference"]].merge(over_benchmarks, on=["level", "reference"], how="left")["contrast"]
    up = np.sign(mean)
    room = np.minimum(1.0 - up * table["reference_outcome"], 1.0 + up * table["level_outcome"])
    return np.asarray(below(room, np.abs(mean)) & (table["decision"] == NONE_FOUND), dtype=bool)


def decided(
    table: pd.DataFrame, over_benchmarks: pd.DataFrame, alpha: float, n_draws: int | None
) -> tuple[pd.DataFrame, list[str]]:
    """The contrasts with their decisions, whether the benchmark is singled out, and a note on close calls.

    With the number of drawn tables the note names the p-values that other random signs could move to the other side of
    their limit.
    """
    columns = ["level", "reference", "contrast", "p_value"]
    of_pair = table[columns[:2]].merge(over_benchmarks[columns], on=columns[:2], how="left")
    same = np.sign(table["contrast"].to_numpy(dtype=float)) == np.sign(of_pair["contrast"].to_numpy(dtype=float))
    raw, p = (table[name].to_numpy(dtype=float) for name in ("p_raw", "p_value"))
    # the other benchmarks give the direction, so the test of whether this one has it is one-sided
    cases = [same & below(p, alpha), same & (raw < 2.0 * alpha), ~same & (raw < alpha)]
    decision = np.select(cases, [FOLLOWS, UNCLEAR, REVERSED], default=NONE_FOUND)
    odd = below(of_pair["p_value"], alpha) & np.isin(decision, [NONE_FOUND, REVERSED])
    table = table.assign(decision=decision, singled_out=odd)
    if n_draws is None:
        return table, []
    error = 2.0 * np.sqrt(raw * (1.0 - raw) / (n_draws + 1.0))
    several = len(over_benchmarks) > 1
    close = []
    for what, values, errors, limits in (
        # an adjusted p-value is about a multiple of the unadjusted one
        ("adjusted", p, error * p / raw, np.full(len(p), alpha)),
        # a contrast that follows after adjustment has no second limit
        ("unadjusted", np.where(same & (p < alpha), np.nan, raw), error, np.where(same, 2.0 * alpha, alpha)),
    ):
        for i in np.flatnonzero(np.abs(values - limits) <= errors):
            name, level, reference = (format_level(table[key].iloc[i]) for key in ("benchmark", *columns[:2]))
            which = f"{name}, {level} - {reference}" if several else name
            close.append(
                f"{which} ({what} {p_text(values[i])}, limit {limits[i]:g}, error {written(errors[i], '.2g')})"
            )
    note = (
        f"Close calls, which other random signs could change: the Monte Carlo error of a p-value (two standard errors, "
        f"n_draws={n_draws:,}) reaches the limit it is compared with: {listed(close, 6)}. A larger n_draws settles it."
    )
    return table, [note] if close else []


# ---------------------------------------------------------------------- clusters and tables


def _clusters(means: Array) -> tuple[tuple[int, ...], Array]:
    """Average linkage of the benchmarks by the root mean squared difference of outcomes at common levels."""
    m = len(means)
    if m < 2:
        return tuple(range(m)), np.zeros((0, 4))
    from scipy.cluster.hierarchy import leaves_list, linkage

    i, j = np.triu_indices(m, k=1)
    squared = (means[i] - means[j]) ** 2
    n = np.isfinite(squared).sum(axis=1)
    with np.errstate(invalid="ignore"):
        distance = np.sqrt(np.nansum(squared, axis=1) / n)
    distance[n == 0] = 2.0  # no common level: as far as can be
    tree = np.asarray(linkage(distance, method="average", optimal_ordering=True), dtype=float)
    return tuple(int(leaf) for leaf in leaves_list(tree)), tree


def _frames(points: dict[str, Array], means: Array, axes: Axes) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per benchmark, level and budget; and one per benchmark and level."""
    b, v, f = np.nonzero(np.isfinite(points["outcome"]))
    at = {"benchmark": [axes["benchmark"][i] for i in b], "level": [axes["level"][i] for i in v]}
    at["budget"] = [axes["budget"][i] for i in f]
    every = pd.DataFrame(at | {name: values[b, v, f] for name, values in points.items()})
    b, v = np.nonzero(np.isfinite(means))
    outcome = points["outcome"][b, v]
    n = np.isfinite(outcome).sum(axis=1)
    instances = {
        "benchmark": [axes["benchmark"][i] for i in b],
        "level": [axes["level"][i] for i in v],
        "budgets": n,
        **{name: (outcome == value).sum(axis=1) / n for name, value in _SHARES.items()},
        "outcome": means[b, v],
    }
    return every.assign(outcome=every["outcome"].astype(int)), pd.DataFrame(instances)
