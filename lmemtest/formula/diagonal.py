"""What `diag(f | g)`, a variance for each level, needs of the rows, and the one variance `(1 | g:f)` in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest.errors import DesignError
from lmemtest.words import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.formula.columns import Codes
    from lmemtest.formula.design import Design, RandomDesign

    Array = NDArray[np.float64]


def check_variances(design: Design, term: RandomDesign, n: int) -> None:
    """Refuse variances of single levels that the rows cannot show, by a `DesignError`."""
    seen = np.zeros((len(term.levels), len(term.names)), dtype=bool)
    np.logical_or.at(seen, term.codes, term.basis > 0)
    few = [f"{name} ({count})" for name, count in zip(term.names, seen.sum(axis=0), strict=True) if count < 2]
    if few:
        raise DesignError(
            f"{term.label} has a variance for each level, which needs at least two levels of {term.group} with rows of "
            f"it; {listed(few)} {'has' if len(few) == 1 else 'have'} fewer. Leave those rows out, or take one variance "
            "for all levels."
        )
    if seen.sum() >= n:
        apart = in_words_of(python="dispersion=", command_line="--dispersion")
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
    names: tuple[str, ...], codes: Codes, diagonal: RandomDesign, basis: Array, diagonal_codes: Codes
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
