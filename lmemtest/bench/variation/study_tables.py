"""Columns and rows of a variance study: what is read of a table of trainings, and the tables of its result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.power.components import TOGETHER
from lmemtest.bench.variation.source_designs import Layout
from lmemtest.bench.variation.source_variances import ALL, COLUMNS, NOISE, RESIDUAL, SAME, SourceVariances
from lmemtest.core.validate import as_frame, check_choice, check_column, check_columns
from lmemtest.core.words import counted, format_level, joined, listed
from lmemtest.errors import ArgumentError, DataError

ROLES = ("algorithm", "benchmark")
_UNITS = ("data", "split")  # words in the name of the source that is the unit of the others by default
_FEW = 10  # seeds, below which a variance is hardly known


def columns_of(
    columns: list[str], score: Any, sources: Any, algorithm: Any, benchmark: Any, relative_to: Any
) -> tuple[str, tuple[str, ...], dict[str, str], str | None]:
    score = check_column(score, columns, argument="score")
    names = check_columns(sources, columns, argument="sources")
    if not names:
        raise ArgumentError("sources must name at least one column with the seeds of a source, got none.")
    by = {
        role: check_column(name, columns, argument=role)
        for role, name in (("algorithm", algorithm), ("benchmark", benchmark))
        if name is not None
    }
    used = [score, *names, *by.values()]
    twice = sorted({name for name in used if used.count(name) > 1})
    if twice:
        raise ArgumentError(
            f"score, sources, algorithm and benchmark must be different columns, got {listed(map(repr, twice))} twice."
        )
    for name in names:
        if signs := [sign for sign in (":", TOGETHER) if sign in name]:
            raise ArgumentError(
                f"sources has {name!r}, and {signs[0]!r} joins names of sources in the results. Rename the column."
            )
        if name in (NOISE, RESIDUAL, "score", ALL, *ROLES):
            raise ArgumentError(
                f"sources has {name!r}, a name that the table of results uses itself. Rename the column."
            )
    if relative_to is None:
        found = [name for name in names if set(re.split(r"[^a-z]+", name.lower())) & set(_UNITS)]
        return score, names, by, found[0] if len(names) > 1 and found else None
    return score, names, by, check_choice(relative_to, "relative_to", names)


def read(table: Any, score: str, names: tuple[str, ...], by: dict[str, str]) -> pd.DataFrame:
    """Columns by their roles, in memory; refuses what is missing."""
    wanted = list(dict.fromkeys([score, *names, *by.values()]))
    frame = as_frame(table, argument="table").lazy().select(*wanted).collect().to_pandas().reset_index(drop=True)
    if frame.empty:
        raise DataError("table has no rows: give one row per training.")
    for name in wanted:
        missing = int(frame[name].isna().sum())
        if missing:
            raise DataError(f"column {name!r} has {counted(missing, 'missing value')}. Leave out these trainings.")
    if not pd.api.types.is_numeric_dtype(frame[score]):
        raise DataError(f"the score {score!r} must be numbers, got {frame[score].dtype}.")
    values = frame[score].to_numpy(dtype=float)
    if not np.isfinite(values).all():
        raise DataError(f"the score {score!r} has {counted(int((~np.isfinite(values)).sum()), 'infinite value')}.")
    return frame[list(names)].assign(**{role: frame[name] for role, name in by.items()}, score=values)


def name_of(key: Mapping[Any, Any]) -> str:
    """A pipeline, or one on a benchmark; empty where there is only one."""
    return " on ".join(format_level(level) for level in key.values())


def where_of(key: Mapping[Any, Any]) -> str:
    return f"{name_of(key)}: " if key else ""


def tables_of(layout: Layout, found: SourceVariances, unit: str | None) -> dict[str, pd.DataFrame]:
    """The four tables of one study."""
    table = found.table(unit)
    lost = [name for name in layout.sources if name not in set(table["source"])]
    empty = {**dict.fromkeys(COLUMNS[3:], np.nan), "may_be_largest": False}
    missing = pd.DataFrame([{"source": s, "kind": "source", "n": layout.levels(s), **empty} for s in lost])
    table = pd.concat([table, missing], ignore_index=True) if lost else table
    order = {name: i for i, name in enumerate(layout.sources)}
    table = table.sort_values("source", key=lambda s: s.map(order).fillna(len(order)), kind="stable")
    at_once = [
        (
            *(joined(a.sources, 99), a.n),
            *np.sqrt([a.variance.value, a.variance.low, a.variance.high, a.added]).tolist(),
            *(*a.ratio, a.p_value),
        )
        for a in found.at_once
    ]
    samples = [
        {"source": name, "sample": i, "score": score}
        for name, lines in found.lines.items()
        for i, score in enumerate(lines.samples)
    ]
    scores = [pd.DataFrame(one) for one in samples] or [pd.DataFrame(columns=["source", "sample", "score"])]
    design = {
        "design": found.design,
        "n": len(layout.score),
        "mean": float(layout.score.mean()),
        "repeated": sum(len(x) - 1 for x in layout.repeated()),
        "left_over": found.left_over,
    }
    names = ["sources", "n", "sd", "ci_low", "ci_high", "added_sd", "ratio", "ratio_low", "ratio_high", "p_raw"]
    return {
        "table": table.reset_index(drop=True),
        "at_once": pd.DataFrame(at_once, columns=names),
        "designs": pd.DataFrame([design]),
        "scores": pd.concat(scores, ignore_index=True),
    }


def in_residual(table: pd.DataFrame) -> set[str]:
    """Sources of one study that have a new seed in each training, and so no variance but the residual one."""
    rest = table.loc[table["source"] == RESIDUAL, "n"]
    new = table["variance"].isna() & table["n"].isin(rest)
    return set(table.loc[new, "source"])


def notes_of(layout: Layout, found: SourceVariances, table: pd.DataFrame, unit: str | None) -> list[str]:
    notes = list(found.notes)
    known = table[table["variance"].notna()]
    fixed = [s for s in layout.sources if s not in layout.varied]
    if fixed:
        notes.append(f"{joined(fixed)} never varied, so nothing is known of the variance.")
    for names in layout.together():
        if len(names) > 1:
            in_it = RESIDUAL in set(known["source"]) and TOGETHER.join(names) not in set(known["source"])
            where = ", and the residual holds the sum of their variances" if in_it else ""
            notes.append(
                f"{joined(names)} always change together{where}: vary one with the other fixed to tell them apart."
            )
    single = {s for names in layout.together() for s in names if len(names) == 1}
    lost = single - set(known["source"])
    new = lost & in_residual(table)
    if new:
        notes.append(f"{joined(sorted(new))} changed with every training: the variance is in the residual.")
        lost -= new
    if lost:
        notes.append(f"{joined(sorted(lost))} never varied alone or in all combinations, and has no number.")
    if NOISE not in set(known["source"]) and found.design == "one at a time":
        notes.append(
            "No training was run again with all seeds fixed, so each variance contains the numerical noise, and "
            "nothing is said on whether sources add up. Run one setting of the seeds several times."
        )
    noise = known[known["source"] == NOISE]
    if found.design == "one at a time" and (noise["df"] < _FEW - 1).any() and (noise["variance"] > 0.0).any():
        notes.append(
            f"The noise is known from {counted(int(noise['n'].iloc[0]), 'training')} with equal seeds alone, and what "
            "is taken off each source is as uncertain: run one setting of the seeds ten times or more."
        )
    flat = known["variance"].eq(0.0) & ~known["ci_high"].gt(0.0)
    if NOISE in set(known.loc[flat, "source"]):
        notes.append(SAME)
    alike = known.loc[flat & (known["kind"] == "source"), "source"].tolist()
    if alike:
        notes.append(
            f"All scores of {joined(alike)} are equal, which a small test set makes of small changes too: there is no "
            "interval."
        )
    zero = known.loc[known["variance"].eq(0.0) & ~flat, "source"].tolist()
    if zero:
        notes.append(f"Estimated as zero: {joined(zero)}; the upper ends of the intervals say how large it may be.")
    if found.left_over:
        notes.append(f"{counted(found.left_over, 'training')} are neither one at a time nor all at once, and not used.")
    few = known.loc[(known["kind"] == "source") & (known["n"] < _FEW), "source"].tolist()
    if few:
        notes.append(f"Fewer than {_FEW} seeds of {joined(few)}: the intervals are wide, and rest on a normal shape.")
    if unit is not None and not (known.loc[known["source"] == unit, "variance"] > 0.0).any():
        notes.append(f"{unit} has no variance above zero here, so nothing is relative to it.")
    return notes


def labelled(table: pd.DataFrame, labels: dict[str, Any]) -> pd.DataFrame:
    """With the columns of the algorithm and the benchmark in front."""
    for at, (role, level) in enumerate(labels.items()):
        table.insert(at, role, [level] * len(table))
    return table
