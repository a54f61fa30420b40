"""How a function of what was typed becomes a command: its options, its help, its answer."""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import Enum
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from lmemtest.cli.options import (
    FILE,
    OPTIONS,
    TYPED,
    direction,
    flags,
    is_positional,
    names_in,
    number,
    options_of,
    row,
)
from lmemtest.cli.rendering import INTERRUPTED, WRONG_INPUT, answer

_choices: Callable[..., Any] = Enum  # made of a table
_UsageError: Any = typer.BadParameter.__mro__[1]  # typer has it from click, or its own copy of it


def _parameter(place: str, option: str, needed: bool) -> inspect.Parameter:
    """An option of a command, as typer reads it."""
    kind, metavar, text = OPTIONS[row(place, option)]
    one: Any = kind[0] if isinstance(kind, list) else kind
    parser = {float: number, direction: direction}.get(one)
    if isinstance(one, tuple):
        one = _choices(option.title(), {choice: choice for choice in one}, type=str)
    typed: Any = str if one is direction else one
    typed = list[typed] if isinstance(kind, list) else typed
    typed = typed if needed or one is bool else typed | None
    hints: dict[str, Any] = {"metavar": metavar or None, "help": text, "parser": parser}
    positional = is_positional(place, option)
    annotation: Any = Annotated[typed, typer.Argument(**hints) if positional else typer.Option(*flags(option), **hints)]
    default = inspect.Parameter.empty if needed else False if one is bool else None
    return inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


class Typed(TyperGroup):
    """Commands that know what was typed, for advice that can be copied."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = ["lmemtest", *args]
        return super().parse_args(ctx, args)


class Command(TyperCommand):
    """A command whose help shows the defaults of the function that it calls, and its exit code where it is wrong."""

    calls = ""
    wrong = WRONG_INPUT

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            if not ctx.resilient_parsing:  # of a shell that completes
                self._refuse_repeated(ctx, args)
            return super().parse_args(ctx, args)
        except _UsageError as error:
            error.exit_code = self.wrong
            raise

    def _refuse_repeated(self, ctx: Any, args: list[str]) -> None:
        """Refuse an option that takes one value and has several, all but the last of which would be lost."""
        order: list[Any] = self.make_parser(ctx).parse_args(args=[*args])[2]
        for parameter in dict.fromkeys(order):
            single = parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_flag)
            if single and order.count(parameter) > 1:
                raise typer.BadParameter(
                    f"it takes one value, and was given {order.count(parameter)} times. Give it once.",
                    ctx=ctx,
                    param=parameter,
                )

    def get_help(self, ctx: Any) -> str:
        if self.calls:
            arguments = inspect.signature(function_at(self.calls)).parameters
            for parameter in self.params:
                parameters = arguments.get(str(parameter.name))
                if (
                    parameters is not None
                    and isinstance(parameters.default, (str, float))
                    and parameter.default is None
                ):
                    parameter.default = parameters.default
        return super().get_help(ctx)


def function_at(place: str) -> Callable[..., Any]:
    """The function at ``module:name`` in the package."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(f"lmemtest.{module}"), name)
    return function


app = typer.Typer(
    name="lmemtest",
    cls=Typed,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help, also where it is piped
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def command(
    name: str,
    words: str,
    short: str,
    *,
    calls: str = "",
    needed: Collection[str] = ("table",),
    wrong: int = WRONG_INPUT,
    group: typer.Typer = app,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a command of a function of what was typed and of `step`, which tells what is being done.

    Parameters
    ----------
    name, short
        The name in its `group`, and what stands in the list there.
    words
        Names in `OPTIONS`, or of their groups; `needed` are those without which there is no call.
    calls
        The function, as ``module:name``, whose defaults hold.
    wrong
        The exit code of a wrong command or table; another one than that of all commands is that of any failure, too.

    Notes
    -----
    The function returns a result, which is printed and saved as asked, or None if it has written itself; it may set
    the ``exit_code`` of what was typed.
    """
    options = options_of(words)
    place = name if group is app else f"{group.info.name} {name}"
    ordered = sorted(options, key=lambda option: option in FILE)
    parameters = [_parameter(place, option, option in needed) for option in ordered]
    saves = "output" in options and row(place, "output") == "output"

    def decorated(body: Callable[..., Any]) -> Callable[..., Any]:
        def call(context: typer.Context, **typed: Any) -> None:
            arguments = SimpleNamespace(**{key: _plain(value) for key, value in typed.items()}, exit_code=0)
            with _no_false_answer(wrong):
                answer(context, body, arguments, names_in(place, options), saves)
            if arguments.exit_code:
                raise typer.Exit(arguments.exit_code)

        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        call.__name__, call.__doc__ = body.__name__, body.__doc__
        call.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in (context, *parameters)}
        made = type(Command.__name__, (Command,), {"calls": calls, "wrong": wrong})
        group.command(name=name, cls=made, short_help=short)(call)
        return body

    return decorated


@contextmanager
def _no_false_answer(wrong: int) -> Iterator[None]:
    """Whatever goes wrong in a command whose exit codes are answers is none of them."""
    if wrong == WRONG_INPUT:
        yield
        return
    try:
        yield
    except typer.Exit as stop:
        raise typer.Exit(wrong if stop.exit_code == WRONG_INPUT else stop.exit_code) from None
    except _UsageError as error:
        error.exit_code = wrong
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception:
        traceback.print_exc()
        raise typer.Exit(wrong) from None


def _plain(value: Any) -> Any:
    """A choice as its text; nothing for an option that is repeated and was not given."""
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, list) and not value else value
