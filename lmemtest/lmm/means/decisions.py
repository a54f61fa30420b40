"""Which means differ: one matrix of verdicts, from which groups, letters and critical differences follow.

Of two levels one is better, they are tested and not significantly different, practically equivalent, or have no test.
Groups, letters and diagrams join what is not shown to differ, so that no claim of a difference rests on a missing test,
and mark what has none. Groups are the maximal cliques of a graph, with one letter for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_NAMES, ERROR_NAMES
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, tie_order
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_direction, check_fraction, check_positive_int
from lmemtest.core.verdicts import Verdict, ahead_or_behind, turned
from lmemtest.core.words import confidence, format_level, format_number, joined
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.external import (
    check_critical_difference,
    check_omnibus,
    external_decisions,
    external_means,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Codes, Mask
    from lmemtest.lmm.means.comparisons import Comparisons

    Tests = pd.DataFrame | Mapping[str, NDArray[Any]]  # columns of one length


_MOST_GROUPS = 2000  # real decisions have about as many groups as levels; a graph of 30 levels can have 3^10
_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


OUT_OF_REACH = (
    1000.0  # ranges of the means, or their errors, beyond which a critical difference is no number that helps
)
MOST_NAMED = 8  # levels in a sentence
MOST_LETTERED = 12  # levels in tables and figures; of more levels each would be in many groups


@result
class Decisions(Result):
    """Levels in order, and the groups within which no difference is shown.

    Attributes
    ----------
    levels : tuple of str
        Levels, best first (ascending means if the direction is unknown); levels without a mean come last.
    means, se : tuple of float
        Marginal means and their standard errors, in the order of `levels`.
    groups : tuple of tuple of str
        Maximal cliques of the graph that joins levels whose difference is not significant or undecided, each in the
        order of `levels`. A level may be in several groups; with unequal standard errors a group need not
        be contiguous.
    letters : dict of str to str
        One letter per group that a level is in; two levels differ significantly exactly if they share no letter.
        Tables and figures show them for up to `MOST_LETTERED` levels, and `rank_low` and `rank_high` for any number.
    rank_low, rank_high : tuple of int
        The set of ranks of each level: one more than the number of levels that are significantly better, and the number
        of all levels less those that are significantly worse. If `simultaneous`, they hold the true ranks of all levels
        at once with the confidence 1 - `alpha` (Mogstad, Romano, Shaikh & Wilhelm 2024); a level whose true mean is
        that of others has all the ranks that these share.
    critical_difference : tuple of float
        Smallest and largest half width of the pairs' intervals at 1 - `alpha`: each pair differs significantly exactly
        where its means are further apart than its own; NaN if there is none.
    alpha : float
        Significance level of the decisions; NaN if it is unknown.
    codes : numpy.ndarray of int8, (k, k)
        The `lmemtest.core.verdicts.Verdict` of each row, compared with each column: 1 better, -1 worse, 0 not
        significant, 2 equivalent, 3 not tested; 0 on the diagonal. `significant` and `undecided` are read from it.
        Where the direction is unknown, the level with the lower mean counts as the better one.
    direction : {"minimize", "maximize"} or None
        Which end of the response is better.
    adjust, errors, ddf, score : str
        Adjustment of the p-values, where standard errors come from ("model", "moderated", "larger" of both, "own",
        "cluster-robust"), degrees of freedom, what was compared; empty where another program made the decisions and did
        not say.
    statistic : str
        What `means` are: "marginal mean", "mean rank", ...
    test : str
        What decided about the pairs, where the adjustment does not say it: "Wilcoxon signed-rank", ...
    ci_low, ci_high : tuple of float or None
        Intervals of the means at `level`, not simultaneous; NaN where there is none.
    level : float or None
    omnibus_p : float or None
        p-value of a test that all levels are alike, if there was one.
    posterior : bool
        Whether posterior probabilities decide, and not tests.
    factor : str
        What the levels are of: a column of the table.
    selected : dict
        Values of the `by` factors for which this holds.
    notes : tuple of str
        How to read the groups, and what could not be decided.
    """

    levels: tuple[str, ...]
    means: tuple[float, ...]
    se: tuple[float, ...]
    groups: tuple[tuple[str, ...], ...]
    letters: dict[str, str]
    rank_low: tuple[int, ...]
    rank_high: tuple[int, ...]
    critical_difference: tuple[float, float]
    alpha: float
    codes: Codes
    direction: str | None
    adjust: str
    ddf: str
    score: str
    errors: str = ""
    statistic: str = "marginal mean"
    test: str = ""
    ci_low: tuple[float, ...] | None = None
    ci_high: tuple[float, ...] | None = None
    level: float | None = None
    omnibus_p: float | None = None
    posterior: bool = False
    factor: str = "level"
    selected: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    figure: ClassVar[str | None] = "cd_diagram"

    @property
    def significant(self) -> pd.DataFrame:
        """Levels x levels: whether the difference is significant."""
        return self._frame(ahead_or_behind(self.codes))

    @property
    def n_significant(self) -> int:
        """How many pairs differ significantly."""
        return int(np.triu(ahead_or_behind(self.codes)).sum())

    @property
    def out_of_reach(self) -> bool:
        """Whether no difference could be told: a critical difference is a thousand times as large as any between the
        means and as their standard errors, which happens where hardly a degree of freedom is left.
        """
        known = [mean for mean in self.means if math.isfinite(mean)]
        scale = max([max(known) - min(known) if known else 0.0, *(se for se in self.se if math.isfinite(se))])
        largest, has_errors = self.critical_difference[1], any(map(math.isfinite, self.se))
        return has_errors and math.isfinite(largest) and largest > OUT_OF_REACH * scale > 0.0

    @property
    def undecided(self) -> pd.DataFrame:
        """Levels x levels: whether there is no test; nothing is said of such a pair."""
        return self._frame(self.codes == Verdict.NOT_TESTED)

    @property
    def decision(self) -> pd.DataFrame:
        """Levels x levels: True (significant), False (tested, not significant), missing (undecided)."""
        return self.significant.astype("boolean").mask(self.undecided)

    def among(self, levels: Sequence[str]) -> Codes:
        """The codes in the order of other levels, `Verdict.ABSENT` for those that are not there."""
        place = {level: i for i, level in enumerate(self.levels)}
        at = np.array([place.get(level, -1) for level in levels], dtype=np.intp)
        codes = self.codes[np.ix_(at, at)]
        codes[at < 0] = codes[:, at < 0] = Verdict.ABSENT
        return codes

    def pairs(self, left: Iterable[str], right: Iterable[str]) -> Codes:
        """The codes of pairs, the left compared with the right; those of levels that are not here have no test."""
        place = {level: i for i, level in enumerate(self.levels)}
        codes = np.pad(self.codes, (0, 1), constant_values=Verdict.NOT_TESTED)
        return codes[[place.get(name, -1) for name in left], [place.get(name, -1) for name in right]]

    def _frame(self, matrix: Mask) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(matrix, index=list(self.levels), columns=list(self.levels))

    @property
    def omnibus_significant(self) -> bool | None:
        """Whether the test of all levels together is significant; None without one."""
        return None if self.omnibus_p is None else below(self.omnibus_p, self.alpha)

    @classmethod
    def of(
        cls,
        means: Any,
        decisions: Any,
        *,
        direction: str | None = None,
        alpha: float | None = None,
        critical_difference: float | tuple[float, float] | None = None,
        score: str = "the score",
        statistic: str = "mean",
        test: str = "",
        interval_alpha: float | None = None,
        omnibus_p: float | None = None,
    ) -> Decisions:
        """Means and decisions of any other test, for the diagrams, groups and letters of this package.

        Parameters
        ----------
        means : mapping, pandas.Series or pandas.DataFrame
            A mean by name, NaN where it is unknown. A frame has the names as index, a column ``mean`` (or one column),
            and maybe ``se``, ``ci_low`` and ``ci_high``.
        decisions : pandas.DataFrame or (k, k) array
            Adjusted p-values, or booleans that are True where a difference is significant. A frame has the names of
            the means as index and columns, in any order; an array has their order. Symmetric, or one triangle missing;
            a missing pair is undecided; the diagonal is ignored.
        direction : {"minimize", "maximize"}, optional
            Which end is better: of mean ranks with 1 for the best, "minimize".
        alpha : float in (0, 1), optional
            Pairs with a p-value below it differ; 0.05 by default. Of booleans it is only named.
        critical_difference : float, (float, float) or None
            One number, or the smallest and the largest; it is drawn, and decides nothing.
        score, statistic, test : str
            What was compared, what the means are ("mean rank", "IQM"), and what decided ("Nemenyi").
        interval_alpha : float in (0, 1), optional
            One minus the confidence level of the intervals of the means; unknown by default.
        omnibus_p : float in [0, 1], optional
            p-value of a test that all are alike; the diagram says so if it is not significant.

        Returns
        -------
        Decisions

        Raises
        ------
        ArgumentError
            If an argument has another form, or names do not agree.
        DataError
            If p-values are outside of [0, 1], the matrix is not symmetric, or a name occurs twice.

        Examples
        --------
        >>> import pandas as pd
        >>> ranks = {"A": 1.2, "B": 2.1, "C": 2.7}
        >>> p = pd.DataFrame([[1, 0.04, 0.001], [0.04, 1, 0.3], [0.001, 0.3, 1]], list(ranks), list(ranks))
        >>> Decisions.of(ranks, p, direction="minimize", statistic="mean rank").groups
        (('A',), ('B', 'C'))
        """
        if direction is not None:
            direction = check_direction(direction)
        for name, text in {"score": score, "statistic": statistic, "test": test}.items():
            if not isinstance(text, str):
                raise ArgumentError(f"{name} must be a text, got {text!r}.")
        levels, numbers = external_means(means)
        matrix, has_p = external_decisions(decisions, levels)
        if alpha is not None:
            alpha = check_fraction(alpha, "alpha")
        else:
            alpha = 0.05 if has_p else math.nan  # that of decisions of others is not known
        return arranged(
            levels=levels,
            means=numbers["mean"],
            se=numbers["se"],
            codes=_codes(below(matrix, alpha) if has_p else matrix == 1.0, np.isnan(matrix)),
            critical_difference=check_critical_difference(critical_difference),
            alpha=alpha,
            direction=direction,
            adjust="",
            ddf="",
            score=score,
            statistic=statistic,
            test=test,
            ci_low=numbers.get("ci_low"),
            ci_high=numbers.get("ci_high"),
            level=None if interval_alpha is None else 1.0 - check_fraction(interval_alpha, "interval_alpha"),
            omnibus_p=check_omnibus(omnibus_p, alpha),
        )

    def table(self) -> pd.DataFrame:
        """One row per level, best first: the factor, mean, se, rank_low, rank_high, and letters of up to 12 levels."""
        import pandas as pd

        return pd.DataFrame({self.factor: self.levels, "mean": self.means, "se": self.se, **self.columns()})

    def columns(self, levels: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """What tables show of the decisions on each level, by default in their order: ``rank_low``, ``rank_high``, and
        ``letters`` where a reader can still tell them apart.
        """
        place = {level: i for i, level in enumerate(self.levels)}
        at = [place[level] for level in (self.levels if levels is None else levels)]
        columns: dict[str, list[Any]] = {
            name: [getattr(self, name)[i] for i in at] for name in ("rank_low", "rank_high")
        }
        if self.lettered:
            columns["letters"] = [self.letters[self.levels[i]] for i in at]
        return columns

    def head(self, n: int) -> Decisions:
        """The first levels by themselves; the decisions stay those of the whole family.

        Parameters
        ----------
        n : int, >= 1

        Returns
        -------
        Decisions
            Groups and letters are those of these levels; `critical_difference` and the sets of ranks are those of all.

        Examples
        --------
        >>> import lmemtest as lt
        >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "loss": [1.0, 2, 9, 2, 1, 8] * 2}
        >>> fit = lt.fit_lmm("loss ~ tool + (1|task)", runs)
        >>> fit.emmeans("tool").pairs().decisions(direction="minimize").head(2).groups
        (('A', 'B'),)
        """
        levels = self.levels[: check_positive_int(n, "n")]
        if len(levels) == len(self.levels):
            return self
        codes = self.codes[: len(levels), : len(levels)]
        groups, letters = groups_with_letters(ahead_or_behind(codes), levels)
        note = f"The first {len(levels)} of {len(self.levels)} levels; decisions and adjustment are those of all."
        return replace(
            self,
            levels=levels,
            means=self.means[: len(levels)],
            se=self.se[: len(levels)],
            ci_low=None if self.ci_low is None else self.ci_low[: len(levels)],
            ci_high=None if self.ci_high is None else self.ci_high[: len(levels)],
            groups=groups,
            letters=letters,
            rank_low=self.rank_low[: len(levels)],
            rank_high=self.rank_high[: len(levels)],
            codes=codes,
            notes=(*self.notes, note),
        )

    @property
    def lettered(self) -> bool:
        """Whether there are so few levels that letters are easier to read than sets of ranks."""
        return len(self.levels) <= MOST_LETTERED

    @property
    def simultaneous(self) -> bool:
        """Whether the decisions hold all at once with the confidence 1 - `alpha`, so that the sets of ranks do."""
        return not self.posterior and not math.isnan(self.alpha) and self.adjust not in ("none", "fdr", "")

    def top(self, k: int = 1) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Which levels are among the k best, and which may be.

        Parameters
        ----------
        k : int, >= 1

        Returns
        -------
        (tuple of str, tuple of str)
            The levels whose set of ranks ends at k at most: they are among the k best. And those whose set begins at k
            at most, which are all that can be: with k = 1 the smallest set that contains the best level.

        Raises
        ------
        ArgumentError
            If there are fewer than k levels.

        Examples
        --------
        >>> import lmemtest as lt
        >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "loss": [1.0, 2, 9, 2, 1, 8] * 2}
        >>> means = lt.fit_lmm("loss ~ tool + (1|task)", runs).emmeans("tool")
        >>> decisions = means.pairs().decisions(direction="minimize")
        >>> decisions.rank_low, decisions.rank_high
        ((1, 1, 3), (2, 2, 3))
        >>> decisions.top()
        ((), ('A', 'B'))
        >>> decisions.top(2)
        (('A', 'B'), ('A', 'B'))
        """
        k = check_positive_int(k, "k", maximum=len(self.levels))
        certain, possible = (
            tuple(level for level, rank in zip(self.levels, ranks, strict=True) if rank <= k)
            for ranks in (self.rank_high, self.rank_low)
        )
        return certain, possible

    @property
    def title(self) -> str:
        """Of what."""
        return "Decisions of the means"

    def sentences(self) -> tuple[str, ...]:
        """Which levels may be the best: all that no other one is shown to be better than."""
        _, possible = self.top()
        if self.direction is None or len(self.levels) < 2:
            return ()
        if not self.simultaneous:
            return (f"Nothing is shown to be better than {joined(possible, MOST_NAMED)}.",)
        among = possible[0] if len(possible) == 1 else f"one of {len(possible):,}: {joined(possible, MOST_NAMED)}"
        return (f"With {confidence(1.0 - self.alpha)} confidence the best by {self.statistic} is {among}.",)

    @property
    def facts(self) -> tuple[str, ...]:
        """How the levels were ordered and compared."""
        low, high = self.critical_difference
        width = format_number(low) if np.isclose(low, high) else f"{format_number(low)} to {format_number(high)}"
        where = "".join(f", {name} = {format_level(v)}" for name, v in self.selected.items())
        order = f"best first ({self.direction})" if self.direction else "in ascending order"
        how = [
            self.test,
            f"{ADJUSTMENT_NAMES.get(self.adjust, self.adjust)} adjustment" * bool(self.adjust),
            f"{ERROR_NAMES[self.errors]} standard errors" if self.errors else "",
            f"{DDF_NAMES[self.ddf]} degrees of freedom" if self.ddf else "",
            "" if math.isnan(self.alpha) else f"alpha = {self.alpha:g}",
        ]
        facts = [
            f"Response {self.score}{where}, {order}",
            ", ".join(part for part in how if part),
            "no critical difference" if not math.isfinite(low) or self.out_of_reach else f"critical difference {width}",
            "no difference can be told with so few degrees of freedom: add benchmarks" * self.out_of_reach,
        ]
        return ("; ".join(part for part in facts if part) + ".",)


