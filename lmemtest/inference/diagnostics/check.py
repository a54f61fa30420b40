"""One line of a diagnosis: what was checked, what was found, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lmemtest._result import Result

DECISIONS = ("not judged", "fine", "look", "act")

# A finding counts where tables drawn from the fitted model show it this rarely; "act" needs the smaller share, so that
# the dozen checks of one diagnosis stay silent together on most tables that deserve it.
LOOK_P, ACT_P = 0.05, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of a diagnosis.

    Attributes
    ----------
    check : str
        What was looked at: ``"normality"``, ``"scale"``, ...
    subject : str
        Of what: ``"residuals"``, a term, a column.
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
    p_value: float = float("nan")
    decision: str = "fine"
    advice: str = ""


class Judged(Result):
    """A part of a diagnosis with a decision and an advice of its own."""

    __slots__ = ()

    decision: str
    advice: str

    def sentences(self) -> tuple[str, ...]:
        """What was found and what to do."""
        return (self.advice,)

    def line(self, check: str, subject: str, found: str, value: float, p_value: float = float("nan")) -> Check:
        """The part as a line of the diagnosis."""
        return Check(
            check=check,
            subject=subject,
            found=found,
            value=value,
            p_value=p_value,
            decision=self.decision,
            advice=self.advice,
        )


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
