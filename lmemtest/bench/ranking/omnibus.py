"""A test that all algorithms are alike: name, statistic, degrees of freedom, p-value."""

from __future__ import annotations

from dataclasses import dataclass

from lmemtest.core.rounding import below, written
from lmemtest.core.words import format_number, p_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnibus:
    """A test that all algorithms are alike.

    Attributes
    ----------
    name : str
        "Friedman (Iman-Davenport)", "repeated-measures ANOVA", ...
    statistic, p_value : float
    df : tuple of float
        One, or numerator and denominator.
    symbol : {"F", "chi-square"}
    alpha : float
    """

    name: str
    statistic: float
    df: tuple[float, ...]
    p_value: float
    symbol: str
    alpha: float

    @property
    def significant(self) -> bool:
        """Whether the algorithms differ at all, by this test."""
        return bool(below(self.p_value, self.alpha))

    @property
    def text(self) -> str:
        """As papers write it: "F(3, 33) = 3.04, p = 0.043"."""
        df = ", ".join(written(float(value), ".4g") for value in self.df)
        return f"{self.symbol}({df}) = {format_number(self.statistic, 3)}, {p_text(self.p_value)}"