@one_blas_thread()
def decisions(pairs: Comparisons, alpha: float | None = None, *, direction: str | None = None) -> Decisions:
    """Order the levels and find the groups within which no difference is shown, from all pairwise differences.

    Parameters
    ----------
    alpha : float in (0, 1), optional
        Pairs with an adjusted p-value below `alpha` differ; default: that of the pairs.
    direction : {"minimize", "maximize"}, optional
        Which end of the response is better; default: that of the runs behind the fit.

    Returns
    -------
    Decisions

    Raises
    ------
    ArgumentError
        If the pairs are in several `by` groups, an option is unknown, or the groups are too many to list.

    Notes
    -----
    Groups are the maximal cliques of the not-significant graph (Bron-Kerbosch with pivoting): no pair within a group
    differs significantly, and two levels in no common group do. "Not significant" is not "equal", and pairs without a
    test are undecided: groups join them, and `undecided` and the notes name them.

    References
    ----------
    Piepho (2004), J. Comput. Graph. Stat. 13, 456-466, doi:10.1198/1061860043515;
    Bron & Kerbosch (1973), doi:10.1145/362342.362367

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.pairs().decisions(direction="minimize").letters
    {'A': 'a', 'B': 'a', 'C': 'b'}
    """
    pairs.require("decisions", "pairs")
    alpha = pairs.alpha if alpha is None else check_fraction(alpha, "alpha")
    if direction is not None:
        direction = check_direction(direction)
    if pairs.by:
        groups = [key for key, _ in pairs.estimates.groups()]
        example = ", ".join(f"{name}={format_level(v)!r}" for name, v in groups[0].items())
        raise ArgumentError(
            f"decisions orders one group of means, but these pairs are in {len(groups)} groups by "
            f"{', '.join(pairs.by)}. Select one first: pairs.select({example})."
        )
    notes = []
    if direction and pairs.direction and direction != pairs.direction:
        notes.append(f"Ordered to {direction} as asked; the runs say {pairs.direction}.")
    gap = pairs.columns["estimate"].astype(float)
    return decisions_of(
        levels=pairs.levels,
        means=pairs.estimates.estimate,
        se=pairs.estimates.se,
        tests=pairs.columns,
        ahead=gap > 0.0 if (direction or pairs.direction) == "maximize" else gap < 0.0,  # also without means to order
        half_widths=pairs.half_widths(alpha),
        alpha=alpha,
        direction=direction or pairs.direction,
        adjust=pairs.adjust,
        errors=pairs.errors,
        ddf=pairs.ddf,
        score=pairs.estimates.score,
        factor=pairs.estimates.factor,
        selected=dict(pairs.selected),
        ci_low=pairs.estimates.ci_low,
        ci_high=pairs.estimates.ci_high,
        level=pairs.estimates.level,
        notes=notes,
    )


