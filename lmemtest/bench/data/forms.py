"""Tables in the forms in which people have them, as tables of scores: what was read as what is said in one line.

Methods in rows instead of columns, averages beside the scores, means with standard deviations, numbers as papers print
them, empty rows and columns, values in values. What names and values show beyond doubt is taken, and said; what the
caller names is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

from lmemtest.bench.data.column import (
    LOOKED_AT,
    RANK_NAMES,
    Column,
    are_wide,
    is_unnamed,
    mean_columns,
    read_columns,
    role_of,
    sums_up,
    with_names,
    words_of,
)
from lmemtest.bench.data.failures import WORDS as FAILED
from lmemtest.core.caller import advice, named
from lmemtest.core.validate import as_frame, check_names
from lmemtest.core.words import counted, joined, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

MOST_INNER = 200  # columns that the objects of one column may become

Methods = Literal["columns", "rows"]
METHODS: tuple[Methods, ...] = ("columns", "rows")


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that is said of how a table was read: its columns or rows, a count, and an example or name."""

    code: str
    names: tuple[str, ...] = ()
    count: int = 0
    shown: str = ""

    def in_words(self) -> str:
        """A part of the sentence "Read as: ..."."""
        return _WORDING[self.code](self)


def _left_out(names: Sequence[str]) -> str:
    return f"{joined(map(repr, names))} left out"


_WORDING: dict[str, Any] = {
    "sheet": lambda r: f"the sheet {r.shown!r}, one of {r.count}",
    "title": lambda r: f"the table below {counted(r.count, 'row')} of title ({r.shown!r}), left out",
    "footer": lambda r: f"{counted(r.count, 'row')} below the table ({r.shown!r}) left out",
    "unread": lambda r: f"whatever stands below {counted(r.count, 'empty row')} left unread",
    "header": lambda _: "names of columns from two rows",
    "booleans": lambda r: f"true and false as 1 and 0 in {joined(map(repr, r.names), most=3)}",
    "row_names": lambda r: f"rows by their names in {r.names[0]!r}",
    "empty": lambda r: f"{counted(r.count, 'empty row')} left out",
    "nested": lambda r: f"values within {joined(map(repr, r.names))} as columns of their own ({r.shown!r})",
    "lists": lambda r: f"{_left_out(r.names)}, which hold{'s' if len(r.names) == 1 else ''} lists or objects",
    "numbering": lambda r: f"{_left_out(r.names)}, which numbers the rows",
    "percent": lambda r: f"percent without the sign ({r.shown!r}) in {counted(r.count, 'cell')}",
    "spread": lambda r: f"means in {counted(r.count, 'cell')} such as {r.shown!r}, without what stands behind them",
    "markup": lambda r: f"numbers without the marks around them in {counted(r.count, 'cell')} ({r.shown!r})",
    "word": lambda r: f"failed runs in {counted(r.count, 'cell')} ({r.shown})",
    "mean_columns": lambda r: f"means of runs; {_left_out(r.names)} (standard deviations, errors or numbers of runs)",
    "summary_columns": lambda r: f"{_left_out(r.names)}, which sum{'s' if len(r.names) == 1 else ''} up other columns",
    "ranking_columns": lambda r: f"{_left_out(r.names)}, which rank{'s' if len(r.names) == 1 else ''} the rows",
    "summary_rows": lambda r: (
        f"the row{'s' if len(r.names) > 1 else ''} {_left_out(r.names)}, which sum{'s' if len(r.names) == 1 else ''} "
        "up other rows"
    ),
    "not_summaries": lambda r: (
        f"{joined(map(repr, r.names))} kept: called like a summary, but {'its' if len(r.names) == 1 else 'their'} "
        "values do not sum up the others"
    ),
    "methods_in_rows": lambda r: (
        f"methods in rows ({r.names[0]!r}) and data sets in columns ({joined(r.names[1:], most=3)})"
    ),
    "methods_in_columns": lambda r: (
        f"methods in columns ({joined(r.names[1:], most=3)}) and data sets in rows"
        f"{f' ({r.names[0]!r})' if r.names[0] else ''}"
    ),
}


def read_as(remarks: Iterable[Remark]) -> str | None:
    """One line that says what a table was read as; None where it was taken as it is.

    >>> read_as([Remark("spread", ("RF",), 12, "85.3 ± 0.4"), Remark("summary_columns", ("Avg.",))])
    ... # doctest: +ELLIPSIS
    "Read as: means in 12 cells such as '85.3 ± 0.4', without what stands behind them; 'Avg.' left out, which..."
    """
    parts = [remark.in_words() for remark in remarks]
    return f"Read as: {'; '.join(parts)}." if parts else None


