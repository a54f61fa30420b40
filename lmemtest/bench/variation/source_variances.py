"""Variances of the sources of one table of trainings, from lines of one source each or from a mixed model.

One at a time: the variance of a line of a source is V_source + V_noise, and that of trainings run again is V_noise,
which is taken off. Crossed: the scores are a sum of independent effects, one per seed of each source and per
combination of the seeds of two where these are repeated, and a residual; intervals are profiles for normal effects,
made longer by the shape of the predicted ones.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.power.components import TOGETHER
from lmemtest.bench.variation.source_designs import Layout, Lines, OneAtATime, identified, same_groups
from lmemtest.core.rounding import below, in_tie_order, written
from lmemtest.core.words import joined
from lmemtest.errors import ConvergenceWarning, DesignError
from lmemtest.lmm.intervals.variances import Combinations, SampleVariance, widening
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


NOISE, RESIDUAL = "noise", "residual"
ALL = "all at once"
SAME = "Trainings with equal seeds have equal scores: no numerical noise is seen."
_LONGER = 1.1  # where the note names whose intervals are longer
_SEEN = 2.0  # trainings per combination of seeds on average, from which on it has an effect of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One component: its name and kind, seeds seen, degrees of freedom, and its coefficients over the estimates."""

    name: str
    kind: str
    n: int
    df: float
    row: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """Variance of trainings in which several sources are new at once, over the sum of theirs; NaN where not known."""

    sources: tuple[str, ...]
    n: int
    variance: SampleVariance
    added: float
    ratio: tuple[float, float, float]
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVariances:
    """Parts of one table: linear combinations of estimates with intervals."""

    design: str
    parts: tuple[Part, ...]
    of: Combinations
    at_once: tuple[AtOnce, ...] = ()
    lines: dict[str, Lines] = field(default_factory=dict)
    left_over: int = 0
    notes: tuple[str, ...] = ()

    def table(self, unit: str | None) -> pd.DataFrame:
        """One row per part; variances below zero are written as zero."""
        total = np.sum([part.row for part in self.parts], axis=0)
        units = [part.row for part in self.parts if part.name == unit]
        whole = sum(max(float(part.row @ self.of.value), 0.0) for part in self.parts)
        ends = [np.sqrt(np.maximum(self.of.interval(part.row), 0.0)).tolist() for part in self.parts]
        flat = [part.kind != NOISE and high == 0.0 for part, (_, high) in zip(self.parts, ends, strict=True)]
        shared = len(self.parts) > 1 and not any(flat)  # else the sum is as unknown as its parts, or one part
        rivals = self._largest()
        rows = []
        for part, limits_of_sd, equal, rival in zip(self.parts, ends, flat, rivals, strict=True):
            variance = max(float(part.row @ self.of.value), 0.0)
            share = self.of.ratio(part.row, total) if shared else (np.nan,) * 2
            relative = (np.nan,) * 3
            if units:
                base = max(float(units[0] @ self.of.value), 0.0)
                own = part.name == unit
                limits = (1.0, 1.0) if own else self.of.ratio(part.row, units[0])
                relative = (variance / base, *limits) if base > 0.0 else relative
            if equal:  # what varies less than the grid of the scores is not seen
                limits_of_sd, relative = [np.nan] * 2, (relative[0], np.nan, np.nan)
            rows.append(
                (
                    *(part.name, part.kind, part.n, part.df, variance, variance**0.5, *limits_of_sd),
                    *(variance / whole if whole > 0.0 else np.nan, share[0], min(share[1], 1.0), *relative, rival),
                )
            )
        return pd.DataFrame(rows, columns=COLUMNS)

    def _largest(self) -> list[bool]:
        """Which parts may be the largest: the one that is estimated so, and those that its interval does not exclude.

        The interval is that of the other variance over its own, at the level of all intervals. A part that varies less
        than the grid of the scores is excluded.
        """
        values = [max(float(part.row @ self.of.value), 0.0) for part in self.parts]
        first = in_tie_order(range(len(values)), values.__getitem__, descending=True)[0]
        row = self.parts[first].row
        return [
            i == first or not (self.of.interval(part.row)[1] == 0.0 or below(self.of.ratio(part.row, row)[1], 1.0))
            for i, part in enumerate(self.parts)
        ]


