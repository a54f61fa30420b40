"""Cases of a test that every `make test` runs, and those that `make test-figures` adds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(cases: Iterable[Any], n: int = 1) -> list[Any]:
    """The first `n` cases have the level of their file, all others level 2; the cases of several arguments are tuples.

    For tests that claim the same of every case, and whose cases take long together.
    """
    cases = list(cases)
    parts = [case if isinstance(case, tuple) else (case,) for case in cases[n:]]
    return [*cases[:n], *(pytest.param(*part, marks=pytest.mark.level(2)) for part in parts)]
