"""How often each algorithm fails: on these benchmarks, and on benchmarks like these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.failures import counted_kinds, failures_by_kind, rows_or_runs
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.failures.counts import (
    alike_p_values,
    failed_everywhere,
    failure_counts,
    flipped_p_value,
    rates_by_population,
    recovered_runs,
    stratified_p_value,
    with_failures,
)
from lmemtest.core.caller import advice
from lmemtest.core.hints import guided
from lmemtest.core.proportions import bounded_mean_interval, clopper_pearson
from lmemtest.core.result import Answer
from lmemtest.core.rounding import below, in_tie_order, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_fraction, resolve_rng
from lmemtest.core.words import format_level, format_p, joined, p_text, percent
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index

POPULATIONS = {
    "run": "further runs on these benchmarks",
    "benchmark": "further benchmarks",
    "family": "further families",
}
_FEWEST_SIGNS = 6  # benchmarks from which on the signs of their differences can have a p-value below 0.05
_ON = {"run": "on these benchmarks", "benchmark": "on further benchmarks", "family": "in further families"}


@guided
@one_blas_thread()
def failure_rates(runs: Runs, *, alpha: float = 0.05, rng: int | np.random.Generator | None = None) -> Answer:
    """Estimate how often each algorithm fails, with intervals, and compare the algorithms.

    Parameters
    ----------
    runs : Runs
        With the role ``failed``, or as `Runs.score_failures` returns them; ``runs.failures.left_out`` for those alone
        that it left out.
    alpha : float in (0, 1)
        Level of the decisions, for all pairs together. Intervals of rates are of level 1 - `alpha`, not simultaneous.
    rng : int, numpy.random.Generator or None
        For patterns of signs, where two algorithms differ on more than 14 benchmarks.

    Returns
    -------
    Answer
        ``table``, one row per algorithm and population, the least often failing algorithm first: ``algorithm``,
        ``population`` ("run": further runs on these benchmarks; "benchmark": further benchmarks; "family": further
        families), ``n_failed``, ``n_runs``, ``n_units`` (of what is the sample), ``rate`` (mean over benchmarks, or
        families, of the share that failed), ``ci_low``, ``ci_high``. ``pairs``, one row per pair of algorithms and
        population: ``left``, ``right``, ``population``, ``estimate`` (left - right, on common benchmarks), ``p_raw``,
        ``p_value`` (adjusted by Holm within the population). ``where``, one row per benchmark and algorithm with
        failures: ``benchmark``, ``algorithm``, ``n_failed``, ``n_runs``; ``counts``, the same of all that ran.
        ``kinds``, one row per kind of failure and algorithm: ``kind``, ``algorithm``, ``n_failed`` (scores, where there
        are budgets); no rows without kinds.
        ``to_repeat``, the runs to be run again, where the policy is "retry". ``p_values``, by population, that failing
        has nothing to do with the algorithm: "run" where runs fail independently, "benchmark" and "family" also where
        those of an algorithm on a benchmark (in a family) fail together; ``dependence``, that in words. ``alpha``.

    Raises
    ------
    ArgumentError
        If the runs do not say which of them failed.

    Notes
    -----
    A run that was scored at several budgets failed if it failed at any. Two claims have two intervals. For further runs
    on these benchmarks runs are independent; the interval is Clopper and Pearson's, also where benchmarks differ in
    how often runs fail, which makes it wider than needed. For further benchmarks the rates of the benchmarks are the
    sample, and nothing is known of them but that they are between 0 and 1 (Gaffke's interval): seeds that fail together
    do no harm. After no failure on B benchmarks the upper limit is 1 - (a/2)^(1/B), as the rule of three has it.

    Nor do they to the tests for further benchmarks, which exchange the names of the algorithms on whole benchmarks.
    They do count benchmarks as independent: a seed of one algorithm that fails on all of them by one cause, such as a
    job that was killed, is not as many failures as there are benchmarks. A note names such seeds.

    References
    ----------
    Clopper & Pearson (1934), doi:10.1093/biomet/26.4.404; Gaffke (2005), Mathematical Methods of Statistics 14,
    451-467; Hanley & Lippman-Hand (1983), doi:10.1001/jama.1983.03330370053031

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"tool": ["A", "B"] * 20, "task": [f"t{i // 8}" for i in range(40)]}
    >>> table["loss"] = [0.1 * i if i % 8 else None for i in range(40)]
    >>> roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    >>> runs = lt.Runs(table, failed="missing", **roles)
    >>> rates = lt.failure_rates(runs)
    >>> rates.sentences()[0]
    '5 of 40 runs failed: B 0 of 20 and A 5 of 20.'
    >>> round(rates.p_values["benchmark"], 4)  # that failing has nothing to do with the tool
    0.0625
    """
    require_runs(runs)
    level = 1.0 - check_fraction(alpha, "alpha")
    generator = resolve_rng(rng)
    failed, ran, benchmarks, family = failure_counts(runs)
    algorithms, rates = runs.algorithms, rates_by_population(failed, ran, family)
    notes = (
        *runs.notes,
        *(["There is one benchmark, so nothing is said about further ones."] if len(rates) == 1 else []),
        *_on_recovered(runs),
        *[
            f"{format_level(name)} failed with {format_level(seed)} as {runs.seed} on all {n:,} benchmarks. If that "
            "has one cause, tests for further benchmarks count it as many."
            for name, seed, n in failed_everywhere(runs)
        ],
    )
    mean = np.nanmean(rates["run"], axis=0)
    order = in_tie_order(range(len(algorithms)), lambda i: float(mean[i]))
    table = pd.DataFrame(
        [
            {
                "algorithm": algorithms[i],
                "population": population,
                "n_failed": int(failed[:, i].sum()),
                "n_runs": int(ran[:, i].sum()),
                **_rate(failed[:, i], ran[:, i], None if population == "run" else rates[population][:, i], level),
            }
            for i in order
            for population in rates
        ]
    )
    pairs = []
    for population, own in rates.items():
        rows = []
        for place, i in enumerate(order):
            for j in order[place + 1 :]:
                gap, two = own[:, i] - own[:, j], [i, j]
                if population == "run":
                    p = stratified_p_value(failed[:, two], ran[:, two], np.array([True, False]))
                else:
                    p = flipped_p_value(gap, generator)
                mean_gap, p = (float(np.nanmean(gap)), p) if np.isfinite(gap).any() else (np.nan, np.nan)
                rows.append((algorithms[i], algorithms[j], population, mean_gap, p))
        part = pd.DataFrame(rows, columns=["left", "right", "population", "estimate", "p_raw"])
        pairs.append(part.assign(p_value=adjust_raw(part["p_raw"].to_numpy(dtype=float), "holm", len(part))))
    counts = pd.DataFrame(
        [
            (benchmark, algorithms[i], int(failed[b, i]), int(ran[b, i]))
            for b, benchmark in enumerate(benchmarks)
            for i in order
            if ran[b, i]
        ],
        columns=["benchmark", "algorithm", "n_failed", "n_runs"],
    )
    if 1 < len(benchmarks) < _FEWEST_SIGNS and failed.any() and (ran > 1).any():
        notes += (
            f"With {len(benchmarks)} benchmarks no test of a pair for further ones has a p-value below "
            f"{written(2.0 ** (1 - len(benchmarks)), '.3g')}. A mixed model of the odds assumes more and can find a "
            f"difference with so few: {advice('failures_model')}.",
        )
    source = with_failures(runs)
    tables = {"table": table, "pairs": pd.concat(pairs, ignore_index=True), "kinds": failures_by_kind(source)}
    tables["to_repeat"] = pd.DataFrame() if runs.failures is None else runs.failures.to_repeat
    by_kind = f"Failed {rows_or_runs(source)} by kind: {counted_kinds(source)}."
    p_values = alike_p_values(failed, ran, family)
    return Answer(
        question="failure_rates",
        title="How often each algorithm fails",
        tables={**tables, "where": counts[counts["n_failed"] > 0].reset_index(drop=True), "counts": counts},
        values={"p_values": p_values, "dependence": dependence(p_values, alpha), "alpha": alpha},
        facts=(
            f"Intervals ({100 * level:.4g} %) for further benchmarks or families take nothing for granted about "
            "how failures are spread; on these benchmarks they are Clopper and Pearson's, if runs fail independently.",
            "Tests on these benchmarks: exact, given how many runs failed on each, if runs fail independently. On "
            "further benchmarks: the names of the algorithms (of two, the signs of differences) are exchanged on whole "
            "benchmarks, so that runs of one may fail together, but all algorithms alike: one whose runs fail together "
            "beside others that fail one by one is different also at the same rate. With fewer than six on which two "
            "algorithms differ no p-value of a pair is below 0.06.",
        ),
        findings=(
            *_findings(table, p_values, level, alpha),
            *[by_kind] * (len(tables["kinds"]) > 0),
            *_differences(tables["pairs"], alpha),
        ),
        notes=notes,
        formats={**dict.fromkeys(("rate", "ci_low", "ci_high"), percent), "p_raw": format_p, "p_value": format_p},
        figure="failure_rates_plot",
    )


def dependence(p_values: Mapping[str, float], alpha: float) -> str:
    """Whether failing depends on the algorithm, for the widest population for which that is shown; others with their p.

    >>> dependence({"run": 0.001, "benchmark": 0.2}, 0.05).split(";")[0]
    'If runs fail independently, how often they fail depends on the algorithm on these benchmarks (p = 0.001)'
    """
    said = {name: f"{_ON[name]} ({p_text(p)})" for name, p in p_values.items()}
    shown = [name for name, p in p_values.items() if below(p, alpha)]
    if not shown:
        return f"It is not shown that failing depends on the algorithm, {' or '.join(said.values())}."
    widest = shown[-1]
    wider = [said[name] for name in list(p_values)[list(p_values).index(widest) + 1 :]]
    if widest != "run":
        not_shown = f"; {joined(wider)} it is not shown" if wider else ""
        depends = f"Failing depends on the algorithm, also {said[widest]}, by its rate or by runs that fail together"
        return f"{depends}, so failed runs are not missing by chance{not_shown}."
    together = f"; {joined(wider)} it is not shown, as runs of one algorithm may fail together" if wider else ""
    return f"If runs fail independently, how often they fail depends on the algorithm {said['run']}{together}."


def _on_recovered(runs: Runs) -> list[str]:
    """A note where failed runs have scores later on."""
    failed, again = recovered_runs(runs)
    if not again:
        return []
    best = advice("best_so_far")
    return [
        f"{again:,} of {failed:,} failed runs have a score again at a later {runs.budget}; they count as failed. If "
        f"each {runs.budget} is a trial of a search, a run fails only while it has no score at all: {best}."
    ]


def _rate(failed: Index, ran: Index, rates: Array | None, level: float) -> dict[str, Any]:
    """Of an algorithm, with its interval: from its runs, or from its rates on the units of a sample."""
    if rates is None:
        failed, ran = failed[ran > 0], ran[ran > 0]
        rate, units = float(np.mean(failed / ran)), int(ran.sum())
        size = len(ran) ** 2 / float((1.0 / ran).sum())  # runs on benchmarks of equal numbers that tell as much
        low, high = map(float, clopper_pearson(rate * size, size, level))
    else:
        known = rates[np.isfinite(rates)]
        rate, units = float(known.mean()), len(known)
        low, high = bounded_mean_interval(known, level) if units > 1 else (np.nan, np.nan)
    return {"n_units": units, "rate": rate, "ci_low": low, "ci_high": high}


def _findings(table: pd.DataFrame, p_values: Mapping[str, float], level: float, alpha: float) -> Iterator[str]:
    """How often which algorithm fails, and whether that depends on the algorithm."""
    runs = table[table["population"] == "run"]
    failed, n_runs = int(runs["n_failed"].sum()), int(runs["n_runs"].sum())
    if failed:
        each = [f"{row['algorithm']} {row['n_failed']:,} of {row['n_runs']:,}" for row in runs.to_dict("records")]
        yield f"{failed:,} of {n_runs:,} runs failed: {joined(each, most=8)}."
        yield dependence(p_values, alpha)
    else:
        yield f"None of {n_runs:,} runs failed."
    of = f"{100 * level:.4g} %"
    for algorithm, part in table.groupby("algorithm", sort=False, observed=True):
        rows = part.to_dict("records")
        if rows[0]["n_failed"] == 0:
            limits = [f"at most {percent(row['ci_high'])} {_ON[row['population']]}" for row in rows]
            rate = f"its failure rate is {joined(limits)} ({of} limits)"
            yield f"{algorithm} never failed in {rows[0]['n_runs']:,} runs: {rate}."
        else:
            limits = [f"{percent(row['ci_low'])} to {percent(row['ci_high'])} {_ON[row['population']]}" for row in rows]
            yield f"{algorithm} fails in {percent(rows[0]['rate'])} of its runs ({of} limits: {', '.join(limits)})."


def _differences(pairs: pd.DataFrame, alpha: float) -> Iterator[str]:
    """The pairs that differ, each for the widest population for which it does."""
    for _, rows in pairs[below(pairs["p_value"].to_numpy(), alpha)].groupby(["left", "right"], sort=False):
        row = rows.to_dict("records")[-1]
        more, less = (row["left"], row["right"]) if row["estimate"] > 0 else (row["right"], row["left"])
        gap, where = percent(abs(row["estimate"])), _ON[row["population"]]
        where += " if runs fail independently" * (row["population"] == "run")
        yield f"{more} fails more often than {less}, by {gap} {where} ({p_text(row['p_value'])})."
