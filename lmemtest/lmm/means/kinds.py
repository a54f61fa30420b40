"""The kinds of comparisons, and what each verb of them asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmemtest.core.validate import check_direction
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.lmm.means.comparisons import Comparisons

SOURCES = {
    "pairs": "pairs()",
    "control": "against()",
    "contrasts": "contrast()",
    "equivalence": "equivalence()",
    "noninferiority": "noninferiority()",
    "best": "best()",
}  # what makes each kind of comparisons


def check_kind(value: Comparisons, verb: str, *kinds: str) -> None:
    """Refuse comparisons that a verb is not for."""
    if value.kind not in kinds:
        wanted = " or ".join(SOURCES[kind] for kind in kinds)
        raise ArgumentError(f"{verb} is for the result of {wanted}, and this is that of {SOURCES[value.kind]}.")


def known_direction(given: Any, of_runs: str | None, verb: str) -> str:
    """Which end is better: as given, else that of the runs; refused where neither says so."""
    if given is not None:
        return check_direction(given)
    if of_runs is None:
        raise ArgumentError(
            f"{verb} must know which end of the response is better: give direction='minimize' or 'maximize', or "
            "fit Runs."
        )
    return of_runs
