"""What a command writes: the answer, progress, warnings, and errors as messages with an exit code.

None of the files that it reads may be written over.
"""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from lmemtest.cli.options import TYPED
from lmemtest.core.sanitize import logged, one_line

if TYPE_CHECKING:
    from types import SimpleNamespace

    from lmemtest.core.result import Result
    from lmemtest.report.analysis import Analysis

WRONG_INPUT = 2
INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ends
READER_GONE = 141  # what a shell reports of a program that a closed pipe ends
_WIDTH, _LINES = 80, 40  # of a screen
_WORD = r"""(?:\$'(?:\\.|[^'\\])*'|'[^']*'|"[^"]*"|[^\s'"])+"""  # of a command, as `quoted` writes it
Step = Callable[[str], None]  # tells what is being done
INTERVAL = 10.0  # seconds between the lines of progress where standard error is no terminal

FILE = "FILE"  # the metavar of options that name a file, -o among them
OUTPUT = "output"
UNASKED = {"report": Path("lmemtest-report.html"), "demo": Path("lmemtest-demo.html")}  # written without -o


def say(sentence: str, *, err: bool = False) -> None:
    """One sentence on one line."""
    typer.echo(logged(one_line(sentence)), err=err)


_told: set[str] = set()  # by the command that runs: a table that is read again says nothing twice


def tell(message: str) -> None:
    """A message, perhaps of several lines, on standard error, once in a command."""
    if message not in _told:
        _told.add(message)
        typer.echo(logged(message), err=True)


