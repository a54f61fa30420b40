"""Moderated standard errors of marginal means and of their comparisons.

Each comparison's own scatter over the benchmarks is shrunk towards the variance that the model gives all of them.

`empirical_bayes` has the statistics, on arrays; here they meet a fit, its cluster-robust covariance and its means, or
the means of a complete table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.intervals.cluster_robust import NO_SCATTER, ClusterRobust, cluster_robust, sandwiched
from lmemtest.lmm.means.empirical_bayes import Moderation, larger_scatter, moderation
from lmemtest.lmm.means.reference_grid import name_tuple
from lmemtest.lmm.model.fitting import with_design
from lmemtest.lmm.model.given import check_fit, check_working

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.means.estimates import Estimates


_ZERO = 1e-9  # coefficients of means below it are rounding
_CLAIM = 0.05  # level at which a mean is said to vary more than the others
_FEWEST_CLUSTERS = 3  # with two the scatter of a difference has one degree of freedom
_FEWEST_MEANS = 4  # with three variances of three differences each could be the odd one


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class Moderated:
    """What moderated standard errors of a fit are made from.

    Attributes
    ----------
    fit : LmmFit
        The fit whose variance the own variances are shrunk towards.
    robust : ClusterRobust
        Own variances of all comparisons: CR2, from the scatter of the clusters; of `fit`, or of the same model without
        the random effects that reach over clusters.
    least : bool
        Whether the model's errors are the least, with the model's degrees of freedom: see `ModeratedMeans`.
    """

    fit: Any
    robust: ClusterRobust
    least: bool = False

    @property
    def label(self) -> str:
        """The clusters in words, for instance "benchmark"."""
        return self.robust.label

    def __repr__(self) -> str:
        return f"Moderated(clusters: {self.robust.n_clusters} of {self.label}; {self.fit.label})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompleteBlocks:
    """Own variances of the differences between means of a complete table: what `ClusterRobust` has of a fit.

    Attributes
    ----------
    residuals : (n, k) float
        What the means of the blocks and of the columns leave of the table.
    cluster : tuple of str
        What the blocks are.
    """

    residuals: Array
    cluster: tuple[str, ...]

    @property
    def label(self) -> str:
        """A block in words."""
        return ":".join(self.cluster)

    @property
    def n_clusters(self) -> int:
        """Blocks."""
        return len(self.residuals)

    def contributions(self, L: Array | Functions) -> Array:
        """What each block adds to ``L b``, ``(n, rows)``; the squares sum to the sample variance of its mean."""
        n = self.n_clusters
        return Functions.of(L).times(self.residuals.T).T / np.sqrt(n * (n - 1.0))

    def variances(self, L: Array | Functions) -> tuple[Array, Array]:
        """Variance of every row of ``L b``, a contrast, and its degrees of freedom; NaN where all blocks agree."""
        total = np.sum(self.contributions(L) ** 2, axis=0)
        squares = Functions.of(L).squares().at(np.ones(self.residuals.shape[1]))
        shown = total > NO_SCATTER * squares * np.mean(self.residuals**2) / self.n_clusters
        return np.where(shown, total, np.nan), np.where(shown, self.n_clusters - 1.0, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModeratedMeans:
    """Moderated standard errors of linear functions of the means of a grid.

    Attributes
    ----------
    robust : ClusterRobust or CompleteBlocks
        Of the fit, or of the same model without the random effects that reach over clusters; of a complete table.
    L : (m, p) float
        The means as functions of the fixed effects.
    back : (p, m) float
        Its pseudo-inverse: the fixed effects as functions of the means.
    group : (m,) int
        Family of each mean; pairs are within families.
    h : (m,) float
        Model's variance of each mean's advantages: half of that of its differences from the others.
    families : tuple of Moderation
    pairs : tuple of (own ratio, its df)
        Of all pairs of each family, as `numpy.triu_indices` lists them: what `_own_ratio` gives of them.
    within : callable or None
        The standard errors and degrees of freedom of functions by the model of `robust`, if that is another one than
        the fit: what random effects that reach over clusters add to them is left as it is.
    single : bool
        Whether differences have the variance that the clusters show of them, not shrunk towards others.
    level : float or None
        Of generalised models by default, else None: how large the variances of pairs that the clusters show are on
        average relative to the model's, 1 at least. With that as the level moderated variances count where they are
        above the model's, and degrees of freedom are the model's. So the level of tests is never above that of the
        model's, whose power they keep where all vary alike.
    link : Estimates or None
        Of means on the scale of the answers, those on the scale of the link: errors are longer than the model's by what
        moderation adds to the same functions of these.
    """

    robust: ClusterRobust | CompleteBlocks
    L: Array
    back: Array
    group: NDArray[np.intp]
    h: Array
    families: tuple[Moderation, ...]
    pairs: tuple[tuple[Array, Array], ...]
    within: Callable[[Functions], tuple[Array, Array]] | None
    single: bool = False
    level: float | None = None
    link: Estimates | None = None

    def alone(self) -> ModeratedMeans:
        """The same for differences that are looked at one by one; of two means nothing changes."""
        return self if all(family.n_pairs == 1 for family in self.families) else replace(self, single=True)

    @property
    def between_repeats(self) -> bool:
        """Whether the clusters are repeated runs, which then are the sample."""
        scope = None if isinstance(self.robust, CompleteBlocks) else self.robust.fit.scope
        return scope is not None and scope.repeat in self.robust.cluster

    def advantages(self, rows: NDArray[np.intp] | None = None) -> tuple[NDArray[np.intp], Array]:
        """Which of some means are defined, and what each cluster adds to each beyond all, ``(n_clusters, means)``."""
        rows = np.arange(len(self.L)) if rows is None else rows
        rows = rows[np.isfinite(self.L[rows]).all(axis=1)]
        return rows, self.robust.contributions(self.L[rows] - self.L[rows].mean(axis=0))

    @classmethod
    def of(cls, source: Moderated | CompleteBlocks, means: Estimates) -> ModeratedMeans:
        """From the means of a grid with the model's standard errors."""
        robust, L, within = source if isinstance(source, CompleteBlocks) else source.robust, means.fixed, None
        if isinstance(source, Moderated) and source.robust.fit is not source.fit:
            part = source.robust.fit
            within = partial(_errors, part, part.cov_params().to_numpy())
        group = np.zeros(len(L), dtype=np.intp)
        h = np.ones(len(L))
        own, families, pairs, level = [], [], [], None
        for number, (_, rows) in enumerate(means.groups()):
            group[rows] = number
            i, j = np.triu_indices(len(rows), k=1)
            differences = means.differences(rows[i], rows[j])  # NaN of algorithms that never met
            D = differences.first(L.shape[1])
            _, se, _ = means.evaluate(differences)
            if within is not None:
                se = np.where(np.isfinite(se), within(D)[0], np.nan)
            own.append((rows, i, j, se, *_own_ratio(robust, D, se)))
        if isinstance(source, Moderated) and source.least:
            ratios = np.concatenate([ratio for *_, ratio, _ in own])
            level = max(1.0, float(ratios[~np.isnan(ratios)].mean())) if not np.isnan(ratios).all() else 1.0
        for rows, i, j, se, ratio, df in own:
            ratio = ratio / (level or 1.0)
            h[rows] = _of_means(se, i, j, len(rows)) * (level or 1.0)
            families.append(moderation(ratio, df, i, j, h[rows]))
            pairs.append((ratio, df))
        return cls(
            robust=robust,
            L=L,
            back=_inverse(L),
            group=group,
            h=h,
            families=tuple(families),
            pairs=tuple(pairs),
            within=within,
            level=level,
        )

    def __call__(self, L: Functions, se: Array, df: Array) -> tuple[Array, Array]:
        """Moderated standard errors and degrees of freedom of ``L b`` in place of the model's `se` and `df`.

        NaN stays NaN, and functions that are not of these means keep theirs.
        """
        if self.link is not None:
            rows = Functions.of(L).then(np.nan_to_num(self.link.L))
            model, larger = (means.evaluate(rows)[1] for means in (self.link.by_model(), self.link))
            return se * np.divide(larger, model, out=np.ones(len(rows)), where=model > 0.0), df
        errors, df_found = self._moderated(L, se, df)
        return (errors, df_found) if self.level is None else (np.maximum(errors, se), df)

    def _moderated(self, L: Functions, se: Array, df: Array) -> tuple[Array, Array]:
        """The same, where the model's errors are not the least."""
        whole, df_whole = se, df
        if self.within is not None:
            se, df = self.within(L)
            se, df = np.where(np.isfinite(whole), se, np.nan), np.where(np.isfinite(whole), df, np.nan)
        errors, df_found = self._within_clusters(L, se, df)
        if self.within is None:
            return errors, df_found
        # what the whole model has beyond its part within clusters is added to the moderated variance (Satterthwaite)
        rest = np.maximum(0.0, whole**2 - se**2)
        uncertain = np.maximum(0.0, whole**4 / df_whole - se**4 / df)
        total = errors**2 + rest
        with np.errstate(divide="ignore", invalid="ignore"):
            df_total = total**2 / (errors**4 / df_found + uncertain)
        return np.sqrt(total), np.where(rest > 0.0, df_total, df_found)

    def _within_clusters(self, L: Functions, se: Array, df: Array) -> tuple[Array, Array]:
        """The same where no random effect reaches over clusters."""
        root = np.sqrt(self.level or 1.0)
        se, df = root * se, df.copy()
        C, identified = self._coefficients(L)
        identified &= np.isfinite(se) & (se > 0)
        of_family = np.eye(len(self.families))[self.group]
        size = C.sizes().times(of_family)
        involved = size > 0.0
        balanced = np.asarray((np.abs(C.times(of_family)) <= _ZERO * np.maximum(size, 1.0)).all(axis=1))
        one = np.ones((1, 1), dtype=bool)
        for key in one if len(self.families) == 1 else np.unique(involved[identified], axis=0):
            rows = np.flatnonzero(identified & (involved == key).all(axis=1))
            if key.any():
                at = rows[balanced[rows]]
                if len(at):
                    se[at], df[at] = self._contrasts(key, L[at], C[at], se[at], df[at])
                at = rows[~balanced[rows]]
                if len(at):
                    se[at], df[at] = self._sums(key, C[at], se[at], df[at])
        return se / root, df

    def _coefficients(self, L: Functions) -> tuple[Functions, NDArray[np.bool_]]:
        """Coefficients of the means in each function, and which functions are of these means alone."""
        finite = L.finite
        functions = L.filled(finite)
        C = functions.then(self.back).rounded(_ZERO)
        gap = C.less(functions).then(np.vstack([np.nan_to_num(self.L), np.eye(L.width)]))
        return C, finite & (gap.largest() <= 1e-7 * np.maximum(functions.largest(), np.finfo(float).tiny))

    def _contrasts(
        self, key: NDArray[np.bool_], L: Functions, C: Functions, se: Array, df: Array
    ) -> tuple[Array, Array]:
        """Differences within families: own variances shrunk towards those of the means' advantages."""
        family, at = self._joined(key)
        C = C.only(at)
        observed, df_own = self._own_ratio(key, L, C, se)
        fewest = np.where(np.isnan(df_own), np.nanmean(df_own) if np.isfinite(df_own).any() else np.inf, df_own)
        most = np.minimum(df, (family.scale.shape[-1] - key.sum()) * fewest)  # what all contrasts have together
        ratio, df = family.ratios(C.squares().weighted(self.h[at]), observed, df_own, most)
        if self.single:
            identified = ~np.isnan(observed)
            ratio, df = np.where(identified, observed, ratio), np.where(identified, df_own, df)
        return se * np.sqrt(ratio), df

    def _own_ratio(self, key: NDArray[np.bool_], L: Functions, C: Functions, se: Array) -> tuple[Array, Array]:
        """`_own_ratio` of functions with coefficients `C` of the means; that of pairs is known."""
        if key.sum() > 1 or C.most != 2 or (np.abs(np.abs(C.values) - 1.0) > _ZERO).any():
            return _own_ratio(self.robust, L, se)
        low, high = np.minimum(*C.columns), np.maximum(*C.columns)
        ratio, df = self.pairs[int(np.flatnonzero(key)[0])]
        place = low * C.width - low * (low + 1) // 2 + high - low - 1
        return ratio[place], df[place]

    def _sums(self, key: NDArray[np.bool_], C: Functions, se: Array, df: Array) -> tuple[Array, Array]:
        """Means and sums of them: the model's variance with the advantages' part exchanged for the means' own."""
        family, at = self._joined(key)
        squares = C.only(at).squares().weighted(self.h[at])
        shared = np.maximum(se**2 - squares.at(np.ones(len(at))), 0.0)
        of_terms = squares.weighted(family.scale)
        total = shared + of_terms.at(np.ones(len(at)))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = total / (shared + squares.at(np.ones(len(at))))
            df_of_total = total**2 / (shared**2 / df + of_terms.squares().at(1.0 / family.scale_df))
        return se * np.sqrt(ratio), np.minimum(df, df_of_total)

    def _joined(self, key: NDArray[np.bool_]) -> tuple[Moderation, NDArray[np.intp]]:
        """The families of a function as one, and where their means are."""
        chosen = np.flatnonzero(key)
        at = np.concatenate([np.flatnonzero(self.group == number) for number in chosen])
        parts = [self.families[number] for number in chosen]
        of_means = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in ("scale", "scale_df", "observed")
        }
        least = {name: np.min([getattr(part, name) for part in parts], axis=0) for name in ("observed_df", "prior_df")}
        return Moderation(**of_means, **least, n_pairs=max(part.n_pairs for part in parts)), at

    def notes(self, labels: Sequence[str], groups: Sequence[str]) -> tuple[str, ...]:
        """What was done, how much the prior counted, and which means vary more than the others."""
        robust, worth = self.robust, ""
        if len(self.families) == 1 and np.isfinite(self.families[0].prior_df):
            prior_df = float(self.families[0].prior_df)
            worth = f" (worth {written(prior_df, '.3g' if prior_df < 1000 else ',.0f')} degrees of freedom)"
        notes = [
            "Standard errors of differences are moderated: the scatter of each difference over the "
            f"{robust.n_clusters} levels of {robust.label}, shrunk towards the model's variance"
            f"{worth}."
            if self.level is None
            else "Standard errors of differences are the model's, or larger where a difference scatters more over the "
            f"{robust.n_clusters} levels of {robust.label} than the others do (moderated)."
        ]
        for number, family in enumerate(self.families):
            members = np.flatnonzero(self.group == number)
            at, scores = self.advantages(members)
            names = np.asarray(labels, dtype=object)[at]
            observed = family.observed[np.isin(members, at)]
            notes += [f"{groups[number]}{text}" for text in deviations(observed, scores, list(names), robust.label)]
        return tuple(notes)


