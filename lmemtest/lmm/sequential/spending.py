"""How much of a level two-sided tests may spend by a share of the information, after Lan & DeMets.

Spending functions increase with the share, from 0 at 0 to the whole level at 1, and with the level at every share.

References
----------
Lan & DeMets (1983), Discrete sequential boundaries for clinical trials, doi:10.1093/biomet/70.3.659
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.caller import named
from lmemtest.core.validate import check_choice
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array


def obrien_fleming(share: ArrayLike, level: ArrayLike) -> Array:
    """Next to nothing early, nearly all of it at the end: the last test is about that of a study without looks.

    Parameters
    ----------
    share : array of float in (0, 1]
        Of the information that is planned.
    level : array of float in (0, 1]

    Returns
    -------
    array of float
        What may have been spent by then.

    Examples
    --------
    >>> obrien_fleming([0.25, 0.5, 1.0], 0.05).round(4)
    array([0.    , 0.0031, 0.05  ])
    """
    return np.asarray(4.0 * special.ndtr(special.ndtri(0.25 * np.asarray(level)) / np.sqrt(share)))


def pocock(share: ArrayLike, level: ArrayLike) -> Array:
    """About evenly: looks are tested at about one level. Parameters are those of `obrien_fleming`.

    Examples
    --------
    >>> pocock([0.25, 0.5, 1.0], 0.05).round(4)
    array([0.0179, 0.031 , 0.05  ])
    """
    return np.asarray(np.asarray(level) * np.log1p(np.expm1(1.0) * np.asarray(share)))


SPENDING: Mapping[str, Callable[[ArrayLike, ArrayLike], Array]] = {"obrien_fleming": obrien_fleming, "pocock": pocock}
SPENDING_NAMES = {"obrien_fleming": "O'Brien-Fleming-like", "pocock": "Pocock-like"}


def check_spending(spending: str | None, planned: bool) -> str:
    """The spending function that an argument names, O'Brien-Fleming-like by default; it is for planned looks."""
    if spending is not None and not planned:
        raise ArgumentError(
            f"{named('spending')} is how planned looks spend alpha, and none are planned: give {named('looks')} or "
            f"{named('maximum')} as well, or leave it out."
        )
    return check_choice("obrien_fleming" if spending is None else spending, "spending", tuple(SPENDING))
