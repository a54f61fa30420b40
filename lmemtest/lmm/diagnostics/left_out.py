"""A model refitted without each level of a group in turn, and what is read off every fit.

The design of the whole table is sliced, not built anew: a polynomial keeps its basis, a centred column its centre, a
factor its reference level, so a coefficient means the same with and without a level. The column space is that of a
new design, so whatever the remaining rows identify comes out as in a fresh fit; what they do not identify is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.codes import column_codes, group_codes
from lmemtest.core.replicates import Executor, Failure, replicate
from lmemtest.core.words import counted, format_level, listed
from lmemtest.errors import DataError
from lmemtest.lmm.cells import CellMap, Cells
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.formula.columns import distinct
from lmemtest.lmm.means.emmeans import emmeans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.lmm.model import LmmFit


# Cells that simulated tables have where levels of a group are sampled: a hundred tables take a second. The skewness of
# 500 random effects has a standard error of 0.11, far less than what matters for means.
CELLS_OF_LEVELS, FEWEST_SAMPLED = 40_000, 500
CELLS_OF_REPETITIONS = 200_000  # of few groups, what is known of each of them is the more
FEWEST_LEVELS = 3  # of two levels, each is half of the evidence, and no variance between levels is left without it

_NO_INFORMATION = 1e-6  # share of a variance: what a level adds to a difference is rounding error below
_SAME = 1e-8  # relative size of an aliasing coefficient that is zero


# Linear functions of the fixed effects that are tested, differences of means (left, right) or coefficients: names,
# the functions, and how many means there are.
Tests = tuple[tuple[tuple[str, str], ...], "Array", int]


def tests_of(fit: Any, specs: tuple[str, ...], ddf: str, at: Mapping[str, Any]) -> Tests:
    """What is tested in a fit: the differences of the means of some factors, without any the coefficients."""
    if not specs:
        names, rows = fit.design.x_names, np.eye(len(fit.design.x_names))
        estimable = [j for j, name in enumerate(names) if name != "Intercept" and fit.estimable(rows[j : j + 1])[0]]
        return tuple((names[j], "") for j in estimable), rows[estimable], 0
    em = emmeans(fit, specs, at=at, ddf=ddf)
    labels = em.labels()
    i, j = np.triu_indices(len(labels), k=1)
    i, j = i[em.met(i, j)], j[em.met(i, j)]
    names = tuple((labels[a], labels[b]) for a, b in zip(i, j, strict=True))
    return names, em.fixed[i] - em.fixed[j], len(labels)


def evaluate(fit: Any, L: Array, ddf: str) -> tuple[Array, Array, Array]:
    """Estimates with standard errors and degrees of freedom, NaN where the table does not identify one."""
    if not len(L):
        return np.empty(0), np.empty(0), np.empty(0)
    return fit.estimate(L), np.sqrt(fit.cov(L, ddf).diagonal()), fit.df(L, ddf)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deletion:
    """A fit, the levels of a group on cells that are fine enough for them, and what is read off the fit without one.

    ``code`` and ``model_cell`` are the level and the cell of the fit of each fine cell; ``factor_codes`` the place of
    each cell of the fit among the levels of each factor.
    """

    fit: Any
    labels: tuple[str, ...]
    cells: Cells
    code: Index
    model_cell: Index
    specs: tuple[str, ...]
    ddf: str
    tests: Tests
    factor_codes: Mapping[str, Index]

    @classmethod
    def of(cls, fit: Any, group: str, columns: tuple[str, ...], specs: tuple[str, ...], ddf: str) -> Deletion:
        import pandas as pd

        cells, model_cell = fit.cells_by(columns)
        code, keys = group_codes([cells.frame[name] for name in columns], len(cells.n))
        if keys.size < FEWEST_LEVELS:
            raise DataError(
                f"group='{group}' has {counted(keys.size, 'level')} in the data; leaving one out tells something from "
                f"{FEWEST_LEVELS} levels on. Choose a finer group, such as the seed, or add more levels of '{group}'."
            )
        rows = zip(*(keys.frame()[name] for name in columns), strict=True)
        light = replace(fit, data=None)
        return cls(
            fit=light,
            labels=distinct([":".join(map(format_level, row)) for row in rows]),
            cells=cells,
            code=code,
            model_cell=model_cell,
            specs=specs,
            ddf=ddf,
            tests=tests_of(light, specs, ddf, {}),
            factor_codes={
                name: pd.Index(levels).get_indexer(pd.Index(fit.cells.frame[name]))
                for name, levels in fit.design.factors.items()
            },
        )

    def refits(
        self, *, n_jobs: int, executor: Executor | None, progress: bool | None, label: str
    ) -> dict[str, NDArray[Any]]:
        """What is kept of the model without each level, a row each; NaN but for the reason where it cannot be fitted.

        ``b`` and ``b_se`` run over the kept coefficients, ``variance`` over the components (as in ``fit.varcorr``), and
        ``estimate``, ``se``, ``df`` and ``chance_p`` over the tests of the whole table; ``n_means``,
        ``cooks_distance``, ``covratio``, ``converged`` and ``reason`` are numbers and words.
        """
        # the refits draw nothing; replicate() brings processes, the progress bar and failures that are kept
        results = replicate(
            self, len(self.labels), rng=0, n_jobs=n_jobs, executor=executor, progress=progress, label=label, fewer=None
        )
        kept, components, tests = (
            np.full(size, np.nan) for size in (len(self.fit.problem.kept), len(self.fit.varcorr), len(self.tests[1]))
        )
        nothing: dict[str, Any] = {"b": kept, "b_se": kept, "variance": components}
        nothing |= dict.fromkeys(("estimate", "se", "df", "chance_p"), tests)
        nothing |= {"n_means": 0, "cooks_distance": np.nan, "covratio": np.nan, "converged": False}
        rows = [{**nothing, "reason": item.message} if isinstance(item, Failure) else item for item in results]
        return {name: np.array([row[name] for row in rows]) for name in (*nothing, "reason")}

    def __call__(self, rng: np.random.Generator) -> dict[str, Any]:
        """Task number i of `replicate`: the fit without level i."""
        rest = self.code != rng.bit_generator.seed_seq.spawn_key[-1]  # type: ignore[attr-defined]
        part, left = self._without(rest)
        kept = self.fit.problem.kept
        lost = _lost_terms(self.fit.design, part.design)
        estimable = _identified(part, kept)
        b, V = self.fit.params.to_numpy()[kept], self.fit.cov_params().to_numpy()
        b_part = np.where(estimable, part.params.to_numpy()[kept], np.nan)
        position = np.searchsorted(part.problem.kept, kept[estimable])
        V_part = part.cov_params().to_numpy()[np.ix_(position, position)]
        change, V = (b_part - b)[estimable], V[np.ix_(estimable, estimable)]
        names, L, n_means = self._tests_of(part, left)
        estimate, se, df = evaluate(part, L, self.ddf)
        chance = np.full(len(L), np.nan)
        if not lost and self.fit.dispersion is None and len(L):
            chance = _chance(self.fit, part, L, np.minimum(df, len(self.labels) - 2.0))
        rows = np.vstack([estimate, se, df, chance])
        if L is not self.tests[1]:  # some comparisons have vanished
            at = {name: i for i, name in enumerate(names)}
            place = [at.get(name, len(at)) for name in self.tests[0]]
            rows = np.hstack([rows, np.full((len(rows), 1), np.nan)])[:, place]
        unknown = [self.fit.design.x_names[j] for j in kept[~estimable]] + [
            self.fit.design.random[i].label for i in lost
        ]
        return {
            "b": b_part,
            "b_se": np.where(estimable, part.bse.to_numpy()[kept], np.nan),
            "variance": self._variances(part, lost),
            "estimate": rows[0],
            "se": rows[1],
            "df": rows[2],
            "chance_p": rows[3],
            "n_means": n_means,
            "cooks_distance": float(change @ np.linalg.solve(V, change)) / len(change) if len(change) else np.nan,
            "covratio": float(np.exp(np.linalg.slogdet(V_part)[1] - np.linalg.slogdet(V)[1])),
            "converged": bool(part.converged),
            "reason": f"the other levels do not identify {listed(unknown, most=5)}" if unknown else "",
        }

    def _without(self, rest: Mask) -> tuple[Any, Mask]:
        """The model refitted to some of the fine cells, and the cells of the fit that have rows left."""
        fit, fine = self.fit, self.cells
        part = replace(fine, n=fine.n[rest], weight=fine.weight[rest], mean=fine.mean[rest], ss=fine.ss[rest])
        n = np.bincount(self.model_cell[rest], weights=part.n, minlength=len(fit.cells.n))
        left = n > 0
        keys = fit.cells.columns.part(left)
        coarse = replace(fit.cells, columns=keys, n=n[left], weight=fit.cells.weight[left], n_rows=int(n.sum()))
        cells = CellMap(codes=(np.cumsum(left) - 1)[self.model_cell[rest]], coarse=coarse).aggregate(part)
        # with the columns of the cells that it has, refit() keeps the design: nothing goes through the formula again
        return replace(fit, design=sliced(fit.design, left), cells=cells).refit(cells=cells), left

    def _tests_of(self, part: Any, left: Mask) -> Tests:
        """What is tested without a level: where a factor loses levels, means are over those that remain."""
        factors = self.fit.design.factors
        at = {
            name: [levels[i] for i in np.flatnonzero(np.bincount(self.factor_codes[name][left], minlength=len(levels)))]
            for name, levels in factors.items()
        }
        if not self.specs or all(len(at[name]) == len(levels) for name, levels in factors.items()):
            return self.tests
        return tests_of(part, self.specs, self.ddf, at)

    def _variances(self, part: Any, lost: tuple[int, ...]) -> Array:
        """Components as in ``fit.varcorr`` of the whole; NaN for those that the remaining rows do not have."""
        parts = [np.full(shape.n_theta, np.nan) for shape in self.fit.problem.shapes]
        for i, S in enumerate(part.covariances):
            if i not in lost:
                between = [] if self.fit.design.random[i].diagonal else S[np.tril_indices(len(S), -1)]
                parts[i] = np.append(S.diagonal(), between)
        residual = part.residual_variances.reindex(self.fit.residual_variances.index)
        return np.concatenate([*parts, residual.to_numpy(dtype=float)])


def sliced(design: Any, left: Mask) -> Any:
    """The design on some of its cells, in the coding of all; levels of groups that vanish are renumbered."""
    random = []
    for term in design.random:
        codes = term.codes[left]
        occurs = np.bincount(codes, minlength=term.n_levels) > 0
        grouping, new_codes = term.grouping.only(occurs), (np.cumsum(occurs) - 1)[codes]
        random.append(replace(term, basis=term.basis[left], codes=new_codes, grouping=grouping))
    return replace(design, row=design.row[left], offset=design.offset[left], random=tuple(random))


def _lost_terms(whole: Any, part: Any) -> tuple[int, ...]:
    """Random terms whose basis has lost a direction, for instance with the last row of an algorithm."""
    rank = np.linalg.matrix_rank
    return tuple(
        i
        for i, (before, now) in enumerate(zip(whole.random, part.random, strict=True))
        if (not now.basis.any() if len(now.names) == 1 else rank(now.basis) < rank(before.basis))
    )


def _identified(part: Any, kept: Index) -> Mask:
    """Which coefficients of the whole fit the remaining rows identify, with the meaning that they had."""
    still = np.isin(kept, part.problem.kept)
    if still.all():
        return still
    X = part.design.X * np.sqrt(part.cells.n * part.cells.weight)[:, None]
    implied = np.linalg.lstsq(X[:, kept[still]], X[:, kept[~still]], rcond=None)[0]
    estimable = still.copy()
    estimable[still] = np.abs(implied).max(axis=1) < _SAME * max(1.0, float(np.abs(implied).max(initial=0.0)))
    return estimable


def _chance(whole: Any, part: Any, L: Array, df: Array) -> Array:
    """P-values of the changes of ``L b``, with all variances as they are estimated without the level."""
    problem = whole.problem
    b, U = problem.fixed_effects(problem.evaluate(problem.point(problem.to_white(part.theta))))
    kept = L[:, problem.kept]
    variance = part.cov(L).diagonal()
    added = variance - part.scale * ((kept @ U) ** 2).sum(axis=1)
    positive = added > _NO_INFORMATION * variance
    out = np.full(len(L), np.nan)
    out[positive] = two_sided_p(
        (part.estimate(L)[positive] - (kept @ b)[positive]) / np.sqrt(added[positive]), df[positive]
    )
    return out


# ---------------------------------------------------------------------- a part of a large table


def thinned(fit: LmmFit, rng: np.random.Generator) -> tuple[LmmFit, Mask, str]:
    """The model at a part of a large table, for what simulated tables judge, its cells, and a note that says so.

    Of more than 40,000 cells, a random sample of the levels of the largest group of the model, whole, such as 5,000 of
    20,000 benchmarks, if 500 of them or more make 40,000 cells; else, of more than 200,000 cells, as many repetitions
    at equal steps as make 200,000. A shape or a scale is known from so many values far better than a decision needs.
    Observed and simulated tables are both of the part that is kept, which is chosen without a look at the scores, so a
    p-value has its level as in any other table of that size.

    The fit itself, and no note, where it has fewer cells, or would lose more than what is sampled: a level of another
    factor, or a coefficient. Only a sample draws from ``rng``.
    """
    cells, scope = fit.cells, fit.scope
    whole = fit, np.ones(len(cells.n), dtype=bool), ""
    if len(cells.n) <= CELLS_OF_LEVELS:
        return whole
    groups = {
        term.group: term.n_levels
        for term, bar in zip(fit.design.random, fit.design.parsed.bars, strict=True)
        if len(bar.groups) == 1 and term.group not in fit.design.factors
    }
    group = max(groups, key=groups.__getitem__, default=None)
    if group is not None and (n_kept := groups[group] * CELLS_OF_LEVELS // len(cells.n)) >= FEWEST_SAMPLED:
        codes, levels = column_codes(cells.frame[group])
        places = rng.choice(len(levels), n_kept, replace=False)
        left = np.isin(codes, places)
        part = _part(fit, group, left)
        how = f"a random sample of {n_kept:,} of {len(levels):,} values of {group!r}"
    elif len(cells.n) > CELLS_OF_REPETITIONS and scope is not None and scope.repeat in cells.names:
        codes, levels = column_codes(cells.frame[scope.repeat])
        if (n_kept := len(levels) * CELLS_OF_REPETITIONS // len(cells.n)) < 2:
            return whole
        places = np.linspace(0, len(levels) - 1, n_kept).round().astype(int)
        left = np.isin(codes, places)
        part = _part(fit, scope.repeat, left)
        how = f"{n_kept:,} of {len(levels):,} values of {scope.repeat!r} at equal steps"
    else:
        return whole
    if part is None:
        return whole
    note = (
        f"Shapes, scales and the spread of the advantages, and the tables drawn to judge them, are those of {how}, to "
        f"which the model was fitted again: {part.nobs:,} of {fit.nobs:,} rows show them well enough."
    )
    return part, left, note


def _part(fit: LmmFit, column: str, left: Mask) -> LmmFit | None:
    """The model fitted to some levels of a column; None if more than these are lost."""
    cells, design = fit.cells, sliced(fit.design, left)
    for before, now, bar in zip(fit.design.random, design.random, fit.design.parsed.bars, strict=True):
        if column not in bar.groups and now.n_levels < before.n_levels:
            return None
    n = cells.n[left]
    part = replace(
        cells,
        columns=cells.columns.part(left),
        n=n,
        weight=cells.weight[left],
        mean=cells.mean[left],
        ss=cells.ss[left],
        n_rows=int(n.sum()),
    )
    few = replace(fit, design=design, cells=part).refit(cells=part)
    return None if few.rank < fit.rank else few
