"""From a file and the options to runs: rows, roles that are guessed and agreed to, what is done to the scores.

A file that another tool wrote is named for what it is, and read if the user agrees.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from lmemtest.cli.options import RUNS, TABLE, anchors, flags, number_or_text, options_of, roles_of
from lmemtest.cli.rendering import Step, say, tell
from lmemtest.core.caller import on_command_line, shell_line
from lmemtest.core.options import NEEDED
from lmemtest.core.sanitize import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from types import SimpleNamespace

    import pandas as pd

    from lmemtest.bench.data.forms import Tidy
    from lmemtest.bench.data.guessing import Guess, Reading
    from lmemtest.bench.data.readers import Source
    from lmemtest.bench.data.recognised import Recognised
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.result import Answer
    from lmemtest.errors import LmemtestError

EVALUATE, VOTES = "evaluate", "votes"
NESTED = {".eval", ".json", ".jsonl", ".ndjson"}  # files that may hold more than a table
_IMPORTS = ("metric", "filter", "duplicates", "names", "objective", "study", "parameter")  # arguments of importers
PREPARING = options_of("PREPARING")
ONE_ALGORITHM = "algorithm"  # column of a table of trials in which nothing is compared


def name_of(options: SimpleNamespace) -> str:
    """The file in messages."""
    return "standard input" if str(options.table) == "-" else options.table.name


def source_of(options: SimpleNamespace) -> Source:
    """The content of the file; whether it can be read is known before anything slow is imported."""
    from lmemtest.bench.data.readers import open_table

    return open_table(
        str(options.table),
        sheet=options.sheet,
        sep=options.sep,
        decimal=options.decimal,
        encoding=options.encoding,
    )


def read_table(options: SimpleNamespace, labels: Sequence[str] = (), seeds: Sequence[str] = ()) -> pd.DataFrame:
    """The rows that are asked for, of a table as it stands in the file."""
    table = source_of(options).read(labels=list(labels), seeds=list(seeds))
    if not options.where:
        return table
    from lmemtest.bench.data.selection import rows_where

    return rows_where(table, options.where, {})


def names_of(role: Any) -> list[str]:
    """The columns of a role that one or several make up."""
    return [role] if isinstance(role, str) else list(role or ())


def read_rows(options: SimpleNamespace, source: Source, roles: dict[str, Any]) -> pd.DataFrame:
    """The rows that are asked for."""
    return read_form(options, source, roles, wide=None if hasattr(options, "methods") else False).frame


def read_form(options: SimpleNamespace, source: Source, roles: dict[str, Any], *, wide: bool | None = None) -> Tidy:
    """The table as one of scores, with the rows that are asked for; what it was read as is told once."""
    from lmemtest.bench.data.forms import read_as

    several = [*roles["family"], *roles["metafeatures"]]
    labels = [name for name in (roles["algorithm"], roles["benchmark"], *several) if name]
    seeds = names_of(roles["seed"])
    others = [name for name in (*seeds, *several, roles.get("budget"), *roles.get("ignore", ())) if name]
    tidy = source.tidy(
        labels=labels,
        seeds=seeds,
        failed=split_failed(getattr(options, "failed", None))[0],
        kept=others if wide else [*labels, *others],
        score=None if wide else getattr(options, "score", None) or roles.get("score"),
        wide=wide,
        methods=getattr(options, "methods", None),
        label=roles["benchmark"] if wide else None,
    )
    tidy = _asked(tidy) if wide else tidy
    line = read_as(tidy.remarks)
    if line is not None and line not in source.told:
        source.told.append(line)
        say(line, err=True)
    if not options.where:
        return tidy
    from lmemtest.bench.data.selection import rows_where

    return replace(tidy, frame=rows_where(tidy.frame, options.where, roles))


def _asked(tidy: Tidy) -> Tidy:
    """The wide table with its methods where the user says, if nothing shows it and there is somebody to ask."""
    if tidy.certain or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return tidy
    from lmemtest.core.words import joined

    columns = [str(name) for name in tidy.frame.columns if name != tidy.label]
    compared = typer.confirm(f"Are {joined(columns)} what is compared?", default=True, err=True)
    return tidy.laid_out("columns" if compared else "rows")


def read_runs(
    options: SimpleNamespace, *, settle: bool, own_model: bool = False, doubts: list[Reading] | None = None
) -> Runs:
    """The runs; roles that are missing are guessed and taken once they are agreed to.

    Of several readings that are as good the first is taken where somebody can change it afterwards, and all are added
    to `doubts`; without it they are refused.

    With `settle`, so are those of columns that structure the rows, and without agreement they are refused. A file that
    another tool wrote is read by its importer.
    """
    roles, wide = roles_of(options), options.wide
    lacking = any(roles[name] is None for name in NEEDED if name == "direction" or not wide)
    export = export_in(options.table) if lacking and not wide else None
    if export is not None:
        return _prepared(options, _of_export(options, export, roles))
    source = source_of(options)
    from lmemtest.bench.data.guessing import guess
    from lmemtest.bench.data.recognised import recognised
    from lmemtest.errors import ArgumentError

    if lacking:
        export = None if wide else recognised(source.read(), str(options.table))
        if export is not None and export.tool != EVALUATE:
            return _prepared(options, _of_export(options, export, roles))
        if export is not None:
            if options.score is None and guess(source.read(), roles).passes_over(export.options.get("score")):
                raise ArgumentError(export.in_words(name_of(options)))
            tell(export.in_words(name_of(options)))
        tidy = read_form(options, source, {**roles, "algorithm": None} if wide else roles, wide=wide or None)
        reading = _guessed(options, tidy, roles, doubts)
        options.where, options.wide = [*(options.where or ()), *reading.conditions], wide or reading.wide
        roles, wide = {**roles, **reading.roles}, reading.wide
    if wide:
        return _prepared(options, _from_wide(options, source, roles))
    runs = _made(options, source, roles)
    if not lacking:
        say_if_answers(runs.to_frame(), options.table, name_of(options), options.score)
    if settle:
        from lmemtest.bench.checks.check import refuse_unnamed
        from lmemtest.bench.checks.rules import role_findings
        from lmemtest.bench.data.guessing import Guess, left_out
        from lmemtest.bench.data.roles import options_of, unnamed_columns, with_roles

        columns = unnamed_columns(runs)
        more = with_roles(runs, columns)
        rest = Guess(readings=(), left_out=left_out(runs.to_frame(), more))
        if columns and _agreed(rest, options_of(columns), options.yes):
            roles = more
            runs = _made(options, source, roles)
        elif columns and not own_model:  # what a model of one's own uses is known to `analyze`
            refuse_unnamed(role_findings(runs))
    return _prepared(options, runs)


def read_answerable(options: SimpleNamespace, step: Step) -> tuple[Answer, Runs | None, LmemtestError]:
    """What a table can answer, and its runs; roles that are not given are guessed. Without runs, why there are none.

    Where several readings are as good, what the first one could answer; and where words stand in place of scores, what
    could be answered if they are failed runs.
    """
    from lmemtest.bench.checks.answerable import answers_of, readings_of
    from lmemtest.bench.data.guessing import Guess
    from lmemtest.bench.data.recognised import recognised
    from lmemtest.errors import ArgumentError, DataError, LmemtestError

    roles, runs, refusal = roles_of(options), None, LmemtestError()
    lacking = any(roles[name] is None for name in NEEDED if name == "direction" or not options.wide)
    whole = str(options.table) != "-" and export_in(options.table) is None
    frame = read_table(options) if lacking and whole else None
    export = export_in(options.table) if frame is None else recognised(frame, str(options.table))
    of_runs = export is None or export.tool == EVALUATE
    agreed, readings, words = copy(options), Guess(readings=()) if lacking else None, list[str]()
    agreed.yes = options.yes or (lacking and of_runs)
    try:
        runs = likeliest = read_runs(agreed, settle=options.yes)
    except (ArgumentError, DataError) as error:
        if not (lacking or whole):
            raise
        refusal, likeliest = error, None
    if of_runs and (lacking or runs is None) and whole:
        frame = read_table(options) if frame is None else frame
        readings, words = readings_of(frame, roles, wide=options.wide)
        words = [] if options.failed else words
        if runs is None and readings.readings:
            first = readings.readings[0]
            agreed.wide = first.wide
            for name, value in first.roles.items():
                several = name in ("family", "seed", "metafeatures", "ignore")
                setattr(agreed, {"metafeatures": "metafeature"}.get(name, name), names_of(value) if several else value)
            agreed.failed = words or options.failed
            agreed.where = [*(options.where or ()), *first.conditions]
            with suppress(LmemtestError):
                likeliest = read_runs(agreed, settle=options.yes)
    if runs is None and not lacking and not (words and likeliest is not None):
        raise refusal
    step("what the table can answer")
    long = frame is None or likeliest is None or {likeliest.score, likeliest.algorithm} <= {*frame.columns}
    long = long and not any(getattr(options, name) for name in PREPARING) and of_runs and not words
    typed, sure = [str(options.table), *typed_words(options, RUNS[1:])], readings is not None and readings.sure
    table = [str(options.table), *typed_words(options, TABLE[1:])]
    if readings is not None and len(readings.readings) > 1:
        typed += readings.readings[0].options(roles, wide=options.wide)
        table += [part for condition in readings.readings[0].conditions for part in ("--where", condition)]
    elif lacking and not options.yes:
        typed.append("--yes")
    answers = answers_of(
        likeliest,
        export=export,
        frame=frame,
        readings=readings,
        effect=options.effect,
        words={"runs": typed, "table": table if long else []},
        unread=words,
    )
    return answers, likeliest if runs is not None or (sure and words) else None, refusal


def typed_words(options: SimpleNamespace, names: Iterable[str]) -> list[str]:
    """What was typed of some options."""
    words: list[str] = []
    for name in names:
        value = getattr(options, name)
        for one in value if isinstance(value, list) else [value]:
            words += [flags(name)[0], *([] if one is True else [str(one)])] if one not in (None, False) else []
    return words


def _made(options: SimpleNamespace, source: Source, roles: dict[str, Any]) -> Runs:
    """The runs of a long table."""
    from lmemtest.bench.data.runs import Runs

    tidy = read_form(options, source, roles, wide=False)
    return Runs(tidy.frame, **{**roles, "failed": tidy.roles["failed"]}).remembering(notes=source.told)


def _guessed(options: SimpleNamespace, tidy: Tidy, roles: dict[str, Any], doubts: list[Reading] | None) -> Reading:
    """The roles with those that names and structure suggest, if they leave one reading and the user agrees."""
    from lmemtest.bench.data.guessing import guess
    from lmemtest.core.words import listed
    from lmemtest.errors import ArgumentError

    table, roles = tidy.frame, {**roles, "failed": tidy.roles.get("failed")}
    guessed = guess(table, roles, wide=tidy.methods is not None)
    if guessed.sure and _agreed(guessed, guessed.readings[0].options(roles, wide=options.wide), options.yes):
        return guessed.readings[0]
    if len(guessed.readings) > 1 and doubts is not None:
        doubts += guessed.readings
        for line in guessed.taken(shell_line(guessed.readings[0].options(roles, wide=options.wide))):
            say(line, err=True)
        return guessed.readings[0]
    wide = tidy.methods is not None or any(reading.wide for reading in guessed.readings)
    needed = [f"--{name}" for name in NEEDED if roles[name] is None and (name == "direction" or not wide)]
    if len(guessed.readings) > 1:  # what they agree in is known
        values = {option: {one.roles.get(option[2:]) for one in guessed.readings} for option in needed}
        needed = [option for option in needed if len(values[option]) > 1] or needed
    missing = " and ".join(", ".join(needed or ["--wide"]).rsplit(", ", 1))
    message = f"{missing} must be given. Columns of {name_of(options)}: {listed(table.columns)}."
    told = guessed.told(roles, "", wide=options.wide)
    numbers = table.select_dtypes("number").shape[1]
    if "algorithm" in guessed.lacking and numbers > 1 and table.shape[1] - numbers <= 1:
        message += " If each algorithm has its own column, use --wide."
    if guessed.sure:
        told += "\n--yes takes these roles without asking."
    raise ArgumentError(f"{message} {told}" if guessed.sure else f"{message}\n{told}".rstrip())


def _of_export(options: SimpleNamespace, export: Recognised, roles: dict[str, Any]) -> Runs:
    """The runs of a file that another tool wrote."""
    from lmemtest.errors import ArgumentError

    export = export.with_options(roles)
    if options.where:  # of columns that the importer makes
        raise ArgumentError(export.in_words(name_of(options)))
    return runs_of_export(export, name_of(options), options.yes)


def _from_wide(options: SimpleNamespace, source: Source, roles: dict[str, Any]) -> Runs:
    """Runs of a table with a column per algorithm."""
    from lmemtest.bench.data.runs import Runs

    new = {name: roles[name] for name in ("score", "algorithm") if roles[name] is not None}
    tidy = read_form(options, source, {**roles, "algorithm": None}, wide=True)
    names = ("benchmark",) if tidy.methods == "columns" else ()
    names = (*names, "direction", "family", "seed", "budget", "metafeatures", "seed_shared")
    frame = tidy.frame.drop(columns=[name for name in roles["ignore"] if name in tidy.frame])
    direction = {name: roles[name] for name in names}
    say_if_answers(frame, options.table, name_of(options), None)
    return Runs.from_wide(replace(tidy, frame=frame), **direction, failed=tidy.roles["failed"], **new)


def _prepared(options: SimpleNamespace, runs: Runs) -> Runs:
    """Without missing scores, as the best so far, at budgets and normalised, as asked."""
    if options.drop_missing:
        whole, runs = runs.n_rows, runs.drop_missing()
        if whole > runs.n_rows:
            say(f"left out: {whole - runs.n_rows:,} of {whole:,} rows without a finite score", err=True)
    if options.drop_duplicates is not None:
        whole, runs = runs.n_rows, runs.drop_duplicates(options.drop_duplicates)
        if whole > runs.n_rows:
            say(runs.notes[-1], err=True)
    runs = runs.best_so_far() if options.best_so_far else runs
    runs = runs.at_budgets(options.at_budget) if options.at_budget else runs
    policy = policy_in(options)
    if policy is not None:
        runs = without_failures(policy, runs)
        say(runs.notes[-1], err=True)
    if options.normalize is None:
        return runs
    return runs.normalize(options.normalize, **{name: _anchor(text, runs) for name, text in anchors(options).items()})


def _anchor(text: str | None, runs: Runs) -> Any:
    """A number, unless it is the name of an algorithm or a column."""
    return text if text is None or text in (*map(str, runs.algorithms), *runs.columns) else number_or_text(text)


def split_failed(typed: Sequence[str] | None) -> tuple[list[str] | None, dict[str, Any]]:
    """The options --failed that say which runs failed, and what each kind of failure counts.

    >>> split_failed(["status", "infra=drop", "timeout=0"])
    (['status'], {'infra': 'drop', 'timeout': 0.0})
    """
    pairs = [part.partition("=") for part in typed or ()]
    return [kind for kind, sign, _ in pairs if not sign] or None, {
        kind: number_or_text(policy) for kind, sign, policy in pairs if sign
    }


def policy_in(options: SimpleNamespace) -> str | dict[str, Any] | None:
    """What failures count: all of them, or each kind."""
    from lmemtest.errors import ArgumentError

    by_kind, of_all = split_failed(options.failed)[1], options.score_failures
    if by_kind and of_all is not None:
        raise ArgumentError(
            "--score-failures is for all failures, --failed KIND=POLICY for each kind. Give one of them."
        )
    policy: str | None = of_all
    return by_kind or policy


def without_failures(policy: str | dict[str, Any], runs: Runs) -> Runs:
    """The runs without failures, as the options say."""
    name, sign, reference = policy.partition("=") if isinstance(policy, str) else ("", "", "")
    if sign and name == "baseline":
        failures = next((level for level in runs.algorithms if str(level) == reference), reference)
        return runs.score_failures(name, reference=failures)
    return runs.score_failures(number_or_text(policy) if isinstance(policy, str) else policy)


WORDS_OF_CURVES = {
    "mean": "the mean over its budgets: whole curves",
    "last": "its last score",
    "best": "its best score",
    "area": "the area under its curve: a mean over the budget, whatever the steps",
    "model": "nothing is reduced, and the model has the budget",
}


def settled_curves(runs: Runs, arguments: str | None, yes: bool) -> str | None:
    """What scores over a budget count: as given, by an answer on a terminal, or the default, which is shown."""
    from lmemtest.bench.data.per_run import curve_of
    from lmemtest.errors import LmemtestError

    if arguments is not None:
        return arguments
    try:
        how = curve_of(runs)
    except LmemtestError:  # the analysis says why
        return None
    if how is None:
        return None
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        say(f"taking --curves {how}: each run counts once, with {WORDS_OF_CURVES[how]}", err=True)
        return how
    say(f"Runs have scores at several values of {runs.budget}. What does each run count?", err=True)
    for name, meaning in WORDS_OF_CURVES.items():
        typer.echo(f"  {name:<6} {meaning}", err=True)
    return str(typer.prompt("Curves", default=how, value_proc=_curves, err=True))


def _curves(answer: str) -> str:
    """An answer that is one of the words; anything else is asked again."""
    if answer not in WORDS_OF_CURVES:
        raise typer.BadParameter(f"{answer!r} is not one of {', '.join(WORDS_OF_CURVES)}.")
    return answer


def _agreed(guessed_roles: Guess, options: list[str], yes: bool) -> bool:
    """Whether these roles are to be taken: by --yes, or by an answer on a terminal; they are shown in both cases."""
    if yes:
        for line in guessed_roles.taken(shell_line(options)):
            say(line, err=True)
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    typer.echo("By names and structure of the columns:", err=True)
    for part in map(one_line, options):
        typer.echo(f"  {part:<14}" if part.startswith("--") else f" {part}\n", err=True, nl=False)
    typer.echo("", err=True)
    for line in (
        *guessed_roles.reasons,
        *([f"Left out: {', '.join(guessed_roles.left_out)}"] if guessed_roles.left_out else []),
    ):
        say(line, err=True)
    return typer.confirm("Take these?", default=True, err=True)


def read_trials(options: SimpleNamespace) -> tuple[Any, list[str]]:
    """The table of trials with the columns that tell curves apart; without an algorithm all trials are of one."""
    from lmemtest.core.words import listed
    from lmemtest.errors import ArgumentError

    by = [name for name in (options.benchmark, options.algorithm) if name is not None]
    named = {name: getattr(options, name) for name in ("algorithm", "benchmark", "seed")}
    data = read_rows(options, source_of(options), {**named, "family": (), "metafeatures": ()})
    missing = [f"--{name}" for name in ("score", "direction") if getattr(options, name) is None]
    if missing:
        needed = " and ".join(missing)
        raise ArgumentError(f"{needed} must be given. Columns of {name_of(options)}: {listed(data.columns)}.")
    if options.algorithm is not None:
        return data, by
    if ONE_ALGORITHM in data.columns:
        raise ArgumentError(
            f"--algorithm must be given, because {name_of(options)} has a column {ONE_ALGORITHM!r}. To take its levels "
            "together, remove the column."
        )
    return data.assign(**{ONE_ALGORITHM: "all trials"}), [*by, ONE_ALGORITHM]


# ---------------------------------------------------------------------- files of other tools


def export_in(path: Path) -> Recognised | None:
    """What a json file or a log is, if it is no table of runs; nothing slow is imported for other files."""
    if not NESTED & {suffix.lower() for suffix in path.suffixes}:
        return None
    from lmemtest.bench.data.recognised import recognised_file

    return recognised_file(path)


def runs_of_export(export: Recognised, file_name: str, yes: bool) -> Runs:
    """The runs of a file that another tool wrote, if the user agrees to the command that reads it."""
    from lmemtest.errors import ArgumentError

    message = export.in_words(file_name)
    if not export.command or export.lacking or export.tool == VOTES:
        raise ArgumentError(message)
    if not yes and not confirmed(message, "Read it so and go on?"):
        raise ArgumentError(f"{message}\n--yes does this and goes on without asking.")
    if yes:
        tell(message)
    with on_command_line(("lmemtest", *export.command), {name: f"--{name}" for name in (*_IMPORTS, *export.options)}):
        runs = export.runs()
    for note in runs.notes:
        say(note, err=True)
    return runs


def confirmed(message: str, question: str) -> bool:
    """Whether the user says yes to a message on a terminal; elsewhere nobody is asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    tell(message)
    return typer.confirm(question, default=True, err=True)


def taken(options: list[str], yes: bool) -> bool:
    """Whether suggested options are to be taken: by --yes, or by an answer on a terminal."""
    if yes:
        say(f"taking {shell_line(options)}", err=True)
        return True
    return confirmed(f"By names and structure of the columns:\n  {shell_line(options)}", "Take these?")


def say_if_answers(table: Any, path: Path, name: str, score: str | None) -> None:
    """Name the command that is made for answers of models to items, if a table holds them."""
    from lmemtest.bench.data.recognised import answers_in

    answers = answers_in(table, str(path), score)
    if answers is not None:
        tell(answers.in_words(name))
