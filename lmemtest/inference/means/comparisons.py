"""Pairwise differences and other linear contrasts of estimated marginal means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import below
from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, resolve_rng
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.inference.means.adjust import ADJUSTMENT_NAMES, ADJUSTMENTS, JOINT_ADJUSTMENTS, critical_values
from lmemtest.inference.means.emmeans import DDF_NAMES, EmmeansResult
from lmemtest.inference.means.families import check_em, evaluate_contrasts, for_adjustment
from lmemtest.inference.means.named_contrasts import NAMED_CONTRASTS, NamedContrasts, is_evenly_spaced, named_contrasts
from lmemtest.words import format_level

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable
    from lmemtest.inference.distributions.largest_t import LargestT

    FloatArray = NDArray[np.float64]

_SENTENCES_SHOWN = 15
DEFAULT_ADJUST = {"model": "tukey", "moderated": "stepdown", "cluster-robust": "holm"}  # by simulation
LOGARITHMS = {"log": math.e, "log2": 2.0, "log10": 10.0}


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class PairsResult(Tabular):
    """All pairwise differences of marginal means, within each group of `by`.

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    emmeans : EmmeansResult
        The means that were compared.
    levels : tuple of str
        Labels of the means, in the order of the factor.
    by : tuple of str
        Factors whose levels split the comparisons into families.
    adjust : str
        Adjustment of the p-values; each group of `by` is a family of its own.
    interval_adjust : str
        Adjustment of the intervals; differs from `adjust` for "holm" and "fdr", which have none.
    family_size : int
        Number of means compared in each family.
    level : float
        Simultaneous confidence level of the intervals.
    direction : {"minimize", "maximize"} or None
        Which end of the response is better.
    selected : dict
        Values of former `by` factors, after `select`.
    notes : tuple of str
        What a reader must know.
    joint : tuple of LargestT or None
        Joint t distribution of each group for "mvt", otherwise empty.
    """

    table: pd.DataFrame
    emmeans: EmmeansResult
    levels: tuple[str, ...]
    by: tuple[str, ...]
    adjust: str
    interval_adjust: str
    family_size: int
    level: float
    direction: str | None
    selected: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    joint: tuple[LargestT | None, ...] = ()

    @property
    def ddf(self) -> str:
        """Rule for the degrees of freedom."""
        return self.emmeans.ddf

    def to_frame(self) -> pd.DataFrame:
        """One row per pair: the `by` columns, left, right, estimate (left - right), se, df, t_ratio, p_value,
        ci_low, ci_high; p-values and intervals are adjusted."""
        return self.table.copy()

    def half_widths(self, level: float) -> FloatArray:
        """Half widths of the simultaneous intervals at another level.

        Parameters
        ----------
        level : float in (0, 1)

        Returns
        -------
        (rows,) float
            NaN where a pair has no test.
        """
        n_groups = len(self.emmeans.groups())
        df = self.table["df"].to_numpy(dtype=float).reshape(n_groups, -1)
        if self.interval_adjust in JOINT_ADJUSTMENTS:
            rows = [
                np.full(len(nu), np.nan) if joint is None else joint.isf(1.0 - level, nu)
                for joint, nu in zip(self.joint, df, strict=True)
            ]
        else:
            method, size, means = self.interval_adjust, df.shape[1], self.family_size
            rows = [critical_values(nu, method=method, n_tests=size, n_means=means, level=level) for nu in df]
        half = np.concatenate(rows) * self.table["se"].to_numpy(dtype=float)
        return np.where(self.table["p_value"].isna().to_numpy(), np.nan, half)

    def select(self, **values: Any) -> PairsResult:
        """Comparisons of one group, or of the groups that share the values given.

        Parameters
        ----------
        **values
            A value for one or more of the `by` factors. Families are groups, so p-values do not change.

        Returns
        -------
        PairsResult

        Raises
        ------
        UnknownColumnError
            If a name is not a `by` factor.
        ArgumentError
            If no group has these values.

        Examples
        --------
        >>> import pandas as pd
        >>> from lmemtest.inference.means.emmeans import emmeans
        >>> from lmemtest.model import fit_lmm
        >>> runs = pd.DataFrame({"algorithm": list("AB") * 8, "prior": list("ggbb") * 4,
        ...                      "task": list("wwwwxxxxyyyyzzzz"),
        ...                      "score": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 7]})
        >>> fit = fit_lmm("score ~ algorithm * prior + (1|task)", runs)
        >>> bad = pairs(emmeans(fit, "algorithm", by="prior")).select(prior="b")
        >>> bad.to_frame()[["left", "right", "estimate"]].round(2)
          left right  estimate
        0    A     B     -0.75
        """
        for name in values:
            if name not in self.by:
                known = ", ".join(self.by) or "none, so there is nothing to select"
                raise UnknownColumnError(f"select names {name!r}, not a by factor. By factors: {known}.")
        keep, keep_means = _matches(self.table, values), _matches(self.emmeans.frame, values)
        if not keep.any():
            raise ArgumentError(f"No group has {_described(values)}. Groups: {_group_list(self.emmeans)}.")
        by = tuple(name for name in self.by if name not in values)
        kept_groups = keep.reshape(len(self.emmeans.groups()), -1)[:, 0]
        return replace(
            self,
            joint=tuple(joint for joint, kept in zip(self.joint, kept_groups, strict=False) if kept),
            table=self.table[keep].drop(columns=list(values)).reset_index(drop=True),
            emmeans=_rows_of(self.emmeans, keep_means, by),
            by=by,
            selected={**self.selected, **values},
        )

    def ratios(self) -> pd.DataFrame:
        """The differences of a model of logarithms as ratios of geometric means, left over right.

        Returns
        -------
        pandas.DataFrame
            One row per pair: the `by` columns, left, right, ``ratio``, ``p_value``, ``ci_low``, ``ci_high``.

        Raises
        ------
        ArgumentError
            If the response is not a logarithm.

        Examples
        --------
        >>> import pandas as pd
        >>> from lmemtest.inference.means.emmeans import emmeans
        >>> from lmemtest.model import fit_lmm
        >>> runs = pd.DataFrame({"algorithm": list("AB") * 4, "task": list("wwxxyyzz"),
        ...                      "seconds": [1., 2, 10, 19, 7, 16, 50, 99]})
        >>> fit = fit_lmm("log(seconds) ~ algorithm + (1|task)", runs)
        >>> pairs(emmeans(fit, "algorithm")).ratios()[["left", "right", "ratio"]].round(2)
          left right  ratio
        0    A     B   0.49
        """
        base = self.log_base
        if self.emmeans.subject:
            raise ArgumentError(f"ratios() is for means, and these are differences of the {self.emmeans.response}.")
        if base is None:
            raise ArgumentError(
                f"ratios() is for models of a logarithm, but the response is {self.emmeans.response}. Fit for instance "
                f"'log({self.emmeans.response}) ~ ...', if all scores are positive."
            )
        table = self.table[[*self.by, "left", "right"]].copy()
        table["ratio"], table["p_value"] = base ** self.table["estimate"], self.table["p_value"]
        table["ci_low"], table["ci_high"] = base ** self.table["ci_low"], base ** self.table["ci_high"]
        return table

    @property
    def log_base(self) -> float | None:
        """The base of the logarithm that was modelled; None of other responses."""
        return LOGARITHMS.get(self.emmeans.response.split("(", 1)[0]) if "(" in self.emmeans.response else None

    def sentences(self) -> tuple[str, ...]:
        """One plain sentence per pair, for readers who do not read tables of tests."""
        found = difference_sentences(
            self.table, self.by, self.level, self.direction, self.emmeans.apart(), self.emmeans.subject
        )
        if self.log_base is None:
            return found
        return tuple(
            f"{text} {row['left']} / {row['right']}: {ratio_text(row)}." if np.isfinite(row["p_value"]) else text
            for text, row in zip(found, self.ratios().to_dict("records"), strict=True)
        )

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        where = "".join(f", {name} = {format_level(v)}" for name, v in self.selected.items())
        by = f" by {', '.join(self.by)}" if self.by else ""
        title = f"Pairwise differences of {', '.join(self.emmeans.specs)}{by}{where}"
        frame, notes = self.to_frame(), (self._facts(), *self.notes)
        if self.log_base is not None:
            frame["ratio"] = self.ratios()["ratio"]
            notes = (*notes, "ratio: of the geometric means, left over right; ratios() has its interval.")
        return ResultTable(title=title, frame=frame, notes=notes)

    def summary(self) -> str:
        """The differences as a table, with a sentence for each of the first pairs."""
        sentences = self.sentences()
        more = len(sentences) - _SENTENCES_SHOWN
        tail = [f"... and {more} more pairs; see sentences()."] if more > 0 else []
        return "\n".join([self.to_table().to_text(), "", *sentences[:_SENTENCES_SHOWN], *tail])

    def _family(self) -> str:
        """What the adjustment counts: the means, or with "mvt" the tests if some pairs have none."""
        tested = self.table["p_value"].notna().to_numpy()
        if self.adjust not in JOINT_ADJUSTMENTS or tested.all():
            return f"a family of {self.family_size} means"
        counts = tested.reshape(-1, self.family_size * (self.family_size - 1) // 2).sum(axis=1)
        low, high = counts.min(), counts.max()
        size = f"{low}" if low == high else f"{low} to {high}"
        return f"a family of {size} {'test' if high == 1 else 'tests'}, those that exist"

    def _facts(self) -> str:
        family = self._family() + (" in each group" if self.by else "")
        return (
            f"Response {self.emmeans.response}, n = {self.emmeans.n_obs} rows; {DDF_NAMES[self.ddf]} degrees "
            f"of freedom; p-values with {ADJUSTMENT_NAMES[self.adjust]} adjustment for {family}, "
            f"{100 * self.level:.4g} % intervals with {ADJUSTMENT_NAMES[self.interval_adjust]} adjustment."
        )


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class ContrastsResult(Tabular):
    """Linear contrasts of marginal means, within each group of `by`.

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    coefficients : pandas.DataFrame
        One row per contrast, one column per level.
    emmeans : EmmeansResult
        The means that were combined.
    adjust, interval_adjust : str
        Adjustment of the p-values and of the intervals.
    level : float
        Confidence level of the intervals.
    notes : tuple of str
        What was changed and why.
    """

    table: pd.DataFrame
    coefficients: pd.DataFrame
    emmeans: EmmeansResult
    adjust: str
    interval_adjust: str
    level: float
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row per contrast: `by`, contrast, estimate, se, df, t_ratio, p_value, ci_low, ci_high."""
        return self.table.copy()

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        facts = (
            f"Response {self.emmeans.response}; {DDF_NAMES[self.emmeans.ddf]} degrees of freedom; p-values "
            f"with {ADJUSTMENT_NAMES[self.adjust]} adjustment, {100 * self.level:.4g} % intervals with "
            f"{ADJUSTMENT_NAMES[self.interval_adjust]} adjustment."
        )
        title = f"Contrasts of {', '.join(self.emmeans.specs)}"
        return ResultTable(title=title, frame=self.to_frame(), notes=(facts, *self.notes))


