"""How long something will take: said once, and before the wait, where that is more than half a minute."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lmemtest.core.caller import advice, named
from lmemtest.core.text import bounded, one_line

__all__ = ["LONG", "Forecast", "in_words", "is_part", "part", "say"]

LONG = 30.0  # seconds from which somebody goes and does something else
_MEASURED = 2.0  # seconds of work from which a time can be told, with this share of the steps
_SHARE, _ENOUGH = 0.1, 5.0  # or from these seconds on with any
_IMPORTS = 10.0  # seconds that imports and caches of a first step never take
_PART: ContextVar[bool] = ContextVar("lmemtest_part_of_something_longer", default=False)

clock = time.monotonic


@contextmanager
def part() -> Iterator[None]:
    """What is done here is a part of something longer, which tells the time of the whole."""
    token = _PART.set(True)
    try:
        yield
    finally:
        _PART.reset(token)


def is_part() -> bool:
    """Whether the time is told by something longer."""
    return _PART.get()


def in_words(seconds: float) -> str:
    """A time as a reader plans with it.

    Examples
    --------
    >>> [in_words(s) for s in (41, 250, 9_000, 400_000)]
    ['about 40 seconds', 'about 4 minutes', 'about 2 hours', 'about 5 days']
    """
    for unit, size, step in (("seconds", 1, 10), ("minutes", 60, 1), ("hours", 3_600, 1)):
        if seconds < 95 * size or (unit == "hours" and seconds < 36 * size):
            return f"about {round(seconds / size / step) * step:,} {unit}"
    return f"about {round(seconds / 86_400):,} days"


def say(message: str) -> None:
    """A line on standard error, through the logger ``lmemtest``."""
    import logging

    logging.getLogger("lmemtest").warning("%s", bounded(one_line(message)))


@dataclass
class Forecast:
    """Measures the first of many steps and says, where it is long, how long all of them will take.

    ``at_once`` steps are made at a time. After 1, 3, 7, ... of each the clock is looked at, until two seconds and a
    tenth of the steps, or five seconds, have been measured. A first step of less than ten seconds may be one of imports
    and tells nothing of the others.
    """

    total: int
    label: str
    at_once: int = 1
    fewer: str | None = None  # the argument that says how many steps there are
    more_processes: bool = False  # whether n_jobs would help

    def __post_init__(self) -> None:
        self.done = 0
        self.look = 0 if is_part() else self.at_once
        self.start = clock()
        self.first = (0, self.start)  # steps that do not count, and when they were done

    def __call__(self, n: int) -> None:
        self.done += n
        if not self.look or self.done < self.look:
            return
        now = clock()
        if self.look == self.at_once and now - self.start < _IMPORTS:
            self.first = (self.done, now)
        elif now - self.start >= _MEASURED and (self.done >= _SHARE * self.total or now - self.start >= _ENOUGH):
            seconds = (now - self.first[1]) / (self.done - self.first[0]) * (self.total - self.done) + now - self.start
            if seconds > LONG and self.done < self.total:
                say(f"{self.label}: {self.total:,} steps take {in_words(seconds)} in all.{self._advice()}")
            self.look = 0
            return
        self.look = 2 * self.look + self.at_once

    def _advice(self) -> str:
        python = [f"a smaller {self.fewer}"] if self.fewer else []
        python += ["more processes (n_jobs=-1)"] if self.more_processes else []
        line = f"a smaller {named(self.fewer)}" if self.fewer and named(self.fewer) != self.fewer else ""
        ways = advice("typed", call=" or ".join(python), command=line or "fewer rows (--where)")
        return f" Less with {ways}." if ways else ""
