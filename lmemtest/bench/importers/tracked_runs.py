"""Runs of experiment trackers: what tables and logs of Weights & Biases, MLflow, ClearML and Aim have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.delimited import exact_numbers
from lmemtest.bench.data.requirements import required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import imported, numbers_in, one_of
from lmemtest.bench.importers.sources import by_pattern, checked_pattern, needs_columns, one_type
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.validate import check_column, check_columns, check_names
from lmemtest.core.words import counted, listed
from lmemtest.errors import ArgumentError, DataError

OPEN = ("running", "pending", "scheduled", "preempting", "created", "queued", "in_progress")
DONE = ("finished", "completed", "closed", "published", "publishing", "")
ALL_ROLES = "{algorithm}_{benchmark}_{seed}"
NAME, STATE = "Name", "State"  # columns of the names of runs and of how they ended

# of one run: its settings by name, and by the name of a scalar the steps and values that it logged
Logged = tuple[Mapping[str, Any], Mapping[str, Sequence[tuple[Any, Any]]]]


@dataclass(frozen=True)
class NamedRoles:
    """What the caller says of the columns, by role, and of the names of runs."""

    score: str | None
    direction: Any
    columns: dict[str, str | None]
    metafeatures: Sequence[str]
    names: str | None

    def __post_init__(self) -> None:
        required_direction(self.direction)
        for argument, column in {"score": self.score, **self.columns}.items():
            if column is not None and not isinstance(column, str):
                raise ArgumentError(f"{named(argument)} must be the name of one column, got {column!r}.")
        checked_pattern(self.names)
        check_names(self.metafeatures, "metafeatures")


def of_logged(logged: Sequence[Logged], roles: NamedRoles, *, source: str, step: str) -> Runs:
    """Runs that logged scalars at steps: the budget, unless every run logged the score once."""
    scalars = list(dict.fromkeys(name for _, values in logged for name in values))
    if not scalars:
        raise DataError(f"{source} without a scalar: there is no score. Was the score logged?")
    named_so = _whole(roles.score, scalars, "score", after=r"[/ ].*")
    score = one_of(scalars, named_so, argument="score", what="scalars", origin="The log")
    curves = any(len({at for at, _ in values.get(score, ())}) > 1 for _, values in logged)
    rows, without, again = list[dict[str, Any]](), 0, 0
    for settings, values in logged:
        points = dict(values.get(score, ()))  # of a step that was logged again, the last value
        again += len(values.get(score, ())) - len(points)
        without += not points
        if curves:
            rows += [{**settings, step: at, score: points[at]} for at in sorted(points)]
        else:
            rows.append({**settings, score: next(iter(points.values()), np.nan)})
    notes = []
    if again:
        notes.append(f"{counted(again, 'value')} had been logged before at the same {step}: the last one counts.")
    if curves and without:
        notes.append(f"Left out: {counted(without, 'run')} that never logged {score}.")
    frame = pd.DataFrame(rows)
    known = list(frame.columns)
    columns = {role: _whole(name, known, role, before=r".*[/.]") for role, name in roles.columns.items()}
    features = [
        _whole(name, known, "metafeatures", before=r".*[/.]")
        for name in check_names(roles.metafeatures, "metafeatures")
    ]
    found = replace(roles, score=score, columns={**columns, "budget": step if curves else None}, metafeatures=features)
    return of_table(frame, found, source=source, name=NAME, state=STATE, notes=tuple(notes))


def _whole(name: Any, known: Sequence[str], argument: str, *, before: str = "", after: str = "") -> Any:
    """The whole name where a part of it is given that fits no other: "lr" for "General/lr"."""
    found = [one for one in known if re.fullmatch(f"{before}{re.escape(str(name))}{after}", one, re.DOTALL)]
    if name is None or name in known or not found:
        return name
    if len(found) > 1:
        several = listed(map(repr, found))
        raise ArgumentError(f"{named(argument)} is {name!r}, which may be {several}. Give the whole name.")
    return found[0]


def of_table(
    frame: pd.DataFrame, roles: NamedRoles, *, source: str, name: str, state: str, notes: tuple[str, ...] = ()
) -> Runs:
    """Runs of a table with a row per run, its state and its name."""
    available = list(frame.columns)
    frame, columns, said = _by_names(frame, roles, name)
    for role, given in {"score": roles.score, **columns}.items():
        if given is None and role in ("score", "algorithm"):
            pattern = setting("names", "{algorithm}_{seed}")
            other = f", or {pattern} if it is in the names of the runs" if role == "algorithm" else ""
            raise ArgumentError(f"{named(role)} must name a column{other}. Columns: {listed(available)}.")
        if given is not None:
            check_column(given, frame.columns, argument=role)
    features = check_columns(check_names(roles.metafeatures, "metafeatures"), available, argument="metafeatures")
    score, advice = str(roles.score), f"Name the column of the score: {setting('score', 'COLUMN')}."
    frame = frame.assign(**{score: numbers_in(frame[score], name=score, advice=advice)})
    frame, kinds, ended = _ended(frame, score, state)
    for column in (columns["seed"], columns["budget"]):
        if column is not None and frame[column].map(lambda value: isinstance(value, str)).all():
            frame = frame.assign(**{column: exact_numbers(frame[column].astype(object))})
    _refuse_unlogged(frame, [*(column for column in columns.values() if column), *features])
    repeated = f"{setting('seed', 'COLUMN')}, or {setting('metafeatures', 'COLUMN')}"
    return imported(
        frame,
        source=source,
        score=score,
        direction=roles.direction,
        algorithm=str(columns["algorithm"]),
        benchmark=columns["benchmark"],
        seed=columns["seed"],
        budget=columns["budget"],
        metafeatures=features,
        kinds=kinds,
        said=said,
        notes=[*notes, *ended],
        repeated=f"Name the column that distinguishes these runs: {repeated}.",
        alone="Is another column the algorithm?",
    )


def _by_names(
    frame: pd.DataFrame, roles: NamedRoles, name: str
) -> tuple[pd.DataFrame, dict[str, str | None], dict[str, str]]:
    """The columns by role with those that the names of runs fill, and where these are from."""
    columns, said, pattern = dict(roles.columns), dict[str, str](), checked_pattern(roles.names)
    if pattern is None:
        return frame, columns, said
    advice = f"Leave out {named('names')}."
    needs_columns(frame, [name], origin="table", what="a table with names of runs", advice=advice)
    parsed = pd.DataFrame([by_pattern(pattern, text) for text in frame[name]], index=frame.index)
    if "seed" in parsed:
        parsed["seed"] = one_type(parsed["seed"].tolist())
    for role in parsed:
        if columns.get(role) is None:
            column = role if role not in frame else f"{role} in {name}"
            columns[role], said[role] = column, f"in {name}"
            frame = frame.assign(**{column: parsed[role]})
    return frame, columns, said


def _ended(frame: pd.DataFrame, score: str, state: str) -> tuple[pd.DataFrame, pd.Series[Any] | None, list[str]]:
    """The runs that have ended, and in which state those are that did not finish, which have no score."""
    if state not in frame:
        return frame, None, []
    states = frame[state].astype(object).where(frame[state].notna(), "").astype(str).str.strip().str.lower()
    open_, notes = states.isin(OPEN), []
    bad = ~states.isin(DONE) & ~open_
    if open_.any():
        notes.append(f"Left out: {counted(int(open_.sum()), 'run')} that had not ended.")
    if bad.any():
        why = states[bad].value_counts(sort=False)
        notes.append(f"Runs that did not finish ({listed(f'{k} {n:,}' for k, n in why.items())}) have no score.")
    return frame.assign(**{score: frame[score].mask(bad)})[~open_], states.where(bad)[~open_], notes


def _refuse_unlogged(frame: pd.DataFrame, keys: list[str]) -> None:
    """Refuse runs of which nobody knows the algorithm, or another role."""
    empty = [column for column in keys if frame[column].isna().any()]
    if empty:
        count = int(frame[empty[0]].isna().sum())
        raise DataError(
            f"{counted(count, 'run')} {'have' if count > 1 else 'has'} no value of {empty[0]!r}. Log it for all runs, "
            f"or leave out the others before: {advice('without_empty')}."
        )


def flat(nested: Any, above: str = "") -> dict[str, Any]:
    """Nested settings with the names of all levels: ``optimizer.lr``."""
    found: dict[str, Any] = {}
    for name, value in nested.items():
        inner = hasattr(type(value), "items")
        found |= flat(value, f"{above}{name}.") if inner else {f"{above}{name}": value}
    return found