def ratio_text(row: Mapping[Any, Any]) -> str:
    """A ratio with its interval."""
    from lmemtest.words import format_number

    ratio, low, high = (format_number(row[name], 3) for name in ("ratio", "ci_low", "ci_high"))
    return f"a ratio of {ratio} ({low} to {high})"


def difference_sentences(
    table: pd.DataFrame,
    by: tuple[str, ...],
    level: float,
    direction: str | None,
    apart: frozenset[tuple[str, str]] = frozenset(),
    subject: str = "",
) -> tuple[str, ...]:
    """One plain sentence per difference of a table of comparisons.

    Parameters
    ----------
    table : pandas.DataFrame
        The `by` columns, left, right, estimate, p_value, ci_low, ci_high.
    by : tuple of str
    level : float
        A difference with a p-value below 1 - level is significant.
    direction : {"minimize", "maximize"} or None
    apart : frozenset of (str, str)
        Labels of means whose algorithms have no benchmark in common.
    subject : str
        What each sentence begins with.

    Returns
    -------
    tuple of str
    """
    return tuple(subject + _sentence(row, by, level, direction, apart) for row in table.to_dict("records"))


def _sentence(
    row: Mapping[Any, Any], by: tuple[str, ...], level: float, direction: str | None, apart: frozenset[tuple[str, str]]
) -> str:
    from lmemtest.words import format_number, format_p

    left, right = row["left"], row["right"]
    where = "".join(f"{name} = {format_level(row[name])}, " for name in by)
    where = f"At {where[:-2]}: " if where else ""
    if (left, right) in apart:
        return f"{where}{left} and {right} have no benchmark in common, so there is no verdict."
    if np.isnan(row["p_value"]):
        return f"{where}{left} and {right} cannot be compared with these data."
    p = format_p(row["p_value"])
    p = f"p{p}" if p.startswith("<") else f"p={p}"
    low, high, difference = row["ci_low"], row["ci_high"], row["estimate"]
    percent = f"{100 * level:.4g} % CI"
    if not below(row["p_value"], 1.0 - level):
        return (
            f"{where}{left} and {right} are not significantly different (difference "
            f"{format_number(difference)}, {percent} {format_number(low)} to {format_number(high)}, {p})."
        )
    if difference < 0:
        left, right, low, high, difference = right, left, -high, -low, -difference
    verb = {"maximize": "better", "minimize": "worse"}.get(direction or "", "higher")
    if verb == "worse":  # the lower mean is the better one: name it first
        left, right, verb = right, left, "better"
    return (
        f"{where}{left} is {verb} than {right} by {format_number(difference)} "
        f"({percent} {format_number(low)} to {format_number(high)}, {p})."
    )