def decisions_of(
    *,
    levels: Sequence[str],
    means: Any,
    se: Any,
    tests: Tests,
    half_widths: Any,
    alpha: float,
    direction: str | None,
    ahead: Mask | None = None,
    equivalent: Mask | None = None,
    notes: Sequence[str] = (),
    **facts: Any,
) -> Decisions:
    """The decisions that a table of tests supports: every decision about a pair is made here.

    `means` and `se` are in the order of `levels`; `tests` has ``left``, ``right`` and ``p_value``, and a pair without
    a row or a p-value has no test; `half_widths` are those of the intervals at 1 - `alpha`, NaN where there is none;
    `ahead` and `equivalent` are by row of `tests`: whether the left is the better one, which the means say by default,
    and whether the two are shown to be equivalent; `facts` are other attributes of `Decisions`.
    """
    if ahead is None:
        left, right = _places([levels[i] for i in _order(means, se, direction)], tests)
        ahead = left < right
    codes = codes_of(levels, tests, alpha, ahead, equivalent)
    half = np.asarray(half_widths, dtype=float)
    half = half[~np.isnan(half)]
    return arranged(
        levels=levels,
        means=means,
        se=se,
        codes=codes,
        critical_difference=(float(half.min()), float(half.max())) if len(half) else (math.nan, math.nan),
        alpha=alpha,
        direction=direction,
        notes=notes,
        **facts,
    )


