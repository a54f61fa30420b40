"""Likelihood-ratio tests in the package's form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmemtest.core.rounding import below, written
from lmemtest.core.words import small_p
from lmemtest.errors import ArgumentError, NestingError
from lmemtest.lmm.hypotheses import glrt as likelihood_ratio
from lmemtest.lmm.hypotheses.nesting import check_nesting

if TYPE_CHECKING:
    from lmemtest.compat.significance_analysis.mixed_model import Model

_LEVEL = 0.05


def glrt(mod1: Model, mod2: Model, verbose: bool = False) -> dict[str, Any]:
    """Test two nested models against each other.

    Parameters
    ----------
    mod1, mod2 : Model
        From `model`, in either order; the smaller one is the null hypothesis.
    verbose : bool
        Print the models, their log-likelihoods and the result.

    Returns
    -------
    dict
        ``"p"``, ``"chi_square"`` (twice the difference of the log-likelihoods) and ``"df"`` (difference of the numbers
        of parameters, variances included). The p-value of a variance takes into account that it cannot be negative.

    Raises
    ------
    NestingError
        If neither model contains the other, they are the same, or were fitted to different data.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.compat.significance_analysis import model
    >>> data = lt.datasets.load_hpo_runs().filter(budget=8, prior="good").to_frame()
    >>> larger = model("loss ~ algorithm + (1|benchmark)", data)
    >>> smaller = model("loss ~ 1 + (1|benchmark)", data)
    >>> result = glrt(larger, smaller)
    >>> result["df"], result["p"] < 0.001
    (5, True)
    """
    for name, given in (("mod1", mod1), ("mod2", mod2)):
        if not hasattr(given, "likelihood_fit"):
            raise ArgumentError(f"{name} must be the result of model(), got {type(given).__name__}.")
    null, alternative = _ordered(mod1, mod2)
    test = likelihood_ratio.glrt(null.likelihood_fit, alternative.likelihood_fit, rng=0)
    if verbose:
        better = null if not below(test.p_value, _LEVEL) else alternative
        sign = "==" if better is null else ">>" if better is mod1 else "<<"
        print(f"{mod1.formula} ({written(mod1.logLike, '.4f')}) {sign} {mod2.formula} ({written(mod2.logLike, '.4f')})")
        print(f"Chi-Square: {test.statistic}, P-Value: {small_p(test.p_value)}")
    return {"p": test.p_value, "chi_square": test.statistic, "df": test.df}


def _ordered(first: Model, second: Model) -> tuple[Model, Model]:
    """The smaller model first; as they are if neither contains the other, for the test says why."""
    for null, alternative in ((first, second), (second, first)):
        try:
            check_nesting(null.likelihood_fit, alternative.likelihood_fit)
        except NestingError:
            continue
        return null, alternative
    return first, second
