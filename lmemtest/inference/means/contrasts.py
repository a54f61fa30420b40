"""Comparisons of estimates: all pairs, linear contrasts, and differences from a control."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._options import ADJUSTMENT_NAMES, ADJUSTMENTS, CONTROL_ADJUSTMENTS, JOINT_ADJUSTMENTS
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.inference.distributions.largest_t import LargestT
from lmemtest.inference.means.adjust import Adjusted
from lmemtest.inference.means.adjust import adjust as adjust_family
from lmemtest.inference.means.comparisons import Comparisons
from lmemtest.inference.means.estimates import Estimates, check_estimates
from lmemtest.inference.means.named_contrasts import NAMED_CONTRASTS, NamedContrasts, is_evenly_spaced, named_contrasts
from lmemtest.words import format_level, suggest

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

DEFAULT_ADJUST = {"model": "tukey", "moderated": "stepdown", "cluster-robust": "holm"}  # by simulation
_STATISTICS = ("estimate", "se", "df", "t_ratio", "p_value", "ci_low", "ci_high")


@one_blas_thread()
def pairs(
    em: Estimates,
    *,
    adjust: str | None = None,
    level: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Test all pairwise differences of marginal means.

    Parameters
    ----------
    em : Estimates
        The means, from `emmeans`.
    adjust : {"tukey", "stepdown", "mvt", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none"}, optional
        Adjustment for the number of comparisons. The family is all pairs within one group of `by`. "tukey" is
        Tukey's HSD; it needs one variance, so moderated standard errors give way to the model's, which a note says.
        "mvt" does, too, and uses the correlations of the pairs: the same as "tukey" when all differences are equally
        precise, sharper otherwise. "stepdown" is Tukey's test on normal scores, then Shaffer's steps; it allows for
        variances of their own. Default: "tukey" with the model's standard errors, "stepdown" with moderated ones,
        "holm" with those of `cluster_robust`.
    level : float in (0, 1), optional
        Simultaneous confidence level; default: that of `em`.
    rng : int, numpy.random.Generator or None
        For "mvt" with more than three means of unequal precision, which is integrated by quasi-Monte-Carlo.

    Returns
    -------
    Comparisons
        ``to_frame()`` has the `by` columns, left, right, estimate (left - right), se, df, t_ratio, p_value,
        ci_low, ci_high.

    Raises
    ------
    ArgumentError
        If there is only one mean to compare, or an option is unknown.

    Notes
    -----
    Every pair has its own standard error and degrees of freedom. Tukey: p = P(Q_{k,df} > sqrt(2) |t|), exact
    when all differences have the same standard error, conservative for other known forms of the covariance (Hayter
    1984), not where every pair estimates a variance of its own. A difference without a standard error is NaN, with a
    note.

    References
    ----------
    Tukey (1953); Kramer (1956), Biometrics 12, 307-310; Hayter (1984), doi:10.1214/aos/1176346392;
    Shaffer (1986), doi:10.1080/01621459.1986.10478341; Holm (1979), Scand. J. Stat. 6, 65-70

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.inference.means.emmeans import emmeans
    >>> from lmemtest.model import fit_lmm
    >>> runs = pd.DataFrame({"algorithm": list("AB") * 8, "task": list("wwwwxxxxyyyyzzzz"),
    ...                      "score": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 7]})
    >>> fit = fit_lmm("score ~ algorithm + (1|task)", runs)
    >>> pairs(emmeans(fit, "algorithm")).to_frame().round(3)[["left", "right", "estimate", "df", "p_value"]]
      left right  estimate    df  p_value
    0    A     B      -1.0  11.0    0.016
    """
    level = check_estimates(em, level)
    adjust = DEFAULT_ADJUST[em.vcov] if adjust is None else adjust
    _check_adjust(adjust)
    generator = resolve_rng(rng)
    em, of_model = em.for_adjustment(adjust)
    labels = em.labels()
    blocks, index_pairs = [], []
    for _, rows in em.groups():
        if len(rows) < 2:
            raise ArgumentError(
                f"pairs needs at least two means in each group, got one ({labels[rows[0]]}). "
                "Use another factor in specs, or keep more of its levels in at=."
            )
        i, j = np.triu_indices(len(rows), k=1)
        index_pairs.append((rows[i], rows[j]))
        blocks.append(em.differences(rows[i], rows[j]))
    left = np.concatenate([i for i, _ in index_pairs])
    right = np.concatenate([j for _, j in index_pairs])
    sizes = [len(block) for block in blocks]
    family = len(em.groups()[0][1])
    tested = _evaluate(em, np.vstack(blocks), sizes, method=adjust, n_means=family, level=level, rng=generator)

    table = em.frame.iloc[left][list(em.by)].reset_index(drop=True)
    table = table.assign(left=[labels[i] for i in left], right=[labels[j] for j in right], **tested.columns)
    return _comparisons(
        "pairs", em, table, tested, level, notes=(*of_model, *tested.notes(table, ~em.met(left, right)))
    )


