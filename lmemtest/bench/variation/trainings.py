"""Variances of the sources of a table of trainings: varied one at a time, several at once, not at all, or crossed.

A cell is a combination of levels of all sources: a training that is run again is in the same cell. A line of a source
is a set of cells that agree in all other sources. Where sources are varied one at a time, lines of two sources meet in
the reference at most; in a crossed table every cell is on lines of several sources.

One at a time: the variance of a line of a source is V_source + V_noise, and that of trainings run again is V_noise,
which is taken off. Crossed: the scores are a sum of independent effects, one per seed of each source and per
combination of the seeds of two where these are repeated, and a residual; intervals are profiles for normal effects,
made longer by the shape of the predicted ones.
"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.bench.power.variance_components import TOGETHER
from lmemtest.core.codes import group_numbers
from lmemtest.core.rounding import below, in_tie_order, tolerance, written
from lmemtest.core.words import counted, joined
from lmemtest.errors import ConvergenceWarning, DesignError
from lmemtest.lmm.intervals.variance_intervals import Combinations, SampleVariance, widening
from lmemtest.lmm.model import fit_lmm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lmemtest.core.arrays import Array, Index

    Codes = dict[str, Index]  # of each source, or of each combination of sources: the group of every training
    Lines = dict[str, list[Index]]
    Parts = tuple[pd.DataFrame, Array, Combinations]

NOISE, RESIDUAL = "noise", "residual"
ALL = "all at once"
COLUMNS = [
    *("source", "kind", "n", "df", "variance", "sd", "ci_low", "ci_high"),
    *("share", "share_low", "share_high", "relative", "relative_low", "relative_high"),
    "may_be_largest",
]  # fmt: skip
AT_ONCE = ["sources", "n", "sd", "ci_low", "ci_high", "added_sd", "ratio", "ratio_low", "ratio_high", "p_raw"]
_SAME = "Trainings with equal seeds have equal scores: no numerical noise is seen."
_FEWEST_AT_ONCE = 3  # trainings with the same sources new, from which on they are a sample
_MOST_LEFT = 0.5  # of the trainings may belong to no line where sources are said to vary one at a time
_LONGER = 1.1  # where the note names whose intervals are longer
_SEEN = 2.0  # trainings per combination of seeds on average, from which on it has an effect of its own
_FEW = 10  # seeds, below which a variance is hardly known


def training_variances(
    seeds: pd.DataFrame, score: Array, *, unit: str | None, level: float, method: str, crossed: bool = False
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The tables of one study, and notes: one row per training, with a column of seeds per source.

    With `crossed` it is not looked whether sources are varied one at a time, and `score` may hold several scores of
    each training, ``(n, m)``, which have the same variances and are independent of each other.

    Raises
    ------
    DesignError
        If the table identifies the variance of no source.
    """
    codes = {source: group_numbers(seeds, [source]) for source in map(str, seeds)}
    cell = group_numbers(seeds, [*codes])
    size = np.bincount(cell)
    varied = _varied(codes)
    at_once: list[tuple[Any, ...]] = []
    samples: dict[str, list[Array]] = {}
    more: list[str] = []
    left_over = 0
    design = None if crossed else _one_at_a_time(codes, cell)
    if design is None:
        parts, rows, of, more = _crossed(codes, cell, score.reshape(len(cell), -1), level)
    else:
        repeated = [score[cell == c] for c in np.flatnonzero(size > 1)]
        lines, new, left_over = design
        mean = np.bincount(cell, weights=score) / size
        samples = {name: [mean[cells] for cells in groups] for name, groups in lines.items()}
        noise = {name: float(np.mean(1.0 / size[np.concatenate(groups)])) for name, groups in lines.items()}
        variances = {name: SampleVariance.of(line, level, method) for name, line in samples.items()}
        if repeated:
            variances[NOISE] = SampleVariance.of(repeated, level, method)
        parts, rows, of = _of_lines(variances, samples, noise, sum(map(len, repeated)))
        for sources, groups in new.items():
            sample = [mean[cells] for cells in groups]
            at_once.append(_compared(sources, sample, variances, noise, level, method))
            samples[ALL if sources == varied else joined(sources, 99)] = sample
    table = _table(parts, rows, of, unit)
    if lost := [name for name in codes if name not in set(table["source"])]:
        empty = {**dict.fromkeys(COLUMNS[3:], np.nan), "may_be_largest": False}
        missing = [{"source": s, "kind": "source", "n": int(codes[s].max()) + 1, **empty} for s in lost]
        table = pd.concat([table, pd.DataFrame(missing)], ignore_index=True)
    order = {name: i for i, name in enumerate(codes)}
    table = table.sort_values("source", key=lambda s: s.map(order).fillna(len(order)), kind="stable")
    kind = "crossed" if design is None else "one at a time"
    of_study = {"design": kind, "n": len(score), "mean": float(score.mean()), "repeated": len(score) - len(size)}
    scores = [
        pd.DataFrame({"source": name, "sample": i, "score": values})
        for name, lines_of in samples.items()
        for i, values in enumerate(lines_of)
    ] or [pd.DataFrame(columns=["source", "sample", "score"])]
    tables = {
        "sources": table.reset_index(drop=True),
        "at_once": pd.DataFrame(at_once, columns=AT_ONCE),
        "designs": pd.DataFrame([{**of_study, "left_over": left_over}]),
        "scores": pd.concat(scores, ignore_index=True),
    }
    return tables, [*more, *_notes(codes, tables["sources"], kind, left_over, unit)]