COLUMNS = [
    *("source", "kind", "n", "df", "variance", "sd", "ci_low", "ci_high"),
    *("share", "share_low", "share_high", "relative", "relative_low", "relative_high"),
    "may_be_largest",
]  # fmt: skip


# ---------------------------------------------------------------------- one at a time


def of_lines(found: OneAtATime, varied: tuple[str, ...], level: float, method: str) -> SourceVariances:
    """From sources that were varied one at a time."""
    estimates = [SampleVariance.of(line.samples, level, method) for line in found.lines.values()]
    noise = SampleVariance.of(found.repeated, level, method) if found.repeated else None
    every = [*estimates, *([] if noise is None else [noise])]
    unit = np.eye(len(every))
    parts = []
    for i, (source, line) in enumerate(found.lines.items()):
        row = unit[i] if noise is None else unit[i] - line.noise * unit[-1]
        parts.append(Part(name=source, kind="source", n=line.n, df=float(every[i].df), row=row))
    if noise is not None:
        n = sum(map(len, found.repeated))
        parts.append(Part(name=NOISE, kind=NOISE, n=n, df=float(noise.df), row=unit[-1]))
    of = Combinations(*(np.array([getattr(one, name) for one in every]) for name in ("value", "low", "high")))
    variances = dict(zip(found.lines, estimates, strict=True))
    return SourceVariances(
        design="one at a time",
        parts=tuple(parts),
        of=of,
        at_once=tuple(
            _compared(sources, lines, variances, found.lines, noise, level, method)
            for sources, lines in found.at_once.items()
        ),
        lines={**found.lines, **{_label(sources, varied): lines for sources, lines in found.at_once.items()}},
        left_over=found.left_over,
    )


def _label(sources: tuple[str, ...], varied: tuple[str, ...]) -> str:
    """What a sample is called in which these sources are new."""
    return ALL if sources == varied else joined(sources, 99)


def _compared(
    sources: tuple[str, ...],
    lines: Lines,
    variances: dict[str, SampleVariance],
    single: dict[str, Lines],
    noise: SampleVariance | None,
    level: float,
    method: str,
) -> AtOnce:
    """All at once against the sum: the logarithm of the ratio over its standard error is nearly normal."""
    own = SampleVariance.of(lines.samples, level, method)
    nan = float("nan")
    unknown = AtOnce(sources=sources, n=lines.n, variance=own, added=nan, ratio=(nan, nan, nan), p_value=nan)
    if noise is None or not set(sources) <= set(variances):
        return unknown
    extra = 1.0 - sum(single[source].noise for source in sources)  # the sum has the noise once
    parts = [*((1.0, variances[source]) for source in sources), (extra, noise)]
    added = sum(c * part.value for c, part in parts)
    if not (added > 0.0 and own.value > 0.0):
        return unknown
    error = np.hypot(own.log_error, np.sqrt(sum((c * v.value * v.log_error) ** 2 for c, v in parts)) / added)
    ratio, reach = own.value / added, float(np.exp(special.ndtri(0.5 + level / 2.0) * error))
    p = 2.0 * float(special.ndtr(-abs(np.log(ratio)) / error))
    return AtOnce(
        sources=sources, n=lines.n, variance=own, added=added, ratio=(ratio, ratio / reach, ratio * reach), p_value=p
    )


# ---------------------------------------------------------------------- crossed