@one_blas_thread()
def moderated(fit: Any, cluster: str | Sequence[str] | None = None) -> Moderated:
    """Moderated standard errors for the comparisons of a fit.

    The model gives all comparisons of algorithms one variance between benchmarks. Where one algorithm is erratic, or
    two are variants of one method, that is wrong for the comparisons with them and costs power in all others. Here the
    scatter of each comparison over the benchmarks is shrunk towards the model's variance, the less the more the
    comparisons differ in their scatter (empirical Bayes).

    Parameters
    ----------
    fit : LmmFit
        A fitted model (a `GlmmFit` by pseudo-likelihood, on the scale of the link). What random effects that reach over
        several clusters (shared seeds) add to the variance of a comparison stays as the model has it; the rest is
        moderated.
    cluster : str or sequence of str, optional
        Column whose levels are independent of each other; default: of the `Runs` behind the fit the benchmark, or the
        families of benchmarks between which the model lets advantages of algorithms vary.

    Returns
    -------
    Moderated
        For ``emmeans(fit, ..., vcov=result)``; ``vcov="moderated"`` is short for it.

    Raises
    ------
    ArgumentError
        If `cluster` is missing and the fit is not of `Runs` with a benchmark.
    UnknownColumnError
        If `cluster` is not a column of the data.
    DesignError
        If there are fewer than two clusters.

    Notes
    -----
    With two algorithms nothing can be learned from other pairs: the larger of the two variances counts, with its own
    degrees of freedom, which in complete tables is the paired t-test over benchmark means. Formulas: see
    `lmemtest.lmm.means.empirical_bayes`.

    Sizes and power: docs/developers/validation.md. Shared seeds are not covered: benchmarks must be independent.

    References
    ----------
    Smyth (2004), doi:10.2202/1544-6115.1027; Phipson et al. (2016), doi:10.1214/16-AOAS920;
    Pustejovsky & Tipton (2018), doi:10.1080/07350015.2016.1247004

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, prior="good")
    >>> fit = lt.fit_lmm(lt.recommend(runs).formula, runs)
    >>> means = fit.emmeans("algorithm", vcov=fit.moderated())
    >>> means.pairs().adjust
    'stepdown'
    """
    check_fit(fit, "fit")
    check_moderated(fit)
    if cluster is None:
        return _by_scope(fit)
    return Moderated(fit=fit, robust=cluster_robust(_within(fit, name_tuple(cluster, "cluster")), cluster))


