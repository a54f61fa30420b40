"""Families of contrasts that have a name, with the conventions of R's emmeans, where it has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.core.words import suggest
from lmemtest.errors import ArgumentError

Rows = dict[str, Array]

_DEGREE_NAMES = ("linear", "quadratic", "cubic", "quartic")
_HIGHEST_DEGREE = 6  # of emmeans; the names of higher ones mean nothing to a reader


def polynomials(labels: Sequence[str]) -> Rows:
    """Orthogonal polynomials at equally spaced levels, in the smallest whole numbers, rising at the last level.

    Examples
    --------
    >>> {name: row.astype(int).tolist() for name, row in polynomials("abcd").items()}
    {'linear': [-3, -1, 1, 3], 'quadratic': [1, -1, -1, 1], 'cubic': [-1, 3, -3, 1]}
    """
    k = len(labels)
    rows = {}
    for degree in range(1, min(_HIGHEST_DEGREE, k - 1) + 1):
        name = _DEGREE_NAMES[degree - 1] if degree <= len(_DEGREE_NAMES) else f"degree {degree}"
        rows[name] = np.array(_whole_polynomial(k, degree), dtype=float)
    return rows


def _whole_polynomial(k: int, degree: int) -> list[int]:
    """Discrete Chebyshev polynomial at 0, ..., k - 1: sum_j (-1)^j C(d, j) C(d + j, j) C(x, j) / C(k - 1, j)."""
    values = [
        sum(
            Fraction((-1) ** j * math.comb(degree, j) * math.comb(degree + j, j) * math.comb(x, j), math.comb(k - 1, j))
            for j in range(degree + 1)
        )
        for x in range(k)
    ]
    whole = [int(value * math.lcm(*(Fraction(v).denominator for v in values))) for value in values]
    unit = math.gcd(*whole) * (1 if whole[-1] > 0 else -1)
    return [value // unit for value in whole]


def helmert(labels: Sequence[str]) -> Rows:
    """Each level less the average of those before it: `contr.helmert`, scaled to differences of means.

    Examples
    --------
    >>> {name: row.tolist() for name, row in helmert("abc").items()}
    {'b - a': [-1.0, 1.0, 0.0], 'c - avg(a, b)': [-0.5, -0.5, 1.0]}
    """
    rows = {}
    for i in range(1, len(labels)):
        row = np.zeros(len(labels))
        row[:i], row[i] = -1.0 / i, 1.0
        before = (
            labels[0] if i == 1 else f"avg({', '.join(labels[:i])})" if i < 4 else f"avg({labels[0]}..{labels[i - 1]})"
        )
        rows[f"{labels[i]} - {before}"] = row
    return rows


def consecutive(labels: Sequence[str]) -> Rows:
    """Each level less the one before it."""
    steps = np.diff(np.eye(len(labels)), axis=0)
    return {f"{after} - {before}": row for before, after, row in zip(labels, labels[1:], steps, strict=False)}


def effects(labels: Sequence[str], *, deleted: bool = False) -> Rows:
    """Each level less the average of all, or of the others."""
    k = len(labels)
    averages = (1.0 - np.eye(k)) / (k - 1) if deleted else np.full((k, k), 1.0 / k)
    return {f"{label} effect": row for label, row in zip(labels, np.eye(k) - averages, strict=True)}


# How a family is made of the labels of the means, and the adjustment that goes with it.
NAMED_CONTRASTS: dict[str, tuple[Callable[[Sequence[str]], Rows], str]] = {
    "poly": (polynomials, "none"),
    "helmert": (helmert, "none"),
    "consec": (consecutive, "mvt"),
    "eff": (effects, "fdr"),
    "del.eff": (partial(effects, deleted=True), "fdr"),
}
# Families with a function of their own, which adjusts them as they need it.
_ELSEWHERE = {
    **dict.fromkeys(("pairwise", "revpairwise", "tukey"), "means.pairs()"),
    **dict.fromkeys(("trt.vs.ctrl", "trt.vs.ctrl1", "trt.vs.ctrlk", "dunnett"), "means.against(control)"),
}


def named_contrasts(name: str) -> tuple[Callable[[Sequence[str]], Rows], str]:
    """The family of a name; refused if there is none, or it has a function of its own."""
    if name in _ELSEWHERE:
        raise ArgumentError(
            f"coefficients={name!r} has a function of its own, with its adjustment: {_ELSEWHERE[name]}."
        )
    if name not in NAMED_CONTRASTS:
        known = (*NAMED_CONTRASTS, *_ELSEWHERE)
        raise ArgumentError(
            f"coefficients must name a family of contrasts ({', '.join(NAMED_CONTRASTS)}) or give the numbers of each, "
            f"got {name!r}.{suggest(name, known)}"
        )
    return NAMED_CONTRASTS[name]


def is_evenly_spaced(levels: Sequence[object]) -> bool:
    """Whether levels that are numbers have equal steps; True for levels that are not numbers.

    Examples
    --------
    >>> is_evenly_spaced([1, 2, 3]), is_evenly_spaced([1, 3, 9]), is_evenly_spaced(["1", "3", "x"])
    (True, False, True)
    """
    try:
        steps = np.diff([float(level) for level in levels])  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return True
    return bool(np.allclose(steps, steps[:1], rtol=1e-9, atol=0.0))