def _varied(codes: Codes) -> tuple[str, ...]:
    """Sources with two levels or more."""
    return tuple(source for source, code in codes.items() if code.max() > 0)


def _together(codes: Codes) -> list[list[str]]:
    """Varied sources in classes: those of one class always change together."""
    classes: list[list[str]] = []
    for source in _varied(codes):
        alike = [group for group in classes if same_groups(codes[source], codes[group[0]])]
        if alike:
            alike[0].append(source)
        else:
            classes.append([source])
    return classes


def in_residual(table: pd.DataFrame) -> set[str]:
    """Sources of one study that have a new seed in each training, and so no variance but the residual one."""
    rest = table.loc[table["source"] == RESIDUAL, "n"]
    return set(table.loc[table["variance"].isna() & table["n"].isin(rest), "source"])


def _table(parts: pd.DataFrame, rows: Array, of: Combinations, unit: str | None) -> pd.DataFrame:
    """One row per part; variances below zero are written as zero.

    `rows` are the coefficients of each part over the estimates `of`. A part may be the largest if it is estimated to
    be, or the interval of its variance over that of the one that is, at the level of all intervals, does not exclude
    it. One that varies less than the grid of the scores is excluded.
    """
    values = [max(float(row @ of.value), 0.0) for row in rows]
    intervals = [of.interval(row) for row in rows]
    first = in_tie_order(range(len(values)), values.__getitem__, descending=True)[0]
    whole, total = sum(values), rows.sum(axis=0)
    flat = [kind != NOISE and high <= 0.0 for kind, (_, high) in zip(parts["kind"], intervals, strict=True)]
    shared = len(parts) > 1 and not any(flat)  # else the sum is as unknown as its parts, or one part
    units = np.flatnonzero(parts["source"] == unit)
    estimates = []
    for i, (row, variance, (low, high)) in enumerate(zip(rows, values, intervals, strict=True)):
        limits = np.sqrt(np.maximum((low, high), 0.0)).tolist()
        share = of.ratio(row, total) if shared else (np.nan, np.nan)
        relative = (np.nan, np.nan, np.nan)
        if len(units) and values[units[0]] > 0.0:
            ends = (1.0, 1.0) if i == units[0] else of.ratio(row, rows[units[0]])
            relative = (variance / values[units[0]], *ends)
        if flat[i]:  # what varies less than the grid of the scores is not seen
            limits, relative = [np.nan, np.nan], (relative[0], np.nan, np.nan)
        largest = i == first or not (high == 0.0 or below(of.ratio(row, rows[first])[1], 1.0))
        shares = variance / whole if whole > 0.0 else np.nan, share[0], min(share[1], 1.0)
        estimates.append((variance, variance**0.5, *limits, *shares, *relative, largest))
    return pd.concat([parts, pd.DataFrame(estimates, columns=COLUMNS[4:])], axis=1)


