"""Benchmarks grouped by which algorithms do well on them, and how far the groups hold up when runs are redrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.study import BETWEEN
from lmemtest.bench.variation.run_design import ALGORITHM, BENCHMARK, CONDITION, SEED, RunDesign, run_design
from lmemtest.core.codes import in_order
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.rounding import in_tie_order, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index


SCALES = ("auto", "shape", "noise")
LINKAGES = ("average", "ward", "complete", "single")
STABLE, DISSOLVED = 0.75, 0.5  # mean Jaccard similarity, after Hennig (2007)
_MOST_CLUSTERS = 6  # that are tried where their number is not given


@guided
@one_blas_thread()
def benchmark_clusters(
    runs: Runs,
    *,
    n_clusters: int | None = None,
    scale: str = "auto",
    method: str = "average",
    n_draws: int = 200,
    rng: int | np.random.Generator | None = None,
) -> Answer:
    """Group benchmarks by the relative performance of the algorithms, and test the groups by redrawing the runs.

    Parameters
    ----------
    runs : Runs
        With at least four benchmarks, on each of which all algorithms were run (at all levels of the metafeatures
        that change within benchmarks). With several budgets, runs count by their mean over them.
    n_clusters : int, optional
        By default the number from two to six with the largest mean silhouette.
    scale : {"auto", "shape", "noise"}
        "shape" divides a benchmark's deviations by their standard deviation, so that only who is better counts;
        "noise" by the standard deviation of a run there, so that benchmarks on which nothing differs from nothing
        come together. "auto": shape, and noise for two algorithms, whose shape is a mere sign.
    method : {"average", "ward", "complete", "single"}
        Linkage of the Euclidean distances.
    n_draws : int >= 0
        Redrawn tables.
    rng : int, numpy.random.Generator or None
        Source of the redrawn tables.

    Returns
    -------
    Answer
        Tables:

        - ``benchmarks``: one row per benchmark, in the order of the tree's leaves: ``benchmark``, ``cluster`` (from 1,
          in this order), ``silhouette``, ``kept`` (share of the redrawn tables in which it stays with most of its
          cluster; NaN without redrawn tables);
        - ``clusters``: one row per cluster: ``cluster``, ``size``, ``jaccard`` (mean similarity with its best match
          over the redrawn tables), ``recovered`` (share of them with a similarity above 0.75), ``dissolved`` (at most
          0.5), ``decision``, ``members``;
        - ``together``: benchmarks x benchmarks: share of the redrawn tables in which two share a cluster;
        - ``profiles``: benchmarks x algorithms (and conditions): the standardised deviations that were clustered.

        Values: ``linkage``, the tree, as `scipy.cluster.hierarchy.linkage` has it, benchmarks in the order of
        ``profiles``; ``cophenetic``, the correlation of distances with those in the tree: how well a tree describes
        them; ``scale``, ``method``, ``n_clusters``, ``score``, and ``n_draws``, 0 where nothing is repeated.

    Raises
    ------
    ArgumentError
        If `runs` is not Runs, there are fewer than four benchmarks, or an option is out of its range.
    DataError
        If an algorithm is missing on a benchmark, budgets cannot be averaged, or the noise is not known.

    Notes
    -----
    A redrawn table takes seeds with replacement on every instance, the same for all algorithms (single runs of each
    algorithm without seeds), and goes through everything again but the noise of "noise" and the number of clusters.
    Where some runs are missing, seeds get the random weights of the Bayesian bootstrap instead, under which no
    algorithm loses all its runs. A cluster's stability is its mean Jaccard similarity (shared over all members) with
    the most similar cluster of each redrawn table: from 0.75 on "stable", below 0.5 "dissolved", else "uncertain". A
    clustering always finds clusters; only stable ones should be interpreted. Stability is about chance in the runs,
    with these benchmarks: it does not say that other benchmarks fall into the same groups.

    References
    ----------
    Hennig (2007). Cluster-wise assessment of cluster stability. doi:10.1016/j.csda.2006.11.025; Rousseeuw (1987),
    silhouettes, doi:10.1016/0377-0427(87)90125-7; Rubin (1981), Bayesian bootstrap, doi:10.1214/aos/1176345338; Monti
    et al. (2003), co-clustering, doi:10.1023/A:1023949509487

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.benchmark.benchmark_clusters import benchmark_clusters
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> benchmark_clusters(runs, n_clusters=3, n_draws=50, rng=1).clusters[["cluster", "size", "decision"]]
       cluster  size   decision
    0        1     2  uncertain
    1        2     1  dissolved
    2        3    17     stable
    """
    from scipy.cluster.hierarchy import cophenet, leaves_list

    check_choice(scale, "scale", SCALES)
    check_choice(method, "method", LINKAGES)
    n_draws = check_positive_int(n_draws, "n_draws", minimum=0)
    generator = resolve_rng(rng)
    design, frame = run_design(runs, task="benchmarks are grouped")
    b, n_algorithms = design.sizes["n_benchmarks"], design.sizes["n_algorithms"]
    if b < 4:
        raise ArgumentError(
            f"runs has {b} benchmarks, and groups of so few say nothing. Give at least four, or look at each of them: "
            "lmemtest.benchmark_effects(runs)."
        )
    if n_clusters is not None and not 2 <= check_positive_int(n_clusters, "n_clusters") < b:
        raise ArgumentError(
            f"n_clusters must lie between 2 and {b - 1}, one less than the benchmarks, got {n_clusters}."
        )
    scale = ("noise" if n_algorithms == 2 else "shape") if scale == "auto" else scale
    frame = frame if CONDITION in frame else frame.assign(**{CONDITION: ""})
    levels = {role: in_order(frame[role].unique()) for role in (BENCHMARK, CONDITION, ALGORITHM)}
    codes = [pd.Index(names).get_indexer(pd.Index(frame[role])) for role, names in levels.items()]
    shape = (b, len(levels[CONDITION]), n_algorithms)
    cell, score = np.ravel_multi_index(codes, shape), frame["score"].to_numpy()
    gain = score if runs.direction == "maximize" else -score
    # what is redrawn as a whole: runs with one seed at an instance, or single runs in a cell
    unit, within, contents = np.arange(len(frame)), cell, gain[:, None]
    if SEED in frame:
        instance = cell // n_algorithms
        unit = frame.groupby([instance, frame[SEED]], sort=False).ngroup().to_numpy()
        within = instance[np.unique(unit, return_index=True)[1]]
        contents = np.full((len(within), n_algorithms), np.nan)
        contents[unit, cell % n_algorithms] = gain
    # in the order of their scores, so that neither draws nor rounding, which breaks ties, know names of seeds or rows
    order = np.lexsort((*contents.T[::-1], within))
    unit, within = np.argsort(order, kind="stable")[unit], within[order]
    rows = np.lexsort((unit, cell))
    unit, cell, score = unit[rows], cell[rows], score[rows]
    mean = _means(cell, score, shape, design, levels)
    benchmark = cell // (shape[1] * shape[2])
    noise = _noise(benchmark, score - mean.ravel()[cell], shape, levels[BENCHMARK]) if scale == "noise" else None
    repeated = bool(np.bincount(cell).min() > 1 and np.bincount(within).min() > 1)

    def profiles_of(weights: Array) -> Array:
        return _profiles(weights[:, unit], cell, score - score.mean(), shape, noise)

    (profiles,) = profiles_of(np.ones((1, len(within))))
    tree, distances = _tree(profiles, method)
    k, silhouette = _chosen(tree, distances, n_clusters)
    leaves = leaves_list(tree)
    labels = pd.Index(dict.fromkeys(_cut(tree, k)[leaves])).get_indexer(pd.Index(_cut(tree, k)))  # in their order
    redrawn = np.empty((0, b), dtype=np.intp)
    if repeated and n_draws:
        drawn = profiles_of(_drawn(n_draws, cell, unit, within, generator))
        redrawn = np.array([_cut(_tree(profile, method)[0], k) for profile in drawn])
    names = levels[BENCHMARK]
    together = np.full((b, b), np.nan)
    if len(redrawn):
        together = np.mean(redrawn[:, :, None] == redrawn[:, None, :], axis=0)
    with np.errstate(invalid="ignore"):
        same = (labels[:, None] == labels[None, :]) & ~np.eye(b, dtype=bool)
        kept = (together * same).sum(axis=1) / same.sum(axis=1)
    benchmarks = pd.DataFrame({"benchmark": names, "cluster": labels + 1, "silhouette": silhouette, "kept": kept})
    clusters = _stability(labels, redrawn, names)
    columns = [BETWEEN.join(filter(None, (a, c))) for c in levels[CONDITION] for a in levels[ALGORITHM]]
    cophenetic = float(cophenet(tree, distances)[0]) if np.ptp(distances) > 0 else float("nan")
    notes = [*design.notes]
    spread = (mean - mean.mean(axis=2, keepdims=True)).std(axis=(1, 2))
    flat = np.flatnonzero(spread <= 1e-12 * np.abs(mean).max())
    if len(flat):
        notes.append(
            f"On {', '.join(names[i] for i in flat)} all algorithms have the same mean; such a benchmark has no order "
            "of algorithms and lies in the middle of all others."
        )
    if not repeated:
        notes.append(
            "Some algorithm was run only once on some benchmark, so runs cannot be redrawn. Repeat runs with "
            "other seeds."
        )
    what = {
        "shape": "deviations of the algorithms from their mean, divided by their standard deviation on the "
        "benchmark: who is better, not by how much",
        "noise": "deviations of the algorithms from their mean, in standard deviations of a run on the benchmark",
    }[scale]
    stability = f" Stability from {len(redrawn):,} tables with redrawn seeds." if len(redrawn) else ""
    return Answer(
        question="benchmark_clusters",
        title="Benchmarks by relative performance",
        tables={
            "benchmarks": benchmarks.iloc[leaves].reset_index(drop=True),
            "clusters": clusters,
            "together": pd.DataFrame(together, index=names, columns=names),
            "profiles": pd.DataFrame(profiles, index=names, columns=columns),
        },
        values={
            "linkage": tree,
            "scale": scale,
            "method": method,
            "n_clusters": k,
            "cophenetic": cophenetic,
            "n_draws": len(redrawn),
            "score": runs.score,
        },
        facts=(f"{method} linkage of {what}; cophenetic correlation {written(cophenetic, '.2f')}.{stability}",),
        findings=(_finding(clusters, b, len(redrawn)),),
        notes=tuple(notes),
        printed=clusters,
        formats=dict.fromkeys(["jaccard", "recovered", "dissolved"], ".2f"),
        figure="benchmark_clusters_plot",
    )


def _finding(clusters: pd.DataFrame, n: int, n_draws: int) -> str:
    """How many clusters there are and whether they are stable."""
    k = len(clusters)
    finding = f"{n} benchmarks in {k} clusters"
    if not n_draws:
        return f"{finding}; without repeated runs nothing is known of their stability."
    stable = clusters.loc[clusters["decision"] == "stable", "size"]
    if len(stable) == k:
        return f"{finding}, all of them stable when the runs are redrawn."
    if not len(stable) or (len(stable) == 1 and 2 * int(stable.iloc[0]) > n):
        bulk = ": only the bulk of the benchmarks stays together" if len(stable) else ""
        return (
            f"{finding}, but no grouping is stable when the runs are redrawn{bulk}. The clusters should not be "
            "interpreted."
        )
    return (
        f"{finding}, {len(stable)} of them stable when the runs are redrawn; the others may be due to chance in the "
        "runs and should not be interpreted."
    )


# ---------------------------------------------------------------------- profiles


def _means(cell: Index, score: Array, shape: tuple[int, ...], design: RunDesign, levels: dict[str, list[str]]) -> Array:
    """Mean scores by benchmark, condition and algorithm; refused where an algorithm was not run."""
    count = np.bincount(cell, minlength=int(np.prod(shape)))
    for i, c, a in np.argwhere(count.reshape(shape) == 0):
        algorithm, condition = (":".join(design.columns.get(role, [])) for role in (ALGORITHM, CONDITION))
        where = f" at {condition} {levels[CONDITION][c]!r}" if condition else ""
        raise DataError(
            f"{algorithm} {levels[ALGORITHM][a]!r} was not run on {levels[BENCHMARK][i]!r}{where}, "
            "so its relative performance there is not known. Leave the algorithm or the benchmark out: "
            "runs.filter(...)."
        )
    return np.asarray((np.bincount(cell, weights=score) / count).reshape(shape))


def _noise(benchmark: Index, residual: Array, shape: tuple[int, ...], names: list[str]) -> Array:
    """Standard deviation of a run on each benchmark."""
    squares = np.bincount(benchmark, weights=residual**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = np.sqrt(squares / (np.bincount(benchmark) - shape[1] * shape[2]))
    for i in np.flatnonzero(~(np.isfinite(noise) & (noise > 0))):
        raise DataError(
            f"scale='noise' needs runs that differ on every benchmark; on {names[i]!r} they do "
            "not, or are not repeated. Use scale='shape', or leave the benchmark out: runs.filter(...)."
        )
    return np.asarray(noise)


def _profiles(weights: Array, cell: Index, score: Array, shape: tuple[int, ...], noise: Array | None) -> Array:
    """``(tables, benchmarks, columns)`` standardised deviations with these weights of the runs."""
    size = int(np.prod(shape))
    means = np.empty((len(weights), size))
    for row, w in zip(means, weights, strict=True):
        row[:] = np.bincount(cell, weights=w * score, minlength=size) / np.bincount(cell, weights=w, minlength=size)
    deviation = means.reshape(-1, *shape)
    deviation = deviation - deviation.mean(axis=3, keepdims=True)
    if noise is not None:
        scaled = deviation / noise[:, None, None]
    else:
        spread = np.sqrt((deviation**2).mean(axis=(2, 3), keepdims=True))
        scaled = np.divide(deviation, spread, out=np.zeros_like(deviation), where=spread > 1e-300)
    return scaled.reshape(len(weights), shape[0], -1)


def _drawn(n: int, cell: Index, unit: Index, within: Index, rng: np.random.Generator) -> Array:
    """``(n, units)`` how often each unit is in a redrawn table."""
    out = np.zeros((n, len(within)))
    for group in np.unique(within):
        members = np.flatnonzero(within == group)
        m, inside = len(members), np.isin(unit, members)
        cells = np.unique(cell[inside])
        there = np.unique(np.column_stack([unit[inside], cell[inside]]), axis=0)
        if len(there) == m * len(cells):
            out[:, members] = rng.multinomial(m, np.full(m, 1.0 / m), size=n)
        else:  # a redrawn table could lose all runs of an algorithm; these weights are above 0
            out[:, members] = m * rng.dirichlet(np.ones(m), size=n)
    return out


# ---------------------------------------------------------------------- trees


def _tree(profiles: Array, method: str) -> tuple[Array, Array]:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import pdist

    distances = pdist(profiles)
    return np.asarray(linkage(distances, method)), distances


def _cut(tree: Array, k: int) -> Index:
    """Clusters of the benchmarks, exactly k of them, from 0."""
    from scipy.cluster.hierarchy import cut_tree

    return np.asarray(cut_tree(tree, n_clusters=k)[:, 0], dtype=np.intp)


def silhouettes(distances: Array, labels: Index) -> Array:
    """Rousseeuw's silhouette of each of n objects, 0 for a cluster of one; `labels` from 0, two clusters or more."""
    member = np.eye(labels.max() + 1)[labels]
    sizes = member.sum(axis=0)
    total = distances @ member
    n = np.arange(len(labels))
    within = total[n, labels] / np.maximum(sizes[labels] - 1, 1)
    other = np.where(member > 0, np.inf, total / sizes).min(axis=1)
    largest = np.maximum(within, other)
    ratio = np.divide(other - within, largest, out=np.zeros(len(labels)), where=largest > 0)
    return np.where(sizes[labels] > 1, ratio, 0.0)


