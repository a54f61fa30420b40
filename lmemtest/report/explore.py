"""The explorer: a state, which is the query of an address, and what a page shows of the analysis that it names.

Every number is that of `variant`, in the words of the report; nothing here knows of a server or a notebook. A state
says what differs from the plan: ``without.benchmark=adult&alpha=0.01&role.prior=ignore``.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from lmemtest.bench.benchmark.observed_advantages import observed_advantages
from lmemtest.bench.checks.check import check_rules, of_reduced, refuse_unnamed
from lmemtest.bench.checks.rules import role_findings
from lmemtest.bench.data.column import direction_of
from lmemtest.bench.data.roles import command_of, keywords_of
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.modelling.shared_seeds import with_shared_seeds
from lmemtest.bench.robustness.variant import refitted, varied
from lmemtest.bench.robustness.variants import raw_runs
from lmemtest.core.caller import on_page
from lmemtest.core.options import DIRECTIONS
from lmemtest.core.sanitize import one_line
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_column, check_fraction
from lmemtest.core.words import counted, format_level, format_p, listed, suggest
from lmemtest.errors import ArgumentError, LmemtestError, LmemtestWarning, UnknownColumnError
from lmemtest.report import wording
from lmemtest.report.analysis import Analysis
from lmemtest.report.document import plain
from lmemtest.report.first_screen import badges, verdict
from lmemtest.report.leaders import leaders
from lmemtest.report.page import (
    CHOICES,
    CONTROLS,
    TESTS,
    fields_of,
    number_of,
    parts_of,
    query_of,
    reanalysed,
    shown,
    ticks_of,
)

if TYPE_CHECKING:
    from lmemtest.bench.data.guessing import Reading

__all__ = ["explorer", "plan_of"]

MOST_LEVELS = 300  # of a column, for which the page has a box each; an address can name any
MOST_FIELDS = 5000  # of an address
MOST_READINGS = 4  # that are named
KEPT = 64  # answers that need not be made again, for the way back
MOST_ANALYSES = 8  # fits and tables that are kept, a few megabytes each
_ONE, _SEVERAL = ("score", "algorithm", "benchmark", "budget", "failed"), ("seed", "family", "metafeatures", "ignore")
ROLES = (*_ONE, *_SEVERAL, "none")
ARGUMENTS = ("without", "only", *CHOICES, "alpha", "formula")  # of `variant`, that an address can have
_T = TypeVar("_T")
_OPTIONS = ("role", "direction", *ARGUMENTS, "reference")


def explorer(
    runs: Runs, *, plan: Mapping[str, Any] | None = None, source: Mapping[str, Any] | None = None
) -> Callable[[str, str], dict[str, Any]]:
    """A function that answers what is asked of a state.

    Parameters
    ----------
    runs : Runs
        The whole table.
    plan : mapping, optional
        Arguments of `variant` of the planned analysis; those of `analyze` by default.
    source : mapping, optional
        Where the table is from, for the code that gives an answer again: ``path``, the words that were ``typed``,
        ``line``, which writes the words of a command, whether the scores were ``prepared`` for the roles, and the
        readings that are as good as these roles, the taken one first, as ``doubts``.

    Returns
    -------
    callable
        Of "answer" or "checks", and a state as a query: what the page shows, as values of JSON. An error of the
        package is its ``error``. Variants that were looked at are counted, each once. Threads take turns.
    """
    planned, origin = dict(plan or {}), dict(source or {})
    fixed = bool(runs.scale or runs.failures or runs.curve or origin.get("prepared"))
    looked, lock = set[str](), threading.Lock()
    readings: dict[str, Runs] = {}
    scaled: dict[str, tuple[Runs, list[str]]] = {}
    fits: dict[str, tuple[Any, str, list[str]]] = {}
    analyses: dict[str, tuple[Analysis, list[str], list[str]]] = {}
    answers: dict[str, dict[str, Any]] = {}
    checked: dict[str, dict[str, Any]] = {}
    with on_page(CONTROLS):
        context = copy_context()  # a server answers in other threads, in the same language of advice

    def analysed(state: dict[str, Any], table: Runs) -> tuple[Analysis, list[str], list[str]]:
        """The analysis of a state, what was warned of, and what is not as planned."""
        arguments = _with_plan(planned, state)
        key = query_of({name: value for name, value in state.items() if name not in (*TESTS, "reference")})
        refit, scaled_as, texts = _once(fits, key, lambda: fitted(arguments, table), MOST_ANALYSES)
        with _warnings() as warned:
            found, changes = reanalysed(refit, arguments, state, scaled_as)
        changes = [*_readings_in_words(state), *changes]
        return Analysis(**found, call="", timings={}), list(dict.fromkeys([*texts, *warned])), changes

    def fitted(arguments: dict[str, Any], table: Runs) -> tuple[Any, str, list[str]]:
        """What analyses share that differ in their tests alone, and what was warned of."""
        with _warnings() as warned:
            table, arguments, scaled_as = scaled_once(table, arguments, warned)
            refit = refitted(table, **{name: value for name, value in arguments.items() if name not in TESTS})
        return refit, scaled_as, warned

    def analysis_of(state: dict[str, Any], table: Runs) -> tuple[Analysis, list[str], list[str]]:
        key = query_of({**state, "reference": None})
        return _once(analyses, key, lambda: analysed(state, table), MOST_ANALYSES)

    def look(state: dict[str, Any], table: Runs) -> dict[str, Any]:
        def made() -> dict[str, Any]:
            analysis, warned, changes = analysis_of(state, table)
            answer = _whole(analysis, state.get("reference"))
            return {**answer, "notes": [*answer["notes"], *warned], "changes": changes}

        return _once(answers, query_of(state), made, KEPT)

    def check(state: dict[str, Any], table: Runs) -> dict[str, Any]:
        return _once(checked, query_of(state), lambda: _checks(analysis_of(state, table)[0]), KEPT)

    def scaled_once(table: Runs, arguments: dict[str, Any], warned: list[str]) -> tuple[Runs, dict[str, Any], str]:
        """Scores are normalised once where what is left out are whole groups within which they are."""
        if "scale" not in arguments:
            return table, arguments, ""

        def made() -> tuple[Runs, list[str]]:
            with _warnings() as texts:
                whole = (raw_runs(table) or table).normalize(arguments["scale"])
            whole.study.groups((whole.algorithm,))  # of which every variant is a part
            return whole, texts

        whole, texts = _once(scaled, f"{keywords_of(table.roles())} {arguments['scale']}", made, MOST_ANALYSES)
        parts = {column for place in ("without", "only") for column in arguments.get(place, ())}
        if whole.scale is None or not parts <= {*whole.scale.by}:
            return table, arguments, ""
        warned += texts
        return whole, {name: value for name, value in arguments.items() if name != "scale"}, whole.score

    def asked(what: str, query: str, problems: list[str], answer: dict[str, Any]) -> None:
        as_planned, fields = _roles_of(query, runs, fixed, problems)
        key = query_of(as_planned)
        if what == "answer":
            answer["controls"] = partial(_controls, runs, fixed, as_planned, planned)  # they mend what has no answer
            answer["doubts"] = "" if as_planned else _doubts(origin.get("doubts", ()))
        table = _once(readings, key, lambda: _read_otherwise(runs, as_planned), MOST_ANALYSES) if key else runs
        state = {**as_planned, **_options_of(fields, table, problems)}
        if what == "checks":
            answer |= check(state, table)
            answer |= {
                "plan": check(as_planned, table)["verdict"],
                "exported": _exported(answer["verdict"], look(state, table)["changes"], len(looked)),
            }
            return
        answer["controls"] = partial(_controls, table, fixed, state, planned)
        answer |= look(state, table)
        varies = query_of({**state, "reference": None})
        looked.update([varies] if varies else [])
        plan = checked.get(key) or look(as_planned, table)
        answer |= {
            "state": fields_of(state),
            "plan": plan["verdict"],
            "exported": _exported(answer["verdict"], answer["changes"], len(looked)),
            "code": _code(runs, table, fixed, state, _with_plan(planned, state), origin),
        }

    @one_blas_thread()
    def ask(what: str, query: str) -> dict[str, Any]:
        problems: list[str] = []
        answer: dict[str, Any] = {}
        with lock:
            try:
                context.copy().run(asked, what, query, problems, answer)
            except LmemtestError as error:
                answer["error"] = str(error)
            if "controls" in answer:
                answer["controls"] = answer["controls"]()
            return {**answer, "query": query, "problems": problems, "looked": len(looked)}

    return ask


def plan_of(analysis: Analysis) -> dict[str, Any]:
    """The arguments of `variant` that give the pairs of an analysis: what differs from the defaults."""
    table, errors = analysis.table, analysis.pairs.errors
    chosen, like = dict[str, Any](), dict[str, Any]()
    if analysis.own_formula:
        chosen = like = {"formula": analysis.formula}
    else:
        model = varied(table)[1]
        curves, usual = ((runs.curve.how if runs.curve else "model") for runs in (analysis.runs, model.runs))
        chosen |= {"curves": curves} if curves != usual else {}
        like = {"population": analysis.recommendation.population}
        chosen |= like if like["population"] != model.population else {}
    _, _, fit, pairs, _ = varied(table, **like)
    same = pairs if pairs.errors == errors else varied(table, **like, vcov=errors)[3]  # has an adjustment of its own
    options = {
        "alpha": (analysis.alpha, 0.05),
        "adjust": (analysis.pairs.adjust, same.adjust),
        "vcov": (errors, pairs.errors),
        "ddf": (analysis.pairs.ddf, "satterthwaite"),
        "dispersion": (analysis.fit.dispersion, fit.dispersion),
    }
    return {**chosen, **{name: ours for name, (ours, usual) in options.items() if ours != usual}}


def _once(kept: dict[str, _T], key: str, make: Callable[[], _T], most: int) -> _T:
    """What was made under a key; of so many keys the newest are kept."""
    if key not in kept:
        made = make()
        while len(kept) >= most:
            del kept[next(iter(kept))]
        kept[key] = made
    return kept[key]


# ------------------------------------------------------------------------------------------- an address and a state


def _roles_of(query: str, runs: Runs, fixed: bool, problems: list[str]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What a query says of the roles of columns, and its other fields."""
    try:
        fields = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        problems.append(f"The address has more than {MOST_FIELDS:,} fields, and is not used.")
        return {}, []
    state: dict[str, Any] = {}
    direction, now, rest = "", _role_by_column(runs), []
    for name, value in fields:
        place, dot, column = name.partition(".")
        if place != "role" and name != "direction":
            rest.append((name, value))
            continue
        try:
            if fixed:
                raise ArgumentError("The table was prepared for these roles. Give others when it is read.")
            if name == "direction":
                direction = check_choice(value, "direction", DIRECTIONS)
                continue
            if column not in now or not dot:
                raise UnknownColumnError(f"There is no such column.{suggest(column, now)} Columns: {listed(now)}.")
            if check_choice(value, "role", ROLES) != now[column]:
                state.setdefault("role", {})[column] = value
        except LmemtestError as error:
            problems.append(_not_used(name, value, error))
    if direction and direction != _usual_direction(runs, state):
        state["direction"] = direction
    return state, rest


