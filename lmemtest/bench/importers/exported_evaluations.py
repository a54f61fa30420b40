"""Results of evaluations that promptfoo and DeepEval write: a row per question and attempt."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from lmemtest.bench.data.column import direction_of
from lmemtest.bench.data.recognised import Recognised
from lmemtest.bench.data.requirements import REQUIRED, required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.importers.evaluation_samples import error_kind, examples_of_kinds
from lmemtest.bench.importers.imported import imported, numbers_in, one_of
from lmemtest.bench.importers.sources import Part, json_of, parts_of, several_files
from lmemtest.core.caller import named, setting
from lmemtest.core.validate import check_choice
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError

COMPARED = ("provider", "prompt")


def promptfoo(
    results: Any,
    *,
    metric: str | None = None,
    algorithm: Literal["provider", "prompt"] | None = None,
    benchmark: str | None = None,
) -> Runs:
    """Runs of promptfoo's results: a row per test case, prompt, provider and repetition.

    Parameters
    ----------
    results : path, mapping or list
        What ``promptfoo eval -o results.json`` or ``promptfoo export eval`` writes, or its content; several are joined.
    metric : str, optional
        A named metric of the assertions. By default the score of the whole test case, between 0 and 1.
    algorithm : {"provider", "prompt"}, optional
        What is compared; the other one is a metafeature where it has several values. By default what has several.
    benchmark : str, optional
        The key of a test case's ``metadata`` that says its task, such as "task"; without it there are no benchmarks.

    Returns
    -------
    Runs
        Algorithms are the labels of providers or of prompts, seeds the questions: the variables of a test case.
        Repetitions (``--repeat``) are rows of one question, in the column ``epoch``. A test case that ended in an error
        has no score, and the column ``status`` says which kind of error its message names, as for `inspect_ai`.

    Raises
    ------
    ArgumentError
        If both providers and prompts vary and `algorithm` is not given, or there is no such metric.
    DataError
        If the file holds no such results, or a test case does not name the task.

    Examples
    --------
    >>> def row(provider, number, score):
    ...     return {"provider": {"id": provider}, "prompt": {"label": "Add"}, "vars": {"a": number}, "score": score}
    >>> rows = [row("small", 1, 0), row("small", 2, 1), row("large", 1, 1), row("large", 2, 1)]
    >>> promptfoo({"results": {"results": rows}}).to_frame()["score"].tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    if algorithm is not None:
        check_choice(algorithm, "algorithm", COMPARED)
    if benchmark is not None and not isinstance(benchmark, str):
        raise ArgumentError(f"{named('benchmark')} must be a key of the metadata of test cases, got {benchmark!r}.")
    files = [_rows(part, "promptfoo", _tests_of) for part in _parts(results, "results")]
    metrics = list(dict.fromkeys(name for rows in files for row in rows for name in _names_in(row, "namedScores")))
    if metric is not None:
        check_choice(metric, "metric", metrics)
    # a repetition is told by its place: promptfoo numbers test cases and not their repetitions
    table = _numbered([[_of_test(row, metric, benchmark) for row in rows] for rows in files], [*COMPARED, "question"])
    several = [name for name in COMPARED if table[name].nunique() > 1]
    if len(several) > 1 and algorithm is None:
        raise ArgumentError(
            f"results vary in providers and in prompts. Say which is compared: {setting('algorithm', 'provider')}, or "
            f"{setting('algorithm', 'prompt')}."
        )
    compared = algorithm or (several or ["provider"])[0]
    score = metric or "score"
    return _evaluation(
        table.rename(columns={"value": score}),
        source="promptfoo results",
        score=score,
        direction="maximize",
        algorithm=compared,
        benchmark=None if benchmark is None else "task",
        metafeatures=[name for name in several if name != compared],
        said={"seed": "the variables of a test case"},
        alone="Give the results of several providers or prompts.",
    )