def check_moderated(fit: Any) -> None:
    """Refuse a fit whose standard errors cannot be moderated."""
    check_working(fit, "moderated()", ())


def moderation_of(fit: Any, vcov: Any, specs: Sequence[str], ddf: str) -> Moderated | None:
    """Moderated standard errors as they were asked for, or by default; None where errors come from elsewhere.

    The default are those of independent units that can be clusters, if the table has them; of a generalised model the
    larger of these and the model's.
    """
    if isinstance(vcov, Moderated):
        return vcov
    asked, scope = isinstance(vcov, str) and vcov == "moderated", fit.scope
    if not asked:
        if vcov is not None or ddf not in ("satterthwaite", "kenward-roger"):
            return None
        if getattr(fit, "distribution", "normal") != "normal":
            return _least(fit, specs)
        if scope is None or scope.cluster is None or scope.compared not in specs:
            return None
    try:
        by_scope = _by_scope(fit)
    except (DesignError, DataError):  # one benchmark
        if asked:
            raise
        return None
    return by_scope if asked or by_scope.robust.n_clusters >= _FEWEST_CLUSTERS else None


def _least(fit: Any, specs: Sequence[str]) -> Moderated | None:
    """Of a generalised model: by the groups between which its terms let the differences of `specs` vary, if three."""

    def count(*names: str) -> int:
        return int(fit.cells.groups([*dict.fromkeys(names)]).max()) + 1

    bars = fit.design.parsed.bars
    terms = [[*bar.groups, *(name for effect in bar.slopes for name in effect.columns)] for bar in bars]
    units = [[name for name in term if name not in specs] for term in terms if {*specs} < {*term}]
    cluster = min(units, key=lambda unit: count(*unit), default=[])
    crossed = any(count(*unit, *cluster) > count(*unit) for unit in units)
    few = not cluster or count(*cluster) < _FEWEST_CLUSTERS
    return None if few or crossed or not fit.reml else replace(_by_clusters(fit, tuple(cluster)), least=True)


