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

from lmemtest.data.cell_map import CellMap
from lmemtest.data.cells import Cells, group_codes
from lmemtest.data.compress import compress
from lmemtest.errors import DataError
from lmemtest.formula.columns import distinct
from lmemtest.inference.distributions.student import two_sided_p
from lmemtest.inference.distributions.studentized_range import ptukey
from lmemtest.inference.means.adjust import adjust_raw
from lmemtest.inference.means.emmeans import emmeans
from lmemtest.words import format_level, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    Index = NDArray[np.intp]

FEWEST_LEVELS = 3  # of two levels, each is half of the evidence, and no variance between levels is left without it

_NO_INFORMATION = 1e-6  # share of a variance: what a level adds to a difference is rounding error below
_SAME = 1e-8  # relative size of an aliasing coefficient that is zero


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """The levels of the group on cells that are fine enough to tell them apart.

    Attributes
    ----------
    labels : tuple of str
    cells : Cells
        Cells of the model's columns and the group's.
    code : (n_fine,) int
        Level of each of them.
    model_cell : (n_fine,) int
        The cell of the fit that each belongs to.
    """

    group: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    cells: Cells
    code: Index
    model_cell: Index

    @classmethod
    def of(cls, fit: Any, group: str, columns: tuple[str, ...]) -> Levels:
        cells, model_cell = fit.cells, np.arange(len(fit.cells.n))
        missing = [name for name in columns if name not in cells.frame.columns]
        if missing:
            parsed = fit.design.parsed
            by = [*cells.frame.columns, *missing]
            cells = compress(
                fit.data, by=by, score=parsed.response, transform=parsed.response_transform, weights=fit.weights
            )
            model_cell = CellMap.of(cells, fit.cells).codes
        code, keys = group_codes([cells.frame[name] for name in columns], len(cells.n))
        if keys.size < FEWEST_LEVELS:
            raise DataError(
                f"group='{group}' has {keys.size} level{'s' * (keys.size != 1)} in the data; leaving one out tells "
                f"something from {FEWEST_LEVELS} levels on. Choose a finer group, such as the seed, or bring more "
                f"levels of '{group}'."
            )
        rows = zip(*(keys.frame()[name] for name in columns), strict=True)
        labels = distinct([":".join(format_level(value) for value in row) for row in rows])
        return cls(group=group, columns=columns, labels=labels, cells=cells, code=code, model_cell=model_cell)

    def n_rows(self) -> Index:
        """Rows of each level."""
        return np.bincount(self.code, weights=self.cells.n, minlength=len(self.labels)).astype(np.intp)

    def without(self, fit: Any, index: int) -> tuple[Any, NDArray[np.bool_]]:
        """The model refitted without a level, and the cells of the fit that have rows left."""
        rest = self.code != index
        fine = self.cells
        part = replace(fine, n=fine.n[rest], weight=fine.weight[rest], mean=fine.mean[rest], ss=fine.ss[rest])
        n = np.bincount(self.model_cell[rest], weights=part.n, minlength=len(fit.cells.n))
        left = n > 0
        coarse = replace(
            fit.cells,
            frame=fit.cells.frame[left].reset_index(drop=True),
            n=n[left],
            weight=fit.cells.weight[left],
            n_rows=int(n.sum()),
        )
        place = (np.cumsum(left) - 1)[self.model_cell[rest]]
        cells = CellMap(codes=place, coarse=coarse).aggregate(part)
        # with the frame of the cells that it has, refit() keeps the design: nothing goes through the formula again
        sliced = replace(fit, design=_sliced(fit.design, left), cells=cells)
        return sliced.refit(cells=cells), left


def _sliced(design: Any, left: NDArray[np.bool_]) -> Any:
    """The design on some of its cells, in the coding of all; levels of groups that vanish are renumbered."""
    random = []
    for term in design.random:
        codes = term.codes[left]
        occurs = np.bincount(codes, minlength=len(term.levels)) > 0
        levels = tuple(level for level, there in zip(term.levels, occurs, strict=True) if there)
        random.append(replace(term, basis=term.basis[left], codes=(np.cumsum(occurs) - 1)[codes], levels=levels))
    return replace(design, X=design.X[left], offset=design.offset[left], random=tuple(random))


