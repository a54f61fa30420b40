"""Benchmarks grouped by which algorithms do well on them, and how far the groups hold up when runs are redrawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._levels import in_order
from lmemtest._result import Result, result
from lmemtest._rounding import in_tie_order, written
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_positive_int, resolve_rng
from lmemtest.data.study import BETWEEN
from lmemtest.errors import ArgumentError, DataError
from lmemtest.studies.variation.run_layout import ALGORITHM, BENCHMARK, CONDITION, SEED, RunLayout, layout_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]

SCALES = ("auto", "shape", "noise")
LINKAGES = ("average", "ward", "complete", "single")
STABLE, DISSOLVED = 0.75, 0.5  # mean Jaccard similarity, after Hennig (2007)
_MOST_CLUSTERS = 6  # that are tried where their number is not given


@result
class BenchmarkClusters(Result):
    """Groups of benchmarks with a like order of algorithms.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per benchmark, in the order of the tree's leaves: ``benchmark``, ``cluster`` (from 1, in this order),
        ``silhouette``, ``kept`` (share of the redrawn tables in which it stays with most of its cluster; NaN without
        redrawn tables).
    clusters : pandas.DataFrame
        One row per cluster: cluster, size, jaccard (mean similarity with its best match over the redrawn tables),
        recovered (share of them with a similarity above 0.75), dissolved (at most 0.5), verdict, members.
    together : pandas.DataFrame
        Benchmarks x benchmarks: share of the redrawn tables in which two share a cluster.
    profiles : pandas.DataFrame
        Benchmarks x algorithms (and conditions): the standardised deviations that were clustered; below zero is a
        lower score than the mean of the algorithms there.
    linkage : (benchmarks - 1, 4) float
        The tree, as `scipy.cluster.hierarchy.linkage` has it; benchmarks in the order of `profiles`.
    scale : {"shape", "noise"}
    method : str
        Linkage.
    n_clusters : int
    cophenetic : float
        Correlation of distances with those in the tree: how well a tree describes them.
    n_draws : int
        Redrawn tables; 0 where nothing is repeated.
    score : str
    notes : tuple of str
    """

    parts = {"benchmarks": "table", "clusters": "clusters", "together": "together", "profiles": "profiles"}
    formats = dict.fromkeys(["jaccard", "recovered", "dissolved"], ".2f")

    table: pd.DataFrame
    clusters: pd.DataFrame
    together: pd.DataFrame
    profiles: pd.DataFrame
    linkage: Array
    scale: str
    method: str
    n_clusters: int
    cophenetic: float
    n_draws: int
    score: str
    notes: tuple[str, ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """How many clusters there are and whether they are stable."""
        found = f"{len(self.profiles)} benchmarks in {self.n_clusters} clusters"
        if not self.n_draws:
            return (f"{found}; without repeated runs nothing is known of their stability.",)
        stable = self.clusters.loc[self.clusters["verdict"] == "stable", "size"]
        if len(stable) == self.n_clusters:
            return (f"{found}, all of them stable when the runs are redrawn.",)
        if not len(stable) or (len(stable) == 1 and 2 * int(stable.iloc[0]) > len(self.profiles)):
            bulk = ": only the bulk of the benchmarks stays together" if len(stable) else ""
            return (
                f"{found}, but no grouping is stable when the runs are redrawn{bulk}. The clusters should not be "
                "interpreted.",
            )
        return (
            f"{found}, {len(stable)} of them stable when the runs are redrawn; the others may be luck of the runs and "
            "should not be interpreted.",
        )

    @property
    def title(self) -> str:
        """One line above the table."""
        return "Benchmarks by relative performance"

    @property
    def facts(self) -> tuple[str, ...]:
        """What was clustered, how, and what the stability rests on."""
        what = {
            "shape": "deviations of the algorithms from their mean, divided by their standard deviation on the "
            "benchmark: who is better, not by how much",
            "noise": "deviations of the algorithms from their mean, in standard deviations of a run on the benchmark",
        }[self.scale]
        redrawn = f" Stability from {self.n_draws:,} tables with redrawn seeds." if self.n_draws else ""
        return (f"{self.method} linkage of {what}; cophenetic correlation {written(self.cophenetic, '.2f')}.{redrawn}",)

    def shown(self) -> pd.DataFrame:
        """The clusters; ``to_frame()`` has the benchmarks."""
        return self.clusters


@one_blas_thread()
def benchmark_clusters(
    runs: Runs,
    *,
    n_clusters: int | None = None,
    scale: str = "auto",
    method: str = "average",
    n_draws: int = 200,
    rng: int | np.random.Generator | None = None,
) -> BenchmarkClusters:
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
    BenchmarkClusters
        ``to_frame()`` has benchmark, cluster, silhouette, kept; ``clusters`` the stability of each cluster.

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
    clustering always finds clusters; only stable ones are worth a story. Stability is about the luck of the runs, with
    these benchmarks: it does not say that other benchmarks fall into the same groups.

    References
    ----------
    Hennig (2007). Cluster-wise assessment of cluster stability. doi:10.1016/j.csda.2006.11.025; Rousseeuw (1987),
    silhouettes, doi:10.1016/0377-0427(87)90125-7; Rubin (1981), Bayesian bootstrap, doi:10.1214/aos/1176345338; Monti
    et al. (2003), co-clustering, doi:10.1023/A:1023949509487

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.benchmark.benchmark_clusters import benchmark_clusters
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> benchmark_clusters(runs, n_clusters=3, n_draws=50, rng=1).clusters[["cluster", "size", "verdict"]]
       cluster  size    verdict
    0        1     2  uncertain
    1        2     1  dissolved
    2        3    17     stable
    """
    check_choice(scale, "scale", SCALES)
    check_choice(method, "method", LINKAGES)
    n_draws = check_positive_int(n_draws, "n_draws", minimum=0)
    generator = resolve_rng(rng)
    layout = layout_of(runs, task="benchmarks are grouped")
    b, n_algorithms = (layout.frame[role].nunique() for role in (BENCHMARK, ALGORITHM))
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
    table = _RunTable.of(layout, scale)
    profiles = table.profiles(np.ones((1, len(table.units))))[0]
    tree, distances = _tree(profiles, method)
    k, silhouette = _chosen(tree, distances, n_clusters)
    labels = _ordered(_cut(tree, k), tree)
    redrawn = (
        _redrawn(table, n_draws, generator, k, method) if table.repeated and n_draws else np.empty((0, b), np.intp)
    )
    return _result(layout, table, profiles, tree, distances, labels, redrawn, silhouette, (scale, method, runs.score))


