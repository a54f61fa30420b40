"""What a table or a json file is, if it is no table of runs: an export of another tool, answers to items, battles.

Every tool is known by columns (or keys) that it alone writes; the arguments of its importer come from the names of the
other columns. What only the user can know stays open, and is never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.column import direction_of, is_text, role_of, words_of
from lmemtest.bench.data.roles import answer_roles, battle_roles, is_solved_or_not
from lmemtest.core.caller import advice
from lmemtest.core.validate import is_number
from lmemtest.core.words import listed

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs

EVALUATE, VOTES = "evaluate", "votes"  # the tools of answers to items, and of battles
_CALLS = {EVALUATE: "evaluate", VOTES: "rate_votes"}  # the functions of tools that are no importers
ENDS = {"direction": "minimize|maximize"}
_OPTIONS = {"metafeatures": "--metafeature", "min_score": "--min", "max_score": "--max",
            "model_a": "--model-a", "model_b": "--model-b"}  # fmt: skip
_SHOWN = 4  # columns in a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """What a table is, by which columns, and the call that reads it.

    Attributes
    ----------
    code : str
        "mlflow", "wandb", "wandb_chart", "optuna", "sklearn", "inspect_ai", "lm_eval", "amlb", "hpob", "carps",
        "rliable", "promptfoo", "deepeval", "tensorboard", "sb3"; "items", "ratings" (answers of models to items),
        "battles", "trajectories", "smac", "lm_eval_results".
    what : str
        The same in a sentence.
    columns : tuple of str
        The columns or keys that show it.
    tool : str
        The importer that reads it, "evaluate", "votes", or "" if nothing does.
    files : tuple of str
        What the call takes: the file, or files and folders that belong together.
    options : mapping of str to object
        The other arguments.
    lacking : mapping of str to str
        Arguments that only the user can give, with what they may be.
    others : mapping of str to tuple of str
        Other values that an argument may have here.
    advice : str
        What to do with what nothing reads.
    """

    code: str
    what: str
    columns: tuple[str, ...]
    tool: str = ""
    files: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    advice: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The words after ``lmemtest``, without the options that are lacking; none if nothing reads it."""
        if not self.tool:
            return ()
        head = [self.tool] if self.tool in _CALLS else ["convert", self.tool]
        return (*head, *self.files, *self.given)

    @property
    def given(self) -> list[str]:
        """The options of the command."""
        pairs = [(_option(name), one) for name, value in self.options.items() for one in _several(value)]
        return [part for name, one in pairs for part in (name, f"{one:g}" if isinstance(one, float) else str(one))]

    @property
    def call(self) -> str:
        """The call in Python; none if nothing reads it."""
        if not self.tool:
            return ""
        files = list(self.files)
        first = "table" if not files or self.tool in _CALLS else repr(files[0] if len(files) == 1 else files)
        lacking = {name: choice.partition("|")[0] for name, choice in self.lacking.items()}
        given = [f"{name}={value!r}" for name, value in {**self.options, **lacking}.items()]
        function = _CALLS.get(self.tool, f"importers.{self.tool}")
        return f"lmemtest.{function}({', '.join([first, *given])})"

    def with_options(self, given: Mapping[str, Any]) -> Recognised:
        """The same with what the user says of its arguments."""
        said = {n: v for n, v in given.items() if v not in (None, ()) and (n in self.options or n in self.lacking)}
        lacking = {name: choice for name, choice in self.lacking.items() if name not in said}
        others = {name: values for name, values in self.others.items() if name not in said}
        return replace(self, options={**self.options, **said}, lacking=lacking, others=others)

    def runs(self) -> Runs:
        """The runs that the importer makes of it."""
        from lmemtest.bench import importers

        files = list(self.files)
        found: Runs = getattr(importers, self.tool)(files[0] if len(files) == 1 else files, **self.options)
        return found

    def in_words(self, shown: str) -> str:
        """What it is and what reads it, for a message about what is `shown`."""
        first = f"{shown} looks like {self.what} (columns {listed(self.columns[:_SHOWN])})"
        if not self.tool:
            return f"{first}. {self.advice}"
        open_ = [part for n, c in self.lacking.items() for part in (_option(n), c.partition("|")[0])]
        line = ["lmemtest", *self.command, *open_]
        said = [f"{first}:\n  {advice('typed', call=self.call, command=line)}"]
        choices = {n: tuple(c.split("|")[1:]) for n, c in self.lacking.items() if "|" in c}
        if "direction" in choices:
            said.append("Only you can say whether low or high scores are good: change the direction if high ones are.")
        for name, values in {**self.others, **{n: c for n, c in choices.items() if n != "direction"}}.items():
            option = advice("typed", call=name, command=_option(name))
            said.append(f"Other values of {option}: {listed(values, most=6)}.")
        return "\n".join([*said, *([self.advice] if self.advice else [])])


