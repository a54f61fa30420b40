"""Comparisons of marginal means with a control: Dunnett's test and its simultaneous intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.inference.means.adjust import ADJUSTMENT_NAMES
from lmemtest.inference.means.comparisons import difference_sentences
from lmemtest.inference.means.emmeans import DDF_NAMES, EmmeansResult
from lmemtest.inference.means.families import check_em, evaluate_contrasts, for_adjustment
from lmemtest.words import format_level, suggest

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest._table import ResultTable

CONTROL_ADJUSTMENTS = ("dunnett", "holm", "sidak", "bonferroni", "fdr", "none")


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class ControlResult(Tabular):
    """Differences of marginal means from a control, within each group of `by`.

    Attributes
    ----------
    table : pandas.DataFrame
        Behind `to_frame`; do not change it.
    emmeans : EmmeansResult
        The means that were compared.
    control : str
        Label of the control.
    levels : tuple of str
        Labels of the means that were compared with it, in the order of the factor.
    by : tuple of str
        Factors whose levels split the comparisons into families.
    adjust, interval_adjust : str
        Adjustment of the p-values and of the intervals; each group of `by` is a family of its own.
    level : float
        Simultaneous confidence level of the intervals.
    direction : {"minimize", "maximize"} or None
        Which end of the response is better.
    notes : tuple of str
        What a reader must know.
    """

    table: pd.DataFrame
    emmeans: EmmeansResult
    control: str
    levels: tuple[str, ...]
    by: tuple[str, ...]
    adjust: str
    interval_adjust: str
    level: float
    direction: str | None
    notes: tuple[str, ...] = ()

    @property
    def ddf(self) -> str:
        """Rule for the degrees of freedom."""
        return self.emmeans.ddf

    def to_frame(self) -> pd.DataFrame:
        """One row per comparison: the `by` columns, left, right (the control), estimate (left - right), se, df,
        t_ratio, p_value, ci_low, ci_high; p-values and intervals are adjusted."""
        return self.table.copy()

    def sentences(self) -> tuple[str, ...]:
        """One plain sentence per comparison."""
        return difference_sentences(
            self.table, self.by, self.level, self.direction, self.emmeans.apart(), self.emmeans.subject
        )

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex."""
        from lmemtest._table import ResultTable

        by = f" by {', '.join(self.by)}" if self.by else ""
        facts = (
            f"Response {self.emmeans.response}, n = {self.emmeans.n_obs} rows; {DDF_NAMES[self.ddf]} degrees of "
            f"freedom; p-values with {ADJUSTMENT_NAMES[self.adjust]} adjustment for {len(self.levels)} comparisons"
            f"{' in each group' if self.by else ''}, {100 * self.level:.4g} % intervals with "
            f"{ADJUSTMENT_NAMES[self.interval_adjust]} adjustment."
        )
        title = f"Differences of {', '.join(self.emmeans.specs)} from {self.control}{by}"
        return ResultTable(title=title, frame=self.to_frame(), notes=(facts, *self.notes))

    def summary(self) -> str:
        """The differences as a table, with a sentence for each."""
        return "\n".join([self.to_table().to_text(), "", *self.sentences()])


@one_blas_thread()
def compare_to(
    em: EmmeansResult,
    control: Any,
    *,
    adjust: str | None = None,
    level: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> ControlResult:
    """Compare every marginal mean with that of a control.

    Fewer questions than all pairs, so each is answered with more power. The control must be chosen before the
    results are seen; for the one that came out best use `versus_best`.

    Parameters
    ----------
    em : EmmeansResult
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
    ControlResult
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
    check_em(em, level)
    adjust = ("dunnett" if em.vcov == "model" else "holm") if adjust is None else adjust
    check_choice(adjust, "adjust", CONTROL_ADJUSTMENTS)
    em, of_model = for_adjustment(em, adjust)
    level = em.level if level is None else float(level)
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
    tested = evaluate_contrasts(
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
    return ControlResult(
        table=table,
        emmeans=em,
        control=reference,
        levels=tuple(dict.fromkeys(labels[i] for i in left)),
        by=em.by,
        adjust=tested.method,
        interval_adjust=tested.interval_method,
        level=level,
        direction=em.direction,
        notes=(*em.notes, *of_model, *tested.notes(table, apart=~em.met(left, right))),
    )


def _control_label(labels: tuple[str, ...], control: Any) -> str:
    label = control if isinstance(control, str) else format_level(control)
    if label not in labels:
        known = tuple(dict.fromkeys(labels))
        raise ArgumentError(
            f"control must be one of the means ({', '.join(known)}), got {control!r}.{suggest(label, known)}"
        )
    return label