@one_blas_thread()
def pairs(
    em: EmmeansResult,
    adjust: str | None = None,
    level: float | None = None,
    *,
    rng: int | np.random.Generator | None = None,
) -> PairsResult:
    """Test all pairwise differences of marginal means.

    Parameters
    ----------
    em : EmmeansResult
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
    PairsResult
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
    check_em(em, level)
    adjust = DEFAULT_ADJUST[em.vcov] if adjust is None else adjust
    _check_adjust(adjust)
    generator = resolve_rng(rng)
    em, of_model = for_adjustment(em, adjust)
    level = em.level if level is None else float(level)
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
    tested = evaluate_contrasts(em, np.vstack(blocks), sizes, method=adjust, n_means=family, level=level, rng=generator)

    table = em.frame.iloc[left][list(em.by)].reset_index(drop=True)
    table = table.assign(left=[labels[i] for i in left], right=[labels[j] for j in right], **tested.columns)
    return PairsResult(
        table=table,
        emmeans=em,
        levels=tuple(dict.fromkeys(labels)),
        by=em.by,
        adjust=tested.method,
        interval_adjust=tested.interval_method,
        family_size=family,
        level=level,
        direction=em.direction,
        notes=(*em.notes, *of_model, *tested.notes(table, apart=~em.met(left, right))),
        joint=tested.joint,
    )


@one_blas_thread()
def contrast(
    em: EmmeansResult,
    coefficients: str | Mapping[str, Sequence[float]] | pd.DataFrame,
    adjust: str | None = None,
    level: float | None = None,
    *,
    rng: int | np.random.Generator | None = None,
) -> ContrastsResult:
    """Test linear contrasts of marginal means.

    Parameters
    ----------
    em : EmmeansResult
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
    ContrastsResult
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
    check_em(em, level)
    family = None if not isinstance(coefficients, str) else named_contrasts(coefficients)
    if adjust is None:
        adjust = "none" if family is None else family.adjust
    _check_adjust(adjust)
    generator = resolve_rng(rng)
    level = em.level if level is None else float(level)
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
    tested = evaluate_contrasts(
        em, np.vstack(blocks), [len(K)] * len(blocks), method=adjust, n_means=None, level=level, rng=generator
    )

    import pandas as pd

    frame = pd.DataFrame({name: [key[name] for key in keys] for name in em.by})
    frame = frame.assign(contrast=list(table.index) * len(blocks), **tested.columns)
    off = [str(name) for name, total in zip(table.index, K.sum(axis=1), strict=True) if abs(total) > 1e-8]
    sums = [f"Coefficients of {', '.join(off)} do not sum to zero: not a comparison."] if off else []
    return ContrastsResult(
        table=frame,
        coefficients=table,
        emmeans=em,
        adjust=tested.method,
        interval_adjust=tested.interval_method,
        level=level,
        notes=(*em.notes, *sums, *_spacing(em, coefficients), *tested.notes(frame, apart=np.concatenate(apart))),
    )


