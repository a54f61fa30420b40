"""Advice is written in one table, in both languages, and names calls, commands and options that exist."""

import ast
import re
from collections import defaultdict
from functools import cache
from string import Formatter
from typing import Any

import pytest
from source import PACKAGE, commands, nodes, texts

import lmemtest
from lmemtest.core.caller import ADVICE, OF_A_TABLE, advice, on_command_line, on_function

SAMPLES: dict[str, Any] = {
    "name": "benchmark",
    "role": "seed",
    "argument": "--target",
    "column": "data set",
    "least": 1999,
    "number": 2.0,
    "limit": 60.0,
    "larger": 600.0,
    "command": ["--seed", "data set"],
    "ignored": ["--ignore", "data set"],
}  # of fields that a call computes; the others are a word


@cache
def calls() -> dict[str, list[ast.Call]]:
    """The calls of `advice` in the package, by their keys."""
    calls = defaultdict(list)
    for _, node in nodes(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "advice":
            calls[str(ast.literal_eval(node.args[0]))].append(node)
    return dict(calls)


COMMANDS = dict(commands())
OPTIONS = {option for command in COMMANDS.values() for parameter in command.params for option in parameter.opts}


def fields_of(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_every_call_has_an_entry_and_every_entry_a_call():
    print(f"{sum(map(len, calls().values()))} places give advice of {len(ADVICE)} entries")
    assert set(calls()) == set(ADVICE)


def test_the_language_is_asked_for_in_core_only():
    asking = [path for path, text in texts().items() if re.search("in_words_of|_CALLER", text)]
    print(f"{len(asking)} module asks who calls")
    assert asking == [PACKAGE / "core" / "caller.py"]


@pytest.mark.parametrize("key", ADVICE)
def test_advice_can_be_followed_in_both_languages(key):
    for call in calls()[key]:
        fields = {keyword.arg: keyword.value for keyword in call.keywords}
        assert set(fields) == set().union(*map(fields_of, ADVICE[key]))
        values = {
            name: value.value if isinstance(value, ast.Constant) else SAMPLES.get(name, "word")
            for name, value in fields.items()
        }
        python = advice(key, **values)
        with on_command_line():
            command_line = advice(key, **values)
        assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", command_line)) <= OPTIONS
        assert set(re.findall(r"\blmemtest ([a-z]+)", command_line)) <= {first for first, *_ in COMMANDS}
        assert all(hasattr(lmemtest, name) for name in re.findall(r"\blmemtest\.(\w+)", python))
        assert all(hasattr(lmemtest.Runs, name) for name in re.findall(r"\bruns\.(\w+)\(", python))


def test_values_are_written_as_the_language_writes_them():
    assert advice("role_of", role="family", column="it's") == """Runs(..., family="it's")"""
    with on_command_line():
        assert advice("role_of", role="family", column="it's") == """--family 'it'"'"'s'"""
        assert advice("reference", reference="a\nb") == "--score-failures baseline=$'a\\U0000000ab'"


def test_a_function_of_a_table_fills_in_the_same_fields():
    for key, template in OF_A_TABLE.items():
        assert fields_of(template) <= {"function", "table"}.union(*map(fields_of, ADVICE[key])), key
    with on_function("check", "data", {"seed": "seed_var"}):
        assert advice("role", role="seed") == "check(..., seed_var=...)"
        assert advice("some_values", column="it's") == """data[data["it's"].isin([...])]"""
        assert advice("paired") == "paired=True"