def _by_scope(fit: Any) -> Moderated:
    """Moderated by the clusters of the table behind the fit."""
    cluster = clusters_of(fit)
    if cluster is None:
        raise ArgumentError(
            "moderated standard errors need to know the clusters, and the fit is not of Runs with a benchmark. "
            "Name the column, for instance vcov=moderated(fit, cluster='benchmark')."
        )
    return _by_clusters(fit, cluster)


def _by_clusters(fit: Any, cluster: tuple[str, ...]) -> Moderated:
    return Moderated(fit=fit, robust=sandwiched(_within(fit, cluster), cluster))


def _within(fit: Any, cluster: tuple[str, ...]) -> Any:
    """The fit, without the random effects whose groups reach over clusters."""
    if not set(cluster) <= set(fit.cells.names):
        return fit
    home, design = fit.cells.groups(cluster), fit.design
    kept = []
    for i, (bar, term) in enumerate(zip(design.parsed.bars, design.random, strict=True)):
        first = np.zeros(term.n_levels, dtype=np.intp)
        first[term.codes] = home
        if set(cluster) <= set(bar.groups) or not np.any(first[term.codes] != home):  # no level is in several clusters
            kept.append(i)
    if len(kept) == len(design.random):
        return fit
    # the search begins at the variances that these terms have beside the others
    thetas = np.split(fit.theta, np.cumsum([shape.n_theta for shape in fit.problem.shapes]))
    start = np.concatenate([thetas[i] for i in kept]) if kept else None
    return with_design(fit, design.with_terms(kept), start=start)


