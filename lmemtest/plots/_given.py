"""What is drawn of decisions: a `Separation`, that of a ranking, or means beside a matrix from any other test."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lmemtest.errors import ArgumentError
from lmemtest.inference.means.separation import Separation
from lmemtest.studies.ranking.ranking import Ranking
from lmemtest.words import listed, suggest

_OPTIONS = tuple(inspect.signature(Separation.of).parameters)[2:]


def as_separation(given: Any, decisions: Any, options: Mapping[str, Any], *, name: str = "separation") -> Separation:
    """The one conversion: what is drawn sees a `Separation` only."""
    if isinstance(given, (Separation, Ranking)):
        if decisions is not None or options:
            what = "decisions" if decisions is not None else next(iter(options))
            raise ArgumentError(f"{what} is for means from elsewhere; {name} holds its own decisions. Leave it out.")
        return given if isinstance(given, Separation) else given.separation
    if decisions is None:
        raise ArgumentError(
            f"{name} must be the result of separation() or rank(), or means beside a matrix of their decisions, got "
            f"{type(given).__name__}."
        )
    for option in options:
        if option not in _OPTIONS:
            raise ArgumentError(f"There is no option {option!r} beside {listed(_OPTIONS)}.{suggest(option, _OPTIONS)}")
    return Separation.of(given, decisions, **options)