# ---------------------------------------------------------------------- profiles


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RunTable:
    """Runs as codes, so that profiles of many reweighted tables are matrix products."""

    benchmarks: tuple[str, ...]
    columns: tuple[str, ...]
    cell: Codes  # (runs,) benchmark, condition and algorithm
    unit: Codes  # (runs,) what is redrawn as a whole
    units: Codes  # (units,) the instance (or cell) within which it is redrawn
    score: Array
    shape: tuple[int, int, int]  # benchmarks, conditions, algorithms
    noise: Array | None  # (benchmarks,) standard deviation of a run
    repeated: bool
    flat: tuple[str, ...]

    @classmethod
    def of(cls, layout: RunLayout, scale: str) -> _RunTable:
        frame = layout.frame
        levels = {role: in_order(frame[role].unique()) for role in (ALGORITHM, BENCHMARK, CONDITION) if role in frame}
        code = {role: pd.Index(names).get_indexer(pd.Index(frame[role])) for role, names in levels.items()}
        condition = code.get(CONDITION, np.zeros(len(frame), dtype=np.intp))
        shape = (len(levels[BENCHMARK]), len(levels.get(CONDITION, [""])), len(levels[ALGORITHM]))
        instance = code[BENCHMARK] * shape[1] + condition
        cell = instance * shape[2] + code[ALGORITHM]
        count = np.bincount(cell, minlength=int(np.prod(shape)))
        _check_complete(count.reshape(shape), levels, layout)
        score = frame["score"].to_numpy()
        within = instance if SEED in frame else cell
        unit, names = pd.factorize(pd.Series(list(zip(within, frame[SEED], strict=True)))) if SEED in frame else (
            np.arange(len(frame)), np.arange(len(frame))
        )  # fmt: skip
        units = np.zeros(len(names), dtype=np.intp)
        units[unit] = within
        mean = np.bincount(cell, weights=score) / count
        ss = np.bincount(code[BENCHMARK], weights=(score - mean[cell]) ** 2)
        df = np.bincount(code[BENCHMARK]) - shape[1] * shape[2]
        noise = None
        if scale == "noise":
            with np.errstate(invalid="ignore", divide="ignore"):
                noise = np.sqrt(ss / df)
            _check_noise(noise, levels[BENCHMARK])
        deviation = mean.reshape(shape) - mean.reshape(shape).mean(axis=2, keepdims=True)
        spread = np.sqrt((deviation**2).mean(axis=(1, 2)))
        tiny = spread <= 1e-12 * np.abs(mean).max()
        columns = [BETWEEN.join(filter(None, (a, c))) for c in levels.get(CONDITION, [""]) for a in levels[ALGORITHM]]
        return cls(
            benchmarks=tuple(levels[BENCHMARK]),
            columns=tuple(columns),
            cell=cell,
            unit=np.asarray(unit, dtype=np.intp),
            units=units,
            score=score - score.mean(),
            shape=shape,
            noise=noise,
            repeated=bool(count.min() > 1 and np.bincount(units).min() > 1),
            flat=tuple(name for name, none in zip(levels[BENCHMARK], tiny, strict=True) if none),
        )

    def profiles(self, weights: Array) -> Array:
        """``(tables, benchmarks, columns)`` standardised deviations with these weights of the units."""
        size = int(np.prod(self.shape))
        out = np.empty((len(weights), size))
        for row, w in zip(out, weights[:, self.unit], strict=True):
            total = np.bincount(self.cell, weights=w, minlength=size)
            row[:] = np.bincount(self.cell, weights=w * self.score, minlength=size) / total
        means = out.reshape(-1, *self.shape)
        deviation = means - means.mean(axis=3, keepdims=True)
        if self.noise is not None:
            scaled = deviation / self.noise[:, None, None]
        else:
            spread = np.sqrt((deviation**2).mean(axis=(2, 3), keepdims=True))
            scaled = np.divide(deviation, spread, out=np.zeros_like(deviation), where=spread > 1e-300)
        return scaled.reshape(len(weights), self.shape[0], -1)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """``(n, units)`` how often each unit is in a redrawn table."""
        out = np.zeros((n, len(self.units)))
        for group in np.unique(self.units):
            members = np.flatnonzero(self.units == group)
            m = len(members)
            if self._has_all(members):
                out[:, members] = rng.multinomial(m, np.full(m, 1.0 / m), size=n)
            else:  # a redrawn table could lose all runs of an algorithm; these weights are above 0
                out[:, members] = m * rng.dirichlet(np.ones(m), size=n)
        return out

    def _has_all(self, members: Codes) -> bool:
        """Whether each of these units has runs in every cell in which any of them has."""
        inside = np.isin(self.unit, members)
        cells = self.cell[inside]
        pairs = np.unique(np.column_stack([self.unit[inside], cells]), axis=0)
        return len(pairs) == len(members) * len(np.unique(cells))