def _tests_of(content: Any) -> Any:
    """The rows in the three shapes in which results were written: of a file, of an export, of the table's summary."""
    while isinstance(content, Mapping) and "results" in content:
        content = content["results"]
    return content


def _of_test(row: Mapping[str, Any], metric: str | None, task: str | None) -> dict[str, Any]:
    provider, prompt = row.get("provider"), _names_in(row, "prompt")
    said = _names_in(_names_in(row, "testCase"), "metadata") or _names_in(row, "metadata")
    error = str(row.get("error") or "") if row.get("failureReason", 2) == 2 else ""  # 1: an assertion failed
    scores = _names_in(row, "namedScores")
    if task is not None and task not in said:
        raise DataError(
            f"The test case {json.dumps(row.get('vars'))[:60]} has no {task!r} in its metadata. Leave out "
            f"{named('benchmark')}, or name another key: {listed(map(repr, said)) or 'there is none'}."
        )
    return {
        "provider": str(provider.get("label") or provider.get("id") if isinstance(provider, Mapping) else provider),
        "prompt": str(prompt.get("label") or prompt.get("raw")),
        "question": json.dumps(row.get("vars"), sort_keys=True),
        "value": None if error else scores.get(metric) if metric else row.get("score"),
        "error": error,
        **({} if task is None else {"task": said[task]}),
    }


def deepeval(
    results: Any,
    *,
    metric: str | None = None,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    algorithm: str = "model",
) -> Runs:
    """Runs of DeepEval's test runs: a row per test case.

    Parameters
    ----------
    results : path, mapping or list
        The files that DeepEval writes into ``DEEPEVAL_RESULTS_FOLDER``, or that folder; or their contents.
    metric : str, optional
        Which of several metrics, such as "Answer Relevancy".
    direction : {"minimize", "maximize"}
        Whether a high score is good: DeepEval does not say it, and of bias and toxicity a low one is. Required.
    algorithm : str, default "model"
        The hyperparameter that says what is compared: ``evaluate(..., hyperparameters={"model": "large"})``.

    Returns
    -------
    Runs
        Algorithms are the values of the hyperparameter, seeds the test cases (by their inputs). Equal inputs in one
        file are epochs. A test case whose metric ended in an error has no score.

    Raises
    ------
    ArgumentError
        If there are several metrics and none is named, or the direction is not given.
    DataError
        If the files hold no test runs, or one does not say its model.

    Examples
    --------
    >>> def case(question, score):
    ...     return {"input": question, "metricsData": [{"name": "Exact", "score": score}]}
    >>> runs = [{"hyperparameters": {"model": name}, "testCases": [case("1+1", x), case("1+2", 1.0)]}
    ...         for name, x in (("small", 0.0), ("large", 1.0))]
    >>> deepeval(runs, direction="maximize").to_frame()["Exact"].tolist()
    [0.0, 1.0, 1.0, 1.0]
    """
    direction = required_direction(direction)
    if not isinstance(algorithm, str):
        raise ArgumentError(f"{named('algorithm')} must be the name of a hyperparameter, got {algorithm!r}.")
    files = []
    for part in _parts(results, "results"):
        cases = _rows(part, "DeepEval", lambda content: content.get("testCases") if isinstance(content, Mapping) else 0)
        said = _names_in(part.content, "hyperparameters").get(algorithm)
        if said is None:
            raise DataError(
                f"{part.origin} does not say its {algorithm}: log it, evaluate(..., "
                f"hyperparameters={{{algorithm!r}: ...}}), or name another one: {setting('algorithm', 'NAME')}."
            )
        rows = [
            {
                "model": str(said),
                "question": str(case.get("input")),
                "metric": str(data.get("name")),
                "value": None if data.get("error") else data.get("score"),
                "error": str(data.get("error") or ""),
            }
            for case in cases
            for data in _list_in(case, "metricsData")
        ]
        if not rows:
            raise DataError(f"{part.origin} holds no scores of a metric. Did the test run end?")
        files.append(rows)
    table = _numbered(files, ["model", "metric", "question"])
    score = one_of(list(table["metric"].unique()), metric, argument="metric", what="metrics", origin="results")
    table = table[table["metric"] == score].reset_index(drop=True)
    return _evaluation(
        table.rename(columns={"value": score}),
        source="DeepEval test runs",
        score=score,
        direction=direction,
        algorithm="model",
        said={"algorithm": f"the hyperparameter {algorithm}", "seed": "the input of a test case"},
        alone=f"Give the test runs of several models: {several_files('deepeval', 'a.json', 'b.json')}.",
    )


