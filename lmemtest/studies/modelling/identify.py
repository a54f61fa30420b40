"""What a design can tell apart: every term of a composed model must add something that its rows can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import DesignError
from lmemtest.formula import build_design
from lmemtest.formula.bars import parse_formula
from lmemtest.formula.diagonal import check_variances
from lmemtest.formula.functions import columns_of
from lmemtest.formula.spanned import held_by_fixed
from lmemtest.words import listed

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs
    from lmemtest.formula.bars import Bar, ParsedFormula
    from lmemtest.formula.design import Design, RandomDesign

    FloatArray = NDArray[np.float64]

_TOLERANCE = 1e-7  # of the rank decisions of a fit, relative to the length of a column


def check_identified(parsed: ParsedFormula, runs: Runs) -> None:
    """Refuse a model that the design cannot identify.

    Parameters
    ----------
    parsed : ParsedFormula
        Its columns are in the table.
    runs : Runs

    Raises
    ------
    DesignError
        Naming the term, what the rows look like, and the way out.
    """
    if not parsed.columns:
        return
    cells, counts = _combinations(runs, list(parsed.columns))
    for column in parsed.columns:
        if cells[column].nunique() < 2 and all(column not in bar.groups for bar in parsed.bars):
            raise DesignError(
                f"'{column}' has the same value {cells[column].iloc[0]} in all rows, so it has no effect that could "
                "be seen. Leave it out."
            )
    design = build_design(parsed, cells, counts)
    _check_fixed(design)
    for index, bar in enumerate(parsed.bars):
        _check_random(index, bar, design, cells, int(counts.sum()))


def held_in(formula: str, runs: Runs) -> str | None:
    """Why the last random effect of a formula cannot be estimated beside its fixed effects, if it cannot."""
    parsed = parse_formula(formula)
    cells, counts = _combinations(runs, list(parsed.columns))
    design = build_design(parsed, cells, counts)
    return held_by_fixed(design, design.random[-1])


def _combinations(runs: Runs, columns: list[str]) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Distinct combinations of columns and their rows."""
    groups = runs.study.groups(columns)
    return groups.keys.frame(), groups.n.astype(np.int64)


def _check_fixed(design: Design) -> None:
    X = design.X / np.maximum(np.linalg.norm(design.X, axis=0), np.finfo(float).tiny)
    known = np.ones((len(X), 1)) / np.sqrt(len(X))
    for label, columns in design.terms:
        rest = X[:, columns] - known @ (known.T @ X[:, columns])
        basis, values, _ = np.linalg.svd(rest, full_matrices=False)
        new = basis[:, values > _TOLERANCE]
        if new.shape[1] == 0 and label != "Intercept":
            raise DesignError(
                f"the fixed term '{label}' adds nothing: the terms before it already tell its levels apart. Drop one "
                "of them."
            )
        known = np.hstack([known, new])


def _check_random(index: int, bar: Bar, design: Design, cells: pd.DataFrame, n_rows: int) -> None:
    term = design.random[index]
    levels, width = len(term.levels), len(term.names)
    if levels < 2:
        raise DesignError(
            f"the random effect {bar} has one group only ({term.levels[0]}), so a variance between groups cannot be "
            f"estimated. Leave it out, or bring more levels of {bar.group}."
        )
    if term.diagonal:
        check_variances(design, term, n_rows)
    elif levels * width >= n_rows:
        if width == 1:
            what = f"its {levels:,} groups are single rows of the {n_rows:,}, as many as there are residuals"
        else:
            what = f"{levels:,} groups with {width} effects each are {levels * width:,} numbers from {n_rows:,} rows"
        raise DesignError(
            f"the random effect {bar} cannot be distinguished from the residual: {what}. The residual takes its place; "
            "leave it out, or bring repeated runs."
        )
    for label, name in _effects(bar):
        if cells.groupby(term.codes)[name].nunique().max() < 2:
            raise DesignError(
                f"the slope of {label} in {bar} cannot be estimated: '{name}' is constant within every group of "
                f"{bar.group}. Choose groups within which it varies."
            )
    _check_against_others(index, bar, design)
    reason = held_by_fixed(design, term)
    if reason is not None:
        raise DesignError(f"{reason}. Keep one of them.")


def _effects(bar: Bar) -> list[tuple[str, str]]:
    """What varies in a random-effect term: each column or call, with the columns that it reads."""
    atoms = dict.fromkeys(bar.terms.atoms[i] for term in bar.terms.terms for i in term)
    return [(str(atom), name.value) for atom in atoms for name in columns_of(atom)]


def _check_against_others(index: int, bar: Bar, design: Design) -> None:
    term = design.random[index]
    for other in design.random[:index]:
        if not _same_groups(other, term):
            continue
        both = " and ".join(sorted([other.label, str(bar)]))
        if other.names == term.names:
            raise DesignError(
                f"the random effects {both} have the same groups in these runs, so their variances cannot be told "
                "apart. Keep one of them."
            )
        if _overlap(other, term):
            raise DesignError(
                f"the random effects {both} have the same groups in these runs and overlap in what varies between "
                "them, so their variances cannot be told apart. Keep one of them, or write both as one term."
            )


def _overlap(first: RandomDesign, second: RandomDesign) -> bool:
    """Whether two covariance matrices of the same groups have a direction in common.

    That of a `diag` term has no directions but its columns: beside a variance of all levels together it is identified.
    """
    if first.diagonal or second.diagonal:
        wide, apart = (first, second) if second.diagonal else (second, first)
        columns = [wide.basis[:, [j]] for j in range(wide.basis.shape[1])] if wide.diagonal else [wide.basis]
        return any(_rank(np.column_stack([own, c])) == _rank(own) for own in columns for c in apart.basis.T)
    return _rank(np.hstack([first.basis, second.basis])) < _rank(first.basis) + _rank(second.basis)


def _rank(columns: FloatArray) -> int:
    scaled = columns / np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
    values = np.linalg.svd(scaled, compute_uv=False)
    return int((values > _TOLERANCE * values[0]).sum())


def _same_groups(first: RandomDesign, second: RandomDesign) -> bool:
    if len(first.levels) != len(second.levels):
        return False
    joint = first.codes.astype(np.int64) * len(second.levels) + second.codes
    return len(np.unique(joint)) == len(first.levels)


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
