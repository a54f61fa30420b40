"""The arguments of a parametric fit, checked once, and the scores split at its limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.core.validate import check_choice, check_fraction, is_number, real
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.checks import check_direction
from lmemtest.tuning.fit.spacings import Box, distinct, rounding_of

SMALLEST_C, LARGEST_C = 1, 10
FEWEST = {"a quadratic": 5, "a noisy quadratic": 6}  # distinct exact scores: two more than continuous parameters

# Scores between the limits, sorted, and the numbers of those at or below, and at or above, a limit.
Counted = tuple[Array, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """What was fitted to what: enough to fit the same model to other scores."""

    direction: str
    lower: float  # limits at or beyond which scores are only counted; infinite for none
    upper: float
    a: Box  # boxes of the parameters; that of o is (0, 0) for a law without noise
    b: Box
    o: Box
    c: tuple[int, ...]  # effective numbers of hyperparameters that are tried
    level: float

    @property
    def convex(self) -> bool:
        """Whether smaller is better, and so the shape convex."""
        return self.direction == "minimize"

    @property
    def noisy(self) -> bool:
        """Whether the law has noise."""
        return self.o[1] > 0.0

    @property
    def turned(self) -> FitSettings:
        """The settings for minus the scores."""
        direction = "maximize" if self.convex else "minimize"
        a, b = (-self.b[1], -self.b[0]), (-self.a[1], -self.a[0])
        return replace(self, direction=direction, lower=-self.upper, upper=-self.lower, a=a, b=b)


def make_settings(
    direction: str, limits: Any, constraints: Mapping[str, Any] | None, level: float, *, noisy: bool
) -> FitSettings:
    """The settings of a fit, from its arguments."""
    lower, upper = _limits(limits)
    boxes = _constraints(constraints, ("a", "b", "c", "o") if noisy else ("a", "b", "c"))
    o = boxes.get("o", (0.0, math.inf)) if noisy else (0.0, 0.0)
    if noisy and (not o[1] > 0.0 or not o[0] >= 0.0):
        raise ArgumentError(
            f"constraints['o'] must be at least 0 and not fixed at 0, got {o}. For scores without noise use "
            "law='quadratic'."
        )
    box = boxes.get("c", (SMALLEST_C, LARGEST_C))
    whole = tuple(c for c in range(SMALLEST_C, LARGEST_C + 1) if box[0] <= c <= box[1])
    if not whole:
        raise ArgumentError(
            f"constraints['c'] must contain a whole number from {SMALLEST_C} to {LARGEST_C}, got {box}. "
            "c is the effective number of hyperparameters."
        )
    return FitSettings(
        direction=check_direction(direction),
        lower=lower,
        upper=upper,
        a=boxes.get("a", (-math.inf, math.inf)),
        b=boxes.get("b", (-math.inf, math.inf)),
        o=o,
        c=whole,
        level=check_fraction(level, "level"),
    )


def _limits(limits: Any) -> tuple[float, float]:
    if limits is None:
        return -math.inf, math.inf
    try:
        low, high = limits
        lower = -math.inf if low is None else float(real(low))
        upper = math.inf if high is None else float(real(high))
    except (TypeError, ValueError):
        raise ArgumentError(f"limits must be a (low, high) pair, with None for no limit, got {limits!r}.") from None
    if not lower < upper:
        raise ArgumentError(f"limits must be (low, high) with low < high, got {limits!r}.")
    return lower, upper


def _constraints(constraints: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, Box]:
    if not (constraints is None or isinstance(constraints, Mapping)):
        raise ArgumentError(f"constraints must be a mapping such as {{'c': (1, 4)}}, got {constraints!r}.")
    out = {}
    for name, value in (constraints or {}).items():
        check_choice(name, "a name in constraints", names)
        pair = (value, value) if is_number(value) else value
        try:
            low, high = (float(real(end)) for end in pair)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not low <= high:
            raise ArgumentError(
                f"constraints[{name!r}] must be a number or a (low, high) pair with low <= high, got {value!r}."
            )
        out[name] = (low, high)
    return out


def count(scores: Array, settings: FitSettings) -> tuple[Counted, tuple[bool, bool]]:
    """Split scores at the limits: those between them, the numbers of the others, and whether any is really beyond."""
    for sign, limit, which in ((-1.0, settings.lower, "first"), (1.0, settings.upper, "second")):
        infinite = int(np.sum(scores == sign * math.inf))
        if infinite and math.isinf(limit):
            raise DataError(
                f"scores must be finite: {infinite:,} of {len(scores):,} are {sign * math.inf}. Give the {which} of "
                "the limits=(low, high): scores at or beyond a limit are only counted. Or score failed runs as the "
                "worst value."
            )
    ends = np.array([settings.lower, settings.upper])
    near = rounding_of(np.concatenate([scores, ends])[np.isfinite([*scores, *ends])])
    below, above = scores <= settings.lower + near, scores >= settings.upper - near
    beyond = bool((scores < settings.lower - near).any()), bool((scores > settings.upper + near).any())
    return (np.sort(scores[~(below | above)]), int(below.sum()), int(above.sum())), beyond


def check_enough(counted: Counted, settings: FitSettings) -> None:
    """Refuse scores that are too few for the parameters."""
    kind = "a noisy quadratic" if settings.noisy else "a quadratic"
    exact, n_below, n_above = counted
    n, different = len(exact) + n_below + n_above, len(distinct(exact)[0])
    if different >= FEWEST[kind]:
        return
    between = "" if len(exact) == n else f" between the limits, of {n} scores"
    raise DataError(
        f"{kind} needs at least {FEWEST[kind]} different scores, got {different}{between}. Use tuning.curve, whose "
        "bands hold for any distribution and any number of scores."
    )