def of_model(layout: Layout, level: float) -> SourceVariances:
    """From a mixed model with crossed random effects of all sources that the table identifies.

    Raises
    ------
    DesignError
        If it identifies none.
    """
    copies = len(layout.score)
    layout = layout.without_copies()
    codes, kinds = _terms(layout)
    n = len(layout.score)
    frame = pd.DataFrame({f"t{i}": code for i, code in enumerate(codes.values())} | {"score": layout.score})
    formula = " + ".join(["score ~ 1", *(f"(1 | t{i})" for i in range(len(codes)))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # profiles go on from better optima themselves
        fit = fit_lmm(formula, frame)
        table = fit.profile(["sd", "residual sd"], level=level, reml=True).table
    # with an effect of every combination of seeds, nothing but trainings run again is left
    left = NOISE if any(same_groups(code, layout.cell) for code in codes.values()) else RESIDUAL
    names = [*codes, left]
    sizes = [int(code.max()) + 1 for code in codes.values()]
    df = [*(float(size - 1) for size in sizes), float("nan")]
    unit = np.eye(len(names))
    parts = [
        Part(name=name, kind=kind, n=size, df=d, row=row)
        for name, kind, size, d, row in zip(names, [*kinds, left], [*sizes, n], df, unit, strict=True)
    ]
    values = {name: table[name].to_numpy(dtype=float) ** 2 for name in ("estimate", "ci_low", "ci_high")}
    wider = np.array([widening(x) for x in (*(mode.ravel() for mode in fit.modes), np.asarray(fit.residuals()))])
    of = _widened(values["estimate"], values["ci_low"], values["ci_high"], wider)
    same = (SAME,) if n < copies else ()
    notes = (*same, *_left_in_residual(codes), _on_shapes(names, wider, values["estimate"]))
    return SourceVariances(design="crossed", parts=tuple(parts), of=of, notes=notes)


def _widened(value: Array, low: Array, high: Array, by: Array) -> Combinations:
    """Intervals for normal effects, on the log scale as much longer as the predicted effects make them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        known = value > 0.0
        down = np.where(known & (low > 0.0), value * (low / value) ** by, low)
        up = np.where(known, value * (high / value) ** by, high)
    return Combinations(value, down, up)


def _on_shapes(names: list[str], wider: Array, value: Array) -> str:
    """What the intervals assume, and whose are longer for it."""
    longer = [f"{name} ({written(f, '.1f')} times)" for name, f, v in zip(names, wider, value, strict=True)
              if v > 0.0 and f > _LONGER]  # fmt: skip
    said = f" Longer on the log scale are those of {joined(longer, 99)}." if longer else ""
    return (
        "Intervals are profiles for normal effects, made longer where the predicted effects are skewed or have heavy "
        f"tails.{said} A tail that few seeds have not shown is not in them: of exponential effects 95 % intervals held "
        "in 84 to 91 % of studies with 5 or 10 seeds of each source."
    )


def _terms(layout: Layout) -> tuple[dict[str, NDArray[np.intp]], list[str]]:
    """Groups of the random effects by name, and their kinds."""
    n = len(layout.score)
    mains = {TOGETHER.join(names): layout.codes[names[0]] for names in layout.together()}
    known = identified(mains, n)
    lost = [name for name, code in mains.items() if name not in known and int(code.max()) + 1 < n]
    if not known or lost:
        raise DesignError(_refusal(layout, lost))
    codes = {name: mains[name] for name in known}
    kinds = ["source" if name in layout.sources else "together" for name in codes]
    pairs = [(f"{a}:{b}", _both(codes[a], codes[b])) for a, b in combinations(known, 2)]
    everything = [("all sources", layout.cell)] if len(known) > 2 else []
    for name, code in [*pairs, *everything]:
        tried = {**codes, name: code}
        if n >= _SEEN * (int(code.max()) + 1) and len(identified(tried, n)) == len(tried):
            codes, kinds = tried, [*kinds, "interaction"]
    return codes, kinds


def _both(left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.unique(left * (int(right.max()) + 1) + right, return_inverse=True)[1].astype(np.intp)


def _left_in_residual(codes: dict[str, NDArray[np.intp]]) -> tuple[str, ...]:
    mains = [name for name in codes if ":" not in name and name != "all sources"]
    left = [f"{a}:{b}" for a, b in combinations(mains, 2) if f"{a}:{b}" not in codes]
    if not left:
        return ()
    return (
        f"Interactions without a number, {joined(left)}, are in the residual: each combination of seeds would have to "
        "be run twice or more on average.",
    )


def _refusal(layout: Layout, lost: list[str]) -> str:
    next_step = (
        "Vary one source at a time with all others at fixed seeds (20 seeds each or more, and some trainings with all "
        "seeds fixed), or run every seed of one source with every seed of the others."
    )
    if lost:
        return (
            f"the variances of {joined(lost)} cannot be separated: their seeds do not change independently of each "
            f"other. {next_step}"
        )
    varied = layout.varied
    if not varied:
        return f"no source varies: {joined(layout.sources)} have one seed each. {next_step}"
    if len(varied) == 1:
        return f"only {varied[0]} varies, with a seed for each training, and there is nothing to compare. {next_step}"
    return (
        f"{joined(varied)} are confounded: every training has new seeds of all of them, so the scores hold the sum of "
        f"their variances and that of none. {next_step}"
    )
