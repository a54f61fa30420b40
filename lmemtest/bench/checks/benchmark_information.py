"""On which benchmarks do the algorithms differ, and by how much?

A benchmark on which all algorithms do alike costs budget and says nothing about their order. Each benchmark is asked on
its own: ``score ~ 1`` against ``score ~ algorithm``, one observation per run, residual variances free to differ between
algorithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.data.runs import require_runs
from lmemtest.core.codes import group_means
from lmemtest.core.hints import guided
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most, tolerance, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_flag, check_fraction
from lmemtest.core.words import IN_SENTENCE, format_level, joined, listed
from lmemtest.errors import DataError, DesignError
from lmemtest.lmm.distributions.student import noncentrality_interval
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array


BY = ("instance", "benchmark")
ADJUSTMENTS = ("holm", "bonferroni", "fdr", "none")

# Welch's test of 8 algorithms with 3 runs each rejects a true null in 10 % of 20,000 normal tables, with 5 runs in 7 %,
# with 10 in 5 %; with up to 4 algorithms it keeps its level from 3 runs on.
_FEW_RUNS, _MANY_ALGORITHMS = 10, 5
_SCALES_APART = 10.0  # ratio of residual deviations from which raw variances rank units, not benchmarks
_CONSTANT = 1e-12  # relative to the mean square of the scores


@guided
@one_blas_thread()
def benchmark_information(
    runs: Runs,
    *,
    rank_benchmarks: bool = False,
    by: str = "instance",
    alpha: float = 0.05,
    adjust: str = "holm",
) -> Answer:
    """Test on each benchmark whether the algorithms differ.

    Parameters
    ----------
    runs : Runs
        With at least two runs of two algorithms on some benchmark. Without a benchmark column all runs are one.
    rank_benchmarks : bool
        Also rank the benchmarks by the variance between the means of the algorithms.
    by : {"instance", "benchmark"}
        Test each benchmark at each level of its metafeatures, or each benchmark, with the mean over the levels as the
        score of a seed. Differences of opposite sign cancel in that mean.
    alpha : float in (0, 1)
        Level of the family of tests, and one minus the confidence level of the intervals.
    adjust : {"holm", "bonferroni", "fdr", "none"}
        Adjustment over the benchmarks.

    Returns
    -------
    Answer
        ``table``, one row per benchmark or instance: ``benchmark``, ``n_runs``, ``n_algorithms``, ``best`` (all that
        tie, as "A and B"), ``f_ratio``, ``df_num``, ``df_den``, ``p_raw``, ``p_value``, ``informative`` (missing where
        no test was possible), ``share`` (of the variance between runs that algorithms explain), ``share_low``,
        ``share_high``; with `rank_benchmarks` also ``variance`` (between the algorithms' means), ``variance_low``,
        ``variance_high``, ``rank``, and the same rows by rank, the largest variance first, as ``ranking``. Names of
        benchmarks: ``informative`` (the algorithms differ), ``uninformative`` (tested, no difference found),
        ``untested`` (no test was possible; the notes say why). ``remarks``: what the notes say of each
        benchmark, by its name in the table. ``alpha``, ``adjust``.

    Raises
    ------
    DesignError
        If no benchmark has two runs of two algorithms.
    DataError
        If runs have no budget in common or, for ``by="benchmark"``, not the same levels of the metafeatures.

    Notes
    -----
    The test is Welch's F: algorithms rarely have the same variance, and where one has four times the standard
    deviation of seven others the classical F-test rejects a true null in 13 % of the cases (10 runs each, nominal
    5 %), Welch's in 6 %. Seeds that algorithms share make it conservative. Where an algorithm's runs do not vary at all
    the classical F-test takes its place, with a note.

    Equation 11 of the paper, ``score ~ (0 + benchmark | algorithm)``, has 78 covariance parameters for 12 benchmarks,
    to be estimated from as many draws as there are algorithms; three algorithms identify almost none of them. What it
    is meant to rank, the variance between algorithms on each benchmark, is estimated here benchmark by benchmark, which
    is its diagonal version with a residual variance per benchmark:
    ``(mean square between - mean square within) / n``, n the (average) number of runs of an algorithm. It can be
    negative, which says zero. The algorithms count as the ones of interest, not as a sample of algorithms. Its interval
    comes from the noncentral F distribution with the residual variance taken as known, and that of the share from the
    same distribution without this liberty; both assume equal variances. They never end at zero: where the means lie
    closer together than chance alone puts them the limit says what is still possible (see `noncentrality_interval`).

    References
    ----------
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024). LMEMs for post-hoc analysis of HPO benchmarking.
    arXiv:2408.02533; Welch (1951), doi:10.1093/biomet/38.3-4.330; Steiger (2004), doi:10.1037/1082-989X.9.2.164;
    Read (2002), doi:10.1088/0954-3899/28/10/313

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.checks.benchmark_information import benchmark_information
    >>> result = benchmark_information(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> len(result.informative), len(result.table)
    (20, 20)
    """
    require_runs(runs)
    check_choice(by, "by", BY)
    check_choice(adjust, "adjust", ADJUSTMENTS)
    check_fraction(alpha, "alpha")
    rank_benchmarks = check_flag(rank_benchmarks, "rank_benchmarks")
    frame, averaged = runs.study.one_score_per_run()
    if by == "benchmark" and len(runs.study.instance) > 1:
        frame = _per_benchmark(frame, runs)
    rows, untested, remarks = [], dict[str, list[str]](), dict[str, list[str]]()
    for name, part in frame.groupby("instance", observed=True, sort=False):
        row, reasons = _one(str(name), part, runs, 1.0 - alpha)
        rows.append(row)
        remarks[str(name)] = reasons
        for reason in reasons:
            untested.setdefault(reason, []).append(str(name))
    table = pd.DataFrame(rows)
    why = [_where(names, len(table), reason) for reason, names in untested.items()]
    if table["p_raw"].isna().all():
        raise DesignError(
            f"no benchmark can be tested: {' '.join(why)} Add repeated runs (seeds) of the algorithms on the same "
            "benchmark."
        )
    notes = [*averaged, *why]
    adjusted = adjust_raw(table["p_raw"].to_numpy(), adjust, int(table["p_raw"].notna().sum()))
    at = list(table.columns).index("p_raw") + 1
    table.insert(at, "p_value", adjusted)
    found = pd.Series(at_most(adjusted, alpha), dtype="boolean")
    table.insert(at + 1, "informative", found.mask(np.isnan(adjusted)))
    if rank_benchmarks:
        table["rank"] = table["variance"].rank(ascending=False, method="min").astype("Int64")
    notes += _cautions(frame, table, rank_benchmarks)
    if not rank_benchmarks:
        table = table.drop(columns=["variance", "variance_low", "variance_high"])
    values: dict[str, Any] = {
        "alpha": alpha,
        "adjust": adjust,
        "remarks": remarks,
        "informative": tuple(table.loc[table["informative"].fillna(False), "benchmark"]),
        "uninformative": tuple(table.loc[~table["informative"].fillna(True), "benchmark"]),
        "untested": tuple(table.loc[table["informative"].isna(), "benchmark"]),
    }
    if rank_benchmarks:
        values["ranking"] = table.sort_values("rank", kind="stable", ignore_index=True)
    return Answer(
        question="benchmark_information",
        title="On which benchmarks do the algorithms differ?",
        tables={"table": table},
        values=values,
        findings=_findings(table, values),
        notes=tuple(notes),
        printed=values.get("ranking"),
        figure="benchmark_information_plot",
    )


def _findings(table: pd.DataFrame, values: dict[str, Any]) -> tuple[str, ...]:
    """On which benchmarks algorithms differ, and what is not known of the others."""
    informative, uninformative, untested = (values[name] for name in ("informative", "uninformative", "untested"))
    how = (
        f"(Welch's F-test per benchmark, {ADJUSTMENT_NAMES[values['adjust']]} adjustment, alpha = {values['alpha']:g})"
    )
    total = len(table) - len(untested)
    tested = "tested benchmarks" if untested else "benchmarks"
    many = f"all {total}" if not uninformative else f"{len(informative)} of {total}"
    parts = [f"Algorithms differ on {many} {tested} {how}."]
    if uninformative:
        limit = table.loc[table["benchmark"].isin(uninformative), "share_high"].max()
        parts.append(
            f"No difference was found on {listed(uninformative)}, which is not proof that there is none: algorithms "
            f"may still explain up to {written(100 * limit, '.0f')} % of the variance between runs there."
        )
    if untested:
        parts.append(f"{listed(untested)} could not be tested, so nothing is known there.")
    return tuple(parts)


def _per_benchmark(frame: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """One score per benchmark, algorithm and seed: its mean over the levels of the metafeatures."""
    for role in ("benchmark", "seed"):
        runs.study.require(role, "by='benchmark' cannot average over metafeatures")
    levels = frame.groupby("benchmark", observed=True)["instance"].nunique()
    means, size = group_means(frame, ["benchmark", "algorithm", "seed"], "score")
    means = means.assign(instance=means["benchmark"].map(format_level))
    lacking = means[size < means["benchmark"].map(levels).to_numpy()]
    if len(lacking):
        first = lacking.iloc[0]
        raise DataError(
            f"by='benchmark' averages over metafeatures, but {len(lacking):,} runs lack some level, for example "
            f"{first['algorithm']} with seed {first['seed']} on {first['instance']}; their means would not compare. "
            "Use by='instance', or filter to levels that all runs have."
        )
    return means


def _where(names: list[str], n: int, reason: str) -> str:
    """A reason with the benchmarks that it concerns: all of a few by name, many by their number."""
    if len(names) <= IN_SENTENCE:
        return f"{joined(names)}: {reason}"
    return f"{len(names):,} of {n:,} benchmarks ({listed(names, most=2)}): {reason}"


def _one(name: str, part: pd.DataFrame, runs: Runs, level: float) -> tuple[dict[str, Any], list[str]]:
    scores, rows = part["score"].to_numpy(), part.groupby("algorithm", observed=True).indices
    groups = [(a, scores[rows[a]]) for a in runs.algorithms if a in rows]
    gains = np.array([np.mean(y) for _, y in groups]) * (-1.0 if runs.direction == "minimize" else 1.0)
    best = sorted(groups[i][0] for i in np.flatnonzero(gains >= gains.max() - tolerance(gains)))
    row: dict[str, Any] = {
        "benchmark": name,
        "n_runs": len(part),
        "n_algorithms": len(groups),
        "best": joined(best),
    }
    alone = [a for a, y in groups if len(y) < 2]
    samples = [y for _, y in groups if len(y) > 1]
    if len(samples) < 2:
        note = "fewer than two algorithms ran there more than once, so chance cannot be judged."
        return row | dict.fromkeys((*_TEST, *_SIZE), float("nan")), [note]
    notes = [f"{listed(alone)} ran once there and took no part in the test."] if alone else []
    numbers, note = _one_way(samples, level)
    return row | numbers, [*notes, *([note] if note else [])]


_TEST = ("f_ratio", "df_num", "df_den", "p_raw")
_SIZE = ("share", "share_low", "share_high", "variance", "variance_low", "variance_high")


def _one_way(samples: list[Array], level: float) -> tuple[dict[str, float], str]:
    """Test and size of the differences between samples, and what to know of the test, if anything."""
    n, mean = np.array([len(y) for y in samples], dtype=float), np.array([y.mean() for y in samples])
    variance = np.array([y.var(ddof=1) for y in samples])
    negligible = _CONSTANT * float(np.mean(np.concatenate(samples) ** 2))
    k, rows, nan = len(samples), float(n.sum()), float("nan")
    between = float(n @ (mean - n @ mean / rows) ** 2) / (k - 1)
    within = float((n - 1) @ variance) / (rows - k)
    average = (rows - float(n @ n) / rows) / (k - 1)  # multiplies the variance in the mean square between
    estimate = (between - within) / average
    if within <= negligible:
        size: tuple[float, ...] = (nan, nan, nan, estimate, nan, nan)
    else:
        f = between / within
        low, high = noncentrality_interval(f, k - 1, rows - k, level)
        per_unit = within / (average * (k - 1))
        point = max((k - 1) * (f - 1.0), 0.0)  # omega squared
        shares = [part / (part + rows) for part in (point, low, high)]
        size = (*shares, estimate, low * per_unit, high * per_unit)
    moving, note = variance > negligible, ""
    if not moving.any():
        note = "no algorithm's score varies between runs, so there is no chance to judge differences by."
        if np.ptp(mean) <= np.sqrt(negligible):
            note = "all runs have the same score, so it says nothing about the algorithms."
        return dict(zip((*_TEST, *_SIZE), (nan,) * len(_TEST) + size, strict=True)), note
    if moving.all():  # Welch (1951)
        weight = n / variance
        share = weight / weight.sum()
        lack = float(np.sum((1.0 - share) ** 2 / (n - 1)))
        f = float(weight @ (mean - share @ mean) ** 2) / (k - 1) / (1.0 + 2.0 * (k - 2) / (k**2 - 1) * lack)
        df_den = (k**2 - 1) / (3.0 * lack)
    else:
        f, df_den = between / within, rows - k
        note = "some algorithm's score does not vary there, so the classical F-test was used, which pools variances."
    test = (f, k - 1.0, df_den, float(special.fdtrc(k - 1.0, df_den, f)))
    return dict(zip((*_TEST, *_SIZE), test + size, strict=True)), note


def _cautions(frame: pd.DataFrame, table: pd.DataFrame, ranked: bool) -> list[str]:
    notes = []
    counts = frame.groupby(["instance", "algorithm"], observed=True).size()
    if table["n_algorithms"].max() >= _MANY_ALGORITHMS and counts.min() < _FEW_RUNS:
        notes.append(
            f"There are only {counts.min()} runs per algorithm on some benchmark: with {_MANY_ALGORITHMS} algorithms "
            f"or more and fewer than {_FEW_RUNS} runs Welch's test rejects somewhat too often (10 % instead of 5 % for "
            "8 algorithms with 3 runs)."
        )
    small = table.loc[table["informative"] & (table["share_low"] <= 0.0), "benchmark"]
    if len(small):
        notes.append(
            f"On {listed(small)} algorithms differ by little beside the spread of the noisiest of them: Welch's test "
            "weighs each algorithm by its own precision, the share counts the spread of all."
        )
    if ranked:
        notes.append(
            "Ranked by the variance between the algorithms' means in squared units of the score; benchmarks whose "
            "intervals overlap are not in a proven order."
        )
        residual = frame.groupby("instance", observed=True)["score"].std()
        residual = residual[residual > 0]
        if len(residual) and residual.max() > _SCALES_APART * residual.min():
            notes.append(
                f"The spread between runs differs by a factor of {written(residual.max() / residual.min(), ',.0f')} "
                f"between "
                "benchmarks, so this ranking is one of units. Compare the shares, which have none, or normalise first: "
                'runs.normalize("zscore", by="benchmark").'
            )
    return notes