# ------------------------------------------------------------------------------------------------------------ both


def _parts(given: Any, argument: str) -> list[Part]:
    """What was given, each with its content."""
    is_content = lambda thing: isinstance(thing, Mapping)  # noqa: E731
    parts = parts_of(given, argument=argument, keys=(), files="*.json", is_content=is_content)
    return [Part(json_of(part.path) if part.path else part.content, part.labels, part.origin) for part in parts]


def _names_in(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """What is below a key, if it is a mapping; else none."""
    below = record.get(key)
    return below if isinstance(below, Mapping) else {}


def _list_in(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The mappings in the list below a key."""
    below = record.get(key)
    return [thing for thing in below if isinstance(thing, Mapping)] if isinstance(below, list) else []


def _rows(part: Part, tool: str, of: Callable[[Any], Any]) -> Sequence[Mapping[str, Any]]:
    """The rows that a file of this tool has."""
    rows = of(part.content)
    if not isinstance(rows, Sequence) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(f"{part.origin} holds no results of {tool}. Give the json file that it writes, as it is.")
    return rows


def _numbered(files: Sequence[Sequence[Mapping[str, Any]]], keys: Sequence[str]) -> pd.DataFrame:
    """The rows of all files, those of one question within a file numbered as its epochs."""
    tables = [pd.DataFrame(rows) for rows in files]
    return pd.concat([t.assign(epoch=t.groupby([*keys]).cumcount() + 1) for t in tables], ignore_index=True)


def _evaluation(table: pd.DataFrame, *, score: str, **options: Any) -> Runs:
    """Answers as runs, with the kinds of their errors and their repetitions."""
    advice = "Each test case has one."
    table[score] = numbers_in(table[score], name=score, advice=advice)
    kinds = table["error"].map(lambda error: error_kind(error, "", ""))
    repeated = table["epoch"].nunique()
    notes = examples_of_kinds(table["error"], kinds)
    notes += [f"{repeated} epochs: repeated answers to one question are rows of one run."] if repeated > 1 else []
    return imported(
        table,
        score=score,
        seed="question",
        ignore=["epoch"] if repeated > 1 else [],
        within=["epoch"],
        kinds=kinds,
        seed_shared=False,
        notes=notes,
        repeated="If an evaluation was run again, give one of the files.",
        **options,
    )


# ---------------------------------------------------------------------------------------- what is recognised


def of_record(record: Mapping[str, Any], file: str) -> Recognised | None:
    if "evalId" in record and "results" in record:
        return Recognised(
            code="promptfoo", what="results of promptfoo", columns=("evalId", "results"), tool="promptfoo", options={}
        )
    if {"testCases", "metricsScores"} <= set(record):
        names = [str(scores.get("metric")) for scores in _list_in(record, "metricsScores")]
        direction = direction_of(names[0]) if len(names) == 1 else None
        return Recognised(
            code="deepeval", what="a test run of DeepEval", columns=("testCases", "metricsScores"), tool="deepeval",
            files=tuple(sorted(map(str, Path(file).parent.glob("test_run_*.json")))) if file else (),
            options={"direction": direction} if direction else {},
            lacking={} if direction else {"direction": "minimize|maximize"},
        )  # fmt: skip
    return None