def _usual_direction(runs: Runs, state: Mapping[str, Any]) -> str:
    """Which scores are better where nobody says: what the name of another score says, else as in the table."""
    scores = [column for column, role in state.get("role", {}).items() if role == "score"]
    return next(filter(None, map(direction_of, scores)), runs.direction)


def _role_by_column(runs: Runs) -> dict[str, str]:
    """The role of each column of the table, "none" without one."""
    roles = {name: "none" for name in runs.columns if name != runs.seed or len(runs.seeds) < 2}
    for role in (*_ONE, *_SEVERAL):
        named = runs.seeds if role == "seed" else getattr(runs, role)
        for column in (named,) if isinstance(named, str) else named or ():
            if column in roles:
                roles[column] = role
    return roles


def _read_otherwise(runs: Runs, state: Mapping[str, Any]) -> Runs:
    """The table with other roles; a column that takes the role of another one leaves it without."""
    now, changed = _role_by_column(runs), state.get("role", {})
    by_column = {column: role for column, role in now.items() if column not in changed} | changed
    roles: dict[str, Any] = {**runs.roles(), "direction": state.get("direction") or _usual_direction(runs, state)}
    for role in _ONE:
        named = [column for column in by_column if by_column[column] == role]
        newly = [column for column in named if column in changed]
        if len(newly) > 1:
            raise ArgumentError(f"{role} is one column, and {listed(newly)} are named. Give one of them another role.")
        if role != "failed" or runs.failed in now or named:  # "missing" is no column
            roles[role] = next(iter(newly or named), None)
    roles |= {role: tuple(name for name in by_column if by_column[name] == role) for role in _SEVERAL}
    roles["seed"] = roles["seed"] or None
    roles["family"] = tuple(sorted(roles["family"], key=lambda name: (*runs.family, name).index(name)))
    for role in ("score", "algorithm"):
        if roles[role] is None:
            raise ArgumentError(f"There is no {role}. Give a column this role: one is needed.")
    table = Runs(runs.frame, **roles)
    refuse_unnamed(role_findings(table))
    return table


