"""Which decisions of a ranking change when one block, or one algorithm, leaves the study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lmemtest.core.replicates import check_replicates, progress_bar
from lmemtest.core.result import Result, result
from lmemtest.core.verdicts import Verdict, pair_words
from lmemtest.core.words import counted, joined, percent, plural
from lmemtest.errors import DesignError, LmemtestError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Codes


COLUMNS = ["left", "right", "decision"]
COLUMNS += [
    f"{what}_{kind}" for kind in ("blocks", "algorithms") for what in ("share_unchanged", "n_changed", "changed_by")
]


@result
class Stability(Result):
    """Decisions about pairs, and what changes them.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair with a decision: ``left`` before ``right`` in the ranking, ``decision`` ("A better" or "no
        difference shown"); ``share_unchanged_blocks``, the share of the blocks without which it is the same,
        ``n_changed_blocks`` and ``changed_by_blocks`` (names), those without which it is not; the same for algorithms.
        Shares are NaN where nothing could be left out.
    changes : pandas.DataFrame
        One row per change: ``left_out`` ("algorithm" or the unit of the blocks), ``name``, ``left``, ``right``,
        ``decision`` of the whole study and ``without`` it.
    n_blocks, n_algorithms : int
        That were left out, one at a time.
    unit : {"family", "benchmark", "seed"}
        What the blocks are.
    notes : tuple of str
    """

    parts: ClassVar = {"pairs": "table", "changes": "changes"}
    formats: ClassVar = {"share_unchanged_blocks": percent, "share_unchanged_algorithms": percent}

    table: pd.DataFrame
    changes: pd.DataFrame
    n_blocks: int
    n_algorithms: int
    unit: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Of what."""
        return "Stability of the decisions"

    @property
    def facts(self) -> tuple[str, ...]:
        """What was left out."""
        return (
            f"The ranking was made again without each of {counted(self.n_blocks, self.unit)} and, where another pair "
            f"remains, without each of {counted(self.n_algorithms, 'algorithm')}. A change is a decision for another "
            "algorithm, one that is lost, or a new one.",
        )

    def shown(self) -> pd.DataFrame:
        """Pairs with the share of the smaller studies in which their decision stays, and what changes it."""
        names = self.table["changed_by_blocks"] + self.table["changed_by_algorithms"]
        changed_by = [joined(some) if some else None for some in names]
        kept = ["left", "right", "decision", "share_unchanged_blocks", "share_unchanged_algorithms"]
        return self.table[kept].assign(changed_by=changed_by)

    def sentences(self) -> tuple[str, ...]:
        """Which decisions stay, and which change without what; the first is the headline."""
        return (
            *self._about("blocks", self.unit, self.n_blocks),
            *self._about("algorithms", "algorithm", self.n_algorithms),
        )

    def _about(self, kind: str, noun: str, n: int) -> Iterator[str]:
        if not n:
            return
        total, odd = len(self.table), self.table[self.table[f"n_changed_{kind}"] > 0]
        if not total:
            return
        which = f"whichever of the {n} {plural(noun)} leaves the study"
        if odd.empty:
            yield f"{'The decision stays' if total == 1 else f'All {total} decisions stay'} the same {which}."
            return
        rest = total - len(odd)
        others = f"; {_others(rest)}" if rest else ""
        if len(odd) > 1:
            yield f"{len(odd)} of {total} decisions change when one of the {n} {plural(noun)} leaves the study{others}."
            others = ""
        for row in odd.to_dict("records"):
            names = row[f"changed_by_{kind}"]
            what = f"{noun} {names[0]}" if len(names) == 1 else f"one of the {plural(noun)} {joined(names)}"
            yield (
                f"The decision between {row['left']} and {row['right']} ({row['decision']}) changes when {what} leaves "
                f"the study{others}."
            )


def _others(n: int) -> str:
    return "the other one stays" if n == 1 else f"the other {n} stay"


def stability_of(
    refit: Callable[[Blocks], Codes],
    blocks: Blocks,
    codes: Codes | None = None,
    *,
    neither: str = "not significant",
    progress: bool | None = None,
) -> Stability:
    """Leave out every block and every algorithm in turn, and compare the decisions with those of the whole study.

    Parameters
    ----------
    refit : callable
        Takes `Blocks` and returns the verdicts on their algorithms, ``(k, k)``: the method of the ranking.
    blocks : Blocks
        The whole study.
    codes : (k, k) array of int, optional
        The verdicts of the whole study; ``refit(blocks)`` by default.
    neither : str
        What is said of a pair without a decision.
    progress : bool, optional
        Progress bar on standard error for what takes more than two seconds: always, never, or (None) on a terminal.

    Returns
    -------
    Stability

    Raises
    ------
    DesignError
        If there are fewer than two algorithms or three blocks.

    Notes
    -----
    That a decision stays is no test, and that it changes says no more than that it is close: with a p-value near
    `alpha` some block changes it nearly always. Without an algorithm a family of fewer pairs is adjusted for, and ranks
    are ranks among others, so decisions can change in both directions.

    Examples
    --------
    >>> import lmemtest as lt
    >>> ranking = lt.rank(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"), "frequentist", test="nemenyi")
    >>> found = ranking.stability()
    >>> found.sentences()[-1]
    'The decision between HB and TPE (HB better) changes when algorithm TPE+prior leaves the study; the other 14 stay.'
    """
    import pandas as pd

    check_replicates(progress=progress)
    names, n = blocks.algorithms, len(blocks.names)
    if len(names) < 2 or n < 3:
        raise DesignError(
            f"stability leaves out one {blocks.unit} at a time, which takes at least 2 algorithms and 3 "
            f"{blocks.units}, got {len(names)} and {n}. Add some to the study."
        )
    whole = refit(blocks) if codes is None else codes
    smaller = [(blocks.unit, name, blocks.where(np.arange(n) != i)) for i, name in enumerate(blocks.names)]
    if len(names) > 2:
        smaller += [("algorithm", name, blocks.of([other for other in names if other != name])) for name in names]
    left, right = np.nonzero(np.triu((whole != Verdict.NOT_TESTED) & (whole != Verdict.ABSENT), 1))
    before = whole[left, right]
    left_out: list[tuple[str, str]] = []
    notes = []
    without = np.zeros((len(smaller), len(left)), dtype=np.int8)
    with progress_bar(len(smaller), progress, "Leaving out") as advance:
        for kind, name, part in smaller:
            try:
                without[len(left_out)] = _among(refit(part), part.algorithms, names)[left, right]
                left_out.append((kind, name))
            except LmemtestError as error:
                notes.append(f"Without {kind} {name} there is no ranking, so it counts for nothing here: {error}")
            advance(1)
    without = without[: len(left_out)]
    levels = np.array(names, dtype=object)
    of_algorithm = np.array([kind == "algorithm" for kind, _ in left_out], dtype=bool)
    compared = without != Verdict.ABSENT
    changed = compared & (without != before)
    said = pair_words(before, levels[left], levels[right], neither=neither)
    columns = {"left": levels[left], "right": levels[right], "decision": said}
    for kind, rows in (("blocks", ~of_algorithm), ("algorithms", of_algorithm)):
        total, odd = compared[rows].sum(axis=0), changed[rows].sum(axis=0)
        unchanged = 1.0 - np.divide(odd, total, out=np.full(len(odd), np.nan), where=total > 0)
        columns |= {f"share_unchanged_{kind}": unchanged, f"n_changed_{kind}": odd}
        columns[f"changed_by_{kind}"] = _names(changed[rows], [left_out[row][1] for row in np.flatnonzero(rows)])
    pair, row = np.nonzero(changed.T)
    ends = levels[left[pair]], levels[right[pair]]
    new = pair_words(without[row, pair], *ends, neither=neither)
    changes = [(*left_out[i], a, b, said[j], after) for i, j, a, b, after in zip(row, pair, *ends, new, strict=True)]
    return Stability(
        table=pd.DataFrame(columns, columns=COLUMNS),
        changes=pd.DataFrame(changes, columns=["left_out", "name", "left", "right", "decision", "without"]),
        n_blocks=int((~of_algorithm).sum()),
        n_algorithms=int(of_algorithm.sum()),
        unit=blocks.unit,
        notes=tuple(notes),
    )


def _among(codes: Codes, part: Sequence[str], names: Sequence[str]) -> Codes:
    """The verdicts of a part of the algorithms in the order of all."""
    at = [names.index(name) for name in part]
    out = np.full((len(names), len(names)), Verdict.ABSENT, dtype=np.int8)
    out[np.ix_(at, at)] = codes
    return out


def _names(changed: NDArray[np.bool_], names: list[str]) -> list[tuple[str, ...]]:
    """Of each pair what changes it."""
    found: list[tuple[str, ...]] = [()] * changed.shape[1]
    for pair in np.flatnonzero(changed.any(axis=0)):
        found[pair] = tuple(names[row] for row in np.flatnonzero(changed[:, pair]))
    return found
