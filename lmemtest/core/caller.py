"""The language of advice: Python, options for those at the command line, arguments of a function that takes a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from lmemtest.core.advice import ADVICE, OF_A_TABLE

__all__ = ["advice", "command_with", "named", "on_command_line", "on_function", "quoted", "setting", "shell_line"]


@dataclass(frozen=True, slots=True)
class _Caller:
    """The command that was typed, or the function and its table; and what arguments are called there."""

    command: tuple[str, ...] = ("lmemtest",)
    options: Mapping[str, str] = field(default_factory=dict)
    function: str = ""
    table: str = ""


_CODE = "\\U"  # what bash calls a character by number
_CALLER: ContextVar[_Caller | None] = ContextVar("lmemtest_caller", default=None)


@contextmanager
def on_command_line(command: Sequence[str] = ("lmemtest",), options: Mapping[str, str] | None = None) -> Iterator[None]:
    """Give advice in options of the command line within this context; `cli` enters it.

    Parameters
    ----------
    command : sequence of str
        What was typed, word by word.
    options : mapping of str to str
        The option behind each argument in Python.
    """
    with _called(_Caller(tuple(command), options or {})):
        yield


@contextmanager
def on_function(function: str, table: str, arguments: Mapping[str, str]) -> Iterator[None]:
    """Give advice to those who call a function that takes the table itself; `compat` enters it.

    Parameters
    ----------
    function, table : str
        Its name, and that of its argument for the table.
    arguments : mapping of str to str
        Its argument for each role.

    Examples
    --------
    >>> with on_function("fidelity_check", "data", {"seed": "seed_var"}):
    ...     named("seed"), advice("role", role="seed"), advice("drop_missing")
    ('seed_var', 'fidelity_check(..., seed_var=...)', 'data.dropna(subset=[...])')
    """
    with _called(_Caller(options=arguments, function=function, table=table)):
        yield


@contextmanager
def _called(caller: _Caller) -> Iterator[None]:
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)


def advice(what: str, **values: Any) -> str:
    """What is advised, as the caller can type it.

    Parameters
    ----------
    what : str
        A key of `ADVICE`.
    **values : object
        The fields of its two templates.

    Examples
    --------
    >>> advice("role_of", role="family", column="data set")
    "Runs(..., family='data set')"
    >>> with on_command_line():
    ...     advice("role_of", role="family", column="data set")
    "--family 'data set'"
    """
    python, command_line = ADVICE[what]
    caller = _CALLER.get()
    if caller is None:
        return python.format(**values)
    if caller.function:
        values |= {"role": named(values["role"])} if "role" in values else {}
        return OF_A_TABLE.get(what, python).format(function=caller.function, table=caller.table, **values)
    written = {name: _Word(value) if isinstance(value, str) else value for name, value in values.items()}
    written |= {name: _Words(value) for name, value in values.items() if isinstance(value, list)}
    return command_line.format(**written)


def named(argument: str) -> str:
    """An argument as the caller knows it.

    Examples
    --------
    >>> named("metafeatures")
    'metafeatures'
    >>> with on_command_line(options={"metafeatures": "--metafeature"}):
    ...     named("metafeatures")
    '--metafeature'
    """
    caller = _CALLER.get()
    return argument if caller is None else caller.options.get(argument, argument)


def setting(argument: str, value: object) -> str:
    """An argument with a value, as the caller can type it.

    Examples
    --------
    >>> setting("metric", "log loss")
    "metric='log loss'"
    >>> with on_command_line(options={"metric": "--metric"}):
    ...     setting("metric", "log loss")
    "--metric 'log loss'"
    """
    return advice("typed", call=f"{argument}={value!r}", command=f"{named(argument)} {quoted(str(value))}")


def command_with(options: Sequence[str]) -> str:
    """The command that was typed, with further options, quoted for a shell.

    Examples
    --------
    >>> with on_command_line(["lmemtest", "check", "my runs.csv"]):
    ...     command_with(["--seed", "fold"])
    "lmemtest check 'my runs.csv' --seed fold"
    """
    caller = _CALLER.get()
    return shell_line([*(caller.command if caller is not None else ("lmemtest",)), *options])


def shell_line(words: Sequence[str]) -> str:
    """A command on one line, quoted for a shell.

    Examples
    --------
    >>> print(shell_line(["lmemtest", "check", "my runs.csv", "--seed", "a\\nb"]))
    lmemtest check 'my runs.csv' --seed $'a\\U0000000ab'
    """
    return " ".join(map(quoted, words))


def quoted(word: str) -> str:
    """A word of a command; characters that cannot be seen stand there by their number, as bash reads them."""
    import shlex

    if word.isprintable():
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"""$'{"".join(c if c.isprintable() else f"{_CODE}{ord(c):08x}" for c in escaped)}'"""


class _Word(str):
    """A text whose literal is a word of a shell."""

    __slots__ = ()
    __repr__ = quoted


class _Words(list[str]):
    """The words of a command; ``again``: of the one that was typed, with these."""

    def __format__(self, how: str) -> str:
        return command_with(self) if how == "again" else shell_line(self)