def screen(answer: Result, name: str) -> str:
    """What a table can answer, on one screen: 80 columns, at most 40 lines.

    Where that is too little, first what another kind of table would answer is one line, then each command.
    """
    import re
    import textwrap

    def wrapped(text: str, indent: str) -> list[str]:
        return textwrap.wrap(one_line(text), _WIDTH, initial_indent=indent, subsequent_indent=indent)

    def continued(command: str) -> list[str]:
        """The words of a command on lines that a shell joins."""
        lines = ["  "]
        for word in re.findall(_WORD, command):
            if len(lines[-1]) + len(word) + 3 > _WIDTH and lines[-1].strip():
                lines.append("    ")
            lines[-1] += f" {word}" if lines[-1].strip() else word
        return [f"{line} \\" for line in lines[:-1]] + lines[-1:]

    head = [*wrapped(f"What {name} can answer", ""), *(line for fact in answer.facts for line in wrapped(fact, "  "))]
    head = [*head[: _LINES // 5], *(["  ..."] * (len(head) > _LINES // 5))]
    frame = answer.to_frame().sort_values("answerable", key=lambda column: column == "no", kind="stable")
    of_others = frame["blocked_by"].isin(["no_items", "no_votes"])
    layouts = (
        (frame, "", continued),
        (frame[~of_others], "no     Questions on items and votes, which need a row per answer or vote", continued),
        (frame, "", lambda command: [f"  {command}"]),
    )
    for shown, last, layout in layouts:
        parts = dict[tuple[str, ...], list[str]]()
        for row in shown.to_dict("records"):  # what is said of several is said once
            key = row["known"], row["unblocks"], row["command"]
            parts.setdefault(key, []).append(f"{row['answerable']:<7}{row['asks']}")
        lines = list(head)
        for (known, unblocks, command), asks in parts.items():
            about = [line for text in (known, unblocks) if text for line in wrapped(text, " " * 9)]
            lines += [*asks, *about, *(layout(command) if command else [])]
        lines += [last] * bool(last)
        if len(lines) <= _LINES:
            break
    return logged("\n".join(lines))


def load_scipy() -> None:
    """Load what both processes of a report need before the second one starts.

    SciPy copies all names of NumPy, so that its compiler of Fortran and its tests are loaded: half of the time.
    """
    import numpy as np

    unneeded = {"f2py", "testing"} - vars(np).keys()
    vars(np).update(dict.fromkeys(unneeded))
    try:
        import scipy.special  # noqa: F401
    finally:
        for name in unneeded:
            delattr(np, name)


def load_drawing() -> None:
    """Load what figures are drawn with and what is drawn, for the second process."""
    from lmemtest.plots import load_alone

    load_alone()
    import lmemtest.plots.behind_best
    import lmemtest.report.sections  # noqa: F401


@contextmanager
def drawing_beside(paths: Iterable[Path]) -> Iterator[None]:
    """A second process draws the figures of the report within this context, if its files have any."""
    from lmemtest.core.replicates import second_process
    from lmemtest.report.files import FIGURES_BESIDE

    has_figures = any(path.suffix.lower() in (".html", ".htm", *FIGURES_BESIDE) for path in paths)
    if not has_figures:
        yield
        return
    load_scipy()
    with second_process(load_drawing):
        yield


def write_report(analysis: Analysis, arguments: SimpleNamespace, step: Step) -> None:
    import dataclasses

    from lmemtest.core.caller import command_with

    analysis = dataclasses.replace(analysis, call=command_with(()))
    escape = not getattr(arguments, "raw_csv", False)
    paths = [analysis.save(path, progress=step, escape=escape) for path in arguments.paths]
    step("")
    if getattr(arguments, "json", False):
        typer.echo(analysis.to_json(), nl=False)
        return
    say_verdict(analysis)
    for path in paths:
        typer.echo(str(path))


def say_verdict(analysis: Analysis) -> None:
    """The answer in a few sentences, and what qualifies it."""
    from lmemtest.report.document import plain
    from lmemtest.report.first_screen import badges, verdict

    say(" ".join(plain(sentence) for sentence in verdict(analysis)))
    if analysis.runs.curve is not None:
        say(analysis.runs.curve.sentence)
    for badge in badges(analysis):
        if badge.severity in ("error", "warning"):
            say(f"{badge.severity}: {badge.text}")


def write_result(
    result: Result, targets: Sequence[Path], step: Step, *, json: bool = False, raw_csv: bool = False
) -> None:
    """A result: printed as text, whose last lines are the paths of the files that were asked for; or as json alone."""
    from lmemtest.report.files import json_of

    for target in targets:
        step("writing")
        result.save(target, escape=not raw_csv)
    step("")
    typer.echo(json_of(result) if json else result.summary(), nl=not json)
    for target in () if json else targets:
        typer.echo(str(target))


def answer(
    context: typer.Context,
    body: Callable[..., Result | None],
    arguments: SimpleNamespace,
    names: dict[str, str],
    saves: bool,
) -> None:
    """Run a command: errors as messages, advice in options, inputs safe from outputs; its result is written."""
    from lmemtest.core.caller import on_command_line
    from lmemtest.report.files import check_report_path

    _told.clear()
    with on_command_line(context.meta.get(TYPED, ["lmemtest"]), names), _errors():
        refuse_inputs(context)
        if saves:
            unasked = None if getattr(arguments, "json", False) else UNASKED.get(str(context.command.name))
            asked = arguments.output or ([] if unasked is None else [unasked])
            arguments.paths = [check_report_path(path) for path in asked]
        with progress() as step:
            result = body(arguments, step)
            if result is not None:
                write_result(result, arguments.paths, step, json=arguments.json, raw_csv=arguments.raw_csv)


@contextmanager
def _errors() -> Iterator[None]:
    """One message instead of a traceback where the input is wrong; warnings as messages."""
    import warnings

    from lmemtest.errors import LmemtestError, LmemtestWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LmemtestWarning)
        try:
            yield
        except LmemtestError as error:
            _fail(str(error))
        except BrokenPipeError:
            # the reader has gone (`| head`): stop in silence, also when Python flushes the rest at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(READER_GONE) from None
        except UnicodeError as error:
            tell(f"error: a text cannot be written: {error}. Names must be whole Unicode characters; mend the table.")
            raise typer.Exit(WRONG_INPUT) from None
        except MemoryError as error:
            reason = f" ({' '.join(str(error).split())[:200].rstrip('.')})" if str(error) else ""
            _fail(
                f"There is not enough memory for this{reason}. Take fewer rows with --where; or give Runs a lazy table "
                "in Python, such as polars.scan_parquet(path)."
            )
        except OSError as error:
            named = error.strerror and error.filename is not None
            _fail(f"{error.strerror}: {str(error.filename)!r}" if named else str(error))
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                tell(f"warning: {text}")


def _fail(message: str) -> NoReturn:
    tell(f"error: {message}")
    raise typer.Exit(WRONG_INPUT)


@contextmanager
def progress() -> Iterator[Step]:
    """What is being done, on standard error: a status on a terminal, elsewhere a line now and then."""
    with _status() if sys.stderr.isatty() else _lines() as step:
        yield step


@contextmanager
def _status() -> Iterator[Step]:
    from rich.console import Console

    status = Console(stderr=True).status("starting")

    def step(text: str) -> None:
        if text:
            status.update(f"{text} ...")
            status.start()  # not before: questions may be asked until then
        else:
            status.stop()

    try:
        yield step
    finally:
        status.stop()


@contextmanager
def _lines() -> Iterator[Step]:
    """The step at hand every `INTERVAL` seconds, so that a log shows life and a short command stays silent."""
    import threading
    import time

    done, start, current = threading.Event(), time.monotonic(), "starting"

    def step(text: str) -> None:
        nonlocal current
        current = text
        if not text:
            done.set()

    def tell() -> None:
        while not done.wait(INTERVAL):
            typer.echo(f"{current} ... ({time.monotonic() - start:.0f} s)", err=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield step
    finally:
        done.set()
        teller.join()


# ---------------------------------------------------------------------- inputs


def refuse_inputs(context: Any) -> None:
    """Refuse an output that is an input under whatever name, or no file, before any work.

    An input is every positional argument and every option that names a file; a folder that is read holds inputs.
    """
    from lmemtest.errors import ArgumentError

    written = context.params.get(OUTPUT) or UNASKED.get(context.command.name)
    outputs = [(path, inputs) for path in _outputs(written) if (inputs := _stat(path)) is not None]
    for path, inputs in outputs:
        if not (stat.S_ISREG(inputs.st_mode) or stat.S_ISDIR(inputs.st_mode)):
            raise ArgumentError(f"-o must be a file, but {str(path)!r} is a pipe or a device. Choose another name.")
    if not outputs:
        return
    for name, input_stat, folder in _inputs(context):
        for path, inputs in outputs:
            if stat.S_ISDIR(inputs.st_mode):  # its files are outputs of their own
                continue
            inside = folder is not None and folder in path.resolve().parents
            if inside or os.path.samestat(inputs, input_stat):
                where = f"is in the folder {name}, which is read" if inside else f"is an input, {name}"
                raise ArgumentError(
                    f"-o must not be a file that the command reads, but {str(path)!r} {where}. Choose another name."
                )


def _outputs(arguments: Any) -> Iterator[Path]:
    """What would be written, the files of a folder included."""
    from lmemtest.report.files import CURVE_FILES, PAPER_FILES

    for text in arguments if isinstance(arguments, (list, tuple)) else [arguments]:
        if text is not None:
            path = _expanded(text)
            yield path
            yield from (path / name for name in (*CURVE_FILES, *PAPER_FILES) if os.path.isdir(path))


def _inputs(context: Any) -> Iterator[tuple[str, os.stat_result, Path | None]]:
    """Each input as what it is called, what it is, and its true path if it is a folder."""
    for parameter in context.command.params:
        values = context.params.get(parameter.name)
        names_file = parameter.param_type_name == "argument" or parameter.metavar == FILE
        if values is None or parameter.name == OUTPUT or not names_file:
            continue
        for text in values if isinstance(values, (list, tuple)) else [values]:
            if str(text) == "-":
                yield from _standard_input()
                continue
            for name in dict.fromkeys([str(text), str(text).partition("=")[2]]):  # NAME=FILE of `convert`
                path = _expanded(name)
                for inputs in [path, *map(Path, glob.glob(str(path), recursive=True))] if name else []:
                    names = _stat(inputs)
                    if names is not None:
                        yield repr(str(inputs)), names, inputs.resolve() if stat.S_ISDIR(names.st_mode) else None


def _standard_input() -> Iterator[tuple[str, os.stat_result, None]]:
    try:
        yield "standard input", os.fstat(_descriptor()), None
    except (OSError, ValueError, AttributeError):  # closed, or no file of the system
        return


def _descriptor() -> int:
    """Of standard input."""
    return sys.stdin.fileno()


def _expanded(text: Any) -> Path:
    return Path(os.path.expanduser(text))  # leaves the ~ of a user that nobody knows


def _stat(path: Path) -> os.stat_result | None:
    """What a path leads to, through links; None if that is nothing or no name of a file."""
    try:
        return path.stat()
    except (OSError, ValueError):
        return None
