"""What is given as a fit: of this package, linear or generalised, or of statsmodels; what is none is refused.

Questions of a fit begin with one of these. A fit is known by what it has, a design and a likelihood, and not by its
class: those of `fit_lmm` and of `fit_glmm` are of two, and a result of statsmodels is asked as an `OtherFit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, UnknownColumnError


def given_fit(fit: Any) -> Any:
    """A fitted model, after a check; a result of statsmodels as an `OtherFit`."""
    if type(fit).__module__.startswith("statsmodels."):
        from lmemtest.lmm.means.others import fit_of

        return fit_of(fit)
    check_fit(fit, "fit")
    return fit


def is_ours(fit: Any) -> bool:
    """Whether the engine fitted it."""
    return hasattr(fit, "problem")


def check_fit(fit: Any, name: str) -> None:
    """Refuse what is not a fitted model, with the way to get one.

    Examples
    --------
    >>> check_fit("loss ~ algorithm", "null")
    Traceback (most recent call last):
    lmemtest.errors.ArgumentError: null must be a fitted model, got str. Fit one with fit_lmm(...).
    """
    if not (hasattr(fit, "design") and hasattr(type(fit), "llf")):
        raise ArgumentError(f"{name} must be a fitted model, got {type(fit).__name__}. Fit one with fit_lmm(...).")


def check_linear(fit: Any, question: str, instead: str) -> None:
    """Refuse a generalised model where a question is answered for scores with a residual variance only."""
    if getattr(fit, "distribution", "normal") != "normal":
        raise ArgumentError(f"{question} is for linear mixed models, and this fit is {fit.distribution}. {instead}")


def check_working(fit: Any, question: str, columns: Sequence[str]) -> None:
    """Refuse a generalised model whose working scores cannot be summed by clusters: of another method, or columns."""
    if getattr(fit, "distribution", "normal") == "normal":
        return
    if not fit.reml:
        raise ArgumentError(
            f"{question} stands on the linear model of the working scores of method='pseudo', and this fit is by "
            "maximum likelihood. Take fit.refit(reml=True)."
        )
    if unknown := [name for name in columns if name not in fit.cells.names]:
        raise UnknownColumnError(
            f"cluster= of a generalised model must be of its formula, whose columns are {listed(fit.cells.names)}: "
            f"{listed(unknown)} {'is' if len(unknown) == 1 else 'are'} not."
        )
