"""Optuna: studies, or their tables of trials, as runs over the number of the trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from lmemtest.bench.data.recognised import ENDS, Recognised, name_runs
from lmemtest.bench.data.requirements import REQUIRED, required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import best_of_trials, check_labels, imported, numbers_in, one_of
from lmemtest.bench.importers.sources import (
    KEYS,
    NUMBERED,
    Part,
    by_pattern,
    check_keys,
    checked_pattern,
    frame_of,
    labelled,
    needs_columns,
    parts_of,
)
from lmemtest.core.caller import advice, named
from lmemtest.core.validate import check_column, check_flag
from lmemtest.core.words import counted, format_level
from lmemtest.errors import ArgumentError, DataError

OPEN = ("RUNNING", "WAITING")  # trials that have not ended
ENDED = ("PRUNED", "FAIL")  # without a result; the value of a pruned one is a report on the way
STATES = {"RUNNING": "running", "WAITING": "waiting", "PRUNED": "pruned", "FAIL": "failed"}
AS_THEY_COME = "Save study.trials_dataframe() as it is."


def optuna(
    studies: Any,
    *,
    direction: Literal["minimize", "maximize"] | None = None,
    objective: str | int | None = None,
    names: str | None = None,
    study: str | None = None,
    keys: str | Sequence[str] = KEYS,
    best_so_far: bool = True,
) -> Runs:
    """Runs of Optuna studies: each study is one run of its sampler, with the number of the trial as budget.

    Parameters
    ----------
    studies : study, dataframe, path, list or mapping
        Studies, or their ``trials_dataframe()`` in memory or in a file. Several as a list, a pattern such as
        ``trials/*.csv``, or by name: ``{"TPE": study}``, ``{("TPE", "iris", 1): study}``, ``{"TPE": {"iris": [study,
        study]}}``. Studies need no Optuna to be read.
    direction : {"minimize", "maximize"}, optional
        Whether a low or a high value is good. A study says it; for tables it is required.
    objective : str or int, optional
        Which value of studies with several objectives: its number from 0 or its metric name.
    names : str, optional
        What the names of the studies, or of the files without their suffix, are made of:
        ``"{algorithm}_{benchmark}_{seed}"``.
    study : str, optional
        Column of a table that holds several studies, with their names. By default ``study`` or ``study_name``, where a
        table has it with more than one value.
    keys : sequence of str
        What the names of a mapping are, from outside to inside: "algorithm", "benchmark", "seed" in this order.
    best_so_far : bool, default True
        Whether the score is the best value up to each trial (`Runs.best_so_far`), or that of the trial.

    Returns
    -------
    Runs
        One row per trial. What no name says comes from the ``user_attrs`` "algorithm", "benchmark" and "seed" of a
        study; the algorithm is else the name of its sampler, and seeds number the studies of an algorithm on a
        benchmark. Trials are counted from 1. Pruned and failed trials have no value; unfinished ones are left out.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If a study has several objectives and `objective` is not given, or the direction is not known.
    DataError
        If studies differ in direction, nothing names the algorithms, or a table is not one of trials.

    Examples
    --------
    >>> from types import SimpleNamespace as Thing
    >>> def study(*values):
    ...     trials = [Thing(number=i, values=[v], state=Thing(name="COMPLETE")) for i, v in enumerate(values)]
    ...     return Thing(trials=trials, directions=[Thing(name="MINIMIZE")], user_attrs={}, study_name="no name")
    >>> runs = optuna({"TPE": study(0.5, 0.6, 0.2), "Random": study(0.6, 0.4, 0.9)})
    >>> runs.to_frame()["value_best_so_far"].tolist()
    [0.5, 0.5, 0.2, 0.6, 0.4, 0.4]
    """
    best_so_far, keys, pattern = check_flag(best_so_far, "best_so_far"), check_keys(keys), checked_pattern(names)
    if direction is not None:
        direction = required_direction(direction)
    given = parts_of(studies, argument="studies", keys=keys, files="*.csv")
    parts = [single for part in given for single in _studies_in(part, study)]
    read = [_of_study(part, objective) if _is_study(part.content) else _of_table(part, objective) for part in parts]
    labels, said = labelled(
        [_named(part, table, pattern) for part, (table, _) in zip(parts, read, strict=True)],
        parts,
        advice=advice("optuna_studies"),
    )
    table = pd.concat([table.assign(**own) for (table, _), own in zip(read, labels, strict=True)], ignore_index=True)
    way = _direction([(part.origin, way) for part, (_, way) in zip(parts, read, strict=True)], direction)
    counts = {state: int((table["state"] == state).sum()) for state in STATES}
    notes = [
        f"{counted(count, f'{STATES[state]} trial')}: {'left out' if state in OPEN else 'taken as without a value'}."
        for state, count in counts.items()
        if count
    ]
    table["value"] = table["value"].where(~table["state"].isin(ENDED))
    many = "studies" if len(parts) > 1 else "study"
    runs = imported(
        table[~table["state"].isin(OPEN)],
        source=f"{len(parts):,} Optuna {many}",
        score="value",
        direction=way,
        algorithm="algorithm",
        benchmark="benchmark" if "benchmark" in table else None,
        seed="seed",
        budget="trial",
        seed_shared=said["seed"] != NUMBERED,
        said={**said, "budget": "the number of the trial, from 1"},
        trials=True,
        notes=notes,
        repeated=f"Two studies have the same names. {advice('optuna_studies')}",
        alone=advice("optuna_studies"),
    )
    return best_of_trials(runs) if best_so_far else runs


_STUDY = ("study", "study_name")


def _is_study(thing: Any) -> bool:
    return hasattr(thing, "trials") and hasattr(thing, "directions")


def _studies_in(part: Part, column: str | None) -> list[Part]:
    """The studies of a table, one for each name in the column of studies; a study is one."""
    if _is_study(part.content):
        return [part]
    table = frame_of(part, argument="studies", labels=["algorithm", "benchmark", *_STUDY], seeds=["seed"])
    if column is not None:
        check_column(column, table.columns, argument="study")
    names = [column] if column is not None else [name for name in _STUDY if name in table and table[name].nunique() > 1]
    if not names:
        return [part]
    check_labels(table, names[:1])
    if table[names[0]].isna().any():
        without = counted(int(table[names[0]].isna().sum()), "trial")
        raise DataError(f"{part.origin}: {without} without a name of their study in the column {names[0]!r}.")
    by_study = table.groupby(names[0], sort=False, observed=True)
    return [Part(trials.drop(columns=names[0]), part.labels, format_level(name)) for name, trials in by_study]


def _of_study(part: Part, objective: Any) -> tuple[pd.DataFrame, str]:
    """The trials of a study, and its direction."""
    study = part.content
    places = [str(name) for name in getattr(study, "metric_names", None) or range(len(study.directions))]
    place = places.index(one_of(places, _text(objective), argument="objective", what="objectives", origin=part.origin))
    rows = [
        (trial.number + 1, trial.state.name, trial.values[place] if trial.values else None) for trial in study.trials
    ]
    table = pd.DataFrame(rows, columns=["trial", "state", "value"])
    return table.assign(value=table["value"].astype(float)), str(study.directions[place].name).lower()


def _of_table(part: Part, objective: Any) -> tuple[pd.DataFrame, None]:
    """The trials of a `trials_dataframe`, which does not say the direction."""
    table = frame_of(part, argument="studies", labels=["algorithm", "benchmark"], seeds=["seed"])
    needs_columns(
        table, ["number"], origin=part.origin, what="a table of study.trials_dataframe()", advice=AS_THEY_COME
    )
    values = [name for name in table.columns if name == "value" or str(name).startswith("values_")]
    if not values:
        needs_columns(table, ["value"], origin=part.origin, what="a table of trials with values", advice=AS_THEY_COME)
    places = [name.removeprefix("values_") for name in values]
    place = one_of(places, _text(objective), argument="objective", what="objectives", origin=part.origin)
    value = values[places.index(place)]
    own = {role: table[role] for role in KEYS if role in table}
    columns = {
        "trial": _counted(table["number"]),
        "state": table.get("state", "COMPLETE"),
        "value": numbers_in(table[value], name=value, advice=AS_THEY_COME),
    }
    return pd.DataFrame({**columns, **own}), None


def _counted(numbers: pd.Series[Any]) -> np.ndarray:
    """The numbers of trials from 1, where Optuna counts from 0."""
    values = numbers_in(numbers, name="number", advice=AS_THEY_COME) + 1
    if not np.equal(values, np.round(values)).all():
        raise DataError(f"The column 'number' must count the trials: 0, 1, ..., but some are missing. {AS_THEY_COME}")
    return values.astype(int)


def _text(objective: Any) -> str | None:
    return None if objective is None else str(objective)


def _named(part: Part, table: pd.DataFrame, pattern: str | None) -> dict[str, tuple[Any, str]]:
    """What is known of a study by role, each with its origin."""
    study = part.content
    found = {role: (label, "the name that was given") for role, label in part.labels.items()}
    if pattern is not None:
        name = part.path.name.partition(".")[0] if part.path is not None else getattr(study, "study_name", part.origin)
        found = {**{role: (label, "in its name") for role, label in by_pattern(pattern, name).items()}, **found}
    attributes = getattr(study, "user_attrs", {})
    for role in KEYS:
        if role not in found and role in table:
            found[role] = (table[role], role)
        elif role not in found and role in attributes:
            found[role] = (attributes[role], "its user attribute")
    sampler = getattr(study, "sampler", None)
    if "algorithm" not in found and sampler is not None:
        found["algorithm"] = (type(sampler).__name__.removesuffix("Sampler"), "its sampler")
    return found


def _direction(found: list[tuple[str, str | None]], given: str | None) -> Any:
    """The direction of all studies."""
    first = {way: origin for origin, way in reversed(found) if way is not None}
    if len(first) > 1:
        raise DataError(
            f"studies differ in direction: {' and '.join(f'{origin} says {way}' for way, origin in first.items())}. "
            "Give those of one direction, or turn the values of the others."
        )
    if not first:
        return required_direction(REQUIRED if given is None else given)
    way, origin = next(iter(first.items()))
    if given not in (None, way):
        raise ArgumentError(f"{named('direction')} is {given!r}, but {origin} says {way}. Leave it out.")
    return way


# ---------------------------------------------------------------------------------------- what is recognised


def of_columns(table: Any) -> Recognised | None:
    values = [name for name in table if name == "value" or name.startswith("values_")]
    marks = [name for name in ("state", "datetime_start", "datetime_complete") if name in table]
    if "number" not in table or not values or not (len(marks) > 1 or any(n.startswith("params_") for n in table)):
        return None
    arguments: dict[str, Any] = {"options": {}, "lacking": dict(ENDS)}
    if len(values) > 1:
        arguments["lacking"]["objective"] = "|".join(name.removeprefix("values_") for name in values)
    column = next((name for name in ("study", "study_name") if name in table), None)
    if column is not None and not {"algorithm"} & set(table):
        name_runs(arguments, table[column].astype(str).unique())
    return Recognised(
        code="optuna", what="trials of Optuna", columns=("number", values[0], *marks), tool="optuna",
        **arguments,
    )  # fmt: skip