def _check_complete(count: Codes, levels: dict[str, list[str]], layout: RunLayout) -> None:
    empty = np.argwhere(count == 0)
    if not len(empty):
        return
    i, c, a = empty[0]
    algorithm, condition = (":".join(layout.columns.get(role, [])) for role in (ALGORITHM, CONDITION))
    where = f" at {condition} {levels[CONDITION][c]!r}" if condition else ""
    raise DataError(
        f"{algorithm} {levels[ALGORITHM][a]!r} was not run on {levels[BENCHMARK][i]!r}{where}, so its relative "
        "performance there is not known. Leave the algorithm or the benchmark out: runs.filter(...)."
    )


def _check_noise(noise: Array, names: list[str]) -> None:
    bad = np.flatnonzero(~(np.isfinite(noise) & (noise > 0)))
    if len(bad):
        raise DataError(
            f"scale='noise' needs runs that differ on every benchmark; on {names[bad[0]]!r} they do not, or are not "
            "repeated. Use scale='shape', or leave the benchmark out: runs.filter(...)."
        )


# ---------------------------------------------------------------------- trees


def _tree(profiles: Array, method: str) -> tuple[Array, Array]:
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import pdist

    distances = pdist(profiles)
    return np.asarray(linkage(distances, method)), distances


def _cut(tree: Array, k: int) -> Codes:
    """Clusters of the benchmarks, exactly k of them, from 0."""
    from scipy.cluster.hierarchy import cut_tree

    return np.asarray(cut_tree(tree, n_clusters=k)[:, 0], dtype=np.intp)


def _ordered(labels: Codes, tree: Array) -> Codes:
    """The same clusters, numbered from 0 in the order of the tree's leaves."""
    from scipy.cluster.hierarchy import leaves_list

    order = {label: i for i, label in enumerate(dict.fromkeys(labels[leaves_list(tree)].tolist()))}
    return np.array([order[label] for label in labels.tolist()], dtype=np.intp)


