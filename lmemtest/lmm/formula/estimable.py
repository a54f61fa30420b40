"""Which variances of random effects the rows can show.

`diag(f | g)`, a variance for each level, needs several groups of each and no `(1 | g:f)` beside it; no variance can be
estimated of effects that the fixed ones already hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.caller import advice
from lmemtest.core.words import listed
from lmemtest.errors import DesignError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.formula.design import Design, RandomDesign


_TOLERANCE = 1e-7  # of the rank decisions of a fit, relative to the length of a column


def check_variances(design: Design, term: RandomDesign, n: int) -> None:
    """Refuse variances of single levels that the rows cannot show, by a `DesignError`."""
    seen = np.zeros((term.n_levels, len(term.names)), dtype=bool)
    np.logical_or.at(seen, term.codes, term.basis > 0)
    few = [f"{name} ({count})" for name, count in zip(term.names, seen.sum(axis=0), strict=True) if count < 2]
    if few:
        raise DesignError(
            f"{term.label} has a variance for each level, which needs at least two levels of {term.group} with rows of "
            f"it; {listed(few)} {'has' if len(few) == 1 else 'have'} fewer. Leave those rows out, or take one variance "
            "for all levels."
        )
    if seen.sum() >= n:
        apart = advice("argument", name="dispersion")
        raise DesignError(
            f"{term.label} has {seen.sum():,} effects for {n:,} rows, so its variances cannot be distinguished "
            f"from the residual. Bring repeated runs, or give the residual a variance for each level with {apart}."
        )
    for other in design.random:
        if one_variance(other.names, other.codes, term, term.basis, term.codes):
            raise DesignError(
                f"{other.label} and {term.label} are about the same groups: one variance for all levels and one for "
                f"each, which the data cannot separate. Leave out {other.label}."
            )


def one_variance(
    names: tuple[str, ...], codes: Index, diagonal: RandomDesign, basis: Array, diagonal_codes: Index
) -> bool:
    """Whether a term is the one variance of all levels, ``(1 | g:f)``, that `diag(f | g)` has a variance each of."""
    if not diagonal.diagonal or names != ("Intercept",):
        return False
    cells = diagonal_codes.astype(np.int64) * basis.shape[1] + basis.argmax(axis=1)
    return same_partition(codes, cells)


def same_partition(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Do two codings split the rows in the same way, whatever the groups are called?"""
    if first.min() < 0 or second.min() < 0:
        return False
    joint = first.astype(np.int64) * (int(second.max()) + 1) + second
    n_joint = len(np.unique(joint))
    return n_joint == len(np.unique(first)) == len(np.unique(second))


def held_by_fixed(design: Design, term: RandomDesign) -> str | None:
    """Why a random effect cannot be estimated beside the fixed ones, if it is a combination of them in each group.

    The restricted likelihood does not depend on its variance then, and the likelihood is largest at zero, whatever
    the data. `lme4` gives a variance all the same.
    """
    held = [term.names[j] for j in held_columns(design, term)]
    if not held:
        return None
    if term.names == ("Intercept",):
        what, instead = f"the random effect {term.label}", "give each of its groups a mean of its own"
    else:
        what, instead = f"{listed(held)} in {term.label}", "hold the same for each group"
    labels = listed([label for label, _ in design.terms])
    return f"{what} cannot be estimated beside the fixed terms, which {instead} ({labels})"


def held_columns(design: Design, term: RandomDesign) -> tuple[int, ...]:
    """Columns of the basis of a random effect that are, in each of its groups, combinations of the fixed effects."""
    return tuple(j for j, column in enumerate(term.basis.T) if _spanned(design, term, column))


def beside_held(design: Design) -> Array | None:
    """The fixed effects, and beside them the random ones that they hold as if they were fixed; None if there are none.

    A linear function of the fixed effects has an error that the data know if it is estimable here too: its estimate
    does not change with effects whose variance is arbitrary.
    """
    blocks = []
    for term in design.random:
        for j in held_columns(design, term):
            block = np.zeros((len(design.X), term.n_levels))
            block[np.arange(len(block)), term.codes] = term.basis[:, j]
            blocks.append(block)
    return np.hstack([design.X, *blocks]) if blocks else None


def _spanned(design: Design, term: RandomDesign, column: Array) -> bool:
    """Whether a column, in each of the groups, is a combination of the fixed ones: a function of the rows of X."""
    levels, row, size = term.n_levels, design.row, len(design.distinct)
    if levels > design.distinct.shape[1]:
        return False
    first = np.zeros(size, dtype=np.intp)
    first[row[::-1]] = np.arange(len(row))[::-1]
    if not np.array_equal(term.codes[first][row], term.codes):
        return False
    if np.abs(column - column[first][row]).max() > _TOLERANCE * np.abs(column).max():
        return False
    root = np.sqrt(np.bincount(row, minlength=size))[:, None]
    groups = np.zeros((size, levels))
    groups[np.arange(size), term.codes[first]] = column[first]
    X, groups = design.distinct * root, groups * root
    U, d, _ = np.linalg.svd(X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny), full_matrices=False)
    U = U[:, d > _TOLERANCE * d[0]]
    rest = groups - U @ (U.T @ groups)
    return bool(np.all(np.linalg.norm(rest, axis=0) <= _TOLERANCE * np.linalg.norm(groups, axis=0)))
