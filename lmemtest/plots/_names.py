"""Names in figures: what is written in their place, and what becomes of those that are too long.

A name is wrapped where there is room for a second line. What does not fit then is cut at its end, or at its beginning
where others begin alike, or at both where they end alike, too, and has a number, under which the whole name stands
below the figure: a cut in the middle would lose what tells ``net_v1_large`` from ``net_v2_large``.
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate, count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lmemtest.core.words import format_level, suggest
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.plots._style import Ruler

_BREAKS = (" :…", "[](_.-/=+,;|")  # of a name, after one of these: the best first
SIGNS = "".join(_BREAKS)
_labels: ContextVar[Mapping[str, str]] = ContextVar("lmemtest_figure_labels", default=MappingProxyType({}))
_met: ContextVar[set[str] | None] = ContextVar("lmemtest_figure_names", default=None)

# ---------------------------------------------------------------------------------------------------- labels


def checked_labels(labels: object, names: Sequence[Any] = ()) -> dict[str, str]:
    """What is written in place of names, by name; refused where two of `names` could not be told apart afterwards."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping) or not labels:
        got = "an empty one" if isinstance(labels, Mapping) else type(labels).__name__
        raise ArgumentError(f"labels must be a dict such as {{'long_name': 'short'}}, got {got}.")
    short = {format_level(name): text for name, text in labels.items()}
    for name, text in short.items():
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError(f"labels must hold a text for {name!r}, got {text!r}.")
        if text != name and (text in short or text in set(map(format_level, names))):
            raise ArgumentError(f"labels writes {text!r} for {name!r}, and {text!r} is a name itself. Use other texts.")
    repeated = [text for text in short.values() if list(short.values()).count(text) > 1]
    if repeated:
        raise ArgumentError(f"labels must be different, and {repeated[0]!r} is written for several names.")
    return short


@contextmanager
def relabelled(labels: Mapping[str, str]) -> Iterator[None]:
    """Write labels in place of names inside the block, each of which must be met there."""
    if not labels:  # a figure inside of another one keeps those of the outer one
        yield
        return
    met: set[str] = set()
    tokens = _labels.set(labels), _met.set(met)
    try:
        yield
    finally:
        _labels.reset(tokens[0])
        _met.reset(tokens[1])
    for name in labels:
        if name not in met:
            others = sorted(met.difference(labels.values()))
            raise ArgumentError(f"labels has {name!r}, which the figure does not show.{suggest(name, others)}")


def label_of(name: object) -> str:
    """What is written in place of a name: itself where no label says otherwise."""
    text = str(name)
    met = _met.get()
    if met is not None:
        met.add(text)
    return _labels.get().get(text, text)


# ---------------------------------------------------------------------------------------------------- long names


def wrapped(name: str, room: float, ruler: Ruler, lines: int = 2) -> str | None:
    """A name on as few lines as hold it, at most `lines` of `room` points; None where these do not.

    >>> class Letters:
    ...     def width(self, text):
    ...         return max(map(len, text.split(chr(10))))
    >>> wrapped("random_search_prior", 14, Letters()).split(chr(10)), wrapped("a" * 40, 9, Letters())
    (['random_', 'search_prior'], None)
    """
    if ruler.width(name) <= room:
        return name
    if lines < 2 or ruler.width(name.replace(" ", "")) > 1.05 * lines * room:
        return None
    if lines > 2 and (fewer := wrapped(name, room, ruler, lines - 1)) is not None:
        return fewer
    for places in _breaks(name):
        parts = [(name[:i].rstrip(), name[i:].lstrip()) for i in places]
        if lines == 2:
            fits = min(parts, key=lambda both: max(map(ruler.width, both)), default=None)
            if fits is not None and max(map(ruler.width, fits)) <= room:
                return "\n".join(fits)
            continue
        for head, tail in reversed(parts):  # the longest first line
            if ruler.width(head) <= room:
                rest = wrapped(tail, room, ruler, lines - 1)
                if rest is not None:
                    return f"{head}\n{rest}"
                break
    return None


def _breaks(name: str) -> list[list[int]]:
    """Where a line may end, the best places first: inside of words only where scripts have no spaces, or names none."""
    inner = range(1, len(name))
    after = [[i for i in inner if name[i - 1] in marks] for marks in _BREAKS]
    wide = [i for i in inner if unicodedata.east_asian_width(name[i - 1]) in "WF"]
    wide = [i for i in wide if unicodedata.category(name[i]) not in ("Pe", "Po")]  # no line begins with a comma
    return [*after, wide if wide or any(after) else list(inner)]