def silhouettes(distances: Array, labels: Codes) -> Array:
    """Rousseeuw's silhouette of each object, 0 for a cluster of one.

    Parameters
    ----------
    distances : (n, n) float
    labels : (n,) int, from 0
        At least two clusters.
    """
    member = np.eye(labels.max() + 1)[labels]
    sizes = member.sum(axis=0)
    total = distances @ member
    n = np.arange(len(labels))
    own = total[n, labels] / np.maximum(sizes[labels] - 1, 1)
    other = np.where(member > 0, np.inf, total / sizes).min(axis=1)
    largest = np.maximum(own, other)
    ratio = np.divide(other - own, largest, out=np.zeros(len(labels)), where=largest > 0)
    return np.where(sizes[labels] > 1, ratio, 0.0)


def _chosen(tree: Array, distances: Array, n_clusters: int | None) -> tuple[int, Array]:
    """Number of clusters and the silhouettes of the benchmarks."""
    from scipy.spatial.distance import squareform

    square = squareform(distances)
    most = min(_MOST_CLUSTERS, len(square) - 1)
    options = range(2, most + 1) if n_clusters is None else [n_clusters]
    found = {k: silhouettes(square, _cut(tree, k)) for k in options}
    best = in_tie_order(found, lambda k: float(found[k].mean()), descending=True)[0]
    return best, found[best]


# ---------------------------------------------------------------------- stability


def _redrawn(table: _RunTable, n_draws: int, rng: np.random.Generator, k: int, method: str) -> Codes:
    """``(n_draws, benchmarks)`` clusters of redrawn tables."""
    profiles = table.profiles(table.draw(n_draws, rng))
    return np.array([_cut(_tree(profile, method)[0], k) for profile in profiles])


def jaccard(labels: Codes, redrawn: Codes) -> Array:
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


def _result(
    layout: RunLayout,
    table: _RunTable,
    profiles: Array,
    tree: Array,
    distances: Array,
    labels: Codes,
    redrawn: Codes,
    silhouette: Array,
    how: tuple[str, str, str],
) -> BenchmarkClusters:
    from scipy.cluster.hierarchy import cophenet, leaves_list

    names, (scale, method, score) = list(table.benchmarks), how
    together = np.full((len(names), len(names)), np.nan)
    if len(redrawn):
        together = np.mean(redrawn[:, :, None] == redrawn[:, None, :], axis=0)
    with np.errstate(invalid="ignore"):
        same = (labels[:, None] == labels[None, :]) & ~np.eye(len(names), dtype=bool)
        kept = (together * same).sum(axis=1) / same.sum(axis=1)
    leaves = leaves_list(tree)
    by_benchmark = pd.DataFrame({"benchmark": names, "cluster": labels + 1, "silhouette": silhouette, "kept": kept})
    cophenetic = float(cophenet(tree, distances)[0]) if np.ptp(distances) > 0 else float("nan")
    return BenchmarkClusters(
        table=by_benchmark.iloc[leaves].reset_index(drop=True),
        clusters=_stability(labels, redrawn, names),
        together=pd.DataFrame(together, index=names, columns=names),
        profiles=pd.DataFrame(profiles, index=names, columns=list(table.columns)),
        linkage=tree,
        scale=scale,
        method=method,
        n_clusters=int(labels.max()) + 1,
        cophenetic=cophenetic,
        n_draws=len(redrawn),
        score=score,
        notes=(*layout.notes, *_notes(table)),
    )


def _stability(labels: Codes, redrawn: Codes, names: list[str]) -> pd.DataFrame:
    found = jaccard(labels, redrawn)
    rows: list[dict[str, Any]] = []
    for cluster in range(labels.max() + 1):
        members = [names[i] for i in np.flatnonzero(labels == cluster)]
        mean = float(found[:, cluster].mean()) if len(found) else float("nan")
        verdict = "unknown" if not len(found) else "stable" if mean >= STABLE else "uncertain"
        rows.append(
            {
                "cluster": cluster + 1,
                "size": len(members),
                "jaccard": mean,
                "recovered": float((found[:, cluster] > STABLE).mean()) if len(found) else float("nan"),
                "dissolved": float((found[:, cluster] <= DISSOLVED).mean()) if len(found) else float("nan"),
                "verdict": "dissolved" if mean < DISSOLVED else verdict,
                "members": ", ".join(members),
            }
        )
    return pd.DataFrame(rows)


def _notes(table: _RunTable) -> list[str]:
    notes = []
    if table.flat:
        notes.append(
            f"On {', '.join(table.flat)} all algorithms have the same mean; such a benchmark has no order of "
            "algorithms and lies in the middle of all others."
        )
    if not table.repeated:
        notes.append(
            "Some algorithm was run only once on some benchmark, so runs cannot be redrawn. Repeat runs with "
            "other seeds."
        )
    return notes
