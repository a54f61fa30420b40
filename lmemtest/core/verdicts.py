"""What is said of a pair: one vocabulary of verdicts, as codes. Words are made of codes and never read back."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Codes


__all__ = ["Verdict", "ahead_or_behind", "pair_words", "turned"]


class Verdict(IntEnum):
    """Of the first of two, compared with the second."""

    WORSE = -1
    NOT_SIGNIFICANT = 0
    BETTER = 1
    EQUIVALENT = 2
    NOT_TESTED = 3
    ABSENT = 4  # one of the two is not there


WORDS = {Verdict.NOT_SIGNIFICANT: "not significant", Verdict.EQUIVALENT: "practically equivalent",
         Verdict.NOT_TESTED: "no test", Verdict.ABSENT: ""}  # fmt: skip


def ahead_or_behind(codes: Any) -> NDArray[np.bool_]:
    """Which verdicts are for one of the two.

    >>> ahead_or_behind([Verdict.WORSE, Verdict.EQUIVALENT]).tolist()
    [True, False]
    """
    return np.abs(np.asarray(codes)) == Verdict.BETTER


def turned(codes: Any) -> Codes:
    """The verdicts of the second of two, compared with the first.

    >>> turned([Verdict.BETTER, Verdict.NOT_TESTED]).tolist()
    [-1, 3]
    """
    codes = np.asarray(codes, dtype=np.int8)
    return np.where(ahead_or_behind(codes), -codes, codes).astype(np.int8)


def pair_words(
    codes: Any, left: Iterable[str], right: Iterable[str], *, neither: str = WORDS[Verdict.NOT_SIGNIFICANT]
) -> list[str]:
    """What is said of pairs, in words; `neither` where a test or a posterior decides for none of the two.

    >>> pair_words([1, -1, 0], ["A", "A", "B"], ["B", "C", "C"])
    ['A better', 'C better', 'not significant']
    """
    words = {**WORDS, Verdict.NOT_SIGNIFICANT: neither}
    return [
        words.get(code, f"{first if code is Verdict.BETTER else second} better")
        for code, first, second in zip(map(Verdict, codes), left, right, strict=True)
    ]