def _errors(fit: Any, V: Array, L: Functions) -> tuple[Array, Array]:
    """Standard errors and Satterthwaite degrees of freedom by a model with these variances; NaN rows stay NaN."""
    se, df = np.full(len(L), np.nan), np.full(len(L), np.nan)
    rows = np.flatnonzero(L.finite)
    rows = rows[fit.estimable(L[rows])]
    se[rows], df[rows] = np.sqrt(L[rows].only(fit.problem.kept).quadratic_forms(V[None])[0]), fit.df(L[rows])
    return se, df


def clusters_of(fit: Any) -> tuple[str, ...] | None:
    """The columns of the clusters in the table behind a fit, as its scope names them for its terms."""
    if fit.scope is None:
        return None
    terms = [
        {*bar.groups, *(name for effect in bar.slopes for name in effect.columns)} for bar in fit.design.parsed.bars
    ]
    clusters: tuple[str, ...] | None = fit.scope.clusters(terms, [{*term.columns} for term in fit.design.parsed.terms])
    return clusters


def deviations(observed: Array, scores: Array, labels: Sequence[str], cluster: str) -> list[str]:
    """Sentences on means whose comparisons vary more between clusters than those of the others.

    `observed` (k,) is the variance of each mean's advantages, `scores` (n_clusters, k) what each cluster adds to each
    mean beyond what it adds to all. Each is tested against the others by `larger_scatter` at 5 %, Bonferroni-adjusted.
    """
    finite = np.flatnonzero(np.isfinite(observed))
    if len(finite) < _FEWEST_MEANS:
        return []
    a = observed[finite]
    texts = []
    for i, p in enumerate(larger_scatter(scores[:, finite])):
        if below(p, _CLAIM) and a[i] > (others := np.median(np.delete(a, i))):
            texts.append(
                f"{labels[int(finite[i])]} varies about {written(np.sqrt(a[i] / others), '.2g')} times as much between "
                f"levels of {cluster} as the others (standard deviation of its advantages), so conclusions about "
                "it are less certain."
            )
    return texts


