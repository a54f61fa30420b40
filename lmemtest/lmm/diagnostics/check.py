"""One line of a diagnosis: what was checked, what was found, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmemtest.core.result import Result

if TYPE_CHECKING:
    from typing_extensions import Self

DECISIONS = ("not judged", "fine", "look", "act")

# A finding counts where tables drawn from the fitted model show it this rarely; "act" needs the smaller share, so that
# the dozen checks of one diagnosis are all silent on most tables that deserve it.
LOOK_P, ACT_P = 0.05, 0.01


@dataclass(frozen=True, slots=True)
class Check:
    """One line of a diagnosis.

    Attributes
    ----------
    check, subject : str
        What was looked at ("normality", "scale", ...), and of what ("residuals", a term, a column).
    found : str
        The numbers, as text.
    value : float
        The number that the decision rests on.
    p_value : float
        How often tables drawn from the fitted model show as much; NaN where nothing is tested.
    decision : {"not judged", "fine", "look", "act"}
    advice : str
        What it means and what to do.
    """

    check: str
    subject: str
    found: str
    value: float
    p_value: float
    decision: str
    advice: str


class Judged(Result):
    """A part of a diagnosis with a line of its own."""

    __slots__ = ()

    check: Check

    @property
    def decision(self) -> str:
        """How serious it is."""
        return self.check.decision

    @property
    def advice(self) -> str:
        """What it means and what to do."""
        return self.check.advice

    @property
    def p_value(self) -> float:
        """How often tables without it show as much; NaN where nothing is tested."""
        return self.check.p_value

    def sentences(self) -> tuple[str, ...]:
        """What was found and what to do."""
        return (self.advice,)

    def judged_as(self, decision: str, advice: str) -> Self:
        """The same numbers with another decision."""
        check = replace(self.check, decision=decision, advice=advice)
        return replace(self, check=check)  # type: ignore[type-var]  # every result is a dataclass


def worst(decisions: Iterable[str]) -> str:
    """The most serious of some decisions; ``"fine"`` of none.

    Examples
    --------
    >>> worst(["fine", "act", "look"]), worst([])
    ('act', 'fine')
    """
    return max(decisions, key=DECISIONS.index, default="fine")


def simulated_p(observed: float, draws: Iterable[float]) -> float:
    """Share of tables, the observed one included, that show at least as much.

    Examples
    --------
    >>> simulated_p(3.0, [1.0, 2.0, 3.0])
    0.5
    """
    values = list(draws)
    return (1 + sum(value >= observed for value in values)) / (len(values) + 1)
