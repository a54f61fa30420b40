"""Which decisions of a ranking change when one block, or one algorithm, leaves the study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lmemtest._replicates import check_replicates, progress_bar
from lmemtest._result import Result, result
from lmemtest.errors import DesignError, LmemtestError
from lmemtest.studies.ranking.asked import NO_TEST, NOT_SHOWN
from lmemtest.words import counted, joined, percent, plural

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.inference.means.separation import Separation
    from lmemtest.studies.ranking.blocks import Blocks

    Decisions = Mapping[frozenset[str], str]


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
    refit: Callable[[Blocks], Separation | Decisions],
    blocks: Blocks,
    decisions: Separation | Decisions | None = None,
    *,
    progress: bool | None = None,
) -> Stability:
    """Leave out every block and every algorithm in turn, and compare the decisions with those of the whole study.

    Parameters
    ----------
    refit : callable
        Takes `Blocks` and returns their `Separation`, whose order says who is better; or a mapping of pairs, as frozen
        sets of two names, to "A better", "no difference shown" or "no test". The method of the ranking.
    blocks : Blocks
        In the order in which a mapping is to be reported.
    decisions : Separation or mapping, optional
        Those of the whole study; ``refit(blocks)`` by default.
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
    whole = refit(blocks) if decisions is None else decisions
    smaller = [(blocks.unit, name, blocks.where(np.arange(n) != i)) for i, name in enumerate(blocks.names)]
    if len(names) > 2:
        smaller += [("algorithm", name, blocks.of([other for other in names if other != name])) for name in names]
    refits: list[tuple[str, str, Decisions]] = []
    notes = []
    with progress_bar(len(smaller), progress, "Leaving out") as advance:
        for kind, name, part in smaller:
            try:
                refits.append((kind, name, _decisions(refit(part))))
            except LmemtestError as error:
                notes.append(f"Without {kind} {name} there is no ranking, so it counts for nothing here: {error}")
            advance(1)
    said = _decisions(whole)
    rows, changes = [], []
    for left, right in combinations(names if isinstance(whole, Mapping) else whole.levels, 2):
        pair = frozenset((left, right))
        if said.get(pair, NO_TEST) == NO_TEST:
            continue
        row: dict[str, object] = {"left": left, "right": right, "decision": said[pair]}
        for column, kind in (("blocks", blocks.unit), ("algorithms", "algorithm")):
            without = [(name, found[pair]) for one, name, found in refits if one == kind and pair in found]
            changed = [(name, now) for name, now in without if now != said[pair]]
            row[f"share_unchanged_{column}"] = 1.0 - len(changed) / len(without) if without else np.nan
            row[f"n_changed_{column}"] = len(changed)
            row[f"changed_by_{column}"] = tuple(name for name, _ in changed)
            changes += [(kind, name, left, right, said[pair], now) for name, now in changed]
        rows.append(row)
    return Stability(
        table=pd.DataFrame(rows, columns=COLUMNS),
        changes=pd.DataFrame(changes, columns=["left_out", "name", "left", "right", "decision", "without"]),
        n_blocks=sum(kind != "algorithm" for kind, _, _ in refits),
        n_algorithms=sum(kind == "algorithm" for kind, _, _ in refits),
        unit=blocks.unit,
        notes=tuple(notes),
    )


def _decisions(separation: Separation | Decisions) -> Decisions:
    """What is said of each pair, whichever of the two comes first."""
    if isinstance(separation, Mapping):
        return separation
    levels = separation.levels
    significant, undecided = separation.significant.to_numpy(), separation.undecided.to_numpy()
    return {
        frozenset((levels[i], levels[j])): NO_TEST
        if undecided[i, j]
        else f"{levels[i]} better"
        if significant[i, j]
        else NOT_SHOWN
        for i, j in combinations(range(len(levels)), 2)
    }
