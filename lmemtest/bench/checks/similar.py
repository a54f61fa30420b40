"""Algorithms that perform alike, and benchmarks that order the algorithms alike: what a study could do without."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.rounding import at_most, below
from lmemtest.core.validate import check_fraction, check_number
from lmemtest.core.verdicts import Finding
from lmemtest.core.words import format_level, format_number, format_p, p_text
from lmemtest.errors import DataError, DesignError
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.model import LmmFit


MARGIN = 0.2  # of the standard deviation of a run; Cohen's "small"
_MOST_EXACT = 8  # algorithms: 40,320 orders
_FEWEST_BENCHMARKS = 3
_MOST_PAIRS = 100_000  # in the table
_AT_ONCE = 1_000_000  # correlations in memory
_SAME_RHO = 1e-9


@guided
def similar_algorithms(
    runs: Runs, *, margin: float = MARGIN, alpha: float = 0.05, model: LmmFit | None = None
) -> Answer:
    """Test which algorithms perform alike, on average over benchmarks.

    Differences of the marginal means of the recommended model (or of `model`), each by two one-sided tests (Schuirmann
    1987, doi:10.1007/BF01068419) against `margin` standard deviations of a run, Holm's method over the pairs: alpha is
    the probability of calling some pair equivalent whose difference is the margin or more. A pair that is not named is
    *not* thereby shown to differ. Runs have to be repeated, as the standard deviation of a run comes from repetitions.

    Returns
    -------
    Answer
        ``table``, one row per pair: ``left``, ``right``, ``estimate``, ``se``, ``df``, ``p_value`` (of equivalence,
        Holm), ``equivalent``. ``margin`` on the scale of the score, ``run_sd`` (standard deviation of the runs of one
        algorithm on one instance), ``alpha``, ``formula`` of the model behind the differences.

    Examples
    --------
    >>> import numpy as np, pandas as pd, lmemtest as lt
    >>> rng = np.random.default_rng(1)
    >>> table = pd.DataFrame([(a, s) for a in "ABC" for s in range(500)], columns=["tool", "seed"])
    >>> table["loss"] = rng.normal(size=1500) + (table["tool"] == "C")
    >>> found = similar_algorithms(lt.Runs(table, score="loss", direction="minimize", algorithm="tool", seed="seed"))
    >>> found.table.loc[found.table["equivalent"], ["left", "right"]].values.tolist()
    [['A', 'B']]
    """
    from lmemtest.bench.modelling.recommend import recommend
    from lmemtest.lmm.means.emmeans import emmeans
    from lmemtest.lmm.model import fit_lmm

    require_runs(runs)
    alpha = check_fraction(alpha, "alpha")
    margin = check_number(margin, "margin", low=0, open="low", meaning="a number of standard deviations of a run")
    run_sd = _run_sd(runs)
    if model is None:
        advised = recommend(runs)
        model = fit_lmm(advised.formula, advised.runs)
    margin *= run_sd
    found = emmeans(model, runs.algorithm).pairs().equivalence(margin, alpha=alpha)
    table = found.to_frame()[["left", "right", "estimate", "se", "df", "p_value"]]
    table["equivalent"] = below(table["p_value"], alpha)
    width = f"{format_number(margin)}, {format_number(margin / run_sd, 2)} standard deviations of a run"
    alike = tuple(finding.message for finding in algorithm_findings(table, margin))
    return Answer(
        question="similar_algorithms",
        title="Algorithms that perform alike",
        tables={"table": table},
        values={"margin": margin, "run_sd": run_sd, "alpha": alpha, "formula": str(model.formula)},
        facts=(
            f"Two one-sided tests of a difference beyond {width}; Holm over {len(table)} pairs, alpha = {alpha:g}. "
            f"Model: {model.formula}",
        ),
        findings=alike or (f"No two algorithms are shown to be equivalent within {width}.",),
        notes=tuple(note for note in found.notes if "p_difference" not in note and "limits" not in note),
    )


def algorithm_findings(table: pd.DataFrame, margin: float) -> list[Finding]:
    """The pairs of algorithms that are equivalent."""
    return [
        Finding(
            severity="note",
            kind="similar_algorithms",
            message=f"{row['left']} and {row['right']} perform alike: they differ by less than "
            f"{format_number(margin)} ({p_text(row['p_value'])}).",
            advice="Fine if they are meant to; otherwise check that what distinguishes them was switched on.",
        )
        for row in table[table["equivalent"]].to_dict("records")
    ]


def _run_sd(runs: Runs) -> float:
    """Of runs of one algorithm on one instance, each with its mean over the common budgets."""
    scores = runs.study.one_score_per_run()[0]
    grouped = scores.groupby(["instance", "algorithm"], observed=True)["score"]
    df = int((grouped.size() - 1).sum())
    ss = float(((scores["score"] - grouped.transform("mean")) ** 2).sum())
    if df < 1 or ss <= 0:
        why = "no run was repeated" if df < 1 else "repeated runs have equal scores"
        raise DesignError(f"{why}, so there is no standard deviation of a run to measure alikeness by. Add more seeds.")
    return float(np.sqrt(ss / df))


@guided
def similar_benchmarks(runs: Runs, *, alpha: float = 0.05) -> Answer:
    """Test which benchmarks order the algorithms alike, beyond the order that all benchmarks share.

    A deviation is the algorithm's mean on the benchmark minus the means of the benchmark and of the algorithm, in units
    of the benchmark's spread between algorithms: in a balanced table the BLUP of ``(1 | benchmark:algorithm)`` up to a
    factor. Two benchmarks are compared by Spearman's rank correlation of the deviations (1904, doi:10.2307/1412159),
    one-sided, against all orders of the algorithms (more than eight algorithms: Student's t), with Holm's method over
    the pairs. With k algorithms no p-value is below 1/k!, so few algorithms cannot show anything. Removing the
    algorithms' means correlates the deviations by about -1/(benchmarks - 1), which makes the test conservative (it
    fires in 1 to 2 % of null tables). An algorithm that deviates strongly everywhere makes large correlations of both
    signs more frequent: then look at the values, not at the p-values only.

    Returns
    -------
    Answer
        ``table``, one row per pair: ``left``, ``right``, ``rho`` (rank correlation of the algorithms' deviations),
        ``p_raw`` (one-sided), ``p_value`` (Holm over all pairs), ``alike``. Of more than 100,000 pairs (448 benchmarks
        or more) the 100,000 with the largest correlations, the first of those that are equal; a note says so.
        ``n_pairs``: all pairs, also those that the table leaves out; ``deviations``: algorithms by benchmarks, means
        without the effects of benchmark and algorithm, in standard deviations of the benchmark; ``smallest_p``: the
        smallest adjusted p-value that this number of algorithms and benchmarks allows; ``alpha``.

    Examples
    --------
    >>> import lmemtest as lt
    >>> similar = similar_benchmarks(lt.datasets.load_hpo_runs().filter(budget=32, prior="good"))
    >>> len(similar.table), similar.deviations.shape
    (190, (6, 20))
    """
    require_runs(runs)
    alpha = check_fraction(alpha, "alpha")
    deviations, notes = _deviations(runs)
    n = deviations.shape[1]
    n_pairs = n * (n - 1) // 2
    table = _compare(deviations)
    adjusted = adjust_raw(table["p_raw"].to_numpy(), "holm", n_pairs)  # the smallest need no others
    table = table.assign(p_value=adjusted, alike=at_most(adjusted, alpha))
    if len(table) < n_pairs:
        more = " They are all alike, so others may be as well." if table["alike"].all() else ""
        notes.append(
            f"The table has the {len(table):,} pairs with the largest correlations of {n_pairs:,}; p-values count all."
            f"{more}"
        )
    k = len(deviations)
    smallest_p = min(1.0, n_pairs * float(_upper_p(np.array([1.0]), k)[0]))
    found = tuple(finding.message for finding in benchmark_findings(table))
    if not found and not below(smallest_p, alpha):
        found = (
            f"With {k} algorithms no two of {n} benchmarks can be shown to be alike: the smallest possible p-value "
            f"is {format_p(smallest_p)}.",
        )
    reference = "exact" if k <= _MOST_EXACT else "t"
    return Answer(
        question="similar_benchmarks",
        title="Benchmarks that order the algorithms alike",
        tables={"table": table},
        values={"n_pairs": n_pairs, "deviations": deviations, "smallest_p": smallest_p, "alpha": alpha},
        facts=(
            f"Rank correlation over {k} algorithms of what is left of their means without the "
            f"effects of benchmark and algorithm; one-sided, {reference} reference, "
            f"Holm over {n_pairs} pairs, alpha = {alpha:g}.",
        ),
        findings=found
        or (f"No two of {n} benchmarks are shown to order the {k} algorithms alike beyond their common order.",),
        notes=tuple(notes),
        printed=table.sort_values("p_value", kind="stable", ignore_index=True),
    )


def _deviations(runs: Runs) -> tuple[pd.DataFrame, list[str]]:
    """Algorithms by benchmarks, doubly centred and scaled by benchmark."""
    if runs.benchmark is None or len(runs.levels(runs.benchmark)) < _FEWEST_BENCHMARKS:
        n = 0 if runs.benchmark is None else len(runs.levels(runs.benchmark))
        raise DesignError(
            f"Benchmarks are compared by what sets them apart from the others, which needs {_FEWEST_BENCHMARKS} or "
            f"more; there {'is one' if n == 1 else f'are {n}'}. Add more benchmarks."
        )
    if len(runs.algorithms) < 3:
        raise DesignError("There are two algorithms only, and two orders of them are always alike or opposite.")
    frame, averaged = runs.study.one_score_per_run()
    cells = frame.groupby(["algorithm", "benchmark", "instance"], observed=True)["score"].mean()
    means = cells.groupby(level=["algorithm", "benchmark"], observed=True).mean().unstack("benchmark")
    full = means.dropna(axis=1)
    notes = list(averaged)
    if full.shape[1] < means.shape[1]:
        notes.append(f"{means.shape[1] - full.shape[1]} benchmarks that not all algorithms ran were left out.")
    centred = full - full.mean(axis=0)
    spread = centred.std(axis=0)
    flat = ~(spread > 1e-12 * full.abs().max(axis=0))
    if flat.any():
        notes.append(f"{int(flat.sum())} benchmarks on which all algorithms have the same mean were left out.")
    scaled = (centred / spread).loc[:, ~flat]
    if scaled.shape[1] < _FEWEST_BENCHMARKS:
        raise DataError(
            f"Only {scaled.shape[1]} benchmarks were run by all algorithms and distinguish them; "
            f"{_FEWEST_BENCHMARKS} are needed."
        )
    return scaled.sub(scaled.mean(axis=1), axis=0), notes


def _compare(deviations: pd.DataFrame) -> pd.DataFrame:
    """The pairs in the order of the benchmarks; of more than `_MOST_PAIRS` those with the largest correlations."""
    ranks = deviations.round(12).rank(axis=0).to_numpy(dtype=float)
    ranks = ranks - ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    length[length == 0] = np.inf
    i, j, rho = _largest(ranks / length, _MOST_PAIRS)
    names = deviations.columns.to_numpy(dtype=object)
    return pd.DataFrame({"left": names[i], "right": names[j], "rho": rho, "p_raw": _upper_p(rho, len(deviations))})


def _largest(units: Array, most: int) -> tuple[Index, Index, Array]:
    """The pairs of columns with the largest products, by their places; the first of those that differ by rounding."""
    n = units.shape[1]
    rows = max(_AT_ONCE // n, 1)
    i, j, rho = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0)
    for start in range(0, n - 1, rows):
        products = units[:, start : start + rows].T @ units
        later = np.arange(n) > np.arange(start, start + len(products))[:, None]
        # what is found later has to be larger to come in
        wanted = later if len(rho) < most else later & (products > rho.min() + _SAME_RHO)
        new_i, new_j = np.nonzero(wanted)
        i, j = np.concatenate([i, new_i + start]), np.concatenate([j, new_j])
        rho = np.concatenate([rho, products[wanted]])
        if len(rho) > most:
            least = np.partition(rho, -most)[-most]
            larger, equal = rho > least + _SAME_RHO, np.abs(rho - least) <= _SAME_RHO
            kept = larger | equal & (np.cumsum(equal) <= most - larger.sum())
            i, j, rho = i[kept], j[kept], rho[kept]
    return i, j, rho


def _upper_p(rho: Array, k: int) -> Array:
    """P(Spearman's rho of k items >= rho) for a random order."""
    if k <= _MOST_EXACT:
        law = _orders(k)
        return np.asarray(1.0 - np.searchsorted(law, rho - _SAME_RHO) / len(law))
    with np.errstate(divide="ignore"):
        t = rho * np.sqrt((k - 2.0) / np.maximum(1.0 - rho**2, 0.0))
    tail = 0.5 * two_sided_p(t, np.full(t.shape, k - 2.0))
    return np.where(rho > 0, tail, 1.0 - tail)


@lru_cache(maxsize=8)
def _orders(k: int) -> Array:
    """Spearman's rho of every order of k items with 1, ..., k, sorted."""
    centred = np.arange(k) - 0.5 * (k - 1)
    orders = np.array(list(permutations(range(k))), dtype=np.intp)
    return np.sort(centred[orders] @ centred / (centred @ centred))


def benchmark_findings(table: pd.DataFrame) -> list[Finding]:
    """The pairs of benchmarks that order the algorithms alike."""
    return [
        Finding(
            severity="note",
            kind="similar_benchmarks",
            message=f"{format_level(row['left'])} and {format_level(row['right'])} order the algorithms alike beyond "
            f"the common order (rank correlation {format_number(row['rho'], 2)}, {p_text(row['p_value'])}).",
            advice="If they share their data or their task they count as one benchmark, not two: repeat the analysis "
            "without one of them.",
        )
        for row in table[table["alike"]].to_dict("records")
    ]