def _inverse(L: Array) -> Array:
    """The pseudo-inverse of the rows that are defined, without rounding; zero for the others."""
    usable = np.isfinite(L).all(axis=1)
    back = np.zeros(L.T.shape)
    back[:, usable] = np.linalg.pinv(L[usable])
    return np.where(np.abs(back) > _ZERO * np.abs(back).max(initial=0.0), back, 0.0)


def _own_ratio(robust: ClusterRobust | CompleteBlocks, L: Functions, se: Array) -> tuple[Array, Array]:
    """CR2 variance of functions relative to the model's, and its degrees of freedom; NaN where clusters show none."""
    ratio, df = np.full(len(L), np.nan), np.full(len(L), np.nan)
    usable = L.finite & np.isfinite(se) & (se > 0)
    if usable.any():
        variance, nu = robust.variances(L.where(usable))
        ratio[usable], df[usable] = variance / se[usable] ** 2, nu
    identified = np.isfinite(ratio) & np.isfinite(df)
    return np.where(identified, ratio, np.nan), np.where(identified, df, np.nan)


def _of_means(se: Array, i: NDArray[np.intp], j: NDArray[np.intp], k: int) -> Array:
    """Half of the mean variance of each mean's differences; 1 where it has none."""
    square = np.where(np.isfinite(se), se**2, 0.0)
    count = np.bincount(i, np.isfinite(se), k) + np.bincount(j, np.isfinite(se), k)
    total = np.bincount(i, square, k) + np.bincount(j, square, k)
    h = np.where((count > 0) & (total > 0), total / np.maximum(count, 1) / 2.0, np.nan)
    return np.where(np.isnan(h), np.nanmean(h) if np.isfinite(h).any() else 1.0, h)