def codes_of(levels: Sequence[str], tests: Tests, alpha: float, ahead: Mask, equivalent: Mask | None = None) -> Codes:
    """The verdicts of tests in the order of the levels, the row compared with the column; see `decisions_of`."""
    left, right = _places(levels, tests)
    p = np.asarray(tests["p_value"], dtype=float)
    verdicts = np.where(below(p, alpha), np.where(ahead, Verdict.BETTER, Verdict.WORSE), Verdict.NOT_SIGNIFICANT)
    verdicts[np.isnan(p)] = Verdict.NOT_TESTED
    if equivalent is not None:
        verdicts[equivalent] = Verdict.EQUIVALENT
    codes = _codes(np.zeros((len(levels), len(levels)), dtype=bool), True)  # no test until a p-value decides
    codes[left, right], codes[right, left] = verdicts, turned(verdicts)
    return codes


def _places(levels: Sequence[str], tests: Tests) -> list[NDArray[np.intp]]:
    """The places among the levels of the two of each pair."""
    place = {name: i for i, name in enumerate(levels)}
    return [np.array([place[name] for name in tests[side].tolist()], dtype=np.intp) for side in ("left", "right")]


def arranged(
    *,
    levels: Sequence[str],
    means: Any,
    se: Any,
    codes: Codes,
    alpha: float,
    direction: str | None,
    ci_low: Any = None,
    ci_high: Any = None,
    notes: Sequence[str] = (),
    **facts: Any,
) -> Decisions:
    """Levels in order with their groups, from verdicts in the order of `levels`; the diagonal is ignored.

    A pair of which it is not known who is better, +1 in both directions, is decided by the order.
    """
    values, errors = np.asarray(means, dtype=float), np.asarray(se, dtype=float)
    order = _order(means, se, direction)
    ordered = tuple(levels[i] for i in order)
    codes = np.array(codes[np.ix_(order, order)])
    np.fill_diagonal(codes, Verdict.NOT_SIGNIFICANT)
    lower = np.tril((codes == Verdict.BETTER) & (codes.T == Verdict.BETTER))
    codes[lower] = Verdict.WORSE
    groups, letters = groups_with_letters(ahead_or_behind(codes), ordered)
    above, below_it = ((codes == code).sum(axis=1) for code in (Verdict.WORSE, Verdict.BETTER))
    undecided = codes == Verdict.NOT_TESTED
    lines = ['Levels that share a letter are "not significantly different", which is not the same as equal.']
    if direction is None:
        lines.append(
            "Levels are in ascending order of their means: it is not known whether low or high is better. Give "
            "direction=, or fit Runs."
        )
    if undecided.any():
        i, j = (index[0] for index in np.nonzero(np.triu(undecided)))
        count, total = int(np.triu(undecided).sum()), len(ordered) * (len(ordered) - 1) // 2
        lines.append(
            f"{count} of {total} pairs have no test (for instance {ordered[i]} and {ordered[j]}) and are undecided: "
            "that such a pair shares a letter or a group says nothing of it. `undecided` marks them."
        )

    def placed(ends: Any) -> tuple[float, ...] | None:
        return None if ends is None else tuple(np.asarray(ends, dtype=float)[order].tolist())

    return Decisions(
        levels=ordered,
        means=tuple(values[order].tolist()),
        se=tuple(errors[order].tolist()),
        groups=groups,
        letters=letters,
        rank_low=tuple((1 + above).tolist()),
        rank_high=tuple((len(ordered) - below_it).tolist()),
        alpha=float(alpha),
        codes=codes,
        direction=direction,
        ci_low=placed(ci_low),
        ci_high=placed(ci_high),
        notes=(*lines, *notes),
        **facts,
    )


