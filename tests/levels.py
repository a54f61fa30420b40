"""Cases of a test that every `make test` runs, and those that `make test-figures` adds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


def first(cases: Iterable[Any], n: int = 1) -> list[Any]:
    """The first `n` cases have the level of their file, all others level 2; the cases of several arguments are tuples.

    For tests that claim the same of every case, and whose cases take long together.
    """
    cases = list(cases)
    parts = [case if isinstance(case, tuple) else (case,) for case in cases[n:]]
    return [*cases[:n], *(pytest.param(*part, marks=pytest.mark.level(2)) for part in parts)]


def half(*factors: Iterable[Any]) -> list[Any]:
    """The half fraction of a factorial design first, in which, of three factors or more, all levels of any two meet.

    >>> half([0, 1], "ab")[:2]
    [(0, 'a'), (1, 'b')]
    """
    cases = sorted(product(*map(enumerate, factors)), key=lambda case: sum(place for place, _ in case) % 2)
    evens = sum(sum(place for place, _ in case) % 2 == 0 for case in cases)
    return first([tuple(level for _, level in case) for case in cases], evens)
