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
from lmemtest._rounding import below, tie_order, written
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_columns, check_fraction, check_positive_int
from lmemtest.errors import ArgumentError, DataError
from lmemtest.inference.distributions.studentized_range import ptukey, qtukey
from lmemtest.words import format_level, format_number

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.inference.means.comparisons import Comparisons

    BoolArray = NDArray[np.bool_]

_MOST_GROUPS = 2000  # real separations have about as many groups as levels; a graph of 30 levels can have 3^10
SOURCES = {
    "pairs": "pairs()",
    "control": "against()",
    "contrasts": "contrast()",
    "equivalence": "equivalence()",
    "noninferiority": "noninferiority()",
    "best": "best()",
}  # what makes each kind of comparisons
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

        columns = {"mean": self.means, "se": self.se, "letters": [self.letters[level] for level in self.levels]}
        return pd.DataFrame({self.factor: self.levels, **columns})

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
        groups, letters = _groups(significant.to_numpy(), levels)
        note = f"The first {len(levels)} of {len(self.levels)} levels; decisions and adjustment are those of all."
        return replace(
            self,
            levels=levels,
            means=self.means[: len(levels)],
            se=self.se[: len(levels)],
            groups=groups,
            letters=letters,
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
    """Order the levels and find the groups within which no difference is shown, from all pairwise differences.

    Parameters
    ----------
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
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> means = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.pairs().separation(direction="minimize").letters
    {'A': 'a', 'B': 'a', 'C': 'b'}
    """
    check_kind(pairs, "separation", "pairs")
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
        selected=dict(pairs.selected),
        notes=notes,
    )


def check_kind(value: Comparisons, verb: str, *kinds: str) -> None:
    """Refuse comparisons that a verb is not for."""
    if value.kind not in kinds:
        wanted = " or ".join(SOURCES[kind] for kind in kinds)
        raise ArgumentError(f"{verb} is for the result of {wanted}, and this is that of {SOURCES[value.kind]}.")


def known_direction(given: Any, of_runs: str | None, verb: str) -> str:
    """Which end is better: as given, else that of the runs; refused where neither says so."""
    if given is not None:
        return check_choice(given, "direction", DIRECTIONS)
    if of_runs is None:
        raise ArgumentError(
            f"{verb} must know which end of the response is better: give direction='minimize' or 'maximize', or "
            "fit Runs."
        )
    return of_runs


def separation_of(
    *,
    levels: Sequence[str],
    means: Any,
    se: Any,
    tests: pd.DataFrame,
    half_widths: Any,
    alpha: float,
    direction: str | None,
    notes: Sequence[str] = (),
    **facts: Any,
) -> Separation:
    """The separation that a table of tests supports: every decision about a pair is made here.

    `means` and `se` are in the order of `levels`; `tests` has ``left``, ``right`` and ``p_value``, and a pair without
    a row or a p-value is undecided; `half_widths` are those of the simultaneous intervals at 1 - `alpha`, NaN where
    there is none; `facts` are other attributes of `Separation`.
    """
    import pandas as pd

    names = list(levels)
    values, errors = np.asarray(means, dtype=float), np.asarray(se, dtype=float)
    order = tie_order(values, errors=errors, descending=direction == "maximize")  # best first, without a mean last
    ordered = tuple(names[i] for i in order)
    # every pair is undecided until a p-value decides it
    left, right = (pd.Index(ordered).get_indexer(pd.Index(tests[side])) for side in ("left", "right"))
    p = tests["p_value"].to_numpy(dtype=float)
    significant = np.zeros((len(names), len(names)), dtype=bool)
    undecided = ~np.eye(len(names), dtype=bool)
    significant[left, right] = significant[right, left] = below(p, alpha)
    undecided[left, right] = undecided[right, left] = np.isnan(p)
    groups, letters = _groups(significant, ordered)
    half = np.asarray(half_widths, dtype=float)
    half = half[~np.isnan(half)]
    said = ['Levels that share a letter are "not significantly different", which is not the same as equal.']
    if direction is None:
        said.append(
            "Levels are in ascending order of their means: the fit does not know whether low or high is "
            "better. Give direction=, or fit Runs."
        )
    if undecided.any():
        i, j = (index[0] for index in np.nonzero(np.triu(undecided)))
        count, total = int(np.triu(undecided).sum()), len(names) * (len(names) - 1) // 2
        said.append(
            f"{count} of {total} pairs have no test (for instance {ordered[i]} and {ordered[j]}) and are undecided: "
            "that such a pair shares a letter or a group says nothing of it. `undecided` marks them."
        )
    return Separation(
        levels=ordered,
        means=tuple(values[order].tolist()),
        se=tuple(errors[order].tolist()),
        groups=groups,
        letters=letters,
        critical_difference=(float(half.min()), float(half.max())) if len(half) else (float("nan"), float("nan")),
        alpha=float(alpha),
        significant=pd.DataFrame(significant, index=list(ordered), columns=list(ordered)),
        undecided=pd.DataFrame(undecided, index=list(ordered), columns=list(ordered)),
        direction=direction,
        notes=(*said, *notes),
        **facts,
    )


def _groups(significant: BoolArray, levels: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], dict[str, str]]:
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


