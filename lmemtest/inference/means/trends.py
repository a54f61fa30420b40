"""Marginal slopes: how fast the mean changes along a numeric column, for each level of a factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from lmemtest._result import result
from lmemtest._threads import one_blas_thread
from lmemtest.inference.means.emmeans import EmmeansResult, evaluated_grid
from lmemtest.inference.means.reference_grid import check_along, check_fit

if TYPE_CHECKING:
    from lmemtest.inference.intervals.cluster_robust import ClusterRobust
    from lmemtest.inference.means.moderated import Moderated


@result
class TrendsResult(EmmeansResult):
    """Marginal slopes: `Estimates` in units of the response per unit of `var`.

    Attributes
    ----------
    var : str
        The numeric column whose slopes these are. The other attributes are those of `EmmeansResult`.
    """

    var: str

    column: ClassVar[str] = "slope"
    heading: ClassVar[str] = "Marginal slopes"


@one_blas_thread()
def emtrends(
    fit: Any,
    specs: str | Sequence[str],
    *,
    var: str,
    by: str | Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    weights: str = "equal",
    ddf: str = "satterthwaite",
    level: float = 0.95,
    vcov: ClusterRobust | Moderated | str | None = None,
) -> TrendsResult:
    """Marginal slopes of a numeric column, for each level of a factor.

    Parameters
    ----------
    fit : LmmFit
        A fitted model.
    specs : str or sequence of str
        Factors whose level combinations get a slope each; with values in `at` also `var` itself.
    var : str
        Numeric column of the fixed part, such as the budget.
    by, at, weights, ddf, level, vcov
        As in `emmeans`. Where the model is curved in `var` (poly, bs, log), the slope is that at its mean, or at the
        values in `at`.

    Returns
    -------
    TrendsResult
        ``to_frame()`` has the columns of `specs` and `by`, slope, se, df, ci_low, ci_high; `pairs`, `contrast`,
        `against` and `best` take it like the result of `emmeans`. It has no direction, since a better score
        says nothing about its slope.

    Raises
    ------
    UnknownColumnError
        If a name is not in the fixed part.
    ArgumentError
        If `var` is a factor, or for the reasons of `emmeans`.
    DataError
        Where there is no slope, such as that of abs(x) at 0.

    Notes
    -----
    The slope is the derivative of the mean with respect to the column, by the rules of differentiation through every
    function of the formula; R's emtrends takes a forward difference, which is the same for straight lines and off by
    the order of its step (a thousandth of the range) for curves. Random slopes count in the standard errors and not in
    the slopes.

    References
    ----------
    Searle, Speed & Milliken (1980), Am. Stat. 34, 216-221, doi:10.1080/00031305.1980.10483031

    Examples
    --------
    >>> import pandas as pd, lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("AABB") * 4, "budget": [1, 2] * 8, "task": list("wwwwxxxxyyyyzzzz"),
    ...                      "score": [1., 2, 1, 4, 2, 2, 3, 5, 4, 6, 5, 7, 6, 8, 7, 9]})
    >>> fit = lt.fit_lmm("score ~ algorithm * budget + (1|task)", runs)
    >>> slopes = emtrends(fit, "algorithm", var="budget")
    >>> slopes.to_frame()[["algorithm", "slope", "df"]].round(3)
      algorithm  slope    df
    0         A   1.25   9.0
    1         B   2.25   9.0
    >>> slopes.pairs().to_frame()[["left", "right", "estimate"]].round(3)
      left right  estimate
    0    A     B      -1.0
    """
    check_fit(fit, "fit")
    check_along(fit, var)
    vcov = "model" if vcov is None else vcov  # whether moderation keeps the size of slopes was not simulated
    return evaluated_grid(
        TrendsResult,
        fit,
        specs,
        by=by,
        at=at,
        weights=weights,
        ddf=ddf,
        level=level,
        vcov="model" if vcov is None else vcov,  # whether moderation keeps the size of slopes was not simulated
        along=var,
        var=var,
        subject=f"Slope along {var}: ",
    )
