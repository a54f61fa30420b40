"""What is said of every pair of algorithms, as one matrix: names are read when a sentence needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.bench.ranking.asked import NO_TEST, NOT_SHOWN

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.lmm.means.decisions import Decisions

    Codes = NDArray[np.int8]
    Mask = NDArray[np.bool_]
    Places = NDArray[np.intp]

NOT_COMPARED, UNTESTED, SAME, ROW, COLUMN = range(5)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decided:
    """Decisions about pairs.

    Attributes
    ----------
    levels : (k,) tuple of str
    codes : (k, k) int
        `NOT_COMPARED`, `UNTESTED`, `SAME` (no difference is shown), `ROW` or `COLUMN` (the one that is better).
    """

    levels: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(
        cls, levels: Sequence[str], left: Places, right: Places, *, differ: Mask, ahead: Mask, untested: Mask
    ) -> Decided:
        """From pairs, of which some differ, the left is ahead in some, and some have no test."""
        codes = np.zeros((len(levels), len(levels)), dtype=np.int8)
        codes[left, right] = np.where(untested, UNTESTED, np.where(differ, np.where(ahead, ROW, COLUMN), SAME))
        codes[right, left] = np.where(untested, UNTESTED, np.where(differ, np.where(ahead, COLUMN, ROW), SAME))
        return cls(levels=tuple(levels), codes=codes)

    @classmethod
    def of_decisions(cls, decisions: Decisions) -> Decided:
        """From levels in order: the first of two is the better one."""
        i, j = np.triu_indices(len(decisions.levels), 1)
        differ, untested = (part.to_numpy()[i, j] for part in (decisions.significant, decisions.undecided))
        ahead = np.ones(len(i), dtype=bool)
        return cls.of(decisions.levels, i, j, differ=differ, ahead=ahead, untested=untested)

    @classmethod
    def of_table(cls, pairs: pd.DataFrame, levels: Sequence[str]) -> Decided:
        """From a table of pairs with what is said of each in words."""
        left, right = places(levels, pairs["left"]), places(levels, pairs["right"])
        said = pairs["decision"].astype(str)
        differ = said.str.endswith(" better").to_numpy(dtype=bool)
        ahead = np.array([text == f"{name} better" for text, name in zip(said, pairs["left"], strict=True)], dtype=bool)
        untested = (said == NO_TEST).to_numpy(dtype=bool)
        return cls.of(levels, left, right, differ=differ, ahead=ahead, untested=untested)

    def among(self, levels: Sequence[str]) -> Codes:
        """The codes in the order of all levels of a study, of which some can be missing here."""
        at = places(levels, self.levels)
        out = np.zeros((len(levels), len(levels)), dtype=np.int8)
        out[np.ix_(at, at)] = self.codes
        return out


def places(levels: Sequence[str], names: Sequence[str] | pd.Series) -> Places:
    """Where names are among the levels."""
    place = {name: i for i, name in enumerate(levels)}
    return np.array([place[name] for name in names], dtype=np.intp)


def in_words(code: int, row: str, column: str) -> str:
    """What is said of a pair.

    >>> in_words(COLUMN, "A", "B"), in_words(SAME, "A", "B")
    ('B better', 'no difference shown')
    """
    return {UNTESTED: NO_TEST, SAME: NOT_SHOWN, ROW: f"{row} better", COLUMN: f"{column} better"}[code]
