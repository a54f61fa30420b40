"""Which means differ: one decision matrix, from which groups, letters and critical differences follow.

A pair is significantly different, tested and not significantly different, or undecided because it has no test. Groups,
letters and diagrams join what is not shown to differ, so that no claim of a difference rests on a missing test, and
mark what is undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest._options import ADJUSTMENT_NAMES, DDF_NAMES, DIRECTIONS
from lmemtest._result import Result, result
from lmemtest._rounding import below, tie_order
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction, check_positive_int
from lmemtest.errors import ArgumentError
from lmemtest.inference.means.comparisons import Comparisons, check_comparisons
from lmemtest.words import format_level, format_number

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]

_MOST_GROUPS = 2000  # real separations have about as many groups as levels; a graph of 30 levels can have 3^10
_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@result
class Separation(Result):
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
    critical_difference : tuple of float
        Smallest and largest half width of the pairs' simultaneous intervals at 1 - `alpha`.
    alpha : float
        Significance level of the decisions.
    significant, undecided : pandas.DataFrame of bool, levels x levels
        Pairs whose difference is significant, and pairs without a test; no pair is both. `decision` has both in one.
    direction : {"minimize", "maximize"} or None
        Which end of the response is better.
    adjust, interval_adjust, ddf, score : str
        Adjustments of the p-values and of the critical difference, degrees of freedom, what was compared.
    statistic : str
        What `means` are: "marginal mean" or "mean rank".
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
    critical_difference: tuple[float, float]
    alpha: float
    significant: pd.DataFrame
    undecided: pd.DataFrame
    direction: str | None
    adjust: str
    interval_adjust: str
    ddf: str
    score: str
    statistic: str = "marginal mean"
    factor: str = "level"
    selected: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def decision(self) -> pd.DataFrame:
        """Levels x levels: True (significant), False (tested, not significant), missing (undecided)."""
        return self.significant.astype("boolean").mask(self.undecided)

    figure: ClassVar[str | None] = "cd_diagram"

    def table(self) -> pd.DataFrame:
        """One row per level, best first: the factor, mean, se, letters."""
        import pandas as pd

        return pd.DataFrame(
            {
                self.factor: list(self.levels),
                "mean": list(self.means),
                "se": list(self.se),
                "letters": [self.letters[level] for level in self.levels],
            }
        )

    def head(self, n: int) -> Separation:
        """The first levels by themselves; the decisions stay those of the whole family.

        Parameters
        ----------
        n : int, >= 1

        Returns
        -------
        Separation
            Groups and letters are those of these levels; `critical_difference` is that of all pairs.

        Examples
        --------
        >>> import lmemtest as lt
        >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "loss": [1.0, 2, 9, 2, 1, 8] * 2}
        >>> fit = lt.fit_lmm("loss ~ tool + (1|task)", runs)
        >>> fit.emmeans("tool").pairs().separation(direction="minimize").head(2).groups
        (('A', 'B'),)
        """
        levels = self.levels[: check_positive_int(n, "n")]
        if len(levels) == len(self.levels):
            return self
        kept = list(levels)
        significant, undecided = self.significant.loc[kept, kept], self.undecided.loc[kept, kept]
        cliques = maximal_cliques(~significant.to_numpy())
        groups = tuple(tuple(levels[i] for i in clique) for clique in cliques)
        note = f"The first {len(levels)} of {len(self.levels)} levels; decisions and adjustment are those of all."
        return replace(
            self,
            levels=levels,
            means=self.means[: len(levels)],
            se=self.se[: len(levels)],
            groups=groups,
            letters=_letters(levels, groups),
            significant=significant,
            undecided=undecided,
            notes=(*self.notes, note),
        )

    def rank_ranges(self) -> dict[str, tuple[int, int]]:
        """The ranks that the decisions leave open to each level.

        Returns
        -------
        dict of str to (int, int)
            One more than the number of levels that are significantly better, and the number of all levels less those
            that are significantly worse.

        Examples
        --------
        >>> import lmemtest as lt
        >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "loss": [1.0, 2, 9, 2, 1, 8] * 2}
        >>> fit = lt.fit_lmm("loss ~ tool + (1|task)", runs)
        >>> fit.emmeans("tool").pairs().separation(direction="minimize").rank_ranges()
        {'A': (1, 2), 'B': (1, 2), 'C': (3, 3)}
        """
        differ = self.significant.to_numpy()
        better, worse = np.tril(differ).sum(axis=1), np.triu(differ).sum(axis=1)
        return {
            level: (int(1 + above), int(len(differ) - below))
            for level, above, below in zip(self.levels, better, worse, strict=True)
        }

    @property
    def title(self) -> str:
        """Of what."""
        return "Separation of the means"

    @property
    def facts(self) -> tuple[str, ...]:
        """How the levels were ordered and compared."""
        low, high = self.critical_difference
        width = format_number(low) if np.isclose(low, high) else f"{format_number(low)} to {format_number(high)}"
        where = "".join(f", {name} = {format_level(v)}" for name, v in self.selected.items())
        order = f"best first ({self.direction})" if self.direction else "in ascending order"
        return (
            f"Response {self.score}{where}, {order}; {ADJUSTMENT_NAMES.get(self.adjust, self.adjust)} adjustment, "
            f"{DDF_NAMES[self.ddf]} degrees of freedom, alpha = {self.alpha:g}; critical difference {width}.",
        )


@one_blas_thread()
def separation(pairs: Comparisons, alpha: float = 0.05, *, direction: str | None = None) -> Separation:
    """Order the levels and find the groups within which no difference is shown.

    Parameters
    ----------
    pairs : Comparisons
        All pairwise differences of one group of means.
    alpha : float in (0, 1), default 0.05
        Pairs with an adjusted p-value below `alpha` differ.
    direction : {"minimize", "maximize"}, optional
        Which end of the response is better; default: that of the runs behind the fit.

    Returns
    -------
    Separation

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
    >>> import pandas as pd
    >>> from lmemtest.inference.means.emmeans import emmeans
    >>> from lmemtest.model import fit_lmm
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]})
    >>> em = emmeans(fit_lmm("score ~ algorithm + (1|task)", runs), "algorithm")
    >>> separation(em.pairs(), direction="minimize").letters
    {'A': 'a', 'B': 'a', 'C': 'b'}
    """
    _check_arguments(pairs, alpha, direction)
    notes = []
    if direction and pairs.direction and direction != pairs.direction:
        notes.append(f"Ordered to {direction} as asked; the runs say {pairs.direction}.")
    if pairs.interval_adjust != pairs.adjust:
        notes.append(
            f"The critical difference is that of {ADJUSTMENT_NAMES[pairs.interval_adjust]} intervals; "
            f"decisions use the {ADJUSTMENT_NAMES[pairs.adjust]} p-values and may differ from it."
        )
    return separation_of(
        levels=pairs.levels,
        means=pairs.estimates.estimate,
        se=pairs.estimates.se,
        tests=pairs.table,
        half_widths=pairs.half_widths(1.0 - alpha),
        alpha=alpha,
        direction=direction or pairs.direction,
        adjust=pairs.adjust,
        interval_adjust=pairs.interval_adjust,
        ddf=pairs.ddf,
        score=pairs.estimates.score,
        factor=pairs.estimates.factor,
        selected=pairs.selected,
        notes=notes,
    )


def separation_of(
    *,
    levels: Sequence[str],
    means: Any,
    se: Any,
    tests: pd.DataFrame,
    half_widths: Any,
    alpha: float,
    direction: str | None,
    adjust: str,
    interval_adjust: str,
    ddf: str,
    score: str,
    statistic: str = "marginal mean",
    factor: str = "level",
    selected: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Separation:
    """The separation that a table of tests supports: every decision about a pair is made here.

    Parameters
    ----------
    levels : sequence of str
    means, se : (k,) float
        In the order of `levels`.
    tests : pandas.DataFrame
        ``left``, ``right`` and ``p_value``, in any order; a pair without a row or without a p-value is undecided.
    half_widths : (n,) float
        Of the simultaneous intervals at 1 - `alpha`; NaN where there is none.
    alpha, direction, adjust, interval_adjust, ddf, score, statistic, factor, selected, notes
        As in `Separation`.

    Returns
    -------
    Separation
    """
    mean_of = dict(zip(levels, map(float, means), strict=True))
    se_of = dict(zip(levels, map(float, se), strict=True))
    ordered = _ordered(tuple(levels), mean_of, se_of, direction)
    significant, undecided = _decisions(tests, ordered, alpha)
    groups = tuple(tuple(ordered[i] for i in clique) for clique in maximal_cliques(~significant))
    return Separation(
        levels=ordered,
        means=tuple(mean_of[level] for level in ordered),
        se=tuple(se_of[level] for level in ordered),
        groups=groups,
        letters=_letters(ordered, groups),
        critical_difference=_critical_difference(half_widths),
        alpha=float(alpha),
        significant=_matrix(significant, ordered),
        undecided=_matrix(undecided, ordered),
        direction=direction,
        adjust=adjust,
        interval_adjust=interval_adjust,
        ddf=ddf,
        score=score,
        statistic=statistic,
        factor=factor,
        selected=dict(selected or {}),
        notes=(*_notes(direction, ordered, undecided), *notes),
    )


def maximal_cliques(adjacent: BoolArray) -> tuple[tuple[int, ...], ...]:
    """Maximal cliques of an undirected graph, sorted, each sorted.

    Parameters
    ----------
    adjacent : (k, k) bool, symmetric
        The diagonal is ignored.

    Returns
    -------
    tuple of tuple of int
        Every vertex is in at least one clique.

    Raises
    ------
    ArgumentError
        If there are more than 2000.

    Examples
    --------
    >>> maximal_cliques(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool))
    ((0, 1), (1, 2))
    """
    neighbours = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(np.asarray(adjacent))]
    found: list[tuple[int, ...]] = []
    pending: list[tuple[tuple[int, ...], set[int], set[int]]] = [((), set(range(len(neighbours))), set())]
    while pending:
        clique, candidates, excluded = pending.pop()
        if not candidates:
            if not excluded and clique:
                found.append(tuple(sorted(clique)))
                _check_count(found)
            continue
        pivot = max(sorted(candidates | excluded), key=lambda v: len(neighbours[v] & candidates))
        for vertex in sorted(candidates - neighbours[pivot]):
            pending.append(((*clique, vertex), candidates & neighbours[vertex], excluded & neighbours[vertex]))
            candidates = candidates - {vertex}
            excluded = excluded | {vertex}
    return tuple(sorted(found))


def _check_count(found: Sequence[Any]) -> None:
    if len(found) > _MOST_GROUPS:
        raise ArgumentError(
            f"The levels form more than {_MOST_GROUPS} groups without significant differences, too many to "
            "show. Compare fewer levels (at=...), or read the table of pairs."
        )


def _check_arguments(pairs: Any, alpha: float, direction: str | None) -> None:
    check_comparisons(pairs, "pairs", "pairs")
    check_fraction(alpha, "alpha")
    if direction is not None:
        check_choice(direction, "direction", DIRECTIONS)
    if pairs.by:
        groups = [key for key, _ in pairs.estimates.groups()]
        example = ", ".join(f"{name}={format_level(v)!r}" for name, v in groups[0].items())
        raise ArgumentError(
            f"separation orders one group of means, but these pairs are in {len(groups)} groups by "
            f"{', '.join(pairs.by)}. Select one first: pairs.select({example})."
        )


def _ordered(
    levels: tuple[str, ...], means: Mapping[str, float], se: Mapping[str, float], direction: str | None
) -> tuple[str, ...]:
    """Best first, ties in level order, levels without a mean last."""
    order = tie_order([means[v] for v in levels], errors=[se[v] for v in levels], descending=direction == "maximize")
    return tuple(levels[i] for i in order)


def _decisions(tests: pd.DataFrame, levels: tuple[str, ...], alpha: float) -> tuple[BoolArray, BoolArray]:
    """Which pairs differ, and which have no test: every pair, until a p-value decides it."""
    position = {level: i for i, level in enumerate(levels)}
    left = tests["left"].map(position).to_numpy(dtype=np.intp)
    right = tests["right"].map(position).to_numpy(dtype=np.intp)
    p = tests["p_value"].to_numpy(dtype=float)
    significant = np.zeros((len(levels), len(levels)), dtype=bool)
    undecided = ~np.eye(len(levels), dtype=bool)
    significant[left, right] = significant[right, left] = below(p, alpha)
    undecided[left, right] = undecided[right, left] = np.isnan(p)
    return significant, undecided


def _matrix(values: BoolArray, levels: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(values, index=list(levels), columns=list(levels))


def _letters(levels: tuple[str, ...], groups: tuple[tuple[str, ...], ...]) -> dict[str, str]:
    """Letters by group; from the 53rd group on numbers in brackets, so that no letter is used twice."""
    names = [_ALPHABET[i] if i < len(_ALPHABET) else f"[{i + 1}]" for i in range(len(groups))]
    members = [set(group) for group in groups]
    return {
        level: "".join(name for name, group in zip(names, members, strict=True) if level in group) for level in levels
    }


def _critical_difference(half_widths: Any) -> tuple[float, float]:
    half = np.asarray(half_widths, dtype=float)
    half = half[~np.isnan(half)]
    if not len(half):
        return (float("nan"), float("nan"))
    return (float(half.min()), float(half.max()))


def _notes(direction: str | None, levels: tuple[str, ...], undecided: BoolArray) -> list[str]:
    notes = ['Levels that share a letter are "not significantly different", which is not the same as equal.']
    if direction is None:
        notes.append(
            "Levels are in ascending order of their means: the fit does not know whether low or high is "
            "better. Give direction=, or fit Runs."
        )
    if undecided.any():
        i, j = (index[0] for index in np.nonzero(np.triu(undecided)))
        count, total = int(np.triu(undecided).sum()), len(levels) * (len(levels) - 1) // 2
        notes.append(
            f"{count} of {total} pairs have no test (for instance {levels[i]} and {levels[j]}) and are undecided: that "
            "such a pair shares a letter or a group says nothing of it. `undecided` marks them."
        )
    return notes