def _family_rows(em: EmmeansResult, name: str, family: NamedContrasts) -> Mapping[str, FloatArray]:
    labels = [em.labels()[i] for i in em.groups()[0][1]]
    if len(labels) < 2:
        raise ArgumentError(
            f"coefficients={name!r} needs at least two means in each group, got one ({labels[0]}). Use another factor "
            "in specs, or keep more of its levels in at=."
        )
    return family.rows(labels)


def _spacing(em: EmmeansResult, coefficients: Any) -> list[str]:
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


def _sets_apart(em: EmmeansResult, rows: NDArray[np.intp], K: FloatArray) -> NDArray[np.bool_]:
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


def _coefficient_table(em: EmmeansResult, given: Any) -> pd.DataFrame:
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


# ---------------------------------------------------------------------- groups


def _matches(frame: pd.DataFrame, values: Mapping[str, Any]) -> NDArray[np.bool_]:
    keep = np.ones(len(frame), dtype=bool)
    for name, value in values.items():
        keep &= (frame[name] == value).to_numpy()
    return keep


def _rows_of(em: EmmeansResult, keep: NDArray[np.bool_], by: tuple[str, ...]) -> EmmeansResult:
    parts = {name: getattr(em, name)[keep] for name in ("L", "emmean", "se", "df", "ci_low", "ci_high")}
    frame = em.frame[keep][[*em.specs, *by]].reset_index(drop=True)
    return replace(em, frame=frame, by=by, **parts)


def _described(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _group_list(em: EmmeansResult) -> str:
    return "; ".join(_described(key) for key, _ in em.groups()[:12])