def _order(means: Any, se: Any, direction: str | None) -> NDArray[np.intp]:
    """Best first, without a mean last."""
    values, errors = np.asarray(means, dtype=float), np.asarray(se, dtype=float)
    return np.asarray(tie_order(values, errors=errors, descending=direction == "maximize"))


def _codes(significant: Mask, undecided: Mask | bool) -> Codes:
    """Verdicts of a symmetric matrix, which does not say who is better."""
    codes = np.where(significant, Verdict.BETTER, Verdict.NOT_SIGNIFICANT)
    return np.where(undecided, Verdict.NOT_TESTED, codes).astype(np.int8)


# -------------------------------------------------------------------------------------------------- groups and letters


def groups_with_letters(
    significant: Mask, levels: tuple[str, ...]
) -> tuple[tuple[tuple[str, ...], ...], dict[str, str]]:
    """Groups of levels that are not shown to differ, and the letters of each level.

    From the 53rd group on letters are numbers in brackets, so that none is used twice.
    """
    cliques = maximal_cliques(~significant)
    names = [*_ALPHABET, *(f"[{i + 1}]" for i in range(len(_ALPHABET), len(cliques)))]
    letters = dict.fromkeys(levels, "")
    for name, clique in zip(names, cliques, strict=False):
        for i in clique:
            letters[levels[i]] += name
    return tuple(tuple(levels[i] for i in clique) for clique in cliques), letters


