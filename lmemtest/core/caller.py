"""The language of advice: Python, options of commands, arguments of a function of a table, controls on a page."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

# What is advised, in Python and at the command line. ``{value!r}`` is a value as the language writes it: as Python's
# `repr`, and quoted for a shell. A list is the words of a command, ``{words:again}`` the one that was typed, with them.
ADVICE = {
    # a call that was composed elsewhere, arguments and columns
    "typed": ("{call}", "{command}"),
    "again": ("{call}", "{command:again}"),
    "overwrite": ("overwrite=True", "--overwrite"),
    "at_levels": ("fit.emmeans({of!r}, by={by!r})", "--where {first}=LEVEL"),
    "elsewhere": ("fit.{call}, at={{{at!r}: {value}}})", "--where {at}={value}"),
    "all_variants": ("variants='all'", "--variants all"),
    "argument": ("{name}=", "--{name}"),
    "value": ("{name}={value!r}", "--{name} {value!r}"),
    "column": ("{role}=...", "--{role} COLUMN"),
    "role": ("Runs(..., {role}=...)", "--{role} COLUMN"),
    "role_in_table": ("Runs(table, ..., {role}=...)", "--{role} COLUMN"),
    "role_of": ("Runs(..., {role}={column!r})", "--{role} {column!r}"),
    "roles": (
        "Give them roles: {call}. If a column is left out on purpose: Runs(..., ignore={names!r}).",
        "Give them roles: {command:again} (or the same command with --yes). If a column is left out on purpose: "
        "{ignored:again}.",
    ),
    "not_scores": (
        "Say what it is ({role}={column!r}), or name the columns of scores: algorithms=[...].",
        "Say what it is: --{role} {column!r}, or leave it out of the file.",
    ),
    "answers": (
        "Right and wrong answers are compared by lmemtest.evaluate(...); to compare shares of successes, make them 1 "
        "and 0: df[{column!r}].astype(float).",
        "Right and wrong answers are compared by lmemtest evaluate; to compare shares of successes, write 1 and 0.",
    ),
    "number_alone": (
        "Take its numbers alone, df[{column!r}].str.extract(r'([\\d.]+)')[0].astype(float)",
        "Write its numbers alone",
    ),
    "no_algorithm": (
        "name {it} in metafeatures=[...], or the columns of scores in algorithms=[...].",
        "name {it} with --metafeature COLUMN, or leave {them} out of the file.",
    ),
    "family_order": ("family=[{coarse!r}, {fine!r}]", "--family {coarse!r} --family {fine!r}"),
    "no_family": ("Runs(..., family=None)", "the same command without --family"),
    "seed_own": ("Runs(..., seed_shared=False)", "--seed-own"),
    "joined": (
        "df[{fine!r}] = df[{coarse!r}].astype(str) + '-' + df[{fine!r}].astype(str)",
        "a column that joins {coarse} and {fine}",
    ),
    # files
    "encoding": ("encoding='...'", "--encoding NAME"),
    "sep": ("sep={sep!r}", "--sep '{sep}'"),
    "decimal": (
        "read the file with decimal=',', or convert the column with str.replace(',', '.').",
        "if they are decimal, give --decimal ,; otherwise remove them.",
    ),
    "lazy": (
        "give Runs a lazy table, such as polars.scan_parquet(path) or polars.scan_csv(path)",
        "give Runs a lazy table in Python: polars.scan_parquet(path) or polars.scan_csv(path)",
    ),
    "pipe": ("Copy what it gives to a file.", "Give it as standard input: -."),
    "other_format": ("read it to a dataframe and give that to Runs.", "convert it first."),
    "importers": ("lmemtest.importers", "lmemtest convert TOOL FILE (see lmemtest convert -h)"),
    "without_empty": ("table = table.dropna(subset=[...])", "delete their rows"),
    # looks
    "extension": (".extension(runs)", "--extension"),
    # votes
    "outcome": ("outcomes={{{value!r}: 'tie'}} (or 'a', 'b')", "--outcome {value!r}=tie (or a, b)"),
    "without_self": ("table[table[{first!r}] != table[{second!r}]]", "delete their rows"),
    "without_models": (
        "table[~table[[{first!r}, {second!r}]].isin({names!r}).any(axis=1)]",
        "--where '{first}!=NAME' --where '{second}!=NAME'",
    ),
    "algorithms": ("algorithms=[...]", "--only COLUMN"),
    "algorithms_of_wide": (
        "name them: Runs.from_wide(df, benchmark=..., direction=..., algorithms=[...])",
        "give them other names in the file",
    ),
    "by_name": (
        "give the objects by name: {{(algorithm, benchmark, seed): object}}",
        "give files by name: ALGORITHM,BENCHMARK,SEED=FILE",
    ),
    "fewer_names": ("Say what they are: keys=[...].", "Leave out the others."),
    "hpob_files": ("hpob(['GP.json', 'Random.json'], ...)", "GP.json Random.json"),
    "optuna_studies": (
        "Give studies by name, {{'TPE': study, ...}} or {{(algorithm, benchmark, seed): study}}, or set "
        "study.set_user_attr('algorithm', ...), or say what their names are made of: "
        "names='{{algorithm}}_{{benchmark}}_{{seed}}'.",
        "Give files by name, TPE=FILE or ALGORITHM,BENCHMARK,SEED=FILE, or say what the names of the studies or files "
        "are made of: --names '{{algorithm}}_{{benchmark}}_{{seed}}'.",
    ),
    "sklearn_results": (
        "Give results by name: {{('SVC', 'iris'): cross_validate(...), ...}}, or {{'SVC': {{'iris': ...}}}}.",
        "Give files by name: SVC,iris=FILE tree,iris=FILE.",
    ),
    "search_name": ("Say what names are: keys=[...].", "Give iris=FILE."),
    "search_names": ("{{'iris': search, 'wine': search}}.", "iris=FILE wine=FILE."),
    "model_names": ("lm_eval({{'small': 'out/small', 'large': 'out/large'}})", "small=out/small large=out/large"),
    "sample_names": ("Give {{model: {{task: samples}}}}.", "Give MODEL,TASK=FILE."),
    "evals": ("evals=evals_df('logs').", "--evals FILE, what evals_df('logs') returns."),
    # trials of a search
    "trials": ("lmemtest.tuning.curves(table, ...)", "lmemtest bands"),
    # scores
    "normalize": ("runs.normalize({method!r})", "--normalize {method!r}"),
    "method": ("method={method!r}", "--normalize {method!r}"),
    "best_known": ("runs.normalize({method!r}, best_known=...)", "--best-known"),
    "one_scale": ("runs.normalize(by='benchmark')", "a score between 0 and 1 on every benchmark"),
    "anchor": ("{argument}={example}", "{argument} NAME"),
    "anchors": (
        "an algorithm, a column, a number or a mapping of benchmarks to numbers",
        "an algorithm, a column or a number",
    ),
    "anchor_values": (
        "Keep the others only (runs.filter({column}=[...])), or give values that are known: "
        "{argument}={{benchmark: value}}.",
        "Keep the others only (--where '{column}!=...'), or give values that are known: {argument} with a column that "
        "holds them.",
    ),
    "name_or_number": (
        "For the algorithm write {name!r}, for the number {number!r}.",
        "Give the algorithm another name.",
    ),
    "share_of_score": (
        "method='improvability' (a share of the score itself), or 'baseline' with the best known value as target=.",
        "--normalize improvability (a share of the score itself), or baseline with the best known value as --target.",
    ),
    "ends": ("min_score={low}, max_score={high}", "--min {low} --max {high}"),
    "out_of_range": (
        "such as df.loc[df[{score!r}] >= {limit:g}, {score!r}] = {larger:g}",
        "in the column '{score}' of the file",
    ),
    "attempts": ("repeated_attempts(table, ..., epoch=...)", "lmemtest attempts"),
    "pandas": (", for pandas with {code}", ""),
    # rows
    "filter": ("runs.filter(...)", "--where"),
    "by_filter": (": runs.filter(...)", ": --where"),
    "some_values": ("runs.filter({column}=[...])", "--where '{column}=VALUE'"),
    "at_level": ("runs.filter({column}={level!r})", "--where {column}={level!r}"),
    "common_levels": (
        "Give the levels at which both algorithms ran: levels=[...].",
        "Keep the levels at which both algorithms ran: --where.",
    ),
    "missing_runs": (" `runs.check()` shows what is missing.", " lmemtest check shows what is missing."),
    "third_seed": (" (standardize=False, or a third)", " (a third is needed)"),
    "order_of_levels": ("make it a metafeature", "make it a --metafeature"),
    "shares": (
        "Compare shares, then call again:\n"
        "  df = df.assign({share}=df[{count!r}] / df[{trials!r}]).drop(columns=[{count!r}, {trials!r}])",
        "Compare shares: write {count!r} / {trials!r} into the file, as a column {share!r} instead of both, and run "
        "this again.",
    ),
    "one_value": ("runs.filter({column}=...)", "--where {column}=VALUE"),
    "drop_missing": ("runs.drop_missing()", "--drop-missing"),
    "drop_duplicates": ("runs.drop_duplicates('first')", "--drop-duplicates first"),
    "last_duplicate": ("drop_duplicates='last'", "--drop-duplicates last"),
    "best_so_far": ("runs.best_so_far()", "--best-so-far"),
    "at_budgets": ("runs.at_budgets([...])", "--at-budget"),
    "reached_budgets": (
        "runs.at_budgets([...]) has the last score of each run up to them, lmemtest.anytime(runs) and "
        "lmemtest.anytime(runs).at() compare the whole course.",
        "--at-budget has the last score of each run up to it.",
    ),
    # failures
    "failed": (
        "score_failures needs to know which runs failed: Runs(..., failed='missing') for scores that are missing, "
        "'nonfinite' for infinite ones too, or a column of true and false.",
        "--score-failures needs to know which runs failed: --failed missing for scores that are missing, nonfinite for "
        "infinite ones too, or a column of true and false.",
    ),
    "failed_worst": (
        ", for instance with Runs(..., failed={failed!r}) and runs.score_failures('worst')",
        ", for instance with --failed {failed!r} --score-failures worst",
    ),
    "score_failures": ("runs.score_failures(...)", "--score-failures POLICY"),
    "policies_by_kind": (
        " By kind ({kinds}), a mapping gives each its own: runs.score_failures({{kind: 'drop', ...}}).",
        " By kind ({kinds}), each has its own: --failed KIND=POLICY.",
    ),
    "unnamed_kinds": (
        "The policy must name every kind of failure in {column!r}, and does not name {kinds}. Add 'worst', 'drop', "
        "'retry' or a number for each: {{kind: policy}}. Where they mark runs that ended well, write one of {well}.",
        "--failed KIND=POLICY must name every kind of failure in {column!r}, and does not name {kinds}. Add one with "
        "worst, drop, retry or a number for each. Where they mark runs that ended well, write one of {well} there.",
    ),
    "failed_answers": (
        "failed='missing', score_failures=0 (or 'drop', or a value for each kind of failure).",
        "--failed missing --score-failures 0 (or drop; or --failed KIND=0 for each kind of failure).",
    ),
    "answers_of_tasks": (
        "lmemtest.evaluate(table, model={model!r}, task=..., item=..., score={score!r}, method='auto')",
        "lmemtest evaluate FILE --model {model!r} --task COLUMN --item COLUMN --score {score!r} --method auto",
    ),
    "failures_model": (
        "lmemtest.fit_glmm('n_failed ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)', "
        "rates.to_frame('counts'), trials='n_runs'), with these rates",
        "lmemtest.fit_glmm in Python, of lmemtest.failure_rates(runs).to_frame('counts')",
    ),
    "words_as_kinds": (
        "If each word is a way to fail, say what each counts: failed={score!r}, score_failures={{'word': 0, ...}}.",
        "If each word is a way to fail, say what each counts: --failed {score} --failed WORD=0.",
    ),
    "policies": (
        "{policies}, a number, {{benchmark: number}} or a function of the benchmark",
        "worst, baseline=NAME, drop, retry, or a number",
    ),
    "policies_in_short": (
        "runs.score_failures('worst'), 'baseline', a value, or 'drop'; lmemtest.robustness(runs, of='failures') "
        "compares the verdicts.",
        "--score-failures worst, baseline=NAME, a number, or drop.",
    ),
    "policies_in_full": (
        "runs.score_failures('worst') gives it the worst score of its benchmark, "
        "score_failures('baseline', reference=...) that of an algorithm, a number or a value per benchmark that "
        "score, and 'drop' leaves it out. lmemtest.robustness(runs, of='failures') compares the verdicts.",
        "--score-failures worst gives it the worst score of its benchmark, baseline=NAME that of an algorithm, a "
        "number that score, and drop leaves it out.",
    ),
    "failure_value": (
        "leave it out with runs.filter(...), or give a value per benchmark: runs.score_failures({{benchmark: value}}).",
        "leave it out with --where, or give failed runs a number: --score-failures NUMBER.",
    ),
    "no_reference": ("policy='baseline' needs reference=", "--score-failures baseline needs a name, baseline=NAME"),
    "reference": ("reference={reference!r}", "--score-failures baseline={reference!r}"),
    "robustness of failures": (
        "Whether the verdict depends on that: lmemtest.robustness(runs, of='failures').",
        "Try another --score-failures to see whether the verdict depends on that.",
    ),
    "failure_rates": (": lmemtest.failure_rates(runs).", "."),
    # tests and comparisons
    "rank": ("lmemtest.rank(runs)", "lmemtest rank"),
    "rank_by": ("lmemtest.rank(runs, test={test!r})", "lmemtest rank --test {test!r}"),
    "fit": ("fit_lmm({formula!r}, runs)", "lmemtest fit RUNS {formula!r}"),
    "formula_per_run": (", or the formula for runs.per_run({how!r})", ""),
    "moderated_errors": (
        "Ask for them where the means are estimated: emmeans(..., vcov='moderated').",
        "They need {ddf}, and three benchmarks or more that are independent.",
    ),
    "sign_flip_test": (
        "permutation_test(runs, exchange='signs')",
        "permutation_test(runs, exchange='signs') in Python",
    ),
    "dispersion": ("analyze(runs, dispersion={column!r})", "report with --dispersion {column!r}"),
    "paired": ("paired=True", "without --unpaired"),
    "unpaired": ("paired=False", "--unpaired"),
    "draws_of_pairs": (
        "Take n_draws={least:,} at least, or fewer algorithms.",
        "Compare fewer algorithms (--only, --control), or leave --method out.",
    ),
    "draws_of_tests": (
        "Take n_draws={least:,} at least, or a higher alpha.",
        "Take a higher --alpha, or leave --method out.",
    ),
    "like_these": ("tasks='like these'", "--tasks like-these"),
    "metric_direction": ("direction={{{name!r}: 'maximize'}} (or 'minimize')", "--direction {name!r}=maximize"),
    # curves of tuning
    "fewer_limits": ("Name fewer budgets with k=", "Ask for --pointwise limits"),
    "settings": (
        "Name it in by=, or keep one of its values.",
        "Keep one of its values with --where, or make one column of it and the algorithm.",
    ),
    # where the rest is
    "escape": ("escape=False", "--raw-csv"),
    "more_findings": ("; see to_frame()", "; --all shows them"),
    "whole_finding": ("all of it in to_frame()", "all of it with --all"),
    "mcnemar": ("lmemtest.mcnemar(table, ...)", "lmemtest mcnemar"),
    "n_differ": ("n_differ counts them.", "n_differ, in the json, counts them."),
    "to_frame": ("to_frame({part!r})", "a .json file"),
    "power": (
        "lmemtest.power has the power of any other study, lmemtest.plan the cheapest one.",
        "lmemtest plan finds the cheapest study, with --effect the one that finds the difference that matters.",
    ),
    "all_rows": ("; to_frame() has all", ""),
    "all_limits": ("to_frame() has all.", "the table in the folder has all."),
    "all_means": (
        "analysis.to_frame() and analysis.pairs.to_frame() have all of them, for instance "
        "analysis.to_frame().to_csv('ranking.csv')",
        "-o ranking.csv writes the means of all of them",
    ),
    "all_pairs": ("lmemtest.rank(runs, 'all') has all pairs.", ""),
}

# The same where a function takes the table itself and arguments that name its columns (`on_function`): it has no
# `Runs`, and what stands here as nothing it cannot do.
OF_A_TABLE = {
    "role": "{function}(..., {role}=...)",
    "role_in_table": "{function}(..., {role}=...)",
    "some_values": "{table}[{table}[{column!r}].isin([...])]",
    "at_level": "{table}[{table}[{column!r}].isin([...])]",
    "drop_missing": "{table}.dropna(subset=[...])",
    "failed_worst": "",
    "by_filter": "",
    "common_levels": "Leave out the rows of such levels.",
    "missing_runs": "",
    "third_seed": "",
    "order_of_levels": "number its levels",
    "fit": "lmemtest.fit_lmm({formula!r}, {table})",
}

# The same for the reader of a page (`on_page`), who has controls: of the roles of columns, and of some arguments.
ON_A_PAGE = {
    "argument": "“{control}”",
    "value": "“{control}: {value}”",
    "normalize": "“score scale: {method}”",
    "column": "“{role}” under “roles of the columns”",
    "role": "“{role}” under “roles of the columns”",
    "role_in_table": "“{role}” under “roles of the columns”",
    "role_of": "“{role}” for {column!r} under “roles of the columns”",
    "roles": "Choose them under “roles of the columns”: “ignore” for a column that is left out on purpose.",
    "one_value": "choose a role for it, such as “metafeatures”, and one of its values",
    "at_levels": "choose one value of {first}",
    "formula_per_run": "",
    "moderated_errors": "They need {ddf}, and three benchmarks or more that are independent.",
}


# --------------------------------------------------------------------------------------------- in the caller's language


@dataclass(frozen=True, slots=True)
class _Caller:
    """The command that was typed, or the function and its table; and what arguments are called there."""

    command: tuple[str, ...] = ("lmemtest",)
    options: Mapping[str, str] = field(default_factory=dict)
    function: str = ""
    table: str = ""


_CODE = "\\U"  # what bash calls a character by number
_CALLER: ContextVar[_Caller | None] = ContextVar("lmemtest_caller", default=None)
Controls: TypeAlias = Mapping[str, tuple[str, Mapping[str, str]]]  # by argument: its title, and what values are called
_CONTROLS: ContextVar[Controls] = ContextVar("lmemtest_controls", default=MappingProxyType({}))


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
def on_page(controls: Controls) -> Iterator[None]:
    """Give advice to the reader of a page: the explorer enters it. What has no control there is advised as outside.

    Parameters
    ----------
    controls : mapping of str to (str, mapping of str to str)
        Of each argument that has a control: its title, and what its values are called where not by themselves.

    Examples
    --------
    >>> with on_page({"vcov": ("standard errors", {"model": "model-based"})}):
    ...     setting("vcov", "model"), named("vcov"), setting("metric", "loss"), advice("role", role="family")
    ('“standard errors: model-based”', '“standard errors”', "metric='loss'", '“family” under “roles of the columns”')
    """
    token = _CONTROLS.set(controls)
    try:
        yield
    finally:
        _CONTROLS.reset(token)


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
    caller, controls = _CALLER.get(), _CONTROLS.get()
    if controls and what in ON_A_PAGE and values.get("name", next(iter(controls))) in controls:
        if "name" in values:
            title, words = controls[values["name"]]
            values = {"control": title, "value": words.get(str(values.get("value")), values.get("value"))}
        return ON_A_PAGE[what].format(**values)
    if caller is None:
        return python.format(**values)
    if caller.function:
        values |= {"role": named(values["role"])} if "role" in values else {}
        return OF_A_TABLE.get(what, python).format(function=caller.function, table=caller.table, **values)
    return _InShell().format(command_line, **values)


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
    if argument in _CONTROLS.get():
        return advice("argument", name=argument)
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
    if argument in _CONTROLS.get():
        return advice("value", name=argument, value=value)
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


class _InShell(string.Formatter):
    """Texts as words of a shell, lists as the words of a command; ``again``: of the one that was typed, with these."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion == "r" and isinstance(value, str):
            return quoted(value)
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, how: str) -> str:
        if isinstance(value, list):
            return command_with(value) if how == "again" else shell_line(value)
        return str(super().format_field(value, how))
