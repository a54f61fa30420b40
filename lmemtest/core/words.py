"""How numbers, p-values, shares, names and counts are written: each kind once, for sentences, tables and messages."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from lmemtest.core.rounding import at_most, below, written
from lmemtest.core.sanitize import one_line

MISSING = "–"
DIGITS = 4  # significant digits of the largest value in a column: what a paper prints
LISTED = 20  # names in an error before it counts the rest: more than a screenful hides the message itself
IN_SENTENCE = 5  # names in a sentence before it counts the rest
_LEVELS = (0.1, 0.05, 0.01)  # usual ones: three decimals of a p-value beside one may read as the level

_ADVANTAGE = "an algorithm does better on some {noun}s than on others, all algorithms to the same degree"
# What groups of rows are by the roles of their columns: what a model with a random effect of them assumes, and what
# their variance is a variance of.
GROUPS = {
    "benchmark": (
        "each {groups} has its own level of difficulty",
        "difficulty of the {noun}s{within} (shared by all algorithms)",
    ),
    "family": (
        "the benchmarks of one {groups} share a level of difficulty",
        "difficulty of the {noun} (shared by all algorithms)",
    ),
    "family_interaction": (
        "an algorithm does better on some {noun} than on others, all algorithms to the same degree; so the number of "
        "{noun} limits the precision of a comparison",
        "advantages of algorithms that change between {noun}",
    ),
    "interaction": (_ADVANTAGE, "advantages of algorithms that change from {noun} to {noun}{within}"),
    "seed": (
        "runs with the same seed{where} may deviate together, whatever the algorithm",
        "effect of the seed{where}, shared by all algorithms",
    ),
    "luck": (
        "runs of an algorithm with the same seed may deviate together on all benchmarks; a comparison is then limited "
        "by the number of seeds, too",
        "effect of a seed on one algorithm, the same on all benchmarks",
    ),
    "run": (
        "rows of one run are alike: one curve, not independent observations",
        "one run against another of the same algorithm on the same {noun}",
    ),
    "budget": (
        "scores at the same budget are higher or lower together, without a trend over budgets",
        "the curve over the budget",
    ),
    "other": (
        "rows of the same {groups} are alike: they share a deviation, drawn from a normal distribution",
        "groups of {groups}",
    ),
}


def format_number(x: float, digits: int = DIGITS) -> str:
    """Write one number with a fixed number of significant digits.

    Parameters
    ----------
    x : float
        Any number; NaN and None give an en dash.
    digits : int
        Significant digits; whole parts are never cut.

    Returns
    -------
    str
        Plain notation from 1e-4 to 1e7, scientific beyond; integers as they are, with thousands commas.

    Examples
    --------
    >>> format_number(0.0123456), format_number(123456.7), format_number(86400), format_number(1.5e-9)
    ('0.01235', '123457', '86,400', '1.5e-09')
    """
    if is_missing(x):
        return MISSING
    if isinstance(x, (int, np.integer)):
        return f"{int(x):,}"
    x = float(x)
    if not math.isfinite(x) or x == 0.0:
        return f"{x:g}"
    if not 1e-4 <= abs(x) < 1e7:
        return _short_scientific(x, digits)
    return written(x, f".{max(digits - 1 - exponent(abs(x)), 0)}f")


def _short_scientific(x: float, digits: int) -> str:
    mantissa, exponent = written(x, f".{digits - 1}e").split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"


def exponent(x: float) -> int:
    """Of the first digit, of what is written: 1 - 1e-16 is written as 1."""
    return math.floor(math.log10(x * (1.0 + 1e-11)))


def is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT are the values that differ from themselves
    except (TypeError, ValueError):  # pandas.NA refuses to say; containers answer with an array
        return type(value).__name__ == "NAType"


def format_p(p: float, *, level: float | None = None) -> str:
    """Write a p-value as papers do.

    Parameters
    ----------
    p : float
        In [0, 1], or NaN.
    level : float, optional
        In (0, 1): at which it is decided.

    Returns
    -------
    str
        Three decimals, ``"<0.001"`` (or below a smaller level), or an en dash for NaN. As many more as tell on which
        side of the level, and of 0.1, 0.05 and 0.01, the value lies.

    Examples
    --------
    >>> format_p(0.0312), format_p(2e-9), format_p(0.0496), format_p(0.05)
    ('0.031', '<0.001', '0.0496', '0.050')
    >>> format_p(0.0203), format_p(0.0203, level=0.02)
    ('0.020', '0.0203')
    """
    if is_missing(p):
        return MISSING
    smallest = 0.001 if level is None else min(level, 0.001)
    if below(p, smallest):
        return f"<{smallest:g}"
    levels = _LEVELS if level is None else (*_LEVELS, level)
    if all(abs(p - level) > 0.001 for level in levels):  # what rounding does not reach
        return written(float(p), ".3f")
    place = _place(p, levels)
    # below and at_most part at 1e-9 of a level: twelve decimals tell what they tell apart
    texts = (written(float(p), f".{digits}f") for digits in range(3, 13))
    return next(text for text in texts if _place(float(text), levels) == place)


def _place(p: float, levels: tuple[float, ...]) -> int:
    """Where a value lies among levels: twice the number of those above it, and once that of those it equals."""
    return sum(below(p, level) + at_most(p, level) for level in levels)


def p_text(p: float, *, level: float | None = None) -> str:
    """A p-value with its sign: ``p = 0.031`` or ``p < 0.001``; `level` as in `format_p`.

    Examples
    --------
    >>> p_text(0.0312), p_text(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    text = format_p(p, level=level)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def small_p(p: float, spec: str = ".4g") -> str:
    """A p-value with its digits; one that no number can hold is below the smallest, and is not zero.

    Examples
    --------
    >>> small_p(0.03124), small_p(4e-121), small_p(0.0)
    ('0.03124', '4e-121', '<1e-300')
    """
    return "<1e-300" if p < 1e-300 else written(p, spec)


def percent(share: float) -> str:
    """A share in percent: one decimal below 10 and above 90, where it matters, and honest at both ends.

    Examples
    --------
    >>> percent(0.462), percent(0.0123), percent(0.05), percent(0.975), percent(0.0002), percent(0.9999), percent(0.0)
    ('46 %', '1.2 %', '5 %', '97.5 %', '<0.1 %', '>99.9 %', '0 %')
    """
    if is_missing(share):
        return MISSING
    value = 100.0 * share
    if 0.0 < value < 0.05:
        return "<0.1 %"
    if 99.95 < value < 100.0:
        return ">99.9 %"
    text = written(float(value), ".1f" if value < 10.0 or value > 90.0 else ".0f")
    return f"{text.removesuffix('.0')} %"


def confidence(level: float) -> str:
    """A confidence level in percent, with two digits of what it lacks to certainty, so that none is rounded up to that.

    Examples
    --------
    >>> confidence(0.95), confidence(1 - 0.05 / 3), confidence(1 - 0.05 / 45), confidence(1 - 0.05 / 190), confidence(1)
    ('95 %', '98.3 %', '99.89 %', '99.974 %', '>99.9999 %')
    """
    open_to_error = 100.0 * (1.0 - level)
    if open_to_error < 1e-4:
        return ">99.9999 %"
    decimals = max(0, 1 - math.floor(math.log10(open_to_error) + 1e-9))  # of 10 %, which is 10 - 1e-14 here
    text = written(100.0 * level, f".{decimals}f")
    return f"{text.rstrip('0').rstrip('.') if decimals else text} %"


def format_level(value: Any) -> str:
    """Text of a factor level: integers without a decimal point, other values as Python writes them.

    Examples
    --------
    >>> format_level(np.float64(10.0)), format_level("HB"), format_level(0.1)
    ('10', 'HB', '0.1')
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 1e15:
        return str(int(plain))
    return str(plain)


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> counted(1, "benchmark"), counted(12000, "row")
    ('1 benchmark', '12,000 rows')
    """
    return f"{count:,} {noun if count == 1 else plural(noun) if noun == 'family' else f'{noun}s'}"


def spoken(column: str) -> str:
    """The name of a column as a word of a sentence.

    Examples
    --------
    >>> spoken("search_space")
    'search space'
    """
    return column.replace("_", " ")


def plural(column: str) -> str:
    """What the levels of a column are called together, where its name is a word; else its levels.

    Examples
    --------
    >>> plural("search_space"), plural("family"), plural("class"), plural("tasks"), plural("openml.id")
    ('search spaces', 'families', 'classes', 'tasks', 'levels of openml.id')
    """
    word = spoken(column)
    if not word.replace(" ", "").replace("-", "").isalpha():
        return f"levels of {column}"
    if word.endswith(("ss", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return word if word.endswith("s") else f"{word}s"


def joined(names: Iterable[str], most: int = IN_SENTENCE) -> str:
    """Names as in a sentence.

    Examples
    --------
    >>> joined(["A"]), joined(["A", "B", "C"]), joined("ABCDEFG")
    ('A', 'A, B and C', 'A, B, C, D and 3 others')
    """
    names = [one_line(name) for name in names]
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def sentence(text: str) -> str:
    """A clause as a sentence of its own.

    Examples
    --------
    >>> sentence("the model lacks (1 | Task)")
    'The model lacks (1 | Task).'
    """
    return f"{capitalised(text)}."


def capitalised(text: str) -> str:
    """With a capital letter at the beginning; the rest stays as it is."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(names: Iterable[Any], most: int = LISTED) -> str:
    """Names with commas between them; a long list is cut, with its length."""
    names = [one_line(name) for name in names]
    first = ", ".join(names[:most])
    return first if len(names) <= most else f"{first}, ... ({len(names):,} in all)"


def suggest(name: str, options: Iterable[str]) -> str:
    """A sentence with the option that `name` was probably meant to be, or an empty text.

    Parameters
    ----------
    name : str
        What was given.
    options : iterable of str
        What could have been meant.

    Returns
    -------
    str
        ``" Did you mean 'algorithm'?"`` with a leading space, or ``""``.

    Examples
    --------
    >>> suggest("algoritm", ["seed", "algorithm"])
    " Did you mean 'algorithm'?"
    """
    by_lower = {str(option).lower().strip(): str(option) for option in options}
    typed = str(name).lower().strip()
    begins = [option for option in by_lower if len(typed) > 1 and option.startswith(typed)]
    close = begins if len(begins) == 1 else difflib.get_close_matches(typed, by_lower, n=1, cutoff=0.6)
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def rank_span(low: int | str, high: int | str) -> str:
    """A set of ranks.

    Examples
    --------
    >>> rank_span(1, 3), rank_span(2, 2)
    ('1–3', '2')
    """
    return f"{low}" if low == high else f"{low}–{high}"


def span(low: float, high: float, spec: str = ".4g") -> str:
    """A range of numbers, or the one number that it is.

    Examples
    --------
    >>> span(1.0, 8.0), span(2.5, 2.5)
    ('1 to 8', '2.5')
    """
    return written(low, spec) if low == high else f"{written(low, spec)} to {written(high, spec)}"