@one_blas_thread()
def contrast(
    em: Estimates,
    coefficients: str | Mapping[str, Sequence[float]] | pd.DataFrame,
    *,
    adjust: str | None = None,
    level: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Test linear contrasts of marginal means.

    Parameters
    ----------
    em : Estimates
        The means, from `emmeans`.
    coefficients : str, mapping of str to (k,) float, or DataFrame
        A family by its name (see the notes); or the name of each contrast and its coefficients, one per mean of a
        group, in the order of the means. A data frame has one row per contrast (named by its index) and one column
        per level.
    adjust : {"none", "mvt", "holm", "sidak", "bonferroni", "fdr", "tukey"}, optional
        Adjustment within each group of `by`; default: that of the named family, "none" for own coefficients. "mvt"
        uses the joint t distribution of any contrasts. "tukey" is for all pairs only and is replaced by "sidak", with
        a note.
    level : float in (0, 1), optional
        Confidence level; default: that of `em`.
    rng : int, numpy.random.Generator or None
        For "mvt" of contrasts that span more than two dimensions.

    Returns
    -------
    Comparisons
        ``to_frame()`` has the `by` columns, contrast, estimate, se, df, t_ratio, p_value, ci_low, ci_high.

    Raises
    ------
    ArgumentError
        If a name is unknown, or coefficients do not match the means or are not finite.

    Notes
    -----
    Families, in the order of the means, with their adjustment:

    - "poly" (none): orthogonal polynomials at equally spaced levels up to degree 6, in the smallest whole numbers that
      are positive at the last level, so an estimate has no unit of its own and its test is what counts;
    - "helmert" (none): each level less the average of those before it;
    - "consec" (mvt): each level less the one before it;
    - "eff" (fdr): each level less the average of all; "del.eff" (fdr): less the average of the others.

    These are the conventions of R's emmeans, "helmert" apart, which is `contr.helmert` scaled to differences of means.
    All pairs are `pairs`, comparisons with one control `compare_to`.

    Coefficients that do not sum to zero are allowed (a weighted mean), and a note says so.

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.inference.means.emmeans import emmeans
    >>> from lmemtest.model import fit_lmm
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]})
    >>> em = emmeans(fit_lmm("score ~ algorithm + (1|task)", runs), "algorithm")
    >>> contrast(em, {"C against A and B": [-1/2, -1/2, 1]}).to_frame()[["contrast", "estimate"]].round(6)
                contrast  estimate
    0  C against A and B       4.0
    >>> contrast(em, "poly").to_frame()[["contrast", "estimate", "p_value"]].round(4)
        contrast  estimate  p_value
    0     linear       4.0   0.0001
    1  quadratic       4.0   0.0027
    """
    level = check_estimates(em, level)
    family = None if not isinstance(coefficients, str) else named_contrasts(coefficients)
    if adjust is None:
        adjust = "none" if family is None else family.adjust
    _check_adjust(adjust)
    generator = resolve_rng(rng)
    table = _coefficient_table(em, coefficients if family is None else _family_rows(em, str(coefficients), family))
    K = np.asarray(table, dtype=float)
    keys, blocks, apart = [], [], []
    for key, rows in em.groups():
        keys.extend([key] * len(K))
        lone = _sets_apart(em, rows, K)
        # a zero coefficient must not spread the NaN of a mean without data
        combined = K @ np.where(np.any(K, axis=0, keepdims=True).T, em.L[rows], 0.0)
        blocks.append(np.where(lone[:, None], np.nan, combined))
        apart.append(lone)
    tested = _evaluate(
        em, np.vstack(blocks), [len(K)] * len(blocks), method=adjust, n_means=None, level=level, rng=generator
    )

    import pandas as pd

    frame = pd.DataFrame({name: [key[name] for key in keys] for name in em.by})
    frame = frame.assign(contrast=list(table.index) * len(blocks), **tested.columns)
    off = [str(name) for name, total in zip(table.index, K.sum(axis=1), strict=True) if abs(total) > 1e-8]
    sums = [f"Coefficients of {', '.join(off)} do not sum to zero: not a comparison."] if off else []
    more = (*sums, *_spacing(em, coefficients), *tested.notes(frame, np.concatenate(apart)))
    return _comparisons("contrasts", em, frame, tested, level, notes=more, coefficients=table)


@one_blas_thread()
def compare_to(
    em: Estimates,
    control: Any,
    *,
    adjust: str | None = None,
    level: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> Comparisons:
    """Compare every marginal mean with that of a control.

    Fewer questions than all pairs, so each is answered with more power. The control must be chosen before the
    results are seen; for the one that came out best use `versus_best`.

    Parameters
    ----------
    em : Estimates
        The means, from `emmeans`.
    control : object
        The level that the others are compared with; with several specs its label, as `em.labels()` has it.
    adjust : {"dunnett", "holm", "sidak", "bonferroni", "fdr", "none"}, optional
        Adjustment for the number of comparisons within one group of `by`. "dunnett" needs one variance: moderated
        standard errors give way to the model's, which a note says. Default: "dunnett" with the model's standard
        errors, else "holm".
    level : float in (0, 1), optional
        Simultaneous confidence level; default: that of `em`.
    rng : int, numpy.random.Generator or None
        For "dunnett" where the means are neither independent nor equally correlated, which is integrated by
        quasi-Monte-Carlo; a note says so.

    Returns
    -------
    Comparisons
        ``to_frame()`` has the `by` columns, left, right (the control), estimate (left - right), se, df, t_ratio,
        p_value, ci_low, ci_high.

    Raises
    ------
    ArgumentError
        If `control` is not one of the means, there is nothing to compare it with, or an option is unknown.

    Notes
    -----
    Dunnett: p = P(max_j |T_j| > |t|) over the comparisons, jointly t distributed with the correlations that the
    model gives and the degrees of freedom of the comparison. When these correlations have one factor (means that
    are independent up to a common term, as in balanced studies), the integral is a quadrature; the intervals
    exclude zero exactly when p is below 1 - level.

    References
    ----------
    Dunnett (1955), J. Am. Stat. Assoc. 50, 1096-1121, doi:10.1080/01621459.1955.10501294

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.inference.means.emmeans import emmeans
    >>> from lmemtest.model import fit_lmm
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]})
    >>> em = emmeans(fit_lmm("score ~ algorithm + (1|task)", runs), "algorithm")
    >>> compare_to(em, "A").to_frame()[["left", "right", "df", "p_value"]].round(4)
      left right   df  p_value
    0    B     A  6.0   1.0000
    1    C     A  6.0   0.0003
    """
    level = check_estimates(em, level)
    adjust = ("dunnett" if em.vcov == "model" else "holm") if adjust is None else adjust
    check_choice(adjust, "adjust", CONTROL_ADJUSTMENTS)
    em, of_model = em.for_adjustment(adjust)
    generator = resolve_rng(rng)
    labels = em.labels()
    reference = _control_label(labels, control)
    others, references = [], []
    for _, rows in em.groups():
        named = [labels[i] for i in rows]
        if reference not in named or len(rows) < 2:
            raise ArgumentError(
                f"compare_to needs the control and at least one other mean in each group, got {', '.join(named)}. "
                "Use another factor in specs, or keep more of its levels in at=."
            )
        at = rows[named.index(reference)]
        rest = rows[rows != at]
        others.append(rest)
        references.append(np.full(len(rest), at))
    left, right = np.concatenate(others), np.concatenate(references)
    tested = _evaluate(
        em,
        em.differences(left, right),
        [len(rest) for rest in others],
        method=adjust,
        n_means=None,
        level=level,
        rng=generator,
    )
    table = em.frame.iloc[left][list(em.by)].reset_index(drop=True)
    table = table.assign(left=[labels[i] for i in left], right=reference, **tested.columns)
    notes = (*of_model, *tested.notes(table, ~em.met(left, right)))
    return _comparisons("control", em, table, tested, level, notes=notes, control=reference)


def _comparisons(
    kind: str,
    em: Estimates,
    table: pd.DataFrame,
    tested: _Evaluated,
    level: float,
    *,
    notes: tuple[str, ...],
    **more: Any,
) -> Comparisons:
    return Comparisons(
        kind=kind,
        table=table,
        estimates=em,
        by=em.by,
        adjust=tested.method,
        interval_adjust=tested.interval_method,
        level=level,
        alpha=1.0 - level,
        family_size=len(em.groups()[0][1]),
        direction=em.direction,
        notes=(*em.notes, *notes),
        joint=tested.joint,
        **more,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Evaluated:
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


def _evaluate(
    em: Estimates,
    L: FloatArray,
    sizes: Sequence[int],
    *,
    method: str,
    n_means: int | None,
    level: float,
    rng: np.random.Generator,
) -> _Evaluated:
    """Test linear functions, family after family of `sizes` rows; with `n_means` a family is all pairs of so many."""
    estimate, se, df, t_ratio = em.t_tests(L)
    testable = ~np.isnan(t_ratio)
    parts, joints, start = [], [], 0
    for size in sizes:
        rows = slice(start, start + size)
        joint = em.largest_t(L[rows][testable[rows]], "two-sided", rng) if method in JOINT_ADJUSTMENTS else None
        # a family without a single test has no joint distribution; its rows are NaN under any method
        used = "none" if method in JOINT_ADJUSTMENTS and joint is None else method
        parts.append(adjust_family(t_ratio[rows], df[rows], method=used, n_means=n_means, level=level, joint=joint))
        joints.append(joint)
        start += size
    half = np.concatenate([part.critical for part in parts]) * se
    half[~testable] = np.nan
    statistics = (
        estimate,
        se,
        df,
        t_ratio,
        np.concatenate([part.p_value for part in parts]),
        estimate - half,
        estimate + half,
    )
    if method in JOINT_ADJUSTMENTS:
        parts = [replace(part, method=method, interval_method=method) for part in parts]
    return _Evaluated(
        columns=dict(zip(_STATISTICS, statistics, strict=True)),
        adjusted=tuple(parts),
        joint=tuple(joints) if method in JOINT_ADJUSTMENTS else (),
    )


def _family_rows(em: Estimates, name: str, family: NamedContrasts) -> Mapping[str, FloatArray]:
    labels = [em.labels()[i] for i in em.groups()[0][1]]
    if len(labels) < 2:
        raise ArgumentError(
            f"coefficients={name!r} needs at least two means in each group, got one ({labels[0]}). Use another factor "
            "in specs, or keep more of its levels in at=."
        )
    return family.rows(labels)


def _spacing(em: Estimates, coefficients: Any) -> list[str]:
    """Polynomials are for equal steps."""
    if not isinstance(coefficients, str) or coefficients != "poly" or len(em.specs) > 1:
        return []
    levels = em.frame[em.specs[0]].iloc[em.groups()[0][1]].tolist()
    if is_evenly_spaced(levels):
        return []
    return [
        f"The levels of {em.specs[0]} are not equally spaced, and the polynomials take them as if they were: linear "
        "means in the order of the levels."
    ]


def _sets_apart(em: Estimates, rows: NDArray[np.intp], K: FloatArray) -> NDArray[np.bool_]:
    """Contrasts that set a mean against one whose algorithm it never met on a benchmark."""
    if em.comparable is None:
        return np.zeros(len(K), dtype=bool)
    never = ~em.comparable[np.ix_(rows, rows)]
    return np.einsum("ri,ij,rj->r", K > 0, never, K < 0, dtype=float) > 0


def _check_adjust(adjust: Any) -> None:
    if isinstance(adjust, str) and adjust == "dunnett":
        raise ArgumentError(
            "adjust='dunnett' is for comparisons with one control, and this function knows none. Use "
            f"compare_to(means, control). Here adjust may be {' or '.join(map(repr, ADJUSTMENTS))}."
        )
    check_choice(adjust, "adjust", ADJUSTMENTS)


def _coefficient_table(em: Estimates, given: Any) -> pd.DataFrame:
    import pandas as pd

    labels = [em.labels()[i] for i in em.groups()[0][1]]
    if isinstance(given, pd.DataFrame):
        named = [format_level(column) for column in given.columns]
        if sorted(named) != sorted(labels):
            raise ArgumentError(
                f"coefficients must have one column per mean ({', '.join(labels)}), got {', '.join(named)}."
            )
        table = given.set_axis(named, axis=1)[labels]
    else:
        if not isinstance(given, Mapping):
            raise ArgumentError(
                f"coefficients must be the name of a family ({', '.join(NAMED_CONTRASTS)}), a dict of names and "
                f"numbers, one per mean ({', '.join(labels)}), or a table with these columns, got {given!r}. "
                "For all pairs use pairs(em)."
            )
        for name, values in given.items():
            if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
                raise ArgumentError(
                    f"coefficients[{name!r}] must have one number per mean ({', '.join(labels)}), got {values!r}."
                )
            values = list(values)
            if len(values) != len(labels):
                raise ArgumentError(
                    f"coefficients[{name!r}] must have one number per mean ({', '.join(labels)}: "
                    f"{len(labels)}), got {len(values)}."
                )
        table = pd.DataFrame.from_dict(dict(given), orient="index", columns=labels)
    if table.empty or not np.isfinite(table.to_numpy(dtype=float)).all():
        raise ArgumentError("coefficients must hold at least one contrast, and finite numbers only.")
    return table.astype(float)


def _control_label(labels: tuple[str, ...], control: Any) -> str:
    label = control if isinstance(control, str) else format_level(control)
    if label not in labels:
        known = tuple(dict.fromkeys(labels))
        raise ArgumentError(
            f"control must be one of the means ({', '.join(known)}), got {control!r}.{suggest(label, known)}"
        )
    return label