def _option(name: str) -> str:
    return _OPTIONS.get(name, f"--{name}")


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]


# ------------------------------------------------------------------------------------------------- what is recognised


def recognised(table: pd.DataFrame, file: str = "") -> Recognised | None:
    """What a frame is, if it is known not to be a table of runs; `file` is where it is from, for the call.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"run_id": ["1", "2"], "status": ["FINISHED", "FAILED"], "params.model": ["A", "B"],
    ...                       "metrics.val_acc": [0.8, 0.7]})
    >>> " ".join(recognised(table, "runs.csv").command)
    'convert mlflow runs.csv --score val_acc --direction maximize --algorithm model'
    """
    table = table.rename(columns=str)
    if not len(table) or not table.shape[1]:
        return None
    of_other = (known(table) for known in (_tensorboard, _battles, answers_in))
    found = _of_tool("of_columns", table) or next(filter(None, of_other), None)
    if found is not None:
        return _in_file(found, file)
    nested = [name for name in table if _is_nested(table[name].iloc[0])]
    return _of_content(table.head(3).to_dict("records"), file) if nested else None


def recognised_file(path: str | Path) -> Recognised | None:
    """What a json file or a log of inspect_ai is; None for other files, and for what cannot be read."""
    name = Path(path).name.lower()
    by_name = _of_tool("of_name", str(path))
    if by_name is not None:
        return _in_file(by_name, str(path))
    if not re.search(r"\.(json|jsonl|ndjson)(\.\w+)?$", name) or not Path(path).is_file():
        return None
    from lmemtest.bench.data.readers import open_table
    from lmemtest.errors import LmemtestError

    try:
        text = open_table(path).data.decode("utf-8-sig")
    except (LmemtestError, UnicodeError):  # the reader says so
        return None
    for part in (text, text.lstrip().partition("\n")[0]):  # one value, or one per line
        try:
            return _of_content(json.loads(part), str(path))
        except (ValueError, RecursionError):
            continue
    return None


def _is_nested(value: Any) -> bool:
    return isinstance(value, (list, dict, tuple))


def _of_tool(hook: str, *given: Any) -> Recognised | None:
    """What the first importer that knows it says, by one of its functions."""
    from lmemtest.bench.importers import register

    for file in dict.fromkeys(row.file for row in register.IMPORTERS.values()):
        ask = getattr(import_module(f"{register.__package__}.{file}"), hook, None)
        found: Recognised | None = ask(*given) if ask else None
        if found is not None:
            return found
    return None


def _in_file(found: Recognised | None, file: str) -> Recognised | None:
    """With the file that its call reads, if it says no others."""
    return found if found is None or found.files or not file else replace(found, files=(file,))


# --------------------------------------------------------------------------------------------------------- other data


def _tensorboard(table: Any) -> Recognised | None:
    if set(table) != {"Wall time", "Step", "Value"}:
        return None
    return Recognised(
        code="tensorboard",
        what="a scalar of one run, downloaded from TensorBoard",
        columns=("Wall time", "Step", "Value"),
        advice="It does not say of which run. Put the files of all runs under each other with columns of the "
        "algorithm and the seed, in pandas: pd.concat({('ours', 0): pd.read_csv('ours-0.csv'), ...}, "
        "names=['algorithm', 'seed']).reset_index().",
    )


def _battles(table: Any) -> Recognised | None:
    """Rows with two of the same names and which of them won."""
    roles = battle_roles(table)
    if not roles:
        return None
    return Recognised(
        code="battles", what="battles, where one of two wins", columns=tuple(roles.values())[:3], tool=VOTES,
        options=roles, advice="These are votes on pairs, and this is the command made for them.",
    )  # fmt: skip


_MADE_FOR = "This is the command made for such answers: models on these tasks, and on tasks like these."