# ---------------------------------------------------------------------- what is read off each fit


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """Linear functions of the fixed effects that are tested: comparisons, or coefficients."""

    names: tuple[tuple[str, str], ...]
    L: FloatArray
    n_means: int

    @classmethod
    def pairs(cls, fit: Any, specs: tuple[str, ...], at: Mapping[str, Any], ddf: str) -> Functions:
        em = emmeans(fit, specs, at=at, ddf=ddf)
        labels = em.labels()
        i, j = np.triu_indices(len(labels), k=1)
        i, j = i[em.met(i, j)], j[em.met(i, j)]
        names = tuple((labels[a], labels[b]) for a, b in zip(i, j, strict=True))
        return cls(names, em.fixed[i] - em.fixed[j], len(labels))

    def places(self, wanted: Functions) -> Index:
        """Position here of each function of `wanted`, -1 where it is missing."""
        if wanted is self:
            return np.arange(len(self.names))
        position = {name: i for i, name in enumerate(self.names)}
        return np.array([position.get(name, -1) for name in wanted.names], dtype=np.intp)

    @classmethod
    def coefficients(cls, fit: Any) -> Functions:
        rows = np.eye(len(fit.design.x_names))
        chosen = [
            j for j, name in enumerate(fit.design.x_names) if name != "Intercept" and fit.estimable(rows[j : j + 1])[0]
        ]
        return cls(tuple((fit.design.x_names[j], "") for j in chosen), rows[chosen], 0)


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Estimates of the functions in one table, each ``(m,)``; NaN where the table does not identify one."""

    estimate: FloatArray
    se: FloatArray
    df: FloatArray

    @classmethod
    def of(cls, fit: Any, functions: Functions, ddf: str) -> Estimates:
        if not len(functions.L):
            return cls(*(np.empty(0) for _ in range(3)))
        variance = fit.cov(functions.L, ddf).diagonal()
        return cls(fit.estimate(functions.L), np.sqrt(variance), fit.df(functions.L, ddf))


def p_values(found: Estimates, n_means: NDArray[Any], method: str) -> FloatArray:
    """Adjusted p-values of several tables at once.

    Parameters
    ----------
    found : Estimates
        ``(tables, m)`` each.
    n_means : (tables,) int
        Means that are compared in each table.
    method : str
        One of `INFLUENCE_ADJUSTMENTS`.

    Returns
    -------
    (tables, m) float
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(found.se > 0, found.estimate / found.se, np.nan)
    if method == "tukey":
        return ptukey(np.sqrt(2.0) * np.abs(t), np.maximum(n_means, 2)[:, None], found.df, upper=True)
    raw = two_sided_p(t, found.df)
    tests = n_means * (n_means - 1) // 2
    return np.array([adjust_raw(row, method, m) for row, m in zip(raw, tests, strict=True)]).reshape(raw.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """What is kept of a fit without one level; arrays run over the kept coefficients, components or functions."""

    b: FloatArray
    se: FloatArray
    cooks_distance: float
    covratio: float
    variance: FloatArray
    n_means: int
    found: Estimates
    chance_p: FloatArray
    converged: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reference:
    """The fit of the whole table, and what the others are compared in.

    Attributes
    ----------
    fit : LmmFit
    specs : tuple of str
        Factors whose means are compared; empty: coefficients.
    ddf : str
        Rule for the degrees of freedom.
    functions : Functions
        What is tested.
    found : Estimates
        The same in the whole table.
    factor_codes : mapping of str to (n_cells,) int
        Place of each cell among the levels of each factor.
    """

    fit: Any
    specs: tuple[str, ...]
    ddf: str
    functions: Functions
    found: Estimates
    factor_codes: Mapping[str, Index]

    @classmethod
    def of(cls, fit: Any, specs: tuple[str, ...], ddf: str) -> Reference:
        import pandas as pd

        functions = Functions.pairs(fit, specs, {}, ddf) if specs else Functions.coefficients(fit)
        codes = {
            name: pd.Index(levels).get_indexer(pd.Index(fit.cells.frame[name]))
            for name, levels in fit.design.factors.items()
        }
        found = Estimates.of(fit, functions, ddf)
        return cls(fit=fit, specs=specs, ddf=ddf, functions=functions, found=found, factor_codes=codes)

    def read(self, part: Any, left: NDArray[np.bool_], n_levels: int) -> Refit:
        """Everything that is compared, from the fit to the cells that are left; the group has `n_levels` in all."""
        kept = self.fit.problem.kept
        lost = _lost_terms(self.fit.design, part.design)
        known = _identified(part, kept)
        b, V = self.fit.params.to_numpy()[kept], self.fit.cov_params().to_numpy()
        b_part = np.where(known, part.params.to_numpy()[kept], np.nan)
        position = np.searchsorted(part.problem.kept, kept[known])
        V_part = part.cov_params().to_numpy()[np.ix_(position, position)]
        change, V = (b_part - b)[known], V[np.ix_(known, known)]
        functions = self._functions_of(part, left)
        found = Estimates.of(part, functions, self.ddf)
        chance = np.full(len(functions.L), np.nan)
        if not lost and self.fit.dispersion is None and len(functions.L):
            chance = _chance(self.fit, part, functions.L, np.minimum(found.df, n_levels - 2.0))
        place = functions.places(self.functions)
        return Refit(
            b=b_part,
            se=np.where(known, part.bse.to_numpy()[kept], np.nan),
            cooks_distance=float(change @ np.linalg.solve(V, change)) / len(change) if len(change) else np.nan,
            covratio=float(np.exp(np.linalg.slogdet(V_part)[1] - np.linalg.slogdet(V)[1])),
            variance=self._variances(part, lost),
            n_means=functions.n_means,
            found=Estimates(*(_placed(v, place) for v in (found.estimate, found.se, found.df))),
            chance_p=_placed(chance, place),
            converged=bool(part.converged),
            reason=_not_identified(self.fit, kept[~known], lost),
        )

    def _functions_of(self, part: Any, left: NDArray[np.bool_]) -> Functions:
        """What is tested without a level: where a factor loses levels, means are over those that remain."""
        if not self.specs:
            return self.functions
        occurs = {
            name: np.bincount(codes[left], minlength=len(self.fit.design.factors[name])) > 0
            for name, codes in self.factor_codes.items()
        }
        if all(there.all() for there in occurs.values()):
            return self.functions
        at = {
            name: [value for value, there in zip(self.fit.design.factors[name], mask, strict=True) if there]
            for name, mask in occurs.items()
        }
        return Functions.pairs(part, self.specs, at, self.ddf)

    def _variances(self, part: Any, lost: tuple[int, ...]) -> FloatArray:
        """Components as in ``fit.varcorr`` of the whole; NaN for those that the remaining rows do not have."""
        parts = [np.full(shape.n_theta, np.nan) for shape in self.fit.problem.shapes]
        for i, S in enumerate(part.covariances):
            if i not in lost:
                between = [] if self.fit.design.random[i].diagonal else S[np.tril_indices(len(S), -1)]
                parts[i] = np.append(S.diagonal(), between)
        residual = part.residual_variances.reindex(self.fit.residual_variances.index)
        return np.concatenate([*parts, residual.to_numpy(dtype=float)])


@dataclass(frozen=True, slots=True, eq=False)
class Deletion:
    """Task number i of `replicate`: the fit without level i. It draws nothing."""

    reference: Reference
    levels: Levels

    def __call__(self, rng: np.random.Generator) -> Refit:
        index = rng.bit_generator.seed_seq.spawn_key[-1]  # type: ignore[attr-defined]  # the number of the task
        return self.reference.read(*self.levels.without(self.reference.fit, index), len(self.levels.labels))


def _lost_terms(whole: Any, part: Any) -> tuple[int, ...]:
    """Random terms whose basis has lost a direction, for instance with the last row of an algorithm."""
    rank = np.linalg.matrix_rank
    return tuple(
        i
        for i, (before, now) in enumerate(zip(whole.random, part.random, strict=True))
        if (not now.basis.any() if len(now.names) == 1 else rank(now.basis) < rank(before.basis))
    )


def _identified(part: Any, kept: Index) -> NDArray[np.bool_]:
    """Which coefficients of the whole fit the remaining rows identify, with the meaning that they had."""
    still = np.isin(kept, part.problem.kept)
    if still.all():
        return still
    root = np.sqrt(part.cells.n * part.cells.weight)[:, None]
    X = part.design.X * root
    implied = np.linalg.lstsq(X[:, kept[still]], X[:, kept[~still]], rcond=None)[0]
    known = still.copy()
    known[still] = np.abs(implied).max(axis=1) < _SAME * max(1.0, float(np.abs(implied).max(initial=0.0)))
    return known


def _chance(whole: Any, part: Any, L: FloatArray, df: FloatArray) -> FloatArray:
    """P-values of the changes of ``L b``, with all variances as they are estimated without the level."""
    problem = whole.problem
    at = problem.evaluate(problem.point(problem.to_white(part.theta)))
    b, U = problem.fixed_effects(at)
    kept = L[:, problem.kept]
    variance = part.scale * ((kept @ U) ** 2).sum(axis=1)
    variance_part = part.cov(L).diagonal()
    added = variance_part - variance
    told = added > _NO_INFORMATION * variance_part
    out = np.full(len(L), np.nan)
    t = (part.estimate(L)[told] - (kept @ b)[told]) / np.sqrt(added[told])
    out[told] = two_sided_p(t, df[told])
    return out


def _placed(values: FloatArray, place: Index) -> FloatArray:
    out = np.full(len(place), np.nan)
    out[place >= 0] = values[place[place >= 0]]
    return out


def _not_identified(fit: Any, columns: Index, lost: tuple[int, ...]) -> str:
    names = [fit.design.x_names[j] for j in columns] + [fit.design.random[i].label for i in lost]
    return f"the other levels do not identify {listed(names, most=5)}" if names else ""
