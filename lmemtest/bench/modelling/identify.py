"""What a design identifies: every term of a model must add something that its rows can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.core.words import listed
from lmemtest.errors import DesignError
from lmemtest.lmm.formula import Bar, Term
from lmemtest.lmm.formula.design import check_variances, held_by_fixed, same_partition
from lmemtest.lmm.formula.functions import columns_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.formula.design import Design, RandomDesign
    from lmemtest.lmm.model.spec import ModelSpec


_TOLERANCE = 1e-7  # of the rank decisions of a fit, relative to the length of a column


def check_identified(spec: ModelSpec, runs: Runs) -> None:
    """Refuse a model that the design cannot identify."""
    if spec.dispersion is not None:
        check_dispersion(spec.dispersion, runs)
    for reason in unidentified(spec, runs).values():
        raise DesignError(reason)


def refusal(spec: ModelSpec, runs: Runs) -> str:
    """Why the design cannot identify a model; empty if it can."""
    try:
        check_identified(spec, runs)
    except DesignError as error:
        return str(error)
    return ""


def unidentified(spec: ModelSpec, runs: Runs) -> dict[Term | Bar, str]:
    """The terms that add nothing to those before them, in the order of the model, and why."""
    if not (spec.terms or spec.bars):
        return {}
    reasons: dict[Term | Bar, str] = {}
    cells, counts = _combinations(runs, list(spec.parsed.columns))
    for column in spec.parsed.columns:
        if cells[column].nunique() < 2 and all(column not in bar.groups for bar in spec.bars):
            reason = (
                f"'{column}' has the same value {cells[column].iloc[0]} in all rows, so it has no effect that could "
                "be seen. Leave it out."
            )
            parts: list[Term | Bar] = [*spec.terms, *spec.bars]
            reasons |= {part: reason for part in parts if column in part.columns}
    rest = spec.without(*reasons)
    design = rest.design(cells, counts)
    reasons |= _of_fixed(rest, design)
    kept: list[int] = []
    for index, bar in enumerate(rest.bars):
        others = [design.random[i] for i in kept]
        reason = _of_random(bar, design, design.random[index], others, cells, int(counts.sum()))
        if reason:
            reasons[bar] = reason
        else:
            kept.append(index)
    return reasons


def of_groups(bar: Bar, levels: int, width: int, n_rows: int, only: str = "") -> str:
    """Why groups cannot show a variance, by their number alone; empty if they may."""
    if levels < 2:
        one = f" ({only})" if only else ""
        return (
            f"the random effect {bar} has one group only{one}, so a variance between groups cannot be estimated. "
            f"Leave it out, or bring more levels of {bar.group}."
        )
    if bar.diagonal or levels * width < n_rows:
        return ""
    if width == 1:
        what = f"its {levels:,} groups are single rows of the {n_rows:,}, as many as there are residuals"
    else:
        what = f"{levels:,} groups with {width} effects each are {levels * width:,} numbers from {n_rows:,} rows"
    return (
        f"the random effect {bar} cannot be distinguished from the residual: {what}. The residual takes its place; "
        "leave it out, or bring repeated runs."
    )


def held_in(spec: ModelSpec, bar: Bar, runs: Runs) -> bool:
    """Whether the fixed terms of a model hold a random effect already, so that its variance would be arbitrary."""
    beside = spec.with_term(bar)
    design = beside.design(*_combinations(runs, list(beside.parsed.columns)))
    return held_by_fixed(design, design.random[-1]) is not None


def check_dispersion(column: str, runs: Runs) -> None:
    """Refuse residual variances by a column whose levels cannot show one."""
    frame, counts = _combinations(runs, [column])
    if len(frame) < 2:
        raise DesignError(f"'{column}' has one level only, so it has one residual variance, as every model. Leave it.")
    single = frame.loc[counts < 2, column].tolist()
    if single:
        raise DesignError(
            f"a residual variance per level of '{column}' needs at least two rows of each; {listed(single)} "
            f"{'has' if len(single) == 1 else 'have'} one. Take a coarser column."
        )


def _combinations(runs: Runs, columns: list[str]) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Distinct combinations of columns and their rows."""
    groups = runs.study.groups(columns)
    return groups.keys.frame(), groups.n.astype(np.int64)


def _of_fixed(spec: ModelSpec, design: Design) -> dict[Term | Bar, str]:
    X = design.X / np.maximum(np.linalg.norm(design.X, axis=0), np.finfo(float).tiny)
    before = np.ones((len(X), 1)) / np.sqrt(len(X))
    by_label = {term.label: term for term in spec.terms}
    reasons: dict[Term | Bar, str] = {}
    for label, columns in design.terms:
        rest = X[:, columns] - before @ (before.T @ X[:, columns])
        basis, values, _ = np.linalg.svd(rest, full_matrices=False)
        new = basis[:, values > _TOLERANCE]
        if new.shape[1] == 0 and label != "Intercept":
            reasons[by_label[label]] = (
                f"the fixed term '{label}' adds nothing: the terms before it already tell its levels apart. Drop one "
                "of them."
            )
        before = np.hstack([before, new])
    return reasons


def _of_random(
    bar: Bar, design: Design, term: RandomDesign, others: list[RandomDesign], cells: pd.DataFrame, n_rows: int
) -> str:
    """Why a random effect cannot be estimated beside the fixed terms and other random effects; empty if it can."""
    if reason := of_groups(bar, len(term.levels), len(term.names), n_rows, term.levels[0]):
        return reason
    if term.diagonal:
        try:
            check_variances(design, term, n_rows)
        except DesignError as error:
            return str(error)
    for factor in dict.fromkeys(factor for effect in bar.effects for factor in effect.factors):
        for name in columns_of(factor):
            if cells.groupby(term.codes)[name.value].nunique().max() < 2:
                return (
                    f"the slope of {factor} in {bar} cannot be estimated: '{name.value}' is constant within every "
                    f"group of {bar.group}. Choose groups within which it varies."
                )
    for other in others:
        if not same_partition(other.codes, term.codes):
            continue
        both = " and ".join(sorted([other.label, str(bar)]))
        if other.names == term.names:
            return (
                f"the random effects {both} have the same groups in these runs, so their variances are not identified. "
                "Keep one of them."
            )
        if _overlap(other, term):
            return (
                f"the random effects {both} have the same groups in these runs and overlap in what varies between "
                "them, so their variances are not identified. Keep one of them, or write both as one term."
            )
    held = held_by_fixed(design, term)
    return "" if held is None else f"{held}. Keep one of them."


def _overlap(first: RandomDesign, second: RandomDesign) -> bool:
    """Whether two covariance matrices of the same groups have a direction in common.

    That of a `diag` term has no directions but its columns: beside a variance of all levels together it is identified.
    """
    if first.diagonal or second.diagonal:
        wide, apart = (first, second) if second.diagonal else (second, first)
        columns = [wide.basis[:, [j]] for j in range(wide.basis.shape[1])] if wide.diagonal else [wide.basis]
        return any(_rank(np.column_stack([column, c])) == _rank(column) for column in columns for c in apart.basis.T)
    return _rank(np.hstack([first.basis, second.basis])) < _rank(first.basis) + _rank(second.basis)


def _rank(columns: Array) -> int:
    scaled = columns / np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
    values = np.linalg.svd(scaled, compute_uv=False)
    return int((values > _TOLERANCE * values[0]).sum())