# ---------------------------------------------------------------------- one at a time


def _one_at_a_time(codes: Codes, cell: Index) -> tuple[Lines, dict[tuple[str, ...], list[Index]], int] | None:
    """The cells of every line of each source, those of the samples in which several sources are new, and how many
    trainings are left over; None if the table is not of this kind.
    """
    size, first = np.bincount(cell), np.unique(cell, return_index=True)[1]
    seeds = pd.DataFrame({source: code[first] for source, code in codes.items()})  # one row per cell
    lines: Lines = {}
    for source in _varied(codes):
        line = group_numbers(seeds, [other for other in codes if other != source])
        lines[source] = [np.flatnonzero(line == i) for i in np.flatnonzero(np.bincount(line) > 1)]
    groups = [cells for several in lines.values() for cells in several]
    seen = np.zeros((len(size), len(lines)), dtype=bool)
    for column, several in enumerate(lines.values()):
        seen[np.concatenate([*several, np.zeros(0, dtype=np.intp)]), column] = True
    shared = seen.sum(axis=1) > 1
    if not groups or any(int(shared[cells].sum()) > 1 for cells in groups):
        return None
    for source, several in lines.items():  # lines that have two seeds in common are no samples of their own
        sets = [set(seeds[source].iloc[cells].tolist()) for cells in several]
        if any(len(left & right) > 1 for left, right in combinations(sets, 2)):
            return None
    used = seen.any(axis=1)
    new = _new_at_once(seeds, np.flatnonzero(~used & (size == 1)))
    used |= size > 1
    for several in new.values():
        used[np.concatenate(several)] = True
    if float(size[~used].sum()) > _MOST_LEFT * len(cell):
        return None
    return {source: several for source, several in lines.items() if several}, new, int(size[~used].sum())


def _new_at_once(seeds: pd.DataFrame, cells: Index) -> dict[tuple[str, ...], list[Index]]:
    """Of single trainings off the lines, the samples in which several sources have new seeds."""
    if not len(cells):
        return {}
    varied = [source for source in seeds if seeds[source].max() > 0]
    # a source that is new in a training is written as -1: trainings that then agree are a sample
    setting = pd.DataFrame(
        {s: np.where(np.bincount(c)[c] == 1, -1, c) for s in varied for c in [seeds[s].to_numpy()[cells]]}
    )
    samples: dict[tuple[str, ...], list[Index]] = {}
    for _, group in setting.groupby(varied, sort=False):
        sources = tuple(str(s) for s in varied if group[s].iloc[0] == -1)
        if len(sources) > 1 and len(group) >= _FEWEST_AT_ONCE:
            samples.setdefault(sources, []).append(cells[group.index.to_numpy()])
    return samples


def _of_lines(
    variances: Mapping[str, SampleVariance], samples: Mapping[str, Sequence[Array]], noise: Mapping[str, float], n: int
) -> Parts:
    """The variance of each source less the noise that its line has, and the noise, of `n` trainings, if any."""
    rows = np.eye(len(variances))
    if NOISE in variances:
        rows[:-1, -1] = [-noise[name] for name in samples]
    sizes = [n if name == NOISE else sum(map(len, samples[name])) for name in variances]
    parts = {"source": [*variances], "kind": [NOISE if name == NOISE else "source" for name in variances], "n": sizes}
    of = Combinations(*(np.array([getattr(v, end) for v in variances.values()]) for end in ("value", "low", "high")))
    return pd.DataFrame({**parts, "df": [float(v.df) for v in variances.values()]}), rows, of


