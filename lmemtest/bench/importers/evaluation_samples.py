"""Evaluations of language models, a score per question: samples of inspect_ai and the lm-evaluation-harness."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from lmemtest.bench.data.readers import not_found
from lmemtest.bench.data.recognised import Recognised, metric_arguments
from lmemtest.bench.data.requirements import REQUIRED, required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.sheets import refuse_large_archive
from lmemtest.bench.importers.imported import imported, is_nested, numbers_in, one_of
from lmemtest.bench.importers.sources import (
    Part,
    check_keys,
    frame_of,
    has_column,
    json_of,
    names_of,
    needs_columns,
    one_type,
    parts_of,
    table_of,
)
from lmemtest.core.caller import advice, named
from lmemtest.core.sanitize import one_line
from lmemtest.core.words import counted, listed
from lmemtest.errors import ArgumentError, DataError

# --------------------------------------------------------------------------------------------------------- inspect_ai

READ = 'samples_df("logs", columns=EvalModel + EvalTask + SampleSummary)'
DETAILS = ("_answer", "_explanation", "_metadata", "_reason")  # of a score, not scores
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # as inspect_ai's value_to_float has them
# words in messages of errors, the first that fits
MARKS = {
    "timeout": ("timeout", "timed out", "time limit", "deadline exceeded"),
    "infra": (
        *("connection", "rate limit", "ratelimit", "too many requests", "overloaded", "unavailable", "internalserver"),
        *("internal server", "bad gateway", "sandbox", "docker", "out of memory", "outofmemory", "memoryerror"),
        *("cancelled", "quota", "no space left"),
    ),
    "refusal": ("content_filter", "content filter", "contentfilter", "content policy", "content_policy", "refusal"),
    "limit": ("limit exceeded", "limitexceeded", "context length", "context_length", "maximum context"),
}
LIMITS = {"time": "timeout", "working": "timeout", "operator": "infra"}  # the others are limits of a model's answer
STOPPED = {"content_filter": "refusal", "max_tokens": "limit", "model_length": "limit"}  # of an output without a score
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def inspect_ai(
    samples: Any,
    *,
    evals: Any = None,
    metric: str | None = None,
    direction: Literal["minimize", "maximize"] | None = None,
) -> Runs:
    """Runs of inspect_ai's samples: a row per question and epoch.

    Parameters
    ----------
    samples : dataframe, path or list
        Logs (``.eval`` or ``.json``), or the folder of them. Or what ``samples_df`` returns, in memory or in a file,
        with the columns ``model`` and ``task_name``: ``samples_df("logs", columns=EvalModel + EvalTask +
        SampleSummary)``.
    evals : dataframe or path, optional
        What ``evals_df`` returns: it adds ``model`` and ``task_name`` to samples without them, by ``eval_id``.
    metric : str, optional
        Which scorer, where samples have several: "choice" for the column ``score_choice``.
    direction : {"minimize", "maximize"}, optional
        Whether a high score is good. Grades (C, I, P, N) and yes or no say it; for numbers it is required.

    Returns
    -------
    Runs
        Algorithms are models, benchmarks tasks, seeds the questions of a task (``id``). Epochs are rows of one
        question, in the column ``epoch``. Grades count as in inspect_ai: C 1, P 0.5, I and N 0. A sample that ended in
        an error has no score, and the column ``status``, with the role `failed`, says in which way it failed: "timeout"
        (also limits of time), "limit" (of tokens, messages, context or costs), "refusal" (a filter of contents),
        "infra" (connections, rates, sandboxes, memory; stopped by an operator), "error" (any other), "missing". What
        has a score keeps it, also beyond a limit.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If there are several scorers and `metric` is not given, or numbers and `direction` is not.
    DataError
        If columns are missing, or a score is no grade and no number.

    Examples
    --------
    >>> table = {"model": ["a", "a", "b", "b"], "task_name": ["arc"] * 4, "id": [1, 2, 1, 2], "epoch": [1] * 4,
    ...          "score_choice": ["C", "I", "C", "C"]}
    >>> inspect_ai(table).to_frame()["choice"].tolist()
    [1.0, 0.0, 1.0, 1.0]
    """
    if direction is not None:
        direction = required_direction(direction)
    evals = None if evals is None else _evals(evals)
    tables, stopped = [], list[str]()
    given = _logs_of_folder(samples)
    for part in parts_of(given, argument="samples", keys=(), files="*.parquet", is_content=has_column("id")):
        if part.path is not None and is_log(part.path):
            log, status = log_of(part.path)
            stopped += [f"{part.path.name} ({status})"] if status != COMPLETE else []
            tables.append(log)
        else:
            found = frame_of(part, argument="samples", labels=["model", "task_name", "id"])
            tables.append(_with_evals(found, part, evals))
    table = pd.concat(tables, ignore_index=True)
    if "id" in table:
        table["id"] = one_type(table["id"].tolist())
    scores = [n for n in names_of(table) if n.startswith("score_") and not n.endswith(DETAILS) and "headline" not in n]
    if not scores:
        needs_columns(table, ["score_<scorer>"], origin="samples", what="a table of scored samples", advice=f"{READ}.")
    names = [name.removeprefix("score_") for name in scores]
    name = one_of(names, metric, argument="metric", what="scorers", origin="samples")
    values, graded = _graded(table[f"score_{name}"], f"score_{name}")
    notes = []
    if stopped:
        notes.append(f"Logs of evaluations that did not end well: {listed(stopped)}. Their samples are taken.")
    if graded:
        notes.append("Grades count as in inspect_ai: C 1, P 0.5, I and N 0.")
        if direction == "minimize":
            raise ArgumentError(
                f"{named('direction')} is 'minimize', but the grades of samples are to maximize. Leave it out."
            )
    elif direction is None:
        required_direction(REQUIRED)
    halted = {name: _texts(table, name) for name in ("error", "limit", "stop_reason")}
    values = np.where(halted["error"] != "", np.nan, values)
    kinds = pd.Series([error_kind(*why) for why in zip(*halted.values(), strict=True)], table.index, dtype=object)
    lost = np.isnan(values)
    notes += examples_of_kinds(halted["error"][lost], kinds[lost])
    scored = int(((halted["limit"] != "") & ~lost).sum())
    if scored:
        notes.append(f"{counted(scored, 'sample')} that reached a limit and had a score for it kept it.")
    score = name if name not in ("model", "task_name", "id", "epoch") else f"score_{name}"
    epochs = ("epoch",) if "epoch" in table else ()
    if epochs and table["epoch"].nunique() > 1:
        notes.append(f"{table['epoch'].nunique():,} epochs: repeated answers to one question are rows of one run.")
    return imported(
        table.assign(**{score: values}),
        source="inspect_ai samples",
        score=score,
        direction=direction or "maximize",
        algorithm="model",
        benchmark="task_name",
        seed="id",
        ignore=epochs,
        within=epochs,
        kinds=kinds,
        seed_shared=False,
        said={"seed": "the question (id) within its task"},
        notes=notes,
        repeated="If an evaluation was run again, keep one of them: filter the samples by eval_id.",
        alone="Give the samples of several models.",
    )


def _texts(table: pd.DataFrame, name: str) -> pd.Series[Any]:
    """The entries of a column, "" where there is none."""
    column = table[name] if name in table else pd.Series(None, table.index, dtype=object)
    return column.astype(object).where(column.notna(), "").astype(str).str.strip()


def error_kind(error: str, limit: str, stop_reason: str) -> str | None:
    """In which way a sample failed that has no score; the error goes before the limit, the limit before the output."""
    if error:
        text = error.lower()
        return next((kind for kind, marks in MARKS.items() if any(mark in text for mark in marks)), "error")
    if limit:
        return LIMITS.get(limit.lower(), "limit")
    return STOPPED.get(stop_reason.lower())


def examples_of_kinds(errors: pd.Series[Any], kinds: pd.Series[Any]) -> list[str]:
    """What errors were taken for, with the first of each kind: messages tell it, and nothing else does."""
    first = {kind: own.iloc[0] for kind, own in errors[errors != ""].groupby(kinds)}
    examples = "; ".join(f"{kind}: {one_line(text)[:60]!r}" for kind, text in sorted(first.items()))
    return [f"Errors are classified by words in their messages ({examples})."] if first else []


def _logs_of_folder(given: Any) -> Any:
    """The logs of a folder, where it holds some."""
    if not isinstance(given, (str, Path)) or not Path(given).is_dir():
        return given
    return logs_in(Path(given)) or given


def _evals(given: Any) -> pd.DataFrame:
    return table_of(
        given,
        argument="evals",
        files="*.parquet",
        mark="eval_id",
        needs=["eval_id"],
        what="a table of evaluations",
        advice="Read it by evals_df.",
    )


def _with_evals(table: pd.DataFrame, part: Part, evals: pd.DataFrame | None) -> pd.DataFrame:
    """The samples with the model and the task of their evaluation."""
    needs_columns(table, ["id"], origin=part.origin, what="a table of samples", advice=f"Read it by {READ}.")
    missing = [name for name in ("model", "task_name") if name not in table]
    if not missing:
        return table
    if evals is None:
        raise DataError(
            f"{part.origin} does not say the model and the task of a sample: it has no column "
            f"{listed(map(repr, missing))}. Read it by {READ}, or give " + advice("evals")
        )
    needs_columns(evals, missing, origin="evals", what="a table of evaluations", advice="Read it by evals_df.")
    needs_columns(
        table, ["eval_id"], origin=part.origin, what="a table of samples with evals", advice=f"Read it by {READ}."
    )
    unknown = set(table["eval_id"]) - set(evals["eval_id"])
    if unknown:
        raise DataError(f"evals lacks {len(unknown):,} evaluations of the samples, such as {min(map(str, unknown))!r}.")
    return table.merge(evals.drop_duplicates("eval_id")[["eval_id", *missing]], on="eval_id", how="left")


def _graded(column: pd.Series[Any], name: str) -> tuple[np.ndarray, bool]:
    """Scores as numbers, and whether they were grades or words, which say which end is good."""
    known = {**GRADES, **WORDS, **{word.capitalize(): value for word, value in WORDS.items()}, "": np.nan}
    advice = "Scores must be grades (C, I, P, N), yes or no, or numbers; of a score with several parts name one column."
    if column.dtype in (bool, object):
        column = column.astype(object).map(lambda value: str(value) if isinstance(value, (bool, np.bool_)) else value)
        if column.map(is_nested).any():
            return numbers_in(column, name=name, advice=advice), False  # says what is wrong
    graded = column.isin(list(known))
    numbers = column.map(known).where(graded, column.astype(object))
    return numbers_in(numbers, name=name, advice=advice), bool((graded | column.isna()).all())


# ------------------------------------------------------------------------------------------- lm-evaluation-harness

HIGHER = frozenset(
    [
        *(
            "acc",
            "acc_norm",
            "acc_mutual_info",
            "acc_bytes",
            "acc_all",
            "likelihood",
            "exact_match",
            "em",
            "f1",
            "pass@1",
        ),
        *(f"{part}_level_{how}_acc" for part in ("prompt", "inst") for how in ("strict", "loose")),
    ]
)
AS_LIKELIHOOD = "perplexity"  # low is good, but a document has its log-likelihood, of which high is
OWN = frozenset(
    [
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    ]
)
LOG = "Write them with lm_eval --log_samples --output_path FOLDER."


def lm_eval(
    samples: Any,
    *,
    metric: str | None = None,
    filter: str | None = None,
    direction: Literal["minimize", "maximize"] | None = None,
    keys: str | Sequence[str] = ("algorithm", "benchmark"),
) -> Runs:
    """Runs of the lm-evaluation-harness's ``samples_<task>_<date>.jsonl``: a row per document.

    Parameters
    ----------
    samples : path, list or mapping
        The folder of ``--output_path``, single files of it, or a pattern such as ``out/*/samples_arc_*.jsonl``. By name
        of the model: ``{"pythia": "out/pythia-70m"}``; or ``{"pythia": results["samples"]}`` of ``simple_evaluate``.
    metric : str, optional
        Which of several metrics, such as "acc_norm".
    filter : str, optional
        Which of several filters of the answers, such as "strict-match".
    direction : {"minimize", "maximize"}, optional
        Whether a high score is good. By default as the results file in the same folder says, else as the harness has
        it for its own metrics; for others it is required.
    keys : sequence of str
        What the names of a mapping are, from outside to inside.

    Returns
    -------
    Runs
        Algorithms are models: by name, else as the results file says, else the folder. Benchmarks are tasks, from the
        names of the files; seeds the documents of a task (``doc_id``).

    Raises
    ------
    ArgumentError, UnknownColumnError
        If there are several metrics or filters and none is named, or the direction is not known.
    DataError
        If a file holds no samples, or a metric has no number per document.

    Examples
    --------
    >>> def samples(*right):
    ...     return [{"doc_id": i, "filter": "none", "metrics": ["acc"], "acc": x} for i, x in enumerate(right)]
    >>> runs = lm_eval({"small": {"arc": samples(1.0, 0.0)}, "large": {"arc": samples(1.0, 1.0)}})
    >>> runs.to_frame()["acc"].tolist()
    [1.0, 0.0, 1.0, 1.0]
    """
    found = parts_of(
        samples, argument="samples", keys=check_keys(keys), files="samples_*.jsonl*", is_content=_is_records
    )
    tables, said = [], dict[str, dict[str, None]]()
    results: dict[Path, dict[str, Any]] = {}
    for part in found:
        labels = {role: (label, "the name that was given") for role, label in part.labels.items()}
        if part.path is not None:
            labels = {**_of_path(part.path, results), **labels}
        missing = [role for role in ("algorithm", "benchmark") if role not in labels]
        if missing:
            raise DataError(f"Nothing says the {missing[0]} of {part.origin}. {advice('sample_names')}")
        for role, (_, origin) in labels.items():
            said.setdefault(role, {})[origin] = None
        table = _records(part)
        tables.append(table.assign(model=labels["algorithm"][0], task=labels["benchmark"][0]))
    table = pd.concat(tables, ignore_index=True)
    name = one_of(_metrics(table), metric, argument="metric", what="metrics", origin="samples")
    has = table["metrics"].map(lambda names: name in _listed(names)) if "metrics" in table else table[name].notna()
    others = sorted(set(table["task"]) - set(table.loc[has, "task"]))
    notes = [f"Left out: tasks without the metric {name} ({listed(others)})."] if others else []
    table = table[has]
    if filter is not None or ("filter" in table and table["filter"].nunique() > 1):
        filters = [str(text) for text in table["filter"].unique()] if "filter" in table else []
        chosen = one_of(filters, filter, argument="filter", what="filters", origin="samples")
        table = table[table["filter"] == chosen]
        notes.append(f"Answers are filtered by {chosen}.")
    whole = f"What is computed from all documents, as bleu, has no score of one. Metrics: {listed(_metrics(table))}."
    values = numbers_in(table[name], name=name, advice=whole)
    if name == AS_LIKELIHOOD:
        notes.append(f"{name}: a document has its log-likelihood, of which high is good.")
    return imported(
        table.assign(**{name: values}),
        source="Samples of the lm-evaluation-harness",
        score=name,
        direction=_direction(name, direction, results),
        algorithm="model",
        benchmark="task",
        seed="doc_id",
        seed_shared=False,
        said={
            "algorithm": f"the model ({' or '.join(said['algorithm'])})",
            "benchmark": f"the task ({' or '.join(said['benchmark'])})",
            "seed": "the document (doc_id) within its task",
        },
        notes=notes,
        repeated="If a task was evaluated again, give the files of one evaluation only.",
        alone=f"Give the samples of several models: {advice('model_names')}.",
    )


def _is_records(thing: Any) -> bool:
    """Whether these are samples, and not several mappings by name: a sample has numbers."""
    if not isinstance(thing, list) or not thing or not isinstance(thing[0], Mapping):
        return False
    return not all(isinstance(value, (list, Mapping)) for value in thing[0].values())


def _records(part: Part) -> pd.DataFrame:
    table = (
        pd.DataFrame(part.content)
        if part.path is None and _is_records(part.content)
        else frame_of(part, argument="samples")
    )
    needs_columns(table, ["doc_id"], origin=part.origin, what="a file of samples", advice=LOG)
    return table


def _of_path(path: Path, results: dict[Path, dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """What the name of a file, the results file beside it and its folder say."""
    if not path.is_file():
        raise not_found(path)
    name = path.name.partition(".jsonl")[0]
    kind, _, rest = name.partition("_")
    task, _, date = rest.rpartition("_")
    if kind != "samples" or not task:
        raise DataError(f"The file {str(path)!r} is not called samples_<task>_<date>.jsonl. {advice('sample_names')}")
    beside = path.with_name(f"results_{date}.json")
    if beside not in results and beside.is_file():
        results[beside] = json_of(beside)
    model = results.get(beside, {}).get("model_name")
    origin = "its results file" if model else "its folder"
    return {"algorithm": (str(model or path.resolve().parent.name), origin), "benchmark": (task, "its file name")}


def _metrics(table: pd.DataFrame) -> list[str]:
    """The metrics of the samples: as the samples say, or every column of their own with a number."""
    if "metrics" in table:
        said = [name for names in table["metrics"] for name in _listed(names)]
        return list(dict.fromkeys(said))
    return [
        n for n in names_of(table) if n not in OWN | {"model", "task"} and pd.api.types.is_numeric_dtype(table[n].dtype)
    ]


def _listed(names: Any) -> list[str]:
    """The names of metrics in a cell, which a file may hold as an array."""
    return [str(name) for name in names] if isinstance(names, (list, tuple, np.ndarray)) else []


def _direction(metric: str, given: Any, results: Mapping[Path, dict[str, Any]]) -> Any:
    said = {
        bool(metrics[metric])
        for content in results.values()
        for metrics in content.get("higher_is_better", {}).values()
        if isinstance(metrics, Mapping) and metrics.get(metric) is not None
    }
    if metric == AS_LIKELIHOOD or (not said and metric in HIGHER):
        said = {True}
    found = ("maximize" if said.pop() else "minimize") if len(said) == 1 else None
    if found is None or given is not None:
        given = required_direction(REQUIRED if given is None else given)
        if found not in (None, given):
            raise ArgumentError(f"{named('direction')} is {given!r}, but {metric!r} is to {found}. Leave it out.")
        return given
    return found


# ------------------------------------------------------------------------------------------------- logs of inspect_ai


AS_JSON = "Convert it: inspect log convert --to json --output-dir FOLDER FILE."
COMPLETE = "success"


def is_log(path: Path) -> bool:
    """Whether this is a log, by its suffix or its first keys; other json files are tables."""
    if path.suffix.lower() == ".eval":
        return True
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as handle:
        start = handle.read(4096)
    return b'"eval"' in start and b'"status"' in start


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder and below it."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_log(path))


def log_of(path: Path) -> tuple[pd.DataFrame, str]:
    """The samples of a log - model, task_name, id, epoch, a column per score, why it stopped - and its status."""
    if not path.is_file():
        raise not_found(path)
    header: Any
    samples: Any
    if path.suffix.lower() == ".eval":
        header, samples = _unpacked(path)
    else:
        header = json_of(path)
        samples = header.get("samples") if isinstance(header, Mapping) else None
    about = header.get("eval") if isinstance(header, Mapping) else None
    if not isinstance(about, Mapping) or not {"model", "task"} <= set(about):
        raise DataError(f"The file {str(path)!r} is no log of inspect_ai: it has no 'eval' with a model and a task.")
    if not samples:
        raise DataError(f"The log {str(path)!r} holds no samples: its status is {header.get('status', 'unknown')!r}.")
    rows = [_row(sample) for sample in samples]
    table = pd.DataFrame(rows).assign(model=str(about["model"]), task_name=str(about["task"]))
    return table, str(header.get("status", COMPLETE))


def _row(sample: Mapping[str, Any]) -> dict[str, Any]:
    scores = sample.get("scores") or {}
    if sample.get("score") is not None and not scores:  # of version 1
        scores = {"score": sample["score"]}
    found = {f"score_{name}": value for given, score in scores.items() for name, value in _values(given, score)}
    output, limit = sample.get("output"), sample.get("limit")
    choices = (output.get("choices") if isinstance(output, Mapping) else None) or [{}]
    return {
        "id": sample.get("id"),
        "epoch": sample.get("epoch", 1),
        **found,
        "error": _error(sample.get("error")),
        "limit": limit.get("type") if isinstance(limit, Mapping) else limit,
        "stop_reason": choices[0].get("stop_reason") if isinstance(choices[0], Mapping) else None,
    }


def _values(name: str, score: Any) -> Iterator[tuple[str, Any]]:
    """The value of a scorer, or those of its parts."""
    value = score.get("value") if isinstance(score, Mapping) else score
    if isinstance(value, Mapping):
        yield from ((f"{name}_{part}", single) for part, single in value.items())
    else:
        yield name, value


def _error(error: Any) -> str | None:
    return str(error.get("message", "error")) if isinstance(error, Mapping) else None if not error else str(error)


def _unpacked(path: Path) -> tuple[Any, list[Any]]:
    """The header of a packed log, and its samples as they are summed up there, else one by one."""
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_large_archive(archive, repr(str(path)))
            names = archive.namelist()
            header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            if header is None:
                raise DataError(f"The file {str(path)!r} is no log of inspect_ai: it has no header. Is it complete?")
            if "summaries.json" in names:
                samples = json.loads(archive.read("summaries.json"))
            else:  # of a run that was stopped
                inner = sorted(name for name in names if name.startswith("samples/"))
                samples = [json.loads(archive.read(name)) for name in inner]
            return json.loads(archive.read(header)), samples
    except DataError:
        raise
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise DataError(f"The log {str(path)!r} cannot be read ({error}). Is it complete?") from None
    except (NotImplementedError, RuntimeError):  # a packing that this version of Python does not know
        raise DataError(f"The log {str(path)!r} is packed in a way that Python cannot read here. {AS_JSON}") from None


# ---------------------------------------------------------------------------------------- what is recognised


def of_columns(table: Any) -> Recognised | None:
    scores = [name for name in table if name.startswith("score_")]
    if not scores or not {"sample_id", "eval_id"} <= set(table):
        return None
    own = [n.removeprefix("score_") for n in scores if not n.endswith(("_answer", "_explanation", "_metadata"))]
    own = [name for name in own if "headline" not in name]
    return Recognised(
        code="inspect_ai", what="samples of inspect_ai", columns=("sample_id", "eval_id", scores[0]),
        tool="inspect_ai", **metric_arguments(own),
    )  # fmt: skip


def of_name(file: str) -> Recognised | None:
    """What a file is by its suffix."""
    return _inspect_log(file, [], ("the suffix .eval",)) if file.lower().endswith(".eval") else None


def of_record(record: Mapping[str, Any], file: str) -> Recognised | None:
    """A log of one evaluation, a sample, or results of several tasks."""
    inner = record.get("eval")
    if isinstance(inner, Mapping) and "model" in inner and "task" in inner:
        samples = record.get("samples")
        first = samples[0] if isinstance(samples, list) and samples else None
        scores = first.get("scores") if isinstance(first, Mapping) else None
        scorers = list(scores) if isinstance(scores, Mapping) else []
        return _inspect_log(
            file, scorers, ("eval", *(name for name in ("status", "samples", "results") if name in record))
        )
    keys = [name for name in ("doc_id", "doc", "resps", "filtered_resps", "arguments") if name in record]
    if len(keys) > 2 and "doc_id" in record:
        said = record.get("metrics") or [n for n, v in record.items() if n not in _OF_SAMPLE and type(v) is float]
        return _lm_eval(file, keys, list(map(str, said)))
    if {"results", "configs"} <= set(record) and ("n-shot" in record or "versions" in record):
        return Recognised(
            code="lm_eval_results", what="results of the lm-evaluation-harness, one mean of each task",
            columns=("results", "configs"),
            advice="Compare the answers behind them, which it writes with lm_eval --log_samples: then lmemtest convert "
            "lm_eval FOLDER. Of means alone, one table of all models, in pandas: pd.DataFrame({'small': {task: "
            "row['acc,none'] for task, row in json.load(open('FILE'))['results'].items()}, ...})"
            ".rename_axis('task').to_csv('means.csv'), and then lmemtest rank means.csv --wide --direction maximize.",
        )  # fmt: skip
    return None


def _inspect_log(file: str, scorers: Sequence[str], reason: Iterable[str]) -> Recognised:
    """Logs of one evaluation each; several in a folder belong together."""
    path = Path(file)
    beside = sorted(str(other) for other in path.parent.glob("*" + path.suffix) if is_log(other)) if file else []
    return Recognised(
        code="inspect_ai", what="a log of inspect_ai", columns=tuple(reason), tool="inspect_ai",
        files=tuple(beside) if len(beside) > 1 else (), **metric_arguments(scorers),
    )  # fmt: skip


_OF_SAMPLE = ("doc_id", "target")


def _lm_eval(file: str, reason: Sequence[str], metrics: Sequence[str]) -> Recognised:
    """Samples of one model on one task each; the folder of all models is what is compared."""
    folder = Path(file).parent
    above = folder.parent if file else folder
    several = file and len({path.parent for path in above.glob("*/samples_*.jsonl*")}) > 1
    return Recognised(
        code="lm_eval", what="samples of the lm-evaluation-harness", columns=tuple(reason), tool="lm_eval",
        files=(str(above),) if several else (), **metric_arguments(metrics),
    )  # fmt: skip