def answers_in(table: Any, file: str = "", score: str | None = None) -> Recognised | None:
    """Rows with an answer of a model to an item, or a column of them for each model; None if it is not this score."""
    roles = answer_roles(table)
    if roles is None or score not in (None, roles.get("score")):
        return None
    others = [n for n in map(str, table.columns) if n != roles.get("score") and direction_of(n) is not None]
    if (
        score is None and "score" in roles and direction_of(roles["score"]) is None and others
    ):  # solved, and in what time
        return None
    rated = "max_score" in roles
    if not rated and "score" in roles and not is_solved_or_not(table[roles["score"]]):
        return None
    graded = "ratings of models by judges" if "judge" in roles else "grades of the answers of models to items"
    columns = [part for name in ("model", "item", "score") for part in _several(roles.get(name, ()))]
    return Recognised(
        code="ratings" if rated else "items",
        what=graded if rated else "answers of models to items, right (1) or wrong (0)",
        columns=tuple(columns), tool=EVALUATE, files=(file,) if file else (), options=roles, advice=_MADE_FOR,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------- by their keys


def _of_content(content: Any, file: str) -> Recognised | None:
    """What a value of a json file is."""
    if isinstance(content, list) and content and all(isinstance(record, dict) for record in content[:3]):
        return _of_record(content[0], file)
    if not isinstance(content, dict) or not content:
        return None
    return _of_record(content, file) or _in_file(_of_tool("of_names", content), file)


def _of_record(record: Mapping[str, Any], file: str) -> Recognised | None:
    return _in_file(_of_tool("of_record", record, file) or _trajectories(record) or _smac(record), file)


def _smac(record: Mapping[str, Any]) -> Recognised | None:
    """The trials of one run of SMAC."""
    if not {"stats", "data", "configs"} <= set(record):
        return None
    return Recognised(
        code="smac",
        what="the run history of SMAC, the trials of one run",
        columns=("stats", "data", "configs"),
        advice="It does not say of which run. Make one table of all runs with a row per trial, whose columns are "
        "algorithm, benchmark, seed, trial (their number in 'data') and cost, and then:\n  lmemtest report runs.csv "
        "--score cost --direction minimize --algorithm algorithm --benchmark benchmark --seed seed --budget trial "
        "--best-so-far",
    )


def _trajectories(record: Mapping[str, Any]) -> Recognised | None:
    """Runs of an agent with its messages."""
    course = next((name for name, value in record.items() if _is_course(value)), None)
    outcome = next((n for n in ("reward", "score", "success", "resolved", "correct", "passed") if n in record), None)
    if course is None or outcome is None:
        return None
    item = next((n for n in ("task_id", "instance_id", "id", "task", "item") if n in record), "task_id")
    epoch = next((name for name in ("trial", "attempt", "epoch", "run") if name in record), None)
    columns = [name for name in (item, epoch, outcome) if name is not None]
    options = f"--model model --item {item} --score {outcome}" + (f" --epoch {epoch}" if epoch else "")
    return Recognised(
        code="trajectories",
        what="trajectories of one agent, with its messages",
        columns=(course, *columns),
        advice="Its agent has no column. Make one table of all agents, in pandas: pd.concat({'agent': "
        f"pd.read_json('FILE')[{columns}], ...}}, names=['model']).reset_index('model').to_csv('answers.csv', "
        f"index=False), and then:\n  lmemtest evaluate answers.csv {options}",
    )


def _is_course(value: Any) -> bool:
    """Whether this is a list of messages or steps."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], Mapping)
        and bool({"role", "content", "action", "observation", "tool_calls"} & set(value[0]))
    )


def nesting(content: Mapping[str, Any]) -> tuple[tuple[str, ...], int]:
    """The first names, one within another, and the depth of the lists of numbers below them; -1 if these are none.

    >>> nesting({"space": {"data": [[0.1, 0.2]]}}), nesting({"space": "text"})
    ((('space', 'data'), 2), (('space',), -1))
    """
    value: Any = content
    names, lists = list[str](), 0
    while isinstance(value, Mapping) and value:
        name = next(iter(value))
        names.append(str(name))
        value = value[name]
    while isinstance(value, list) and value:
        value, lists = value[0], lists + 1
    return tuple(names), lists if is_number(value) else -1


# -------------------------------------------------------------------------------------- names of scores and runs


def metrics_among(table: Any, names: Iterable[str]) -> list[str]:
    """The numeric columns that are called like a score."""
    numeric = [name for name in names if not is_text(table[name])]
    return [name for name in numeric if direction_of(name) is not None and role_of(name) is None]


def metric_arguments(metrics: Sequence[str]) -> dict[str, Any]:
    """The first of several metrics, and the others; no argument where there is one."""
    if len(metrics) < 2:
        return {}
    return {"options": {"metric": metrics[0]}, "others": {"metric": tuple(metrics[1:])}}


_SETS = ({"test"}, {"val", "valid", "validation", "eval", "dev"}, {"train", "training"})


def score_arguments(metrics: Sequence[str]) -> dict[str, Any]:
    """The arguments that say the score: of a test set before validation, of training last, losses last in each."""

    def place(name: str) -> tuple[float, bool]:
        words = set(words_of(name))
        return next((i for i, some in enumerate(_SETS) if words & some), 1.5), direction_of(name) == "minimize"

    known = [name for name in metrics if direction_of(name) is not None]
    if not known:
        one = {"score": metrics[0]} if len(metrics) == 1 else {}
        return {"options": one, "lacking": {**({} if one else {"score": "|".join(metrics) or "COLUMN"}), **ENDS}}
    score = min(known, key=place)
    others = {"score": tuple(name for name in metrics if name != score)}
    options = {"score": score, "direction": direction_of(score)}
    return {"options": options, "lacking": {}, "others": others if len(metrics) > 1 else {}}


def tracked_arguments(table: Any, plain: Mapping[str, str], metrics: Sequence[str], runs: str) -> dict[str, Any]:
    """The arguments for a table of tracked runs, by the names of its settings."""
    arguments = score_arguments(metrics)
    varied = [name for name, column in plain.items() if name not in metrics and table[column].nunique() > 1]
    by_role = {role: [name for name in varied if role_of(name) == role] for role in ("algorithm", "benchmark", "seed")}
    if by_role["algorithm"]:
        arguments["options"] |= {role: names[0] for role, names in by_role.items() if names}
    elif runs in table:
        name_runs(arguments, table[runs].astype(str).unique())
    else:
        arguments["lacking"]["algorithm"] = "COLUMN"
    return arguments


def name_runs(arguments: dict[str, Any], names: Iterable[str]) -> None:
    """Add what the names of runs are made of, or that it must be said."""
    names = list(names)
    pattern = pattern_of(names)
    if pattern is not None:
        arguments["options"]["names"] = pattern
        return
    signs = sorted("-_/ .", key=lambda sign: (abs(names[0].count(sign) - 2), -names[0].count(sign)))
    sign = signs[0] if names[0].count(signs[0]) > 1 else "_"
    arguments["lacking"]["names"] = f"{{algorithm}}{sign}{{benchmark}}{sign}{{seed}}"
    arguments["advice"] = f"What is the algorithm, the benchmark and the seed in names such as {names[0]!r}?"


def pattern_of(names: Iterable[str]) -> str | None:
    """What names of runs are made of, if that is plain: an algorithm and a number, or algorithms alone.

    None if the names may also hold a benchmark, since nothing says which part is which.

    >>> pattern_of(["baseline-seed0", "baseline-seed1", "ours-seed0"]), pattern_of(["RF-iris-0", "SVM-iris-0"])
    ('{algorithm}-seed{seed}', None)
    """
    names = list(names)
    parts = [re.fullmatch(r"(.+?)([-_ ./]?(?:seed|run|rep|fold|trial|s|r)?[-_= ]?)(\d+)", name) for name in names]
    matched = [match for match in parts if match is not None]
    if len(matched) == len(names) and len({match[2] for match in matched}) == 1 and matched:
        stems = {match[1] for match in matched}
        if 1 < len(stems) < len(names) and matched[0][2] and not _has_parts(stems):
            return f"{{algorithm}}{matched[0][2]}{{seed}}"
        return None
    return "{algorithm}" if len(names) > 1 and not matched and not _has_parts(set(names)) else None


def _has_parts(stems: set[str]) -> bool:
    """Whether names share parts between separators, as an algorithm and a benchmark in one name do."""
    split = [re.split(r"[-_ ./]", stem) for stem in stems]
    return len({len(parts) for parts in split}) == 1 and any(
        len({parts[i] for parts in split}) < len(split) for i in range(len(split[0]))
    )