def _options_of(fields: Iterable[tuple[str, str]], runs: Runs, problems: list[str]) -> dict[str, Any]:
    """What a query says beside roles, as arguments of `variant` and the reference; what cannot be is told and left."""
    state: dict[str, Any] = {}
    levels: dict[str, dict[str, Any]] = {}
    by_role = {role: getattr(runs, role) for role in ("algorithm", "benchmark", "budget", "seed")}
    by_role["family"] = runs.family[0] if len(runs.family) == 1 else None
    for name, value in fields:
        place, dot, named_column = name.partition(".")
        try:
            if place in ("without", "only") and dot:
                column = named_column if named_column in runs.columns else by_role.get(named_column) or named_column
                if column not in levels:
                    check_column(column, runs.columns, argument=name)
                    levels[column] = {format_level(level): level for level in runs.levels(column)}
                if value not in levels[column]:
                    raise ArgumentError(
                        f"It does not occur in the column {column!r}.{suggest(value, levels[column])} Its values: "
                        f"{listed(map(repr, levels[column]))}."
                    )
                named = state.setdefault(place, {}).setdefault(column, [])
                named += [levels[column][value]] if levels[column][value] not in named else []
            elif name in CHOICES:
                state[name] = check_choice(value, name, CHOICES[name])
            elif name == "alpha":
                state[name] = check_fraction(float(value), name)
            elif name == "formula":
                state |= {name: value} if value.strip() else {}
            elif name == "reference":
                if value not in map(format_level, runs.algorithms):
                    raise ArgumentError(f"It is no algorithm.{suggest(value, map(format_level, runs.algorithms))}")
                state[name] = value
            else:
                raise ArgumentError(f"There is no such option.{suggest(place, _OPTIONS)} Options: {listed(_OPTIONS)}.")
        except (LmemtestError, ValueError) as error:
            problems.append(_not_used(name, value, error))
    return state


