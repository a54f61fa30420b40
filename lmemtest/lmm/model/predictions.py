"""What the fit says of single groups and rows: conditional modes, predictions with their error, residuals.

What is computed on cells is asked for by row, in the order of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.core.codes import group_codes
from lmemtest.core.frames import as_float, as_pandas, collected
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_choice, check_flag, check_fraction
from lmemtest.errors import ArgumentError, LmemtestError
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.engine import prediction

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.model.fit import LmmFit


PREDICTION_TARGETS = ("mean", "score")
# Columns of one batch of targets: 600 levels x 256 targets are 1.2 MB.
_BATCH = 256
_CELLS = "Give the rows, fit.predict(frame), or take the cells: fit.cell_predictions() and fit.cell_residuals()."
# Difference of a cell's mean from that of its rows that is rounding, relative to the largest score.
_ROUNDING = 1e-9


# -------------------------------------------------------------------------------------------------------------- groups


def terms_of(fit: LmmFit, group: str) -> list[int]:
    """Positions of the random-effects terms of a grouping factor."""
    if not isinstance(group, str):
        raise ArgumentError(f"group must name a random effect of the model, got {group!r}.")
    plain = {term.group: bar.groups for term, bar in zip(fit.design.random, fit.design.parsed.bars, strict=True)}
    matching = [i for i, term in enumerate(fit.design.random) if group in (term.group, ":".join(plain[term.group]))]
    if not matching:
        names = ", ".join(dict.fromkeys(t.group for t in fit.design.random)) or "none"
        raise ArgumentError(f"group={group!r} is not a group of this model. Groups: {names}.")
    return matching


def conditional_modes(fit: LmmFit, group: str) -> pd.DataFrame:
    """Conditional modes (BLUPs) of one grouping factor.

    Parameters
    ----------
    group : str
        For instance ``"benchmark"`` or ``"benchmark:seed"``.

    Returns
    -------
    pandas.DataFrame
        One row per level, one column per effect.

    Raises
    ------
    ArgumentError
        If the model has no such group.
    """
    terms = fit.design.random
    parts = [
        pd.DataFrame(fit.modes[i], index=list(terms[i].levels), columns=list(terms[i].names))
        for i in terms_of(fit, group)
    ]
    return pd.concat(parts, axis=1)


def shapes(fit: LmmFit) -> list[tuple[int, int]]:
    """Levels and effects of every term."""
    return [(len(term.levels), len(term.names)) for term in fit.design.random]


def predict(fit: LmmFit, frame: Any = None, *, random: bool = True) -> Array:
    """Predicted scores, of the cells without a frame; see `LmmFit.predict`."""
    design, kept = fit.design, fit.problem.kept
    if frame is None:  # rows of X that are equal have one prediction
        terms = [(term.basis, term.codes) for term in design.random]
        values = (design.distinct[:, kept] @ fit.kept_params)[design.row] + design.offset
    else:
        rows, terms = _design_of(fit, frame, random=random)
        values = rows[:, kept] @ fit.kept_params + design.known(_frame_of(frame))
    for (basis, codes), u in zip(terms if random else (), fit.modes if random else (), strict=True):
        there = codes >= 0
        values[there] += np.einsum("nk,nk->n", basis[there], u[codes[there]])
    return values


def _frame_of(frame: Any) -> pd.DataFrame:
    """A dataframe of any library as a pandas one."""
    return collected(as_frame(frame, argument="frame")).to_pandas()


def _design_of(fit: LmmFit, frame: Any, *, random: bool) -> tuple[Array, list[tuple[Array, Index]]]:
    """Rows of the fixed part, and basis and codes of every term (none without ``random``)."""
    design = fit.design
    if frame is None:
        return design.X, [(t.basis, t.codes) for t in design.random] if random else []
    table = _frame_of(frame)
    n_terms = len(design.random) if random else 0
    return design.rows(table), [design.random_rows(i, table) for i in range(n_terms)]


@one_blas_thread()
def prediction_intervals(
    fit: LmmFit,
    frame: Any = None,
    *,
    random: bool = True,
    target: Literal["mean", "score"] = "mean",
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Predictions with intervals.

    Parameters
    ----------
    frame : dataframe, optional
        New rows with the columns of the model; by default those of the table that was fitted, in its order.
        Groups that the fit has not seen (a new benchmark) add the variance of their effects.
    random : bool
        False: the interval of the population's mean, fixed effects alone.
    target : {"mean", "score"}
        The expected score at these effects, or the score of one further run (the residual's variance is added).
    alpha : float in (0, 1)
        One minus the confidence level of each interval.

    Returns
    -------
    pandas.DataFrame
        ``prediction``, ``se`` (of the prediction's error), ``df`` (Satterthwaite), ``ci_low``, ``ci_high``; one
        row per row of `frame`, NaN where the fixed part is not estimable.

    Raises
    ------
    ArgumentError
        If `alpha` is not in (0, 1), or the residual variance of a new group is asked for.

    Notes
    -----
    The error of the fixed effects and of the conditional modes (Henderson 1975), at the estimated variances.

    References
    ----------
    Henderson (1975). Best linear unbiased estimation and prediction under a selection model. Biometrics 31,
    423-447. doi:10.2307/2529430

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> fit = lt.fit_lmm("y ~ a + (1 | g)", table)
    >>> new = {"a": ["p", "p"], "g": [1, 4]}  # a known group, and one that has not been seen
    >>> fit.prediction_intervals(new)[["prediction", "se"]].round(3)
       prediction     se
    0       0.905  0.115
    1       2.900  2.308
    """
    random = check_flag(random, "random")
    check_choice(target, "target", PREDICTION_TARGETS)
    alpha = check_fraction(alpha, "alpha")
    rows, terms = _design_of(fit, frame, random=random)
    table = fit.cells.frame if frame is None else _frame_of(frame)
    value = np.where(fit.estimable(rows), predict(fit, frame, random=random), np.nan)
    new = [np.where((codes < 0)[:, None], basis, 0.0) for basis, codes in terms]  # of levels that are not in the fit
    new = new or [np.zeros((len(rows), k)) for _, k in shapes(fit)]
    residual = _further_rows(fit, table) if target == "score" else np.zeros((len(rows), fit.problem.n_strata))
    variance, df = _variances(fit, rows[:, fit.problem.kept], terms, new, residual)
    se = np.sqrt(variance)
    half = t_quantile(0.5 * alpha, df) * se
    intervals = pd.DataFrame(
        {"prediction": value, "se": se + 0.0 * value, "df": df, "ci_low": value - half, "ci_high": value + half}
    )
    return intervals if frame is not None else intervals.iloc[rows_of(fit)[0]].reset_index(drop=True)


