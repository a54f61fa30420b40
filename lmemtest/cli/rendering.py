"""What a command writes: the answer, progress, warnings, and errors as messages with an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from lmemtest.cli.options import TYPED
from lmemtest.core.text import logged, one_line

if TYPE_CHECKING:
    from types import SimpleNamespace

    from lmemtest.core.result import Result
    from lmemtest.report.analysis import Analysis

WRONG_INPUT = 2
INTERRUPTED = 130  # what a shell reports of a program that Ctrl-C ends
READER_GONE = 141  # what a shell reports of a program that a closed pipe ends
INTERVAL = 10.0  # seconds between the lines of progress where standard error is no terminal


def say(sentence: str, *, err: bool = False) -> None:
    """One sentence on one line."""
    typer.echo(logged(one_line(sentence)), err=err)


def tell(message: str) -> None:
    """A message, perhaps of several lines, on standard error."""
    typer.echo(logged(message), err=True)


def write_report(analysis: Analysis, given: SimpleNamespace, step: Callable[[str], None]) -> None:
    import dataclasses

    from lmemtest.core.caller import command_with

    analysis = dataclasses.replace(analysis, call=command_with(()))
    escape = not getattr(given, "raw_csv", False)
    path = None if given.path is None else analysis.save(given.path, progress=step, escape=escape)
    step("")
    if getattr(given, "json", False):
        typer.echo(analysis.to_json(), nl=False)
        return
    from lmemtest.report.document import plain
    from lmemtest.report.wording import headline

    for sentence in headline(analysis):
        say(plain(sentence))
    typer.echo(str(path))


def write_result(
    found: Result, target: Path | None, step: Callable[[str], None], *, json: bool = False, raw_csv: bool = False
) -> None:
    """A result: printed as text or json, and as the file that was asked for, whose path is the last line."""
    from lmemtest.report.results import json_of

    if target is not None:
        step("writing")
        found.save(target, escape=not raw_csv)
    step("")
    typer.echo(json_of(found) if json else found.summary(), nl=not json)
    if target is not None:
        typer.echo(str(target))


def answer(
    context: typer.Context,
    body: Callable[..., Result | None],
    given: SimpleNamespace,
    names: dict[str, str],
    saves: bool,
) -> None:
    """Run a command: errors as messages, advice in options, inputs safe from outputs; its result is written."""
    from lmemtest.cli.inputs import UNASKED, refuse_inputs
    from lmemtest.core.caller import on_command_line
    from lmemtest.report.files import check_report_path

    with on_command_line(context.meta.get(TYPED, ["lmemtest"]), names), _errors():
        refuse_inputs(context)
        if saves:
            path = given.output or (None if getattr(given, "json", False) else UNASKED.get(str(context.command.name)))
            given.path = None if path is None else check_report_path(path)
        with progress() as step:
            result = body(given, step)
            if result is not None:
                write_result(result, given.path, step, json=given.json, raw_csv=given.raw_csv)


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
def progress() -> Iterator[Callable[[str], None]]:
    """What is being done, on standard error: a status on a terminal, elsewhere a line now and then."""
    with _status() if sys.stderr.isatty() else _lines() as step:
        yield step


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
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
def _lines() -> Iterator[Callable[[str], None]]:
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
