"""Tests of linear functions of the fixed effects, adjusted family by family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._validate import check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.inference.distributions.largest_t import LargestT, largest_t
from lmemtest.inference.means.adjust import ADJUSTMENT_NAMES, JOINT_ADJUSTMENTS, Adjusted, adjust
from lmemtest.inference.means.emmeans import EmmeansResult

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_STATISTICS = ("estimate", "se", "df", "t_ratio", "p_value", "ci_low", "ci_high")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """Statistics of the contrasts of all groups, adjusted group by group.

    Attributes
    ----------
    columns : dict of str to (m,) float
        estimate, se, df, t_ratio, p_value, ci_low, ci_high.
    adjusted : tuple of Adjusted
        One per group.
    joint : tuple of LargestT or None
        Joint t distribution of each group for a single-step adjustment, otherwise empty.
    """

    columns: dict[str, FloatArray]
    adjusted: tuple[Adjusted, ...]
    joint: tuple[LargestT | None, ...] = ()

    @property
    def method(self) -> str:
        """Adjustment of the p-values that was applied."""
        return self.adjusted[0].method

    @property
    def interval_method(self) -> str:
        """Adjustment of the intervals that was applied."""
        return self.adjusted[0].interval_method

    def notes(self, frame: pd.DataFrame, apart: NDArray[np.bool_]) -> tuple[str, ...]:
        """What is missing from `frame`, and how the adjustment was made; `apart` marks rows without a benchmark."""
        missing = frame["estimate"].isna().to_numpy()
        exact = ~missing & frame["p_value"].isna().to_numpy()
        found = []
        if apart.any():
            found.append(
                f"{apart.sum()} of {len(frame)} differences are between algorithms without a common benchmark, so they "
                "are also differences between benchmarks: no verdict (NaN)."
            )
        if (missing & ~apart).any():
            count, all_rows = (missing & ~apart).sum(), len(frame)
            found.append(
                f"{count} of {all_rows} differences {'is' if count == 1 else 'are'} not estimable from these data "
                "(NaN)."
            )
        if missing.any():
            found += self._family_note(some_without_mean=bool((missing & ~apart).any()))
        if exact.any():
            found.append(
                f"{exact.sum()} of {len(frame)} differences have no standard error or no degrees of freedom, "
                "so they have no test (NaN)."
            )
        return (*found, *dict.fromkeys(note for part in self.adjusted for note in part.notes))

    def _family_note(self, *, some_without_mean: bool) -> list[str]:
        """What an adjustment makes of differences that do not exist."""
        if self.method == "none":
            return []
        name = ADJUSTMENT_NAMES[self.method]
        if self.method in JOINT_ADJUSTMENTS:
            return [f"The {name} adjustment is for the differences that have a test."]
        counted = f"The {name} adjustment still counts these, which is on the safe side"
        return [
            f"{counted}; leave levels without a mean out by at= for a smaller family."
            if some_without_mean
            else f"{counted}."
        ]


def evaluate_contrasts(
    em: EmmeansResult,
    L: FloatArray,
    sizes: Sequence[int],
    *,
    method: str,
    n_means: int | None,
    level: float,
    rng: np.random.Generator,
) -> Evaluated:
    """Test linear functions of the fixed effects in families.

    Parameters
    ----------
    em : EmmeansResult
        Estimates, covariance and degrees of freedom.
    L : (m, p) float
        One function per row, family after family.
    sizes : sequence of int
        Rows of each family; their sum is m.
    method : str
        Adjustment, one of `ADJUSTMENTS` or "dunnett".
    n_means : int or None
        Number of means whose pairwise differences a family is.
    level : float
        Simultaneous confidence level.
    rng : numpy.random.Generator
        For joint t distributions that are integrated by quasi-Monte-Carlo.

    Returns
    -------
    Evaluated
    """
    estimate, se, df = em.evaluate(L)
    testable = is_testable(em, L, se, df)
    t_ratio = np.full(len(L), np.nan)
    t_ratio[testable] = estimate[testable] / se[testable]
    parts, joints, start = [], [], 0
    for size in sizes:
        rows = slice(start, start + size)
        joint = joint_of(em, L[rows][testable[rows]], "two-sided", rng) if method in JOINT_ADJUSTMENTS else None
        # a family without a single test has no joint distribution; its rows are NaN under any method
        used = "none" if method in JOINT_ADJUSTMENTS and joint is None else method
        parts.append(adjust(t_ratio[rows], df[rows], method=used, n_means=n_means, level=level, joint=joint))
        joints.append(joint)
        start += size
    half = np.concatenate([part.critical for part in parts]) * se
    half[~testable] = np.nan
    statistics = (
        estimate,
        se,
        df,
        t_ratio,
        np.concatenate([part.pvalue for part in parts]),
        estimate - half,
        estimate + half,
    )
    if method in JOINT_ADJUSTMENTS:
        parts = [replace(part, method=method, interval_method=method) for part in parts]
    return Evaluated(
        columns=dict(zip(_STATISTICS, statistics, strict=True)),
        adjusted=tuple(parts),
        joint=tuple(joints) if method in JOINT_ADJUSTMENTS else (),
    )


def is_testable(em: EmmeansResult, L: FloatArray, se: FloatArray, df: FloatArray) -> NDArray[np.bool_]:
    """Rows of L with a standard error above rounding, and degrees of freedom.

    Parameters
    ----------
    em : EmmeansResult
    L : (m, p) float
    se, df : (m,) float

    Returns
    -------
    (m,) bool
    """
    # a variance at rounding level relative to its terms is zero: rows that cancel exactly have no test
    scale = np.sqrt(np.einsum("ij,j->i", np.nan_to_num(L) ** 2, np.abs(np.diag(em.V))))
    return (se > 1e-10 * np.maximum(scale, np.finfo(float).tiny)) & ~np.isnan(df)


def joint_of(em: EmmeansResult, L: FloatArray, alternative: str, rng: np.random.Generator) -> LargestT | None:
    """Joint t distribution of the rows of L, which all have a standard error; None if there are none.

    Parameters
    ----------
    em : EmmeansResult
    L : (m, p) float
    alternative : {"two-sided", "greater"}
    rng : numpy.random.Generator

    Returns
    -------
    LargestT or None
    """
    if not len(L):
        return None
    covariance = L @ em.V @ L.T
    sd = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sd, sd)
    correlation = (correlation + correlation.T) / 2.0
    np.fill_diagonal(correlation, 1.0)
    return largest_t(correlation, alternative=alternative, rng=rng)


def for_adjustment(em: EmmeansResult, adjust: str) -> tuple[EmmeansResult, tuple[str, ...]]:
    """The means with the standard errors that an adjustment is for, and what to say of the change.

    Parameters
    ----------
    em : EmmeansResult
    adjust : str

    Returns
    -------
    em : EmmeansResult
    notes : tuple of str
    """
    if adjust not in ("tukey", *JOINT_ADJUSTMENTS) or em.vcov == "model":
        return em, ()
    name = ADJUSTMENT_NAMES[adjust]
    if em.vcov == "moderated":
        return em.by_model(), (
            f"The {name} adjustment is for the model's standard errors, so these were used and not the moderated ones.",
        )
    return em, (
        f"The {name} adjustment is for one shared variance. With variances of their own, from few clusters, it rejects "
        "too often (all pairs: 7 to 24 % instead of 5 % with 6 to 12 clusters); adjust='holm' does not.",
    )


def check_em(em: Any, level: float | None) -> None:
    """Refuse what is not the result of emmeans(), and levels that are no fraction."""
    if not isinstance(em, EmmeansResult):
        raise ArgumentError(
            f"em must be the result of emmeans(), got {type(em).__name__}. Call emmeans(fit, 'algorithm') first."
        )
    if level is not None:
        check_fraction(level, "level")