def _variances(
    fit: LmmFit, rows: Array, terms: Sequence[tuple[Array, Index]], new: Sequence[Array], residual: Array
) -> tuple[Array, Array]:
    """Variances of predictions and their degrees of freedom, ``(n,)`` each."""

    where = fit.problem, fit.optim.theta, fit.optim.criterion

    def targets(part: Any) -> tuple[Array, Sequence[Array]]:
        count = len(rows[part])
        random = [
            _coefficients(q, basis[part], codes[part])
            for (q, _), (basis, codes) in zip(shapes(fit), terms, strict=False)
        ]
        nothing = [np.zeros((q, k, count)) for q, k in shapes(fit)]
        return rows[part], random or nothing

    def variances(part: Any) -> Array:
        unseen = prediction.unseen_variances(*where, [basis[part] for basis in new], residual[part])
        return prediction.covariance(*where, *targets(part)).diagonal() + unseen

    def slopes(part: Any) -> Array:
        unseen = prediction.unseen_slopes(*where, [basis[part] for basis in new], residual[part])
        return prediction.slopes(*where, *targets(part)) + unseen

    parts = [variances(part) for part in batches(np.arange(len(rows)))]
    variance = np.concatenate(parts) if parts else np.empty(0)
    first, alike = representatives(variance)
    df = [fit.curvature.error_df(variance[part], slopes(part)) for part in batches(first)]
    return variance, np.concatenate(df)[alike] if df else np.empty(0)


def batches(which: Index) -> Iterator[Index]:
    """Targets that are computed together: the work on their coefficients stays in the processor's cache."""
    return (which[start : start + _BATCH] for start in range(0, len(which), _BATCH))


