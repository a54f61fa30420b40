"""Random effects that the fixed effects already hold: nothing is left to estimate their variance from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.words import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.formula.design import Design, RandomDesign

    Array = NDArray[np.float64]

_TOLERANCE = 1e-7  # of the rank decisions of a fit, relative to the length of a column


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
    return tuple(j for j, column in enumerate(term.basis.T) if _spanned(design.X, term, column))


def beside_held(design: Design) -> Array | None:
    """The fixed effects, and beside them the random ones that they hold as if they were fixed; None if there are none.

    A linear function of the fixed effects has an error that the data know if it is estimable here too: its estimate
    does not change with effects whose variance is arbitrary.
    """
    blocks = []
    for term in design.random:
        for j in held_columns(design, term):
            block = np.zeros((len(design.X), len(term.levels)))
            block[np.arange(len(block)), term.codes] = term.basis[:, j]
            blocks.append(block)
    return np.hstack([design.X, *blocks]) if blocks else None


def _spanned(X: Array, term: RandomDesign, column: Array) -> bool:
    """Whether a column, in each of the groups, is a combination of the columns of X."""
    levels = len(term.levels)
    if levels > X.shape[1]:
        return False
    groups = np.zeros((len(X), levels))
    groups[np.arange(len(X)), term.codes] = column
    U, d, _ = np.linalg.svd(X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny), full_matrices=False)
    U = U[:, d > _TOLERANCE * d[0]]
    rest = groups - U @ (U.T @ groups)
    return bool(np.all(np.linalg.norm(rest, axis=0) <= _TOLERANCE * np.linalg.norm(groups, axis=0)))