def _chosen(tree: Array, distances: Array, n_clusters: int | None) -> tuple[int, Array]:
    """Number of clusters and the silhouettes of the benchmarks."""
    from scipy.spatial.distance import squareform

    square = squareform(distances)
    most = min(_MOST_CLUSTERS, len(square) - 1)
    options = range(2, most + 1) if n_clusters is None else [n_clusters]
    widths = {k: silhouettes(square, _cut(tree, k)) for k in options}
    best = in_tie_order(widths, lambda k: float(widths[k].mean()), descending=True)[0]
    return best, widths[best]


# ---------------------------------------------------------------------- stability


def jaccard(labels: Index, redrawn: Index) -> Array:
    """``(tables, clusters)`` similarity of each cluster with its best match in each redrawn table.

    Examples
    --------
    >>> jaccard(np.array([0, 0, 1, 1]), np.array([[1, 1, 0, 0], [0, 0, 0, 1]])).round(2).tolist()
    [[1.0, 1.0], [0.67, 0.5]]
    """
    member = np.eye(labels.max() + 1)[labels]
    out = np.empty((len(redrawn), member.shape[1]))
    for row, other in zip(out, redrawn, strict=True):
        theirs = np.eye(other.max() + 1)[other]
        shared = member.T @ theirs
        row[:] = (shared / (member.sum(axis=0)[:, None] + theirs.sum(axis=0) - shared)).max(axis=1)
    return out


def _stability(labels: Index, redrawn: Index, names: list[str]) -> pd.DataFrame:
    similarity = jaccard(labels, redrawn)
    rows: list[dict[str, Any]] = []
    for cluster in range(labels.max() + 1):
        members = [names[i] for i in np.flatnonzero(labels == cluster)]
        mean = float(similarity[:, cluster].mean()) if len(similarity) else float("nan")
        decision = "unknown" if not len(similarity) else "stable" if mean >= STABLE else "uncertain"
        rows.append(
            {
                "cluster": cluster + 1,
                "size": len(members),
                "jaccard": mean,
                "recovered": float((similarity[:, cluster] > STABLE).mean()) if len(similarity) else float("nan"),
                "dissolved": float((similarity[:, cluster] <= DISSOLVED).mean()) if len(similarity) else float("nan"),
                "decision": "dissolved" if mean < DISSOLVED else decision,
                "members": ", ".join(members),
            }
        )
    return pd.DataFrame(rows)
