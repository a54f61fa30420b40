"""Wide tables, with a column per algorithm and a row per benchmark, as long ones with a row per score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw

from lmemtest.bench.data.column import LOOKED_AT, Column, names_a_measure, role_of, runs_in_names, with_names
from lmemtest.bench.data.forms import METHODS, Methods, Tidy, failure_words, read_as, tidied
from lmemtest.bench.data.requirements import REQUIRED, required_direction
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.frames import collected, unpivoted
from lmemtest.core.validate import as_frame, check_choice, check_columns, check_names
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

_AS_IT_STANDS = {"methods_in_rows", "methods_in_columns", "booleans", "row_names"}  # what a lazy table may be read as
ROW = "row"  # the benchmark of a table whose rows have no names


def from_wide(
    cls: type[Runs],
    frame: Any,
    *,
    direction: Literal["minimize", "maximize"] = REQUIRED,
    score: str = "score",
    algorithm: str = "algorithm",
    benchmark: str | None = None,
    family: str | Sequence[str] | None = None,
    seed: str | Sequence[str] | None = None,
    budget: str | None = None,
    metafeatures: Sequence[str] = (),
    algorithms: Sequence[str] | None = None,
    seed_shared: bool = True,
    failed: str | Sequence[str] | None = None,
    methods: Methods | None = None,
) -> Runs:
    """The runs of a wide table: a column per algorithm and a row per benchmark, or the other way round.

    Cells may be printed as in papers (``85.3 ± 0.4``, ``**85.3**``, ``91.3%``), and columns and rows of averages or
    standard deviations may stand beside the scores: they are left out, and `notes` of the runs say so.

    Parameters
    ----------
    frame : dataframe or mapping
        As in `Runs`.
    direction : {"minimize", "maximize"}
        Whether a low or a high score is good.  Required.
    score, algorithm : str
        What to call the two columns that the long table gets; with methods in rows `algorithm` is the column that
        names these.
    benchmark : str, optional
        The column that names the rows; by default the only one of text (beside `algorithms` the only one left that
        names every row once), else the index of a pandas frame, else the rows are numbered. With methods in rows, what
        to call the column of the data sets.
    seed, budget : str, optional
        Columns of numbers that are not scores.
    family, metafeatures : sequence of str
        Further columns that are not scores; see `Runs`.
    algorithms : sequence of str, optional
        The columns of scores; by default all that have no other role. True and false are 1 and 0, where the table has
        no other scores or these columns are named.
    seed_shared : bool, default True
        As in `Runs`.
    failed : str or sequence of str, optional
        Whether runs failed where a score is "missing" or "nonfinite"; see `Runs`. Or words in cells, such as
        "TIMEOUT".
    methods : {"columns", "rows"}, optional
        Where the algorithms are. By default told by the name of the column of text (dataset or method), by
        averages, and by well-known names; where nothing tells it, in columns, and `notes` say so.

    Returns
    -------
    Runs
        One row per score.  An empty cell is a missing score, which `check` reports; `notes` say what was read as
        what.

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule, or a column of numbers looks like a seed or a budget and has no role.
    DataError
        If fewer than two columns of scores are left, or one of them holds text.

    Examples
    --------
    >>> from lmemtest import Runs
    >>> wide = {"task": ["a", "b"], "HB": [0.1, 0.3], "RS": [0.2, 0.5]}
    >>> Runs.from_wide(wide, direction="minimize").to_frame()
      task algorithm  score
    0    a        HB    0.1
    1    b        HB    0.3
    2    a        RS    0.2
    3    b        RS    0.5
    """
    direction = required_direction(direction)
    seeds = () if seed is None or isinstance(seed, str) else check_names(seed, "seed")
    features, families = check_names(metafeatures or (), "metafeatures"), check_names(family or (), "family")
    algorithms = None if algorithms is None else check_names(algorithms, "algorithms")
    failing, words = failure_words(failed, ())
    if methods is not None:
        check_choice(methods, "methods", METHODS)
    given = frame.frame if isinstance(frame, Tidy) else frame
    of_index: list[str] = []  # columns that were levels of the index, which name the rows
    if type(given).__module__.startswith("pandas") and hasattr(given, "columns") and given.index.names != [None]:
        of_index = [str(name) for name in given.index.names]
        given = with_names(given)
    table = as_frame(_with_text_labels(given), argument="frame")
    names = list(table.collect_schema().names())
    described: list[tuple[str, tuple[str, ...]]] = [("seed", (seed,))] if isinstance(seed, str) else []
    described += [("budget", (budget,))] if budget is not None else []
    described += [("family", families), ("metafeatures", features), ("seed", seeds)]
    for role, columns in described:
        check_columns(columns, names, argument=role)
    if algorithms is not None:
        check_columns(algorithms, names, argument="algorithms")
    label, methods = _label_of(algorithm, benchmark, methods, names)
    kept = [name for _, columns in described for name in columns]
    free = [name for name in of_index if name and name in names and name not in kept]
    label = free[0] if label is None and len(free) == 1 else label
    if isinstance(frame, Tidy):
        tidy = frame if methods is None or frame.methods == methods else frame.laid_out(methods)
    elif isinstance(table, nw.LazyFrame):
        rows_by_name = label is not None and methods is None and label == algorithm
        tidy = Tidy(given, methods="rows" if rows_by_name else methods or METHODS[0], label=label)
        scored = [name for name in algorithms or names if name != label and name not in kept]
        if label is None or not all(table.collect_schema()[name].is_numeric() for name in scored):
            layout = methods if label is None else tidy.methods
            asked = {"failed": words, "kept": kept, "algorithms": algorithms, "label": label}
            tidy = _of_first_rows(tidy, table, wide=True, methods=layout, **asked)
    else:
        tidy = tidied(
            given if hasattr(given, "set_axis") else table.to_pandas(),
            wide=True,
            methods=methods,
            failed=words,
            kept=kept,
            algorithms=algorithms,
            label=label,
        )
    if tidy.remarks or hasattr(given, "set_axis"):  # a table of another kind stays what it is if nothing was read
        table = as_frame(tidy.frame, argument="frame")
        names = list(table.collect_schema().names())
    label = label if label in names else tidy.label
    in_rows = tidy.methods == "rows"
    if algorithms is None:
        wanted, label = _all_that_are_left(table, kept, label)
        _refuse_roles(table, wanted, label)
        _refuse_no_algorithms(wanted, names, "data sets" if in_rows else "algorithms", of_index=bool(of_index))
    else:
        wanted = list(algorithms)
        clash = [name for name in wanted if name in kept or name == label]
        if clash:
            raise ArgumentError(f"algorithms names {clash[0]!r}, which has another role. Leave it out of one of them.")
    if len(wanted) < 2 and not (in_rows and wanted):
        raise DataError(
            f"A wide table has a column of scores for each of two or more algorithms, but there "
            f"{'is one' if wanted else 'is none'}: {listed(wanted) or 'no column of numbers'}. "
            f"Columns: {listed(names)}."
        )
    table = table.select(*([label] if label is not None else ()), *kept, *wanted)
    if label is None:
        table, label = _with_rows_numbered(table, kept, in_rows)
    roles: dict[str, Any] = {"algorithm": label if in_rows else algorithm, "benchmark": label}
    if in_rows:
        roles["benchmark"] = benchmark or next(
            name for name in ("benchmark", "data set", "benchmark_") if name not in (label, *kept, score)
        )
        _refuse_doubled_methods(table, label, kept)
    index = [label, *kept]
    new = {"score": score, **{role: name for role, name in roles.items() if name != label}}
    clash = [name for name in new.values() if name in index]
    if clash:
        raise ArgumentError(
            f"The new column {clash[0]!r} would have the name of a column of the table. Give score= or algorithm= "
            "another name."
        )
    schema = table.collect_schema()
    odd = [name for name in wanted if not schema[name].is_numeric()]
    if odd:
        raise DataError(
            f"The column {odd[0]!r} must hold numbers, the scores of an algorithm; it has {schema[odd[0]]}."
        )
    table = table.with_columns(nw.col(name).cast(nw.Float64) for name in wanted)
    over = roles["benchmark" if in_rows else "algorithm"]
    long = unpivoted(table, wanted, index, over, score)
    notes = read_as(tidy.remarks)
    roles |= {
        "direction": direction,
        "score": score,
        "family": families,
        "metafeatures": features,
        "seed": seeds or seed,
        "budget": budget,
        "failed": failing,
        "seed_shared": seed_shared,
    }
    return cls(nw.to_native(long), **roles).remembering(notes=() if notes is None else (notes,))


def _of_first_rows(tidy: Tidy, table: nw.LazyFrame[Any], **asked: Any) -> Tidy:
    """A lazy table as its first rows are read: by the same rules, as long as these rows can stay what they are."""
    first = tidied(collected(table.head(LOOKED_AT)).to_pandas(), **asked)
    if not {remark.code for remark in first.remarks} <= _AS_IT_STANDS:
        raise DataError(
            f"A lazy table is used as it stands, but this one must be read first. {read_as(first.remarks)} "
            "Bring it to memory, as by df.collect(), and call again."
        )
    answers = [name for remark in first.remarks if remark.code == "booleans" for name in remark.names]
    numbers = nw.to_native(table.with_columns(nw.col(name).cast(nw.Int8) for name in answers))
    return replace(tidy, frame=numbers, methods=first.methods, label=first.label, remarks=first.remarks)


def _all_that_are_left(table: Any, kept: list[str], label: str | None) -> tuple[list[str], str | None]:
    """The columns without another role, and the one that names the rows: the only one of text, if nobody named it."""
    schema = table.collect_schema()
    left = [name for name in schema.names() if name not in kept and name != label]
    text = [name for name in left if not schema[name].is_numeric()]
    if label is None and len(text) == 1:
        return [name for name in left if name != text[0]], text[0]
    if text:
        answers = [name for name in text if schema[name] == nw.Boolean]
        raise DataError(_of_answers(answers, left) if answers == text else _of_text(text, label))
    return left, label


def _refuse_no_algorithms(wanted: list[str], names: list[str], what: str, *, of_index: bool) -> None:
    """Columns that number the runs of something, or have the names of measures, are not `what` is compared."""
    others = [name for name in names if name not in wanted]
    numbered = runs_in_names(wanted, others=others, table="df.reset_index()" if of_index else "df")
    if numbered:
        raise DataError(f"{numbered}\nIf they are what is compared, {advice('algorithms_of_wide')}.")
    measures = [name for name in wanted if names_a_measure(name)]
    if len(measures) > max(1, len(wanted) / 2):
        raise DataError(
            f"{listed(measures)} have the names of measures, not of {what}, and different measures have no common "
            f"mean. Take one of them as the score, with the columns that name algorithm and benchmark; or, if they "
            f"are {what}, {advice('algorithms_of_wide')}."
        )


def _label_of(
    algorithm: str, benchmark: str | None, methods: Methods | None, names: Sequence[str]
) -> tuple[str | None, Methods | None]:
    """The column that names the rows, and where the methods are, as far as the caller says so."""
    if methods == "rows":
        if benchmark in names:
            raise ArgumentError(
                f"{named('benchmark')} names the column {benchmark!r}, but with methods in rows the data sets are the "
                f"names of columns. Name the column of methods: {setting('algorithm', benchmark)}."
            )
        return (algorithm if algorithm in names else None), methods
    if benchmark is not None:
        check_columns((benchmark,), names, argument="benchmark")
        return benchmark, "columns"
    if algorithm in names and algorithm != "algorithm" and methods is None:  # the default names no column
        return algorithm, "rows"
    return None, methods


def _refuse_doubled_methods(table: Any, label: str, kept: list[str]) -> None:
    """With methods in rows each stands in one, or a column tells its runs apart."""
    if isinstance(table, nw.LazyFrame):
        return
    keys = table.select(label, *kept).to_pandas()
    twice = keys[label][keys.duplicated()].unique().tolist()
    if twice:
        raise DataError(
            f"The column {label!r} must name each method once, but {listed(map(repr, twice), most=3)} "
            f"{'stands' if len(twice) == 1 else 'stand'} in several rows. If these are runs, name the column that "
            f"tells them apart ({named('seed')}); else rename or drop one."
        )


def _with_text_labels(frame: Any) -> Any:
    """A pandas frame whose columns are numbers or other objects, with their texts as names."""
    if isinstance(frame, Mapping):
        labels = list(frame)
        if all(isinstance(label, str) for label in labels):
            return frame
        _refuse_doubled(labels)
        return {format_level(label): values for label, values in frame.items()}
    if not (hasattr(frame, "set_axis") and hasattr(frame, "columns")):  # names are texts everywhere but in pandas
        return frame
    labels = list(frame.columns)
    if all(isinstance(label, str) for label in labels):
        return frame
    _refuse_doubled(labels)
    return frame.set_axis([format_level(label) for label in labels], axis=1)


def _refuse_doubled(labels: list[Any]) -> None:
    texts = [format_level(label) for label in labels]
    doubled = [text for text in texts if texts.count(text) > 1]
    if doubled:
        raise DataError(f"frame has more than one column named {doubled[0]!r}; every name must occur once. Rename one.")


def _of_text(text: list[str], benchmark: str | None) -> str:
    if benchmark is None:
        return (
            f"The columns {listed(map(repr, text))} hold no numbers. Say which names the rows: "
            f"{advice('column', role='benchmark')}; {advice('no_algorithm', it='the others', them='them')}"
        )
    it = advice("no_algorithm", it="it", them="it")
    return f"The column {text[0]!r} holds no numbers, so it is no algorithm: {it}"


def _of_answers(answers: list[str], wanted: list[str]) -> str:
    """What is wrong with true and false beside other numbers."""
    others = [name for name in wanted if name not in answers]
    one = len(others) == 1
    it = advice("no_algorithm", it="it" if one else "them", them="it" if one else "them")
    return (
        f"True and false in {listed(map(repr, answers), most=3)} and other numbers in "
        f"{listed(map(repr, others), most=3)} are no scores of one kind. If the latter "
        f"{'describes' if one else 'describe'} the rows, {it}"
    )


def _refuse_roles(table: Any, wanted: list[str], label: str | None) -> None:
    """A number that says which run this is would pass for the scores of an algorithm; 0s and 1s are answers.

    Where rows have names of their own, fractions are scores: HumanEval is no evaluation, MT-Bench no benchmark.
    """
    suspects = [n for n in wanted if n.startswith("Unnamed:") or role_of(n) in ("seed", "budget", "benchmark")]
    if label is not None and not isinstance(table, nw.LazyFrame) and table.get_column(label).is_unique().all():
        whole = {name for name in suspects if Column(table.get_column(name).to_pandas()).is_whole}
        suspects = [name for name in suspects if name.startswith("Unnamed:") or name in whole]
    if not suspects:
        return
    answers = not isinstance(table, nw.LazyFrame) and all(
        set(table.get_column(name).drop_nulls().unique().to_list()) <= {0, 1} for name in wanted
    )
    for name in suspects:
        said = role_of(name)
        if name.startswith("Unnamed:") or not answers or len(table) <= 2:
            what = "looks like row numbers" if name.startswith("Unnamed:") else f"looks like the {said}"
            role = said or "benchmark"
            raise ArgumentError(
                f"The column {name!r} {what}, not like the scores of an algorithm. "
                + advice("not_scores", role=role, column=name)
            )


def _with_rows_numbered(table: Any, kept: list[str], in_rows: bool) -> tuple[Any, str]:
    """Rows without names are benchmarks, numbered."""
    if in_rows:
        raise ArgumentError(f"The rows need names of their methods: {setting('algorithm', 'COLUMN')}.")
    if isinstance(table, nw.LazyFrame):
        raise ArgumentError("The rows of a lazy wide table need names: give benchmark=.")
    if kept:
        raise ArgumentError(f"The rows need names of their benchmarks: {setting('benchmark', 'COLUMN')}.")
    return table.with_row_index(ROW), ROW
