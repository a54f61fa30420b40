"""scikit-learn: the candidates of a search, or cross-validated estimators, as runs over the splits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from lmemtest.bench.data.recognised import Recognised, metric_arguments
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.imported import imported, numbers_in, one_of
from lmemtest.bench.importers.sources import KEYS, Part, check_keys, frame_of, json_of, labelled, names_of, parts_of
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.validate import as_frame, check_column
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError, DataError

SPLIT = re.compile(r"split(\d+)_test_(.+)")
BOTH = "cv_results_ of a search (split0_test_score, ...) or a result of cross_validate (test_score, ...)"
NOT_SET = "not set"
_OF_A_SEARCH = re.compile(r"split\d+_|(mean|std|rank)_|params?$|param_|n_resources$|iter$|Unnamed: ")


def sklearn(
    results: Any,
    *,
    metric: str | None = None,
    parameter: str | None = None,
    keys: str | Sequence[str] | None = None,
) -> Runs:
    """Runs of scikit-learn's cross-validation: what is compared was scored on the same splits of each data set.

    Parameters
    ----------
    results : mapping, search, dataframe, path, list or mapping of these
        ``cross_validate(...)`` or ``cross_val_score(...)`` by algorithm and data set, such as ``{"SVC": {"iris":
        cross_validate(...)}}`` or ``{("SVC", "iris"): ...}``; or a fitted search, its ``cv_results_``, or a file of it,
        by data set: ``{"iris": search}``, or one table with a column for the name. The candidates of a search are the
        algorithms. A json file may hold several results by name.
    metric : str, optional
        Which of several scores: the name in ``scoring=``.
    parameter : str, optional
        Of a search: compare the values of this parameter; the other parameters are metafeatures.
    keys : sequence of str, optional
        What the names of a mapping are, from outside to inside. By default "algorithm", "benchmark", "seed" (a
        repetition of the cross-validation), and "benchmark" for searches.

    Returns
    -------
    Runs
        One row per split, seeds are splits. High scores are good, as in all of scikit-learn's scorers. A fit that
        failed (``error_score=nan``) is a missing score. The budget of a successive halving search is ``n_resources``.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If there are several metrics and `metric` is not given, or searches have names of algorithms.
    DataError
        If a result is neither, or nothing names the algorithms.

    Examples
    --------
    >>> results = {("SVC", "iris"): {"test_score": [0.9, 1.0]}, ("tree", "iris"): {"test_score": [0.8, 0.9]}}
    >>> sklearn(results).to_frame()
      algorithm benchmark  split  score
    0       SVC      iris      0    0.9
    1       SVC      iris      1    1.0
    2      tree      iris      0    0.8
    3      tree      iris      1    0.9
    """
    chosen = None if keys is None else check_keys(keys)
    parts = _parts(results, chosen or KEYS)
    tables = [_table(part) for part in parts]
    searches = [any(SPLIT.fullmatch(name) for name in names_of(table)) for table in tables]
    if len(set(searches)) > 1:
        raise DataError(
            f"results mixes searches and cross-validations: {parts[searches.index(True)].origin} is a search."
        )
    if not searches[0]:
        if parameter is not None:
            raise ArgumentError(
                f"{named('parameter')} is for searches, but results are cross-validations. Leave it out."
            )
        return _of_validations(parts, tables, metric)
    if chosen is None:  # names are those of data sets
        parts = [Part(part.content, _as_benchmark(part), part.origin) for part in parts]
        parts = _called_as_files(parts)
    if any("algorithm" in part.labels for part in parts):
        raise ArgumentError(
            "The algorithms of a search are its candidates, so results must not name it an algorithm. To compare tuned "
            "estimators, cross-validate each search: cross_validate(search, X, y), which scores it on data that it was "
            "not tuned on."
        )
    if len(parts) == 1 and not parts[0].labels:
        parts, tables = _searches_in(parts[0], tables[0])
    return _of_searches(parts, tables, metric, parameter)


def _searches_in(part: Part, table: pd.DataFrame) -> tuple[list[Part], list[pd.DataFrame]]:
    """The searches that somebody has put into one table, with a column for the name of each."""
    candidate = pd.Series([_text(row) for row in _settings(table).to_dict("records")], index=table.index)
    named = [name for name in names_of(table) if not _OF_A_SEARCH.match(name)]
    apart = [name for name in named if not pd.DataFrame({"candidate": candidate, name: table[name]}).duplicated().any()]
    if len(apart) != 1 or not candidate.duplicated().any():
        return [part], [table]
    tables = dict(list(table.groupby(apart[0], sort=False, observed=True)))
    parts = [Part(rows, {"benchmark": level}, f"{apart[0]} = {format_level(level)}") for level, rows in tables.items()]
    return parts, list(tables.values())


def _parts(results: Any, keys: Sequence[str]) -> list[Part]:
    """The results; a json file may hold several by name."""
    found = []
    for part in parts_of(results, argument="results", keys=keys, files="*.csv", is_content=_is_result):
        is_json = part.path is not None and ".json" in map(str.lower, part.path.suffixes)
        content = json_of(part.path) if part.path is not None and is_json else None
        if not isinstance(content, Mapping):  # records are read as a table
            found.append(part)
            continue
        below = parts_of(content, argument=part.origin, keys=keys[len(part.labels) :], is_content=_is_result)
        found += [Part(inner.content, {**part.labels, **inner.labels}, inner.origin) for inner in below]
    return found


def _is_result(thing: Any) -> bool:
    names = [name for name in thing if isinstance(name, str)] if isinstance(thing, Mapping) else []
    return any(name.startswith("test_") or SPLIT.fullmatch(name) for name in names)


def _called_as_files(parts: list[Part]) -> list[Part]:
    """Several files without names have those of the files, if these differ."""
    names = [part.path.name.partition(".")[0] for part in parts if part.path is not None and not part.labels]
    if len(parts) < 2 or len(set(names)) < len(parts):
        return parts
    return [Part(p.content, {"benchmark": name}, p.origin) for p, name in zip(parts, names, strict=True)]


def _as_benchmark(part: Part) -> dict[str, Any]:
    if len(part.labels) > 1:
        raise ArgumentError(f"{part.origin}: a search has the name of its data set only. " + advice("search_name"))
    return dict(zip(["benchmark"], part.labels.values(), strict=False))


def _table(part: Part) -> pd.DataFrame:
    """A result as a table of its columns."""
    content = getattr(part.content, "cv_results_", part.content)
    if isinstance(content, Mapping):
        wanted = {
            k: v for k, v in content.items() if re.match(r"split\d+_test_|test_|params?|n_resources|iter", str(k))
        }
        columns = {name: _values(values, name, part.origin) for name, values in wanted.items()}
        if len({len(values) for values in columns.values()}) > 1:
            sizes = listed(f"{name} {len(values)}" for name, values in columns.items())
            raise DataError(f"{part.origin} must have lists of one length, but they have {sizes} values.")
        content = pd.DataFrame(columns)
    elif hasattr(content, "ndim") and not hasattr(content, "columns"):
        if content.ndim != 1:
            raise DataError(f"{part.origin} must hold one score per split, got an array of shape {content.shape}.")
        content = pd.DataFrame({"test_score": content})
    elif part.path is None and not hasattr(content, "columns"):
        as_frame(content, argument="results")  # says what is wrong
    table = content if isinstance(content, pd.DataFrame) else frame_of(part, argument="results")
    if not any(re.match(r"split\d+_test_|test_", str(name)) for name in table):
        raise DataError(f"{part.origin} must be {BOTH}. Its columns: {listed(table.columns)}.")
    return table


def _values(values: Any, name: str, origin: str) -> list[Any]:
    """A column; `DataFrame.to_json` writes one by its index."""
    if isinstance(values, Mapping):
        return list(values.values())
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise DataError(f"{origin}: {name} must be a list of values, got {values!r:.60}. It must be {BOTH}.")
    return list(values)


def _metric(names: Sequence[str], metric: str | None, origin: str) -> str:
    return one_of(list(dict.fromkeys(names)), metric, argument="metric", what="metrics", origin=origin)


def _notes(what: str) -> list[str]:
    return [
        f"High scores are good, as scikit-learn's scorers have it. Split k of every {what} on one data set is taken "
        "for the same split: so it is if cv= was the same splitter with a fixed random_state, or none that shuffles.",
        "The training data of splits overlap, so splits are no independent repetitions.",
    ]


def _of_validations(parts: list[Part], tables: list[pd.DataFrame], metric: str | None) -> Runs:
    found = [{role: (label, "the name that was given") for role, label in part.labels.items()} for part in parts]
    repeats = any("seed" in named for named in found)
    labels, said = labelled(found, parts, advice=advice("sklearn_results"))
    rows, names = [], []
    for part, table, own in zip(parts, tables, labels, strict=True):
        name = _metric([n.removeprefix("test_") for n in names_of(table) if n.startswith("test_")], metric, part.origin)
        split = range(len(table))
        seeds = [f"{own['seed']}/{k}" for k in split] if repeats else split
        values = numbers_in(table[f"test_{name}"], name=f"test_{name}", advice="Give results as they come.")
        roles = {role: own[role] for role in KEYS[:2] if role in own}
        rows.append(pd.DataFrame({**roles, "split": seeds, name: values}, index=split))
        names.append(name)
    score = _same(names)
    table = pd.concat(rows, ignore_index=True)
    return imported(
        table,
        source=f"{len(parts):,} cross-validations",
        score=score,
        direction="maximize",
        algorithm="algorithm",
        benchmark="benchmark" if "benchmark" in table else None,
        seed="split",
        seed_shared=False,
        said={**said, "seed": "the split" if not repeats else "the repetition and its split"},
        notes=_notes("algorithm"),
        repeated=f"Two results have the same names. {advice('sklearn_results')}",
        alone=advice("sklearn_results"),
    )


def _of_searches(parts: list[Part], tables: list[pd.DataFrame], metric: str | None, parameter: str | None) -> Runs:
    named = ["benchmark" in part.labels for part in parts]
    if not all(named) and len(parts) > 1:
        raise DataError("Several searches need the names of their data sets: " + advice("search_names"))
    found = [_splits(part, table, metric) for part, table in zip(parts, tables, strict=True)]
    score = _same([name for name, _ in found])
    table = pd.concat([frame.assign(**part.labels) for part, (_, frame) in zip(parts, found, strict=True)])
    parameters = sorted(name for name in table if name.startswith("param_"))
    algorithm, others = "candidate", list[str]()
    if parameter is not None:
        known = [name.removeprefix("param_") for name in parameters]
        check_column(parameter, known, argument="parameter")
        algorithm = f"param_{parameter}"
        others = [name for name in parameters if name != algorithm and table[name].nunique() > 1]
    table[parameters] = table[parameters].fillna(NOT_SET)
    budget = "n_resources" if "n_resources" in table else None
    return imported(
        table,
        source=f"The candidates of {len(parts):,} search{'es' if len(parts) > 1 else ''}",
        score=score,
        direction="maximize",
        algorithm=algorithm,
        benchmark="benchmark" if all(named) else None,
        seed="split",
        budget=budget,
        metafeatures=others,
        ignore=() if parameter is not None else parameters,
        seed_shared=False,
        said={
            "benchmark": "the name that was given, that of the file, or the column that differs between searches",
            "algorithm": "the parameters of a candidate" if parameter is None else f"the parameter {parameter}",
        },
        notes=_notes("candidate"),
        repeated="A randomised search may try a candidate twice: drop the copies from cv_results_.",
        alone=f"Compare the values of a parameter, {setting('parameter', 'NAME')}, or a search with more candidates.",
    )


def _splits(part: Part, table: pd.DataFrame, metric: str | None) -> tuple[str, pd.DataFrame]:
    """The metric of a search, and a row per candidate and split."""
    matches = {name: match for name in names_of(table) if (match := SPLIT.fullmatch(name))}
    chosen = _metric([match[2] for match in matches.values()], metric, part.origin)
    settings = _settings(table)
    resources = {"n_resources": table["n_resources"]} if "n_resources" in table else {}
    candidates = settings.assign(candidate=[_text(row) for row in settings.to_dict("records")], **resources)
    advice = "Give cv_results_ as it comes."
    frames = [
        candidates.assign(split=int(match[1]), **{chosen: numbers_in(table[name], name=name, advice=advice)})
        for name, match in matches.items()
        if match[2] == chosen
    ]
    return chosen, pd.concat(frames)


def _same(names: Sequence[str]) -> str:
    """The one metric of all results."""
    if len(set(names)) > 1:
        raise DataError(f"results have different metrics: {listed(dict.fromkeys(names))}. Give those of one.")
    return names[0]


def _settings(table: pd.DataFrame) -> pd.DataFrame:
    """The parameters of each candidate as texts, missing where a candidate has none."""
    names = [name for name in table if str(name).startswith("param_")]
    if "params" in table and all(isinstance(params, dict) for params in table["params"]):
        given = [{f"param_{k}": format_level(v) for k, v in params.items()} for params in table["params"]]
        return pd.DataFrame(given, index=table.index)
    return table[names].map(lambda value: None if pd.isna(value) else format_level(value))


def _text(settings: Mapping[Any, Any]) -> str:
    said = {name.removeprefix("param_"): value for name, value in settings.items() if not pd.isna(value)}
    return " ".join(f"{name}={value}" for name, value in said.items())


# ---------------------------------------------------------------------------------------- what is recognised


def of_columns(table: Any) -> Recognised | None:
    splits = [name for name in table if re.fullmatch(r"split\d+_test_.+", name)]
    validated = [name for name in table if name.startswith("test_")] if {"fit_time", "score_time"} <= set(table) else []
    if splits and any(name.startswith("param") for name in table):
        metrics = list(dict.fromkeys(name.partition("_test_")[2] for name in splits))
        what, reason = "the cv_results_ of a search of scikit-learn", [splits[0], f"mean_test_{metrics[0]}"]
    elif validated:
        metrics = [name.removeprefix("test_") for name in validated]
        what, reason = "a cross_validate of scikit-learn", ["fit_time", "score_time", validated[0]]
    else:
        return None
    return Recognised(
        code="sklearn", what=what, columns=tuple(reason), tool="sklearn", **metric_arguments(metrics),
        advice=_NAME_ALGORITHM if validated and not splits else "",
    )  # fmt: skip


_NAME_ALGORITHM = "A cross-validation is of one algorithm: give several with their names, SVC,iris=FILE tree,iris=FILE."


def of_record(record: Mapping[str, Any], _: str) -> Recognised | None:
    """One result among those of a file."""
    is_result = any(SPLIT.fullmatch(str(name)) or re.fullmatch(r"test_\w+", str(name)) for name in record)
    return _of_results(record) if is_result else None


def _of_results(record: Mapping[str, Any]) -> Recognised:
    found = {str(name): re.fullmatch(r"(?:split\d+_)?test_(.+)", str(name)) for name in record}
    metrics = list(dict.fromkeys(match[1] for match in found.values() if match is not None))
    return Recognised(
        code="sklearn", what="results of scikit-learn", columns=tuple(n for n, match in found.items() if match),
        tool="sklearn", **metric_arguments(metrics),
    )  # fmt: skip


def of_names(content: Mapping[str, Any]) -> Recognised | None:
    """Results by their names, the first of which is looked at."""
    value: Any = content
    while isinstance(value, Mapping) and value:
        if any(str(name).startswith("test_") for name in value):
            return _of_results(value)
        value = next(iter(value.values()))
    return None
