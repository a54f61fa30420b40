"""One word for one thing, in the arguments of public functions and in the fields of results.

`ALLOWED` holds what is not yet renamed. It only shrinks: a new offender fails, and so does one that is no more.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator

from source import nodes

import lmemtest as lt
from lmemtest.core.result import Answer, Result
from lmemtest.lmm.model import LmmFit

ARGUMENTS = {
    "confidence": "alpha, or the level of a band in tuning",
    "df": "columns",
    "error": "target or unit",
    "interval": "simultaneous, or method of a bootstrap",
    "jackknife": "unit",
    "most": "max_rows, max_steps or max_models",
    "n_boot": "n_draws",
    "n_flips": "n_draws",
    "n_obs": "bic_n",
    "n_permutations": "n_draws",
    "n_sim": "n_draws",
    "over": "by",
    "paper": "nothing: it belongs to compat",
    "per": "by or unit",
    "response": "score",
    "runs_or_builder": "runs",
    "verbose": "nothing: it belongs to compat",
}
FIELDS = {
    "confidence": "alpha, or the level of a band in tuning",
    "lower": "ci_low or band_low",
    "n_boot": "n_draws",
    "n_flips": "n_draws",
    "n_permutations": "n_draws",
    "n_sim": "n_draws",
    "p_unadjusted": "p_raw",
    "pvalue": "p_value",
    "pvalue_error": "p_error",
    "response": "score",
    "upper": "ci_high or band_high",
    "verdict": "decision",
}

ALLOWED: set[str] = set()


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Public functions, those of public modules, and the public methods of classes and results."""
    classes = {LmmFit, *results()}
    for name in lt.__all__:
        thing = getattr(lt, name)
        if thing is lt.lmm:  # methods of a fit, and records that are built from arrays
            continue
        if inspect.ismodule(thing):
            yield from ((f"{name}.{inner}", getattr(thing, inner)) for inner in getattr(thing, "__all__", ()))
        else:
            yield name, thing
            classes |= {thing} if inspect.isclass(thing) else set()
    for owner in classes:
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{owner.__name__}.{name}", method


def results() -> list[type]:
    """Every class of results, each once (a slotted dataclass leaves a twin behind)."""
    for module in pkgutil.walk_packages(lt.__path__, "lmemtest."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: dict[str, type] = {}
    waiting = [Result]
    while waiting:
        for result in waiting.pop().__subclasses__():
            waiting.append(result)
            if ".compat." not in result.__module__ and not result.__name__.startswith("_"):
                found[result.__name__] = result
    return list(found.values())


def offenders() -> set[str]:
    found = set()
    for name, function in functions():
        parameters = inspect.signature(function).parameters
        found |= {f"{name}({word})" for word in ARGUMENTS if word in parameters}
        if "level" in parameters and ".tuning" not in function.__module__:
            found.add(f"{name}(level)")  # of intervals it is alpha
        if "rng" in parameters and parameters["rng"].default not in (None, inspect.Parameter.empty):
            found.add(f"{name}(rng={parameters['rng'].default!r})")
    for result in results():
        fields = {field.name for field in dataclasses.fields(result)} if dataclasses.is_dataclass(result) else set()
        found |= {f"{result.__name__}.{word}" for word in FIELDS if word in fields}
    return found


def test_one_word_for_one_thing() -> None:
    assert sorted(offenders() - ALLOWED) == [], "ARGUMENTS and FIELDS say which word it is"


def test_what_is_renamed_is_no_longer_allowed() -> None:
    assert sorted(ALLOWED - offenders()) == [], "renamed: take them out of ALLOWED"


def figure_of(result: type) -> str | None:
    """The name of the function that draws it; of an answer it is a field."""
    fields = {field.name: field.default for field in dataclasses.fields(result)} if issubclass(result, Answer) else {}
    return fields.get("figure", result.figure)


def test_every_figure_is_that_of_a_result() -> None:
    """What is drawn by some function has a figure, and that figure is a function which draws it."""
    known = {result.__name__: result for result in results() if not issubclass(result, Answer)}
    drawn: dict[str, set[str]] = {}
    for name in lt.plots.__all__:
        for parameter in list(inspect.signature(getattr(lt.plots, name)).parameters.values())[:1]:
            for word in set(re.findall(r"\w+", str(parameter.annotation))) & set(known):
                drawn.setdefault(word, set()).add(name)
    figures = {name: figure_of(result) for name, result in known.items()}
    assert {name: figures[name] for name in drawn if figures[name] not in drawn[name]} == {}
    family = {d: {*known[d].__mro__, *(r for r in known.values() if issubclass(r, known[d]))} for d in drawn}
    assert [
        name
        for name, result in known.items()
        if figures[name] is not None and not any(result in family[d] and figures[name] in drawn[d] for d in drawn)
    ] == []


def test_every_figure_of_an_answer_draws_its_question() -> None:
    """An answer names its question and its figure in one call, and that figure is a function which says so."""
    figures = {node.name: node for _, node in nodes(ast.FunctionDef)}
    named = set()
    for _, node in nodes(ast.Call):
        texts = {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)}
        if texts.get("figure") is not None and "question" in texts:
            named.add((texts["question"], texts["figure"]))
    assert len(named) > 15
    assert {(question, figure) for question, figure in named if question not in ast.unparse(figures[figure])} == set()