def maximal_cliques(adjacent: Mask) -> tuple[tuple[int, ...], ...]:
    """Maximal cliques of a symmetric graph, sorted, each sorted; every vertex is in one at least.

    >>> maximal_cliques(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool))
    ((0, 1), (1, 2))
    """
    neighbours = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(np.asarray(adjacent))]
    cliques: list[tuple[int, ...]] = []
    pending: list[tuple[tuple[int, ...], set[int], set[int]]] = [((), set(range(len(neighbours))), set())]
    while pending:
        clique, candidates, excluded = pending.pop()
        if not candidates:
            if not excluded and clique:
                cliques.append(tuple(sorted(clique)))
                if len(cliques) > _MOST_GROUPS:
                    raise ArgumentError(
                        f"The levels form more than {_MOST_GROUPS} groups without significant differences, too many to "
                        "show. Compare fewer levels (at=...), or read the table of pairs."
                    )
            continue
        pivot = max(sorted(candidates | excluded), key=lambda v: len(neighbours[v] & candidates))
        for vertex in sorted(candidates - neighbours[pivot]):
            pending.append(((*clique, vertex), candidates & neighbours[vertex], excluded & neighbours[vertex]))
            candidates = candidates - {vertex}
            excluded = excluded | {vertex}
    return tuple(sorted(cliques))
