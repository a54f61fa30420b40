"""The commands that make tables of runs of what other tools write, one for each importer.

`TOOLS` repeats the arguments of `lmemtest.importers`, which would be slow to import only to know them; a test compares.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmemtest.cli.commands import app
from lmemtest.cli.options import POLICIES, Direction, RawCsv, number
from lmemtest.cli.reading import without_failures
from lmemtest.cli.rendering import progress, say, session
from lmemtest.core.caller import shell_line

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

WRITTEN = Path("lmemtest-runs.csv")
SUFFIXES = (".csv", ".parquet")


def _option(name: str, metavar: str, text: str, kind: Any = str) -> Any:
    return Annotated[kind | None, typer.Option(name, metavar=metavar, help=text)]


def _column(role: str, text: str) -> Any:
    return _option(f"--{role}", "COLUMN", text)


# An option for each argument of an importer.
OPTIONS: dict[str, Any] = {
    "direction": Direction,
    "score": _column("score", "The score, or the metric of a chart."),
    "algorithm": _column("algorithm", "What is compared."),
    "benchmark": _column("benchmark", "Tasks, or the names of the rows."),
    "seed": _column("seed", "What tells repetitions apart."),
    "budget": _column("budget", "Budget at which a score was taken."),
    "metafeatures": _option("--metafeature", "COLUMN", "What describes a run's circumstances.", list[str]),
    "algorithms": _option("--only", "COLUMN", "A column of scores; may be repeated. All others by default.", list[str]),
    "names": _option("--names", "PATTERN", "What names are made of: '{algorithm}_{benchmark}_{seed}'."),
    "study": _option("--study", "COLUMN", "Names of the studies in one table; by default study or study_name."),
    "metric": _option("--metric", "NAME", "Which of several metrics."),
    "objective": _option("--objective", "NAME", "Which of several objectives: its number from 0, or its name."),
    "parameter": _option("--parameter", "NAME", "Compare the values of this parameter instead of candidates."),
    "filter": _option("--filter", "NAME", "Which of several filters of the answers."),
    "evals": _option("--evals", "FILE", "What evals_df returns, for samples without their model and task."),
    "duplicates": _option("--duplicates", "last", "Of several attempts at one run keep the last one."),
    "averaged": _option("--averaged", "COUNT", "How many runs each number is the mean of.", int),
    "first": _option("--first", "COUNT", "The budget of the first score of a curve: 1, or 0.", int),
    "games": _option("--game", "NAME", "The name of a column of scores, in their order; repeated.", list[str]),
    "frames": Annotated[
        list[float] | None,
        typer.Option(
            "--frame", metavar="NUMBER", parser=number, help="The budgets of curves, in their order; repeated."
        ),
    ],
    "best_so_far": Annotated[
        bool, typer.Option("--single-trials", help="Scores of single trials instead of the best one so far.")
    ],
}
NAMES = {"metafeatures": "--metafeature", "algorithms": "--only", "games": "--game", "frames": "--frame"}


@dataclass(frozen=True)
class Tool:
    """What an importer reads, and the arguments that it takes after the files."""

    reads: str
    options: tuple[str, ...]
    by_name: bool = False  # whether a file may be given as NAME=FILE
    items: dict[str, str] | None = None  # its roles as options of `evaluate`


TRACKED = ("score", "direction", "algorithm", "benchmark", "seed", "budget", "metafeatures", "names")
ANSWERS = {"model": "algorithm", "task": "benchmark", "item": "seed"}
TOOLS = {
    "optuna": Tool(
        "trials_dataframe() of Optuna", ("direction", "objective", "names", "study", "best_so_far"), by_name=True
    ),
    "sklearn": Tool("cv_results_ or cross_validate of scikit-learn", ("metric", "parameter"), by_name=True),
    "wide": Tool(
        "a table of results as in papers: a column per algorithm",
        ("direction", "averaged", "benchmark", "algorithms", "score"),
    ),
    "hpob": Tool("curves as HPO-B publishes them (json)", ("direction", "first"), by_name=True),
    "carps": Tool("logs.parquet of CARP-S", ("metric", "best_so_far")),
    "amlb": Tool("results.csv of the AutoML benchmark", ("metric", "duplicates")),
    "inspect_ai": Tool(
        "logs of inspect_ai (.eval, .json), or its samples_df()", ("evals", "metric", "direction"), items=ANSWERS
    ),
    "lm_eval": Tool(
        "samples_*.jsonl of lm-evaluation-harness", ("metric", "filter", "direction"), by_name=True, items=ANSWERS
    ),
    "rliable": Tool("scores as rliable takes them (json, npz)", ("games", "frames", "direction")),
    "wandb": Tool("csv exports of Weights & Biases", TRACKED),
    "mlflow": Tool("search_runs() of MLflow, or its csv", TRACKED),
}

converter = typer.Typer(
    help="Make a table of runs of what another tool wrote.\n\n"
    "What was taken for what is printed, and then the command that compares the runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(converter, name="convert", short_help="Make a table of runs of what another tool wrote.")


def _add(name: str, tool: Tool) -> None:
    """The command of a tool."""

    def convert(
        context: typer.Context,
        files: list[str],
        output: Path,
        score_failures: str | None,
        raw_csv: bool,
        **given: Any,
    ) -> None:
        with session(context, path="FILE", **{name: f"--{name}" for name in tool.options} | NAMES):
            from lmemtest.report.files import check_report_path, write_atomically

            target = check_report_path(output, SUFFIXES)
            with progress() as step:
                step("reading")
                runs = _imported(name, tool, files, given)
                runs = runs if score_failures is None else without_failures(score_failures, runs)
                step("writing")
                write_atomically(target, _content(runs, target.suffix.lower(), raw_csv))
                step("")
            for note in runs.notes:
                say(note)
            for line in _next(runs, output, tool):
                say(line)

    metavar = "[NAME=]FILE..." if tool.by_name else "FILE..."
    file = Annotated[
        list[str], typer.Argument(metavar=metavar, help="Files, folders or patterns such as 'runs/*.csv'.")
    ]
    end = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="To write: .csv or .parquet.")]
    parameters = [
        ("context", typer.Context, inspect.Parameter.empty),
        ("files", file, inspect.Parameter.empty),
        *((option, OPTIONS[option], False if option == "best_so_far" else None) for option in tool.options),
        ("score_failures", _option("--score-failures", "POLICY", POLICIES), None),
        ("raw_csv", RawCsv, False),
        ("output", end, WRITTEN),
    ]
    convert.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for name, kind, default in parameters
        ]
    )
    convert.__annotations__ = {parameter: kind for parameter, kind, _ in parameters}
    text = f"Make a table of runs of {tool.reads}."
    named = " A file may be given by name: NAME=FILE, or NAME,NAME=FILE." if tool.by_name else ""
    convert.__doc__ = (
        f"{text}\n\nWhat was taken for what is printed, and then the command that compares the runs.{named}"
    )
    converter.command(name=name, short_help=f"{tool.reads}.")(convert)


for _name, _tool in TOOLS.items():
    _add(_name, _tool)


def _imported(name: str, tool: Tool, files: list[str], given: dict[str, Any]) -> Runs:
    from lmemtest.bench import importers

    options = {option: value for option, value in given.items() if value is not None and value != []}
    if "best_so_far" in options:
        options["best_so_far"] = not options["best_so_far"]  # --single-trials
    runs: Runs = getattr(importers, name)(_by_name(files) if tool.by_name else _alone(files), **options)
    return runs


def _by_name(files: list[str]) -> Any:
    """The files by name, if they have names."""
    from lmemtest.errors import ArgumentError

    found: dict[Any, list[str]] = {}
    for text in files:
        name, sign, file = text.partition("=")
        if sign and name and "/" not in name and not Path(text).exists():
            found.setdefault(tuple(name.split(",")), []).append(file)
        else:
            found.setdefault((), []).append(text)
    if () not in found:
        return {names if len(names) > 1 else names[0]: _alone(parts) for names, parts in found.items()}
    if len(found) > 1:
        raise ArgumentError(f"FILE must have a name for all or none, but {found[()][0]!r} has none. Give NAME=FILE.")
    return _alone(found[()])


def _alone(files: list[str]) -> Any:
    return files[0] if len(files) == 1 else files


def _content(runs: Runs, suffix: str, raw_csv: bool) -> str | bytes:
    table = runs.to_frame()
    if suffix == ".csv":
        from lmemtest.core.result import csv_text

        return csv_text(table, escape=not raw_csv)
    import io

    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _next(runs: Runs, output: Path, tool: Tool) -> list[str]:
    """What to call with the table; what failed runs count is a choice that the command must hold."""
    from lmemtest.bench.data.roles import command_of
    from lmemtest.core.caller import command_with

    roles = runs.roles()
    failed = runs.failed is not None
    policy = ["--score-failures", "worst"] if failed else []
    commands = [["lmemtest", "report", str(output), *command_of(roles), *policy]]
    said = [f"{runs.n_rows:,} rows in {output}. Compare them:"]
    if failed:
        said.append(f"({POLICIES} worst is one choice.)")
    if tool.items is not None and failed:  # `evaluate` knows no failures
        again = command_with(["--score-failures", "0"])
        said.insert(1, f"To evaluate answers without a score as wrong, convert them so: {again}")
    elif tool.items is not None:
        taken = {option: str(roles[role]) for option, role in tool.items.items()}
        taken |= {"score": runs.score, "direction": str(runs.direction)}
        taken |= dict(zip(["epoch"], runs.ignore, strict=False))
        options = [part for option, value in taken.items() for part in (f"--{option}", value)]
        commands.insert(0, ["lmemtest", "evaluate", str(output), *options])
    return [*said, *(f"  {shell_line(command)}" for command in commands)]