def _compared(
    sources: tuple[str, ...],
    sample: Sequence[Array],
    variances: Mapping[str, SampleVariance],
    noise: Mapping[str, float],
    level: float,
    method: str,
) -> tuple[Any, ...]:
    """All at once against the sum: the logarithm of the ratio over its standard error is nearly normal."""
    variance = SampleVariance.of(sample, level, method)
    row = (joined(sources, 99), sum(map(len, sample)), *np.sqrt([variance.value, variance.low, variance.high]).tolist())
    unknown = (*row, *[np.nan] * 5)
    if not {NOISE, *sources} <= variances.keys():
        return unknown
    extra = 1.0 - sum(noise[source] for source in sources)  # the sum has the noise once
    parts = [*((1.0, variances[source]) for source in sources), (extra, variances[NOISE])]
    added = sum(c * part.value for c, part in parts)
    if not (added > 0.0 and variance.value > 0.0):
        return unknown
    error = np.hypot(variance.log_error, np.sqrt(sum((c * v.value * v.log_error) ** 2 for c, v in parts)) / added)
    ratio, reach = variance.value / added, float(np.exp(special.ndtri(0.5 + level / 2.0) * error))
    p = 2.0 * float(special.ndtr(-abs(np.log(ratio)) / error))
    return (*row, added**0.5, ratio, ratio / reach, ratio * reach, p)


# ---------------------------------------------------------------------- crossed