@dataclass(frozen=True, slots=True)
class Tidy:
    """A table without what is no score.

    Attributes
    ----------
    frame : pandas.DataFrame
        Long as before, or wide with a row per `label` and numbers in all columns without another role.
    remarks : tuple of Remark
        What was read as what; none where the table was taken as it is.
    methods : {"columns", "rows"} or None
        Where the methods of a wide table are; None of a long one.
    certain : bool
        Whether names or values show where they are, or it was given. If not, the caller may ask.
    label : str or None
        The column that names the rows of a wide table; None where they are numbered.
    roles : dict
        What the form tells: ``score`` of a long table with a mean and a standard deviation; ``algorithm`` or
        ``benchmark`` of a wide one.
    """

    frame: Any
    remarks: tuple[Remark, ...] = ()
    methods: Methods | None = None
    certain: bool = True
    label: str | None = None
    roles: dict[str, Any] = field(default_factory=dict)

    def laid_out(self, methods: Methods) -> Tidy:
        """The same wide table with its methods where somebody says they are."""
        remarks = tuple(
            replace(remark, code=f"methods_in_{methods}") if remark.code.startswith("methods_in_") else remark
            for remark in self.remarks
        )
        role = "algorithm" if methods == "rows" else "benchmark"
        roles = {name: value for name, value in self.roles.items() if name not in ("algorithm", "benchmark")}
        roles |= {} if self.label is None else {role: self.label}
        return replace(self, methods=methods, certain=True, remarks=remarks, roles=roles)


def tidied(
    frame: Any,
    *,
    wide: bool | None = None,
    methods: Methods | None = None,
    score: str | None = None,
    failed: Sequence[str] = (),
    kept: Sequence[str] = (),
    algorithms: Sequence[str] | None = None,
    label: str | None = None,
    decimal: str | None = None,
) -> Tidy:
    """A table in the form in which somebody has it, as a table of scores.

    Parameters
    ----------
    frame : pandas.DataFrame
        As it was read; it is not changed.
    wide : bool, optional
        Whether there is a column of scores per method (or per data set). By default told from names and values.
    methods : {"columns", "rows"}, optional
        Where the methods of a wide table are; by default told from names and values.
    score : str, optional
        The score of a long table. Without it columns that are called like a score are looked at.
    failed : sequence of str
        Words that stand in place of the score of a failed run.
    kept : sequence of str
        Columns that the caller gave another role.
    algorithms : sequence of str, optional
        The columns of scores of a wide table; no others are looked at.
    label : str, optional
        The column that names the rows of a wide table.
    decimal : {".", ","}, optional
        The decimal sign of cells with ±.

    Returns
    -------
    Tidy
        The table, what was read as what, and what the form tells about roles.

    Raises
    ------
    DataError
        If a column mixes percent signs with plain numbers, holds words beside numbers that nobody called failures, or
        no cell of the table is a single value.

    Examples
    --------
    >>> import pandas as pd
    >>> paper = pd.DataFrame({"Method": ["RF", "NN"], "iris": ["0.85 ± 0.01", "0.86 ± 0.02"], "wine": ["0.97 ± 0.02",
    ...     "0.94 ± 0.01"], "Avg.": ["0.91", "0.90"]})
    >>> tidy = tidied(paper)
    >>> tidy.methods, tidy.label, tidy.frame.columns.tolist()
    ('rows', 'Method', ['Method', 'iris', 'wine'])
    >>> [remark.code for remark in tidy.remarks]
    ['spread', 'summary_columns', 'methods_in_rows']
    """
    table, columns, remarks = _columns_of(frame, kept, decimal)
    if label is None and frame.index.name:
        label = str(frame.index.name)
    if wide is None:
        wide = score is None and not kept and are_wide(columns)
    if label is None and wide:  # one column of text beside numbers names the rows, also by digits
        text = [name for name in table if name not in kept and name not in table.select_dtypes("number")]
        names = [name for column in text for name in table[column]]
        digits = all(isinstance(name, str) and name.isdigit() for name in names)
        if len(text) == 1 and digits and table[text[0]].is_unique:
            label = str(text[0])
    if not wide:
        return _long(table, columns, remarks, score, failed, kept)
    return _wide(table, columns, remarks, methods, failed, tuple(kept), algorithms, label)