def _not_used(name: str, value: str, error: Exception) -> str:
    reason = str(error) if isinstance(error, LmemtestError) else "It is no number."
    return f"{one_line(name)[:80]}={one_line(value)[:80]} in the address is not used. {reason}"


def _with_plan(planned: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `variant`; a formula and what would choose the model replace each other."""
    chosen = {name: value for name, value in state.items() if name in ARGUMENTS}
    model = ("population", "curves")
    rivals = model if "formula" in chosen else ("formula",) if any(name in chosen for name in model) else ()
    return {**{name: value for name, value in planned.items() if name not in rivals}, **chosen}


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What the package warns of within this context, as texts when it ends."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LmemtestWarning)
        yield texts
    texts += dict.fromkeys(str(warning.message) for warning in caught if issubclass(warning.category, LmemtestWarning))


# ---------------------------------------------------------------------------------------------- what a state gives


def _checks(analysis: Analysis) -> dict[str, Any]:
    """What the rows, and the means on each benchmark, say of the claim: as the first screen of a report has it."""
    whole, runs = analysis.table.study.without_properties, analysis.runs
    own = analysis.fit.design.parsed if analysis.own_formula else None
    check = check_rules(whole, own, dispersion=analysis.fit.dispersion)
    if runs.curve is not None and runs is not analysis.table:
        check = of_reduced(check, runs, analysis.fit.dispersion)
    effects = observed_advantages(analysis.fit, runs, alpha=analysis.alpha)
    check = with_shared_seeds(check, analysis.fit, runs, analysis.recommendation, analysis.alpha)
    full = replace(analysis, table=whole, check=check, effects=effects)
    problems = [
        {
            "severity": outcome.severity,
            "title": outcome.check,
            "text": f"{check.in_sum(outcome)} {outcome.advice}".strip(),
        }
        for outcome in check.to_fix
    ]
    return {
        "verdict": parts_of(verdict(full)),
        "badges": [[badge.text, badge.severity] for badge in badges(full)],
        "problems_of_table": problems,
        "cautions": [plain(text) for text in wording.cautions(full)],
        "overview": check.overview,
    }


def _whole(analysis: Analysis, reference: str | None) -> dict[str, Any]:
    """What the explorer shows of an analysis: diagram and matrix beside the rest."""
    answer = shown(analysis, reference)
    names = leaders(analysis)
    decisions, pairs = names.decisions, names.pairs.columns
    tips = names.pairs.sentences()
    places = {name: i for i, name in enumerate(decisions.levels)}
    means = {row[0]: row[2] for row in answer["ranking"]["rows"]}
    return {
        **answer,
        "formula": analysis.formula,
        "used": {
            name: _in_words(name, value)
            for name, value in {
                "population": analysis.recommendation.population if not analysis.own_formula else "",
                "curves": analysis.runs.curve.how if analysis.runs.curve is not None else "model",
                "adjust": analysis.pairs.adjust,
                "vcov": analysis.pairs.errors,
            }.items()
        },
        "notes": [*analysis.pairs.notes, *analysis.decisions.notes],
        "diagram": {
            "what": f"Mean {wording.measured(analysis)}",
            "means": [number_of(x) for x in decisions.means],
            "texts": [means.get(name, "") for name in decisions.levels],
            "groups": [[places[name] for name in group] for group in decisions.groups if len(group) > 1],
            "ticks": ticks_of([number_of(x) for x in decisions.means]),
            "turned": analysis.runs.direction == "maximize",
        },
        "matrix": {
            "codes": decisions.codes.tolist(),
            "p": [
                [places[a], places[b], format_p(p)]
                for a, b, p in zip(pairs["left"], pairs["right"], pairs["p_value"], strict=True)
            ],
            "tips": [
                [places[a], places[b], tip] for a, b, tip in zip(pairs["left"], pairs["right"], tips, strict=True)
            ],
        },
    }


def _in_words(name: str, value: str) -> str:
    """What a value of a control is called."""
    return CONTROLS[name][1].get(value, value)


def _readings_in_words(state: Mapping[str, Any]) -> list[str]:
    words = {"ignore": "{} ignored", "none": "{} without a role", "metafeatures": "{} as a metafeature"}
    changes = [words.get(role, f"{{}} as {role}").format(column) for column, role in state.get("role", {}).items()]
    return changes + ([f"{state['direction']} it"] if "direction" in state else [])


def _doubts(readings: Sequence[Reading]) -> str:
    """What else the columns may be, and where to say so."""
    if not readings:
        return ""
    taken, *others = (reading.when.removeprefix("if ") for reading in readings)
    where = "with --where, in the terminal" if readings[0].where else "under “roles of the columns”"
    return (
        f"Names and structure leave {counted(len(readings), 'reading')}. Taken: {taken}. "
        f"Otherwise: {'; '.join(others[: MOST_READINGS - 1])}. Choose {where}."
    )


def _exported(verdict: Iterable[Iterable[Any]], changes: list[str], looked: int) -> str:
    """The verdict as a sentence to be copied, with what it is among the variants that were looked at."""
    said = " ".join("".join(p if isinstance(p, str) else p[0] for p in text) for text in verdict)
    if changes:
        return (
            f"{said} Exploratory: {', '.join(changes)}. {counted(looked, 'variant')} of the planned analysis "
            f"{'was' if looked == 1 else 'were'} looked at; the level holds for one stated beforehand."
        )
    beside = f"{counted(looked, 'variant')} {'was' if looked == 1 else 'were'} looked at beside it."
    return f"{said} This is the analysis as planned{f'; {beside}' if looked else '.'}"


# ------------------------------------------------------------------------------------------------ code and controls


def _code(
    runs: Runs,
    table: Runs,
    fixed: bool,
    state: Mapping[str, Any],
    arguments: Mapping[str, Any],
    origin: Mapping[str, Any],
) -> dict[str, str]:
    """The same answer in Python and by a command; an empty command where there is none, and why."""
    called = "".join(f", {name}={value!r}" for name, value in arguments.items())
    path, typed = origin.get("path"), list(origin.get("typed", ()))
    roles = {**table.roles(), "seed": table.seeds if len(table.seeds) > 1 else table.seed}
    if path is not None and not typed and not fixed:
        first = f"runs = lt.read_runs({str(path)!r}, {keywords_of(roles)})"
    elif table is not runs:
        first = f"runs = lt.Runs(runs.frame, {keywords_of(roles)})"
    else:
        first = f"# runs: those that were explored, lt.Runs(table, {keywords_of(roles)})"
    python = (
        f"import lmemtest as lt\n\n{first}\npairs = lt.variant(runs{called})\nprint(pairs.decisions(alpha=pairs.alpha))"
    )
    parts = any(name in state for name in ("without", "only"))
    if path is None:
        return {"python": python, "command": "", "why": "The table is not from a file."}
    if "only" in state and "--where" in typed:
        return {"python": python, "command": "", "why": "A command cannot keep some of what --where keeps."}
    if fixed and (parts or "scale" in state):
        return {"python": python, "command": "", "why": "A command would prepare the scores anew, of what is left."}
    words = [*typed, *command_of(roles)]
    for sign, place in (("!=", "without"), ("=", "only")):
        for column, levels in state.get(place, {}).items():
            words += [part for level in levels for part in ("--where", f"{column}{sign}{format_level(level)}")]
    for name, value in arguments.items():
        if name not in ("without", "only"):
            words += [f"--{'normalize' if name == 'scale' else name}", str(value)]
    return {"python": python, "command": origin["line"](["lmemtest", "report", str(path), *words]), "why": ""}


def _controls(table: Runs, fixed: bool, state: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """What can be chosen, and how it is now."""
    columns = [(table.benchmark, "benchmark"), *((name, "family") for name in table.family)]
    columns += [(table.algorithm, "algorithm"), (table.seed, "seed"), (table.budget, "budget")]
    columns += [(name, "metafeature") for name in table.metafeatures]
    without, only, boxes = state.get("without", {}), state.get("only", {}), []
    for column, role in columns:
        if column is None:
            continue
        levels = table.levels(column)
        kept = set(only.get(column, levels)) - set(without.get(column, ()))
        few = levels if len(levels) <= MOST_LEVELS else ()
        boxes.append(
            {
                "column": column,
                "role": role,
                "levels": [[format_level(level), level in kept] for level in few],
                "count": len(levels),
                "more": "" if few else f"{len(levels):,} values: name them in the address, only.{column}=VALUE.",
            }
        )
    usual = {"scale": "as it is", "population": "recommended", "curves": "recommended", "adjust": "recommended",
             "vcov": "recommended", "ddf": _in_words("ddf", "satterthwaite")}  # fmt: skip
    # what has no answer is offered where it is chosen, so that it can be undone
    offered = {name: values for name, values in CHOICES.items()
               if name != "curves" or table.budget is not None or name in state}  # fmt: skip
    offered["population"] = tuple(
        name for name in CHOICES["population"] if name != "family" or table.family or state.get("population") == name
    )
    roles = {} if fixed else _role_by_column(table) | state.get("role", {})
    return {
        "columns": boxes,
        "titles": {name: title for name, (title, _) in CONTROLS.items()},
        "choices": [
            {
                "name": name,
                "usual": f"as planned: {_in_words(name, planned[name])}" if name in planned else usual[name],
                "values": [[value, _in_words(name, value)] for value in values],
                "now": state.get(name),
            }
            for name, values in offered.items()
        ],
        "alpha": str(state.get("alpha", planned.get("alpha", 0.05))),
        "formula": state.get("formula", ""),
        "formula_planned": planned.get("formula", ""),
        "algorithms": [format_level(level) for level in table.algorithms],
        "reference": state.get("reference"),
        "roles": list(roles.items()),
        "role_names": list(ROLES),
        "direction": state.get("direction", table.direction),
    }