def _crossed(
    codes: Codes, cell: Index, score: Array, level: float
) -> tuple[pd.DataFrame, Array, Combinations, list[str]]:
    """From a mixed model with crossed random effects of all sources that the table identifies, with notes.

    Each column of the scores has a mean and effects of its own, all with the same variances.
    """
    notes = []
    repeated = [scores[cell == c] for c in np.flatnonzero(np.bincount(cell) > 1) for scores in score.T]
    if repeated and all(np.ptp(x) <= tolerance(x) for x in repeated):  # trainings run again are copies, not new
        first = np.unique(cell, return_index=True)[1]
        codes, cell, score = {s: code[first] for s, code in codes.items()}, np.arange(len(first)), score[first]
        notes.append(_SAME)
    terms, kinds = _terms(codes, cell)
    column = np.repeat(np.arange(score.shape[1]), len(cell))
    groups = {f"t{i}": np.tile(c, score.shape[1]) + (c.max() + 1) * column for i, c in enumerate(terms.values())}
    frame = pd.DataFrame({**groups, "column": column, "score": score.T.ravel()})
    mean = "C(column)" if score.shape[1] > 1 else "1"
    formula = " + ".join([f"score ~ {mean}", *(f"(1 | t{i})" for i in range(len(terms)))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # profiles go on from better optima themselves
        fit = fit_lmm(formula, frame)
        profile = fit.profile(["sd", "residual sd"], alpha=1.0 - level, reml=True).table
    # with an effect of every combination of seeds, nothing but trainings run again is left
    left = NOISE if any(same_groups(code, cell) for code in terms.values()) else RESIDUAL
    sizes = [int(code.max()) + 1 for code in terms.values()]
    parts = pd.DataFrame(
        {
            "source": [*terms, left],
            "kind": [*kinds, left],
            "n": [*sizes, len(score)],
            "df": [*(float(score.shape[1] * (size - 1)) for size in sizes), np.nan],
        }
    )
    value, low, high = (profile[name].to_numpy(dtype=float) ** 2 for name in ("estimate", "ci_low", "ci_high"))
    wider = np.array([widening(x) for x in (*(mode.ravel() for mode in fit.modes), np.asarray(fit.residuals()))])
    with np.errstate(divide="ignore", invalid="ignore"):  # on the log scale as much longer as the effects make them
        low = np.where((value > 0.0) & (low > 0.0), value * (low / value) ** wider, low)
        high = np.where(value > 0.0, value * (high / value) ** wider, high)
    mains = [name for name in terms if ":" not in name and name != "all sources"]
    if unseen := [f"{a}:{b}" for a, b in combinations(mains, 2) if f"{a}:{b}" not in terms]:
        notes.append(
            f"Interactions without a number, {joined(unseen)}, are in the residual: each combination of seeds would "
            "have to be run twice or more on average."
        )
    longer = [
        f"{name} ({written(factor, '.1f')} times)"
        for name, factor, v in zip(parts["source"], wider, value, strict=True)
        if v > 0.0 and factor > _LONGER
    ]
    whose = f" Longer on the log scale are those of {joined(longer, 99)}." if longer else ""
    notes.append(
        "Intervals are profiles for normal effects, made longer where the predicted effects are skewed or have heavy "
        f"tails.{whose} A tail that few seeds have not shown is not in them: of exponential effects 95 % intervals "
        "held in 84 to 91 % of studies with 5 or 10 seeds of each source."
    )
    return parts, np.eye(len(parts)), Combinations(value, low, high), notes


def _terms(codes: Codes, cell: Index) -> tuple[Codes, list[str]]:
    """Groups of the random effects by name, and their kinds."""
    n = len(cell)
    mains = {TOGETHER.join(names): codes[names[0]] for names in _together(codes)}
    kept = identified(mains, n)
    lost = [name for name, code in mains.items() if name not in kept and int(code.max()) + 1 < n]
    if not kept or lost:
        raise DesignError(_refusal(codes, lost))
    terms = {name: mains[name] for name in kept}
    kinds = ["source" if name in codes else "together" for name in terms]
    pairs = [
        (f"{a}:{b}", np.unique(terms[a] * (int(terms[b].max()) + 1) + terms[b], return_inverse=True)[1])
        for a, b in combinations(kept, 2)
    ]
    for name, code in [*pairs, *([("all sources", cell)] if len(kept) > 2 else [])]:
        tried = {**terms, name: code.astype(np.intp)}
        if n >= _SEEN * (int(code.max()) + 1) and len(identified(tried, n)) == len(tried):
            terms, kinds = tried, [*kinds, "interaction"]
    return terms, kinds


def _refusal(codes: Codes, lost: list[str]) -> str:
    next_step = (
        "Vary one source at a time with all others at fixed seeds (20 seeds each or more, and some trainings with all "
        "seeds fixed), or run every seed of one source with every seed of the others."
    )
    if lost:
        return (
            f"the variances of {joined(lost)} cannot be separated: their seeds do not change independently of each "
            f"other. {next_step}"
        )
    varied = _varied(codes)
    if not varied:
        return f"no source varies: {joined([*codes])} have one seed each. {next_step}"
    if len(varied) == 1:
        return f"only {varied[0]} varies, with a seed for each training, and there is nothing to compare. {next_step}"
    return (
        f"{joined(varied)} are confounded: every training has new seeds of all of them, so the scores hold the sum of "
        f"their variances and that of none. {next_step}"
    )


def same_groups(left: Index, right: Index) -> bool:
    """Whether two codes put rows into the same groups.

    Examples
    --------
    >>> same_groups(np.array([0, 0, 1]), np.array([1, 1, 0])), same_groups(np.array([0, 0, 1]), np.array([0, 1, 1]))
    (True, False)
    """
    pairs = len(np.unique(left.astype(np.int64) * (int(right.max()) + 1) + right))
    return pairs == int(left.max()) + 1 == int(right.max()) + 1


def identified(codes: Codes, n: int) -> list[str]:
    """Terms whose variances a table with one free mean tells apart from those of all others and of the residual.

    The covariance of the scores is a sum of matrices, one per term and the identity, each times a variance. A variance
    is identified where its matrix, off the mean, is no combination of the others.

    Examples
    --------
    >>> a, b = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
    >>> identified({"a": a, "b": b, "again": b, "each row": np.arange(6)}, 6)
    ['a']
    """
    every = {**codes, "": np.arange(n)}
    names = list(every)
    counts = {name: np.bincount(code).astype(float) for name, code in every.items()}
    gram = np.empty((len(names), len(names)))
    row = {name: counts[name][every[name]] for name in names}  # A 1, one number per row
    for i, j in [(i, i) for i in range(len(names))] + list(combinations(range(len(names)), 2)):
        left, right = names[i], names[j]
        both = every[left].astype(np.int64) * len(counts[right]) + every[right]
        size = np.unique(both, return_counts=True)[1].astype(float)
        value = float(size @ size) - 2.0 / n * float(row[left] @ row[right])
        gram[i, j] = gram[j, i] = value + float(row[left].sum()) * float(row[right].sum()) / n**2
    scale = np.sqrt(np.diag(gram))
    alive = [i for i in range(len(names)) if scale[i] > 1e-9 * n]
    gram = gram / np.outer(np.where(scale > 0, scale, 1.0), np.where(scale > 0, scale, 1.0))

    def rank(rows: list[int]) -> int:
        return int(np.linalg.matrix_rank(gram[np.ix_(rows, rows)], tol=1e-9, hermitian=True))

    whole = rank(alive)
    return [names[k] for k in alive if names[k] and rank([i for i in alive if i != k]) < whole]


# ---------------------------------------------------------------------- notes


def _notes(codes: Codes, table: pd.DataFrame, design: str, left_over: int, unit: str | None) -> list[str]:
    notes = []
    estimated = table[table["variance"].notna()]
    named = set(estimated["source"])
    if fixed := [source for source in codes if source not in _varied(codes)]:
        notes.append(f"{joined(fixed)} never varied, so nothing is known of the variance.")
    classes = _together(codes)
    for names in classes:
        if len(names) > 1:
            in_it = RESIDUAL in named and TOGETHER.join(names) not in named
            where = ", and the residual holds the sum of their variances" if in_it else ""
            notes.append(
                f"{joined(names)} always change together{where}: vary one with the other fixed to separate them."
            )
    lost = {names[0] for names in classes if len(names) == 1} - named
    new = lost & in_residual(table)
    if new:
        notes.append(f"{joined(sorted(new))} changed with every training: the variance is in the residual.")
    if lost - new:
        notes.append(f"{joined(sorted(lost - new))} never varied alone or in all combinations, and has no number.")
    if NOISE not in named and design == "one at a time":
        notes.append(
            "No training was run again with all seeds fixed, so each variance contains the numerical noise, and "
            "nothing is said on whether sources add up. Run one setting of the seeds several times."
        )
    noise = estimated[estimated["source"] == NOISE]
    if design == "one at a time" and (noise["df"] < _FEW - 1).any() and (noise["variance"] > 0.0).any():
        notes.append(
            f"The noise is known from {counted(int(noise['n'].iloc[0]), 'training')} with equal seeds alone, and what "
            "is taken off each source is as uncertain: run one setting of the seeds ten times or more."
        )
    flat = estimated["variance"].eq(0.0) & ~estimated["ci_high"].gt(0.0)
    if NOISE in set(estimated.loc[flat, "source"]):
        notes.append(_SAME)
    if alike := estimated.loc[flat & (estimated["kind"] == "source"), "source"].tolist():
        notes.append(
            f"All scores of {joined(alike)} are equal, which a small test set makes of small changes too: there is no "
            "interval."
        )
    if zero := estimated.loc[estimated["variance"].eq(0.0) & ~flat, "source"].tolist():
        notes.append(f"Estimated as zero: {joined(zero)}; the upper ends of the intervals say how large it may be.")
    if left_over:
        notes.append(f"{counted(left_over, 'training')} are neither one at a time nor all at once, and not used.")
    if few := estimated.loc[(estimated["kind"] == "source") & (estimated["n"] < _FEW), "source"].tolist():
        notes.append(f"Fewer than {_FEW} seeds of {joined(few)}: the intervals are wide, and rest on a normal shape.")
    if unit is not None and not (estimated.loc[estimated["source"] == unit, "variance"] > 0.0).any():
        notes.append(f"{unit} has no variance above zero here, so nothing is relative to it.")
    return notes