def maximal_cliques(adjacent: BoolArray) -> tuple[tuple[int, ...], ...]:
    """Maximal cliques of a symmetric graph, sorted, each sorted; every vertex is in one at least.

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
                if len(found) > _MOST_GROUPS:
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
    return tuple(sorted(found))


# ---------------------------------------------------------------------- mean ranks


def nemenyi(scores: pd.DataFrame, *, direction: str, alpha: float = 0.05, score: str = "the score") -> Separation:
    """Compare the mean ranks of algorithms over blocks, as Demšar (2006) and Autorank do: what follows Friedman's test.

    `scores` has a row per block (a benchmark, or what else was run once with every algorithm) and a column per
    algorithm; blocks with a missing score are left out. `score` says what was ranked. The result is a `Separation` of
    mean ranks, 1 best; the critical difference is ``q_alpha sqrt(k (k + 1) / (6 N))``; the notes have Friedman's test.

    In each of N complete blocks the k ranks sum to a constant. If all orders of a block are equally likely, the ranks
    of an algorithm have variance (k + 1)(k - 1) / 12 and any two of them the correlation -1 / (k - 1), which a linear
    model of the ranks misses. Ties share the mean of their ranks; the critical difference is that without ties, which
    is on the safe side. Blocks are taken for independent: seeds or budgets of one benchmark as blocks make the test too
    sure of itself.

    Nemenyi (1963), Distribution-free multiple comparisons, PhD thesis, Princeton University; Demšar (2006), Journal of
    Machine Learning Research 7, 1-30; Friedman (1937), J. Am. Stat. Assoc. 32, 675-701

    >>> import pandas as pd
    >>> rows = [[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [1.0, 3.0, 5.0], [3.0, 5.0, 9.0]] * 5
    >>> found = nemenyi(pd.DataFrame(rows, columns=["A", "B", "C"]), direction="minimize")
    >>> found.levels, found.means, found.groups
    (('A', 'B', 'C'), (1.25, 2.25, 2.5), (('A',), ('B', 'C')))
    >>> round(found.critical_difference[0], 3)  # 3.314 sqrt(3 * 4 / (6 * 20)) / sqrt(2)
    0.741
    """
    import pandas as pd
    from scipy.stats import chi2, rankdata

    if not isinstance(scores, pd.DataFrame) or scores.shape[1] < 2:
        raise ArgumentError(
            "scores must be a table with a row per block and a column for each of two or more algorithms."
        )
    check_choice(direction, "direction", DIRECTIONS)
    alpha = check_fraction(alpha, "alpha")
    names = [format_level(name) for name in scores.columns]
    check_columns(names, names, argument="scores")
    values = scores.to_numpy(dtype=float)
    complete = np.isfinite(values).all(axis=1)
    n, k = int(complete.sum()), len(names)
    if n < 2:
        raise DataError(f"scores must have at least two blocks with a score of every algorithm, got {n}.")
    ranks = rankdata(values[complete] if direction == "minimize" else -values[complete], axis=1)
    means = ranks.mean(axis=0)
    se = np.sqrt(k * (k + 1.0) / (6.0 * n))
    left, right = np.triu_indices(k, 1)
    p_value = ptukey(np.abs(means[left] - means[right]) * np.sqrt(2.0) / se, k, np.inf, upper=True)
    tests = pd.DataFrame({"left": [names[i] for i in left], "right": [names[j] for j in right], "p_value": p_value})
    between = n * np.square(means - (k + 1.0) / 2.0).sum()
    within = np.square(ranks - (k + 1.0) / 2.0).sum() / (n * (k - 1.0))
    statistic = between / within if within > 0 else 0.0
    notes = [
        f"Friedman's test of {n:,} blocks: chi-square({k - 1}) = {written(statistic, '.4g')}, p = "
        f"{written(chi2.sf(statistic, k - 1), '.3g')}."
    ]
    if n < len(values):
        notes.append(f"{len(values) - n:,} of {len(values):,} blocks lack a score and were left out.")
    return separation_of(
        levels=names,
        means=means,
        se=ranks.std(axis=0, ddof=1) / np.sqrt(n),
        tests=tests,
        half_widths=[float(qtukey(1.0 - alpha, k, np.inf)) / np.sqrt(2.0) * se],
        alpha=alpha,
        direction="minimize",
        adjust="Nemenyi",
        interval_adjust="Nemenyi",
        ddf="asymptotic",
        score=score,
        statistic="mean rank",
        factor=str(scores.columns.name or "algorithm"),
        notes=notes,
    )


def blocks(runs: Any, by: Sequence[str]) -> pd.DataFrame:
    """Scores of runs as `nemenyi` takes them: a row per combination of the columns `by`, a column per algorithm.

    Scores of one algorithm in a block are averaged.
    """
    from lmemtest.data.compress import compress

    columns = check_columns(by, runs.columns, argument="by")
    cells = compress(runs, [*columns, runs.algorithm], score=runs.score)
    frame = cells.frame.assign(**{"\0mean": cells.mean})
    return frame.pivot_table(
        index=list(columns), columns=runs.algorithm, values="\0mean", aggfunc="mean", observed=True, dropna=False
    )