def line_end(name: str, most: int) -> int:
    """Where a line of a long name ends, after `most` characters or not far before: after a sign, if there is one.

    >>> line_end("random_search_with_prior", 12), line_end("randomsearchwithprior", 12), line_end("a_randomsearch", 12)
    (7, 12, 12)
    """
    return next((end for end in range(most, most // 2, -1) if name[end - 1] in SIGNS), most)


def fitted(
    names: Sequence[str],
    room: float | Sequence[float],
    ruler: Ruler,
    lines: int = 1,
    first: int = 1,
    numbers: Mapping[str, int] = MappingProxyType({}),
) -> tuple[list[str], list[str]]:
    """Names on `room` points, one number or one per name: whole, on several lines, or with a number from `first`, or
    one of the `numbers`; and the whole names of these, as sentences to be written below. With no `lines` they are only
    shortened, for axes of the user that do not hold the key.

    >>> class Letters:
    ...     def width(self, text):
    ...         return max(map(len, text.split(chr(10))))
    >>> fitted(["HB", "random_search_with_prior"], 12, Letters())
    (['HB', 'random_… [1]'], ['[1]\\xa0random_search_with_prior.'])
    >>> fitted(["resnet50_adam_finetuned", "resnet50_sgd_finetuned"], 12, Letters())[0]
    ['…adam_f… [1]', '…sgd_fi… [2]']
    """
    if lines == 0:
        return shorten(names, room, ruler), []
    rooms = list(room) if isinstance(room, Sequence) else [room] * len(names)
    whole = [wrapped(name, most, ruler, lines) for name, most in zip(names, rooms, strict=True)]
    keyed = dict.fromkeys(name for name, text in zip(names, whole, strict=True) if text is None)
    further = count(max((first - 1, *numbers.values())) + 1)
    key = {name: numbers[name] if name in numbers else next(further) for name in keyed}
    cut: dict[str, str] = {}
    for name, most in zip(names, rooms, strict=True):
        if name in key and name not in cut:
            mark = f"[{key[name]}]"
            rest = most - ruler.width(f"… {mark}"), most - ruler.width(f"…… {mark}")
            part = _distinct_part(name, set(names), rest, ruler)
            cut[name] = f"{part} {mark}".lstrip()
    short = [cut[name] if text is None else text for name, text in zip(names, whole, strict=True)]
    return short, [f"[{number}]\u00a0{name}." for name, number in key.items()]


def _distinct_part(name: str, names: set[str], room: tuple[float, float], ruler: Ruler) -> str:
    """The part of a name that no other one has there, on what dots at one end, or at both, leave of a line: its
    beginning, its end, or what follows the words that others begin with, too; the end where none is its own.
    """
    part = name[: longest(name, room[0], ruler)].rstrip()
    alike = [other for other in names if other.startswith(part)]
    if len(alike) == 1:
        return f"{part}…"
    end = name[len(name) - longest(name, room[0], ruler, ends=True) :].lstrip()
    if sum(other.endswith(end) for other in names) > 1:
        shared = next((i for i in range(len(name)) if len({other[: i + 1] for other in alike}) > 1), len(name))
        word = max((i for places in _breaks(name)[:2] for i in places if i <= shared), default=0)
        for begin in (word, shared):
            inner = name[begin:][: longest(name[begin:], room[1], ruler)].rstrip()
            if inner and sum(other[begin:].startswith(inner) for other in alike) == 1:
                return f"…{inner}…"
    return f"…{end}" if end else ""


def longest(name: str, room: float, ruler: Ruler, *, ends: bool = False) -> int:
    """How many characters of the beginning of a name, or of its end, are on `room` points."""

    def too_wide(count: int) -> bool:
        return ruler.width(name[len(name) - count :].lstrip() if ends else name[:count].rstrip()) > room

    return bisect_left(range(1, len(name) + 1), True, key=too_wide)


def shorten(names: Sequence[str], room: float | Sequence[float], ruler: Ruler) -> list[str]:
    """Cut names that are wider than `room` points, one number or one per name, in the middle; they stay different.

    The cut moves towards the start or the end if names differ only where it would fall; if that does not help
    either, the cut names are numbered by their place.
    """
    rooms = list(room) if isinstance(room, Sequence) else [room] * len(names)
    distinct = len(set(names))
    for head in (0.5, 0.75, 0.25, 1.0, 0.0):
        short = [ellipsis(name, most, ruler, head) for name, most in zip(names, rooms, strict=True)]
        if len(set(short)) == distinct:
            return short
    numbered = enumerate(zip(names, rooms, strict=True), 1)
    return [n if ruler.width(n) <= most else _numbered(i, n, most, ruler) for i, (n, most) in numbered]


def _numbered(index: int, name: str, room: float, ruler: Ruler) -> str:
    prefix = f"{index}: "
    return prefix + ellipsis(name, room - ruler.width(prefix), ruler, 0.5)


def ellipsis(name: str, room: float, ruler: Ruler, head: float) -> str:
    if ruler.width(name) <= room:
        return name
    low, high = 0, len(name) - 1  # the fewest and the most characters that may fit
    guess = _fitting(name, room, ruler, head)
    for keep in (guess, guess + 1):
        if low < keep <= high:
            low, high = (keep, high) if ruler.width(_cut(name, keep, head)) <= room else (low, keep - 1)
    while low < high:
        keep = (low + high + 1) // 2
        low, high = (keep, high) if ruler.width(_cut(name, keep, head)) <= room else (low, keep - 1)
    return _cut(name, low, head)


def _fitting(name: str, room: float, ruler: Ruler, head: float) -> int:
    """About as many characters as fit, at least one: where a search begins."""
    added = ruler.characters(name)
    if added is None:
        return (len(name) + 1) // 2
    front = [0.0, *accumulate(added)]
    back = [0.0, *accumulate(reversed(added))]
    rest = room - ruler.width("…")
    low, high = 0, len(name) - 1
    while low < high:
        keep = (low + high + 1) // 2
        ahead = math.ceil(keep * head)
        low, high = (keep, high) if front[ahead] + back[keep - ahead] <= rest else (low, keep - 1)
    return min(max(low, 1), len(name) - 1)


def _cut(name: str, keep: int, head: float) -> str:
    front = math.ceil(keep * head)
    return f"{name[:front].rstrip()}…{name[len(name) - (keep - front) :].lstrip()}"