def failure_words(failed: str | Sequence[str] | None, columns: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The role of failures (a column, "missing" or "nonfinite"), and words that stand for them in cells of scores.

    >>> failure_words("TIMEOUT", ["time"]), failure_words("crashed", ["crashed"]), failure_words(None, [])
    (('missing', ('TIMEOUT',)), ('crashed', ()), (None, ()))
    """
    given = check_names(() if failed is None else failed, "failed")
    roles = [name for name in given if name in columns or name in FAILED]
    words = tuple(name for name in given if name not in roles)
    if len(roles) > 1 or (words and set(roles) & set(columns)):
        raise ArgumentError(
            f"{named('failed')} must be one column, or words in cells of scores, perhaps with one of "
            f"{' or '.join(map(repr, FAILED))}, got {listed(map(repr, given))}."
        )
    return (roles[0] if roles else "missing" if words else None), words


def is_wide(table: Any) -> bool:
    """Whether a table has a column of scores for each algorithm, or it is no table that can be asked.

    At most one of its columns has words, the names of its rows; or its cells are printed as in papers (81.2 ± 0.3).

    >>> is_wide({"task": ["a", "b"], "RF": [0.1, 0.2], "NN": [0.3, 0.1]}), is_wide({"task": ["a"], "tool": ["RF"]})
    (True, False)
    """
    try:
        frame = as_frame(table, argument="frame")
    except ArgumentError:
        return True
    kinds = list(frame.collect_schema().values())
    if not any(dtype.is_numeric() for dtype in kinds):  # answers that are true or false are scores
        kinds = [dtype for dtype in kinds if dtype != nw.Boolean()]
    if sum(not dtype.is_numeric() for dtype in kinds) < 2:
        return True
    if isinstance(frame, nw.LazyFrame):
        return False
    try:
        return are_wide(_columns_of(table if hasattr(table, "set_axis") else frame.to_pandas())[1])
    except DataError:  # told when the runs are made in earnest
        return True


# --------------------------------------------------------------------------------------------------- rows and columns


def _columns_of(
    frame: pd.DataFrame, kept: Sequence[str] = (), decimal: str | None = None
) -> tuple[pd.DataFrame, dict[str, Column], tuple[Remark, ...]]:
    """The table with columns of single values only, and these columns."""
    table, remarks = _with_inner(*_without_empty(with_names(frame)), kept)
    columns, remarks = _without_lists(read_columns(table, decimal), remarks, kept)
    return (table if len(columns) == len(table.columns) else table[list(columns)]), columns, remarks


def _without_empty(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    """The table without rows that hold nothing, and columns that hold nothing and have no name."""
    hollow = [is_unnamed(name) and bool(frame.iloc[:, place].isna().all()) for place, name in enumerate(frame.columns)]
    if any(hollow) and not all(hollow):
        frame = frame.loc[:, ~np.array(hollow)]
    empty = frame.isna().all(axis=1)
    if not empty.any() or empty.all():
        return frame, ()
    last = int(np.flatnonzero(~empty.to_numpy())[-1])
    inside = int(empty.to_numpy()[:last].sum())
    found = (Remark("empty", (), inside),) if inside else ()
    return frame[~empty].reset_index(drop=True), found


def _with_inner(
    frame: pd.DataFrame, remarks: tuple[Remark, ...], kept: Sequence[str]
) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    """The table with the values within objects as columns of their own."""
    import pandas as pd

    parts: dict[str, Any] = {}
    flattened: list[str] = []
    for name in frame.columns:
        inner = _inner(frame[name], name) if name not in kept else None
        if inner is None or set(inner.columns) & set(frame.columns):
            parts[name] = frame[name]
        else:
            parts |= {key: inner[key] for key in inner.columns}
            flattened.append(name)
    if flattened:
        shown = next(name for name in parts if name not in frame.columns)
        frame = pd.DataFrame(parts, index=frame.index)
        remarks = (*remarks, Remark("nested", tuple(flattened), shown=shown))
    return frame, remarks


def _without_lists(
    columns: dict[str, Column], remarks: tuple[Remark, ...], kept: Sequence[str]
) -> tuple[dict[str, Column], tuple[Remark, ...]]:
    """Columns of single values."""
    lists = [name for name, column in columns.items() if column.is_nested and name not in kept]
    if not lists:
        return columns, remarks
    rest = {name: column for name, column in columns.items() if name not in lists}
    n_rows = len(columns[lists[0]].values)
    if n_rows < 2 or len(rest) < 2 or not any(column.is_numeric for column in rest.values()):
        raise DataError(
            f"The table has lists or objects in {'the column' if len(lists) == 1 else 'the columns'} "
            f"{listed(map(repr, lists))}, and no score for each run without them. Each row must be one run with single "
            'values, such as {"algorithm": "RS", "loss": 0.1}. '
            + f"What another tool wrote is read by {advice('importers')}."
        )
    return rest, (*remarks, Remark("lists", tuple(lists)))


def _inner(column: pd.Series[Any], name: str) -> pd.DataFrame | None:
    """The values within the objects of a column, each with a column of its own; None where some are no objects."""
    import pandas as pd

    if column.dtype != object:
        return None
    known = column[column.notna()]
    if known.empty or not known.map(lambda value: isinstance(value, dict)).all():
        return None
    if not 0 < len({key for value in known for key in value}) <= MOST_INNER:
        return None
    inner = pd.DataFrame(known.tolist(), index=known.index).reindex(column.index)
    return inner.set_axis([f"{name}.{key}" for key in inner.columns], axis=1)


# ------------------------------------------------------------------------------------------------------------- cells


def _refuse_words(column: Column, failed: Sequence[str]) -> None:
    """Refuse a column of numbers with words that nobody called failures, or with percent signs in some cells alone."""
    others = {word: n for word, n in column.words.items() if not _among(word, failed)}
    if others:
        raise DataError(_of_words(column, others))
    percent, plain = column.kinds.get("percent", 0), sum(n for kind, n in column.kinds.items() if kind != "percent")
    if percent and plain:
        other = next(shown for kind, shown in column.shown.items() if kind != "percent")
        raise DataError(
            f"The column {column.name!r} mixes percent signs ({counted(percent, 'cell')}, such as "
            f"{column.shown['percent']!r}) and numbers without them ({counted(plain, 'cell')}, such as {other!r}), "
            "so that it is not clear what a number is a share of. Write all of them in one way."
        )


def _among(word: str, failed: Iterable[str]) -> bool:
    return word.strip().lower() in {other.strip().lower() for other in failed}


def _remarks_on(
    numbers: dict[str, Column], failed: Sequence[str], columns: Sequence[str], empty: int = 0
) -> tuple[Remark, ...]:
    """What was found in columns of text with numbers, and words for failures in as many cells; `empty` are other cells.

    Every word that is given stands in some cell of scores; `columns` might be meant instead.
    """
    words: dict[str, int] = {}
    for cells in numbers.values():
        blank = len(cells.numbers) - sum(cells.kinds.values()) - sum(cells.words.values())
        for word, n in {**cells.words, **({"": blank} if blank and failed else {})}.items():
            words[word.strip()] = words.get(word.strip(), 0) + n
    if empty and failed:
        words[""] = words.get("", 0) + empty
    roles = ", ".join(map(repr, FAILED))
    for word in failed:
        if not _among(word, words) and columns:
            raise UnknownColumnError(
                f"{named('failed')} names {word!r}, which is neither a column nor one of {roles}, nor a word in a "
                f"cell of scores. Columns: {listed(columns)}.{suggest(word, (*columns, *FAILED))}"
            )
        if not _among(word, words):
            raise ArgumentError(
                f"{named('failed')} must be one of {roles}, or a word in cells of scores, got {word!r}."
            )
    remarks = []
    for kind in ("percent", "spread", "markup"):
        within = {name: cells for name, cells in numbers.items() if kind in cells.kinds}
        if within:
            shown = next(iter(within.values())).shown[kind]
            remarks.append(Remark(kind, tuple(within), sum(cells.kinds[kind] for cells in within.values()), shown))
    if words:
        shown = listed(f"{repr(word) if word else 'empty'} {n:,}" for word, n in words.items())
        remarks.append(Remark("word", tuple(words), sum(words.values()), shown))
    return tuple(remarks)


def _of_words(column: Column, words: dict[str, int]) -> str:
    """What is wrong with words among scores, with their counts and the option that makes them failures."""
    n = sum(words.values())
    hold = "holds words" if n == 1 else "hold words"
    common = sorted(words, key=lambda word: (-words[word], word))
    shown = listed((f"{word.strip()!r} {words[word]:,}" for word in common), most=5)
    given = [word.strip() for word in common[:5]]
    value = repr(given[0] if len(given) == 1 else given)
    return (
        f"The column {column.name!r} must hold numbers, but {counted(n, 'cell')} of "
        f"{column.n_numbers + n:,} {hold} ({shown}). If they stand for runs that failed: "
        + advice(
            "again",
            call=f"failed={value}",
            command=[part for word in given for part in ("--failed", word)],
        )
        + f". If {column.name!r} is no score, give it another role or leave it out."
    )


def _long(
    table: pd.DataFrame,
    columns: dict[str, Column],
    remarks: tuple[Remark, ...],
    score: str | None,
    failed: Sequence[str],
    kept: Sequence[str],
) -> Tidy:
    """A table with a row per score: numbers in the score, without the standard deviations of its means."""
    numbers: dict[str, Column] = {}
    wanted = [score] if score is not None else [name for name in columns if name not in kept]
    for column in [columns[name] for name in wanted if name in columns]:
        if not column.is_text or (score is None and not column.may_be_score) or column.is_nested:
            continue
        if not column.mostly or (column.words and any(map(_has_digit, column.words))):
            continue  # refused where the column is used as the score, in its own terms
        if score is None and column.words and not failed:
            numeric = [other for other in columns.values() if other.name in numbers or not other.is_text]
            if any(other.direction and other.role is None for other in numeric):
                continue
        _refuse_words(column, failed)
        numbers[column.name] = column
    table = table.assign(**{name: column.numbers for name, column in numbers.items()})
    columns = columns | {name: column.as_numbers() for name, column in numbers.items()}
    more = _remarks_on(numbers, failed, list(columns))
    roles: dict[str, Any] = {}
    if score is None:
        groups, spare = mean_columns([column for name, column in columns.items() if name not in kept])
        if spare:
            table = table.drop(columns=spare)
            remarks = (*remarks, Remark("mean_columns", tuple(spare)))
        if spare and len(groups) == 1:
            roles["score"] = next(iter(groups))
    if score is not None and score in columns and not columns[score].is_text:
        text = [name for name, column in columns.items() if column.is_text and not column.is_nested]
        table, remarks = _without_summary_levels(table, text, remarks, score)
    return Tidy(table, (*remarks, *more), roles=roles)


def _without_summary_levels(
    table: pd.DataFrame, text: Sequence[str], remarks: tuple[Remark, ...], score: str
) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    """A long table without rows such as those of a data set "Average" that sums up the others for every algorithm."""
    for name in text:
        found = table[name].dropna().unique()
        few = found if len(found) <= LOOKED_AT else ()  # names of runs are no data sets
        levels = [level for level in few if isinstance(level, str) and sums_up(level)]
        others = [other for other in text if other != name and 1 < table[other].nunique() < len(table)]
        if not levels or not others:
            continue
        wide = table.pivot_table(index=others, columns=name, values=score, aggfunc="mean", observed=True)
        sure = wide.drop(columns=levels, errors="ignore").to_numpy(dtype=float)
        out = [level for level in levels if level in wide and is_summary(wide[level].to_numpy(dtype=float), sure)]
        if out:
            table = table[~table[name].isin(out)].reset_index(drop=True)
            remarks = (*remarks, Remark("summary_rows", tuple(out)))
    return table, remarks


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


# ------------------------------------------------------------------------------------------------------- wide tables


def _numbers_rows(column: Column) -> bool:
    values = column.values.to_numpy()
    return any(np.array_equal(values, np.arange(start, start + len(values))) for start in (0, 1))


def _wide(
    table: pd.DataFrame,
    columns: dict[str, Column],
    remarks: tuple[Remark, ...],
    methods: Methods | None,
    failed: Sequence[str],
    kept: tuple[str, ...],
    algorithms: Sequence[str] | None,
    label: str | None,
) -> Tidy:
    """A table with a column of scores for each of several methods or data sets."""
    unnamed = [column for name, column in columns.items() if is_unnamed(name) and name not in kept]
    numbering = [column.name for column in unnamed if _numbers_rows(column)]
    if numbering and table.columns[0] in numbering:
        table = table.drop(columns=numbering[:1])
        remarks = (*remarks, Remark("numbering", tuple(numbering[:1])))
    wanted = [name for name in (table.columns if algorithms is None else algorithms) if name in table.columns]
    wanted = [name for name in wanted if name not in kept and name != label]
    if algorithms is not None and label is None and (label := _names_of_rows(columns, (*kept, *wanted))):
        remarks = (*remarks, Remark("row_names", (label,)))
        methods = methods or METHODS[0]
    answers = [name for name in wanted if columns[name].is_true_or_false]
    beside = [columns[name] for name in wanted if name not in answers and not columns[name].is_text]
    if answers and (algorithms is not None or all(column.is_right_or_wrong for column in beside)):
        table = table.assign(**{name: columns[name].values.astype(float) for name in answers})
        columns = {**columns, **{name: Column(table[name]) for name in answers}}
        remarks = (*remarks, Remark("booleans", tuple(answers)))
    text, of_numbers = list[str](), list[str]()
    for column in [columns[name] for name in wanted if columns[name].is_text]:
        others = [word for word in column.words if not _among(word, failed)]
        wordy = not column.mostly or (others and any(map(_has_digit, others)))
        (text if algorithms is None and wordy else of_numbers).append(column.name)
    label = label or (text[0] if len(text) == 1 else None)
    if label is not None and label in table.columns:
        measured = [columns[name] for name in wanted if name not in (*text, *of_numbers, label)]
        in_columns = [columns[name].numbers for name in of_numbers] + [column.floats for column in measured]
        left, remarks = _without_summary_rows(columns[label], remarks, in_columns)
        if len(left) < len(table):
            table = table.iloc[left].reset_index(drop=True)
            columns = {name: column.at(left) for name, column in columns.items()}
    numbers = {name: columns[name] for name in of_numbers}
    for column in numbers.values():
        _refuse_words(column, failed)
    table = table.assign(**{name: column.numbers for name, column in numbers.items()})
    numeric = [columns[name] for name in wanted if not columns[name].is_text]
    of_cells = _remarks_on(numbers, failed, (), sum(int(column.values.isna().sum()) for column in numeric))
    percent = [name for name, column in numbers.items() if "percent" in column.kinds]
    scores = [name for name in wanted if name not in text and name != label]
    if percent and algorithms is None:
        plain = [name for name in scores if name not in percent and table[name].notna().any()]
        if plain and not all(map(sums_up, plain)):
            raise DataError(
                f"The columns {listed(map(repr, percent), most=3)} have percent signs and "
                f"{listed(map(repr, plain), most=3)} have none, so that their scores cannot be compared. Write all of "
                "them in one way."
            )
    remarks = (*remarks, *of_cells)
    if algorithms is None:
        read = [numbers[name].as_numbers() if name in numbers else columns[name] for name in scores]
        table, remarks, scores = _without_spreads(table, remarks, scores, mean_columns(read, of_methods=True))
        table, remarks, scores = _without_summary_columns(table, remarks, scores)
    said, certain = _layout_of(table, label, scores, remarks) if methods is None else (methods, True)
    if said == "rows" and scores and all(map(sums_up, scores)):
        raise DataError(
            f"The columns {listed(map(repr, scores))} are called like summaries, and no others hold scores. A "
            "comparison needs the score on each data set, not their average alone."
        )
    if label is not None and is_unnamed(label):
        new = "algorithm" if said == "rows" else "benchmark"
        if new not in table.columns:
            table, label = table.rename(columns={label: new}), new
    if said == "rows" or not certain:
        code = "methods_in_rows" if said == "rows" else "methods_in_columns"
        remarks = (*remarks, Remark(code, (label or "", *scores)))
    roles = {} if label is None else {"algorithm" if said == "rows" else "benchmark": label}
    return Tidy(table, remarks, said, certain, label, roles)


def _names_of_rows(columns: dict[str, Column], taken: Sequence[str]) -> str | None:
    """The one column left that names every row once, and not by a method: of texts, or called a benchmark."""
    free = [column for name, column in columns.items() if name not in taken and not column.is_true_or_false]
    named = [c for c in free if c.role != "algorithm" and (c.is_text or (c.role == "benchmark" and c.is_whole))]
    once = [c.name for c in named if c.values.notna().all() and c.values.is_unique]
    return once[0] if len(once) == len([c for c in free if c.is_text or c in named]) == 1 else None


def _without_summary_rows(
    label: Column, remarks: tuple[Remark, ...], scores: list[NDArray[np.float64]]
) -> tuple[NDArray[np.intp], tuple[Remark, ...]]:
    """The places of rows other than those that are called like summaries and sum up the others in all columns."""
    names, every = label.values, np.arange(len(label.values))
    suspects = names.map(lambda name: isinstance(name, str) and sums_up(name)).to_numpy(dtype=bool)
    if not suspects.any() or (~suspects).sum() < 2:
        return every, remarks
    rows = np.flatnonzero(suspects).tolist()
    out = _summaries(np.column_stack(scores).T, rows)
    remarks = _told(remarks, "summary_rows", names.iloc[out], names.iloc[[r for r in rows if r not in out]])
    return np.setdiff1d(every, out), remarks


def _without_summary_columns(
    table: pd.DataFrame, remarks: tuple[Remark, ...], scores: list[str]
) -> tuple[pd.DataFrame, tuple[Remark, ...], list[str]]:
    """The table without columns that are called like summaries and sum up the others in all rows, or rank the rows.

    What a ranking rests on need not be in the table.
    """
    suspects = [name for name in scores if sums_up(name)]
    if not suspects or len(suspects) == len(scores):
        return table, remarks, scores
    x = table[scores].to_numpy(dtype=float, na_value=np.nan)
    places = [scores.index(name) for name in suspects]
    ranks = [place for place in places if {*words_of(scores[place])} & RANK_NAMES and is_ranking(x[:, place])]
    rest = [place for place in range(len(scores)) if place not in ranks]  # a ranking is no score that is averaged
    suspected = [i for i, place in enumerate(rest) if place in places]
    sums = [rest[i] for i in _summaries(x[:, rest], suspected)]
    out = [scores[place] for place in sorted({*ranks, *sums})]
    remarks = _told(remarks, "summary_columns", [scores[p] for p in sums], [n for n in suspects if n not in out])
    remarks = _told(remarks, "ranking_columns", [scores[place] for place in ranks], ())
    return table.drop(columns=out), remarks, [name for name in scores if name not in out]


def _summaries(x: NDArray[np.float64], suspects: list[int]) -> list[int]:
    """Which of the suspected columns sum up the others, among which those are that sum up nothing themselves."""
    sure = [place for place in range(x.shape[1]) if place not in suspects]
    out = [place for place in suspects if is_summary(x[:, place], x[:, sure])]
    rest = [place for place in suspects if place not in out]
    more = [p for p in rest if len(rest) > 1 and is_summary(x[:, p], x[:, [*sure, *(q for q in rest if q != p)]])]
    return sorted([*out, *more])


def _told(remarks: tuple[Remark, ...], code: str, out: Iterable[Any], stay: Iterable[Any]) -> tuple[Remark, ...]:
    for what, names in ((code, out), ("not_summaries", stay)):
        if found := tuple(map(str, names)):
            remarks = (*remarks, Remark(what, found))
    return remarks


def _without_spreads(
    table: pd.DataFrame, remarks: tuple[Remark, ...], scores: list[str], found: tuple[dict[str, str], list[str]]
) -> tuple[pd.DataFrame, tuple[Remark, ...], list[str]]:
    """The table with the means of its methods, called by the methods, and without their spreads, as `found`."""
    means, spare = found
    if not spare:
        return table, remarks, scores
    scores = [name for name in scores if name not in spare]
    others = [name for name in table.columns if name not in means and name not in spare]
    called = {name: base for name, base in means.items() if base and base not in others}
    if len(set(called.values())) < len(called):
        called = {}
    table = table.drop(columns=spare).rename(columns=called)
    return table, (*remarks, Remark("mean_columns", tuple(spare))), [called.get(name, name) for name in scores]


# -------------------------------------------------------------------------------- rows and columns that sum up others


CHANCE = 0.05  # with which one of the others might be where a summary is, in all rows
MOST_TIED = 1.0  # ranks, or wins, by which a row may gain from ties
_DIGITS = 10  # decimals from which on a number counts as not rounded


def is_summary(values: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether a value per row sums up the others of its row, `(rows, columns)`, as far as digits are printed.

    Means, medians, sums, geometric means, standard deviations, extremes; mean ranks among the rows, ranks of the means,
    and numbers of columns in which a row is best. Not where scores are so much alike that any column would do.
    """
    known = np.isfinite(values) & np.isfinite(others).any(axis=1)
    if others.shape[1] < 2 or known.sum() < 2:
        return False
    x, given = others[known], values[known]
    finite = x[np.isfinite(x)]
    slack = 0.5005 * 10.0 ** -_decimals(given) + 1e-9 * float(np.abs(finite).max()) * x.shape[1]
    whole = bool((given == np.rint(given)).all())
    for width in (0.0, 0.5 * 10.0 ** -_decimals(finite)):  # scores as they are, and as they may have been rounded
        for low, high in _limits(x, width, whole):
            low, high = low - slack, high + slack
            if not ((low <= given) & (given <= high)).all():  # False where NaN
                continue
            alike = ((low[:, None] <= x) & (x <= high[:, None])).sum() + 0.5
            if len(x) * np.log(alike / (finite.size + 0.5)) < np.log(CHANCE):
                return True
    return False


def is_ranking(values: NDArray[np.float64]) -> bool:
    """Whether the values of rows are their places in an order, from 1 on; ties may share a place in any of the usual
    ways.

    >>> is_ranking(np.array([1.0, 2.0, 2.0, 4.0])), is_ranking(np.array([1.0, 2.0, 4.0]))
    (True, False)
    """
    from scipy.stats import rankdata

    methods = ("min", "dense", "average", "max")
    return len(values) > 1 and any(np.array_equal(rankdata(values, method), values) for method in methods)


def _limits(x: NDArray[np.float64], width: float, whole: bool) -> Iterator[tuple[Any, Any]]:
    """The least and the largest value that each statistic of the rows may have where scores are off by `width`.

    Scores that are tied as printed may differ before, so ranks and wins (whole numbers) have limits where few are.
    """
    from scipy.stats import rankdata

    m = float(x.shape[1])
    with np.errstate(all="ignore"):
        mean = np.nanmean(x, axis=1)
        near = [(mean, 1.0), (np.nanmedian(x, axis=1), 1.0), (np.nansum(x, axis=1), m)]
        near += [(np.nanmin(x, axis=1), 0.0), (np.nanmax(x, axis=1), 0.0)]
        if m > 2.0:
            near += [(np.nanstd(x, axis=1), 1.5), (np.nanstd(x, axis=1, ddof=1), 1.5)]
        if (x[np.isfinite(x)] > 0.0).all():
            near.append((np.exp(np.nanmean(np.log(x), axis=1)), 1.5))
        for found, times in near:
            yield found - times * width, found + times * width
        if len(x) < 2:
            return
        for signed in (x, -x):
            for scores in (signed, np.nanmean(signed, axis=1, keepdims=True)):
                ways = ("min", "average", "max")
                low, middle, high = (
                    np.nanmean(rankdata(scores, method=ties, axis=0, nan_policy="omit"), axis=1) for ties in ways
                )
                yield (low, high) if (high - low).max() <= MOST_TIED else (middle, middle)
            best = signed == np.nanmin(signed, axis=0)
            alone, tied = (best & (best.sum(axis=0) == 1)).sum(axis=1), best.sum(axis=1)
            yield (alone, tied) if whole and (tied - alone).max() <= MOST_TIED else (tied, tied)


def _decimals(values: NDArray[np.float64]) -> int:
    """How many decimals numbers are written with, at most."""
    written = [np.format_float_positional(value, trim="-") for value in np.unique(values)[:10_000]]
    return min(max(len(text.partition(".")[2]) for text in written), _DIGITS)


# ------------------------------------------------------------------------------------------------------------ layout

# Names by which an axis is known where its column of names does not say what it holds.
_KNOWN_METHODS = (
    "ours our proposed baseline xgboost xgb lightgbm lgbm catboost forest randomforest rf svm svc knn mlp logistic "
    "ridge lasso bayes adaboost gbm bert roberta gpt llama mistral claude gemini qwen resnet vit sgd adam adamw tpe "
    "smac rmsprop bohb hyperband ppo sac dqn ddpg td3 a2c autosklearn flaml autogluon tpot tabpfn"
)
_DATA_SETS = (
    "adult bank car credit diabetes iris wine mnist cifar cifar10 cifar100 imagenet svhn coco squad glue mnli qnli qqp "
    "sst sst2 cola rte mrpc boolq hellaswag winogrande arc piqa mmlu gsm8k humaneval mbpp truthfulqa higgs covertype "
    "letter phoneme segment madelon kc1 pong breakout hopper walker2d halfcheetah humanoid"
)


def _layout_of(
    table: pd.DataFrame, label: str | None, scores: Sequence[str], remarks: Sequence[Remark]
) -> tuple[Methods, bool]:
    """What lies in the rows, by the name of their column, by averages, and by names that everybody knows."""
    in_columns, in_rows = METHODS
    if label is None:
        return in_columns, True
    said = None if is_unnamed(label) else role_of(label)
    if said in ("algorithm", "benchmark"):
        return (in_rows if said == "algorithm" else in_columns), True
    codes = {remark.code for remark in remarks}
    of_rows = not codes.isdisjoint({"summary_columns", "ranking_columns"})  # a method is averaged over data sets
    if of_rows != ("summary_rows" in codes):
        return (in_rows if of_rows else in_columns), True
    labels = table[label].dropna().astype(str).tolist()
    rows = _share(labels, _KNOWN_METHODS) + _share(scores, _DATA_SETS)
    columns = _share(scores, _KNOWN_METHODS) + _share(labels, _DATA_SETS)
    return (in_rows if rows > columns else in_columns), rows != columns


def _share(names: Sequence[str], words: str) -> float:
    """The share of names with a word that is known."""
    known = set(words.split())
    hits = [bool({*words_of(name), re.sub(r"[\W_]+", "", name.lower())} & known) for name in names]
    return float(np.mean(hits)) if hits else 0.0