def representatives(variance: Array) -> tuple[Index, Index]:
    """One target for each distinct variance, and which of them stands for every target.

    Predictions whose variances agree to nine digits are of one kind (levels with the same rows in a balanced table),
    so their degrees of freedom agree as well, and are computed once.
    """
    with np.errstate(divide="ignore"):
        size = 10.0 ** (np.floor(np.log10(np.maximum(variance, 1e-300))) - 8.0)
    _, first, alike = np.unique(np.round(variance / size) * size, return_index=True, return_inverse=True)
    return first, alike


def _coefficients(levels: int, basis: Array, codes: Index) -> Array:
    """``(levels, k, n)``: the basis of every row at its level; zero where the level is new."""
    out = np.zeros((levels, basis.shape[1], len(codes)))
    seen = np.flatnonzero(codes >= 0)
    out[codes[seen], :, seen] = basis[seen]
    return out


def _further_rows(fit: LmmFit, table: pd.DataFrame) -> Array:
    """``(n, n_strata)``: one further row, of weight one, of each row's stratum."""
    if fit.dispersion is None:
        return np.ones((len(table), 1))
    if fit.dispersion not in table.columns:
        raise ArgumentError(
            f"target='score' needs the column '{fit.dispersion}', whose levels have residual variances of their own. "
            "Add it to the frame, or use target='mean'."
        )
    column = table[fit.dispersion]
    codes = pd.Index(fit.residual_variances.index).get_indexer(pd.Index(column))
    if (codes < 0).any():
        new = column[codes < 0].iloc[0]
        raise ArgumentError(
            f"target='score': the residual variance of {fit.dispersion}={new!r} is not known, since the fit has not "
            "seen it. Use target='mean', or levels of the fit."
        )
    return np.eye(fit.problem.n_strata)[codes]


# ------------------------------------------------------------------------------------------- the rows behind the cells


def read_rows(fit: LmmFit, read: Callable[[list[str]], pd.DataFrame]) -> tuple[Index, Array, pd.DataFrame] | None:
    """The cell of each row behind a fit, its score as the model sees it, and the table of columns that `read` gives.

    None where the table cannot be read any more, or its rows are not those of the cells.
    """
    parsed, cells = fit.design.parsed, fit.cells
    keys = list(dict.fromkeys([*cells.frame.columns, *([fit.weights] if fit.weights is not None else [])]))
    try:
        native = read(list(dict.fromkeys([*keys, parsed.response])))
        score = as_float(native[parsed.response])
        cell, _ = group_codes([native[name] for name in keys], len(native))
        score = score if parsed.response_transform is None else parsed.response_transform(score)
    except (LmemtestError, KeyError, ValueError, TypeError, OSError):
        return None
    return (
        (cell, score, native) if np.array_equal(np.bincount(cell, minlength=len(cells.n)), fit.rows_of_cells) else None
    )


def rows_of(fit: LmmFit) -> tuple[Index, Array, pd.Index]:
    """Of each row of the table that a fit was given its cell, its score as the model sees it, and its label.

    Refused where the rows have no order, or are not those of the cells.
    """
    other = f"The table of this fit is not the one that its cells come from: it has changed since. {_CELLS}"
    if fit.data is None:
        raise ArgumentError(f"This fit is one of cells and holds no table whose rows could be listed. {_CELLS}")
    table = as_frame(fit.data)
    if isinstance(table, nw.LazyFrame):
        raise ArgumentError(f"The table of this fit is a query, and its rows have no order of their own. {_CELLS}")
    rows = read_rows(fit, lambda columns: as_pandas(table.select(*columns)))
    if rows is None:
        raise ArgumentError(other)
    cell, score, native = rows
    original = table.to_native()
    return cell, score, original.index if isinstance(original, pd.DataFrame) else native.index


def residuals(fit: LmmFit) -> pd.Series:
    """Scores minus predictions by row; refused where the scores of the cells are not those of the rows."""
    (cell, score, labels), cells = rows_of(fit), fit.cells
    means = np.bincount(cell, score) / cells.n
    if not np.all(np.abs(means - cells.mean) <= _ROUNDING * np.abs(score).max(initial=0.0)):
        raise ArgumentError(
            "The scores of this fit are not those of its table: they were simulated, or the table has changed since. "
            "Its residuals are those of cells: fit.cell_residuals()."
        )
    return pd.Series(score - fit.cell_predictions()[cell], index=labels, name="residual")
