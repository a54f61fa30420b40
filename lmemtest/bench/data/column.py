r"""A column as somebody wrote it: what its name says, what its cells hold, and what several columns are together.

Cells are numbers as papers and spreadsheets print them: ``85.3 ± 0.4``, ``85.3 (0.4)``, ``91.3%``, ``\textbf{85.3}``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from lmemtest.core.words import format_level, is_missing, listed
from lmemtest.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LOOKED_AT",
    *("RANK_NAMES", "SCORE_NAMES", "Column", "are_wide", "direction_of", "is_statistic", "is_text", "is_unnamed"),
    *("mean_columns", "names_a_measure", "number_in", "read_columns", "role_of", "runs_in_names", "sums_up"),
    *("vocabulary", "with_names", "words_of"),
]

# ---------------------------------------------------------------------- what a name says


def vocabulary(text: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(text.split())


# What people call their columns, in the singular; the last word of a name decides, as in "benchmark_seed".
_NAMES: dict[str, frozenset[str]] = {
    "algorithm": vocabulary(
        "algorithm algo alg method model optimizer optimiser tool classifier regressor estimator learner agent solver "
        "approach system sampler policy llm technique searcher heuristic clf framework "
        "verfahren methode modell algorithmus"
    ),
    "benchmark": vocabulary(
        "benchmark bench dataset task problem env environment game instance question item prompt function objective "
        "scenario corpus data datensatz aufgabe instanz"
    ),
    "seed": vocabulary(
        "seed fold rep repeat repetition replicate replication run trial resample rerun attempt cv random_state "
        "wiederholung lauf durchlauf"
    ),
    "budget": vocabulary(
        "budget epoch step iteration iter time fidelity evaluation eval nfev nfe timestep frame walltime elapsed "
        "wallclock duration generation round epoche"
    ),
    "choice": vocabulary("metric measure criterion split subset phase partition"),
}
_TAILS = vocabulary("id ids name names nr no num number idx index key label code")
_HIGH = vocabulary(
    "accuracy acc f1 auc auroc auprc precision recall return reward r2 bleu rouge iou miou map mcc kappa correct "
    "success win likelihood throughput dice ndcg hypervolume genauigkeit trefferquote"
)
_LOW = vocabulary(
    "loss error err regret rmse mse mae mape nll perplexity ppl wer cer runtime time latency cost brier logloss crps "
    "par2 par10 duration memory energy fid fehler verlust laufzeit"
)
SCORE_NAMES = vocabulary("score value result performance fitness y")  # names that do not say which end is good
_TURNED = vocabulary("neg negative minus negated")
RANK_NAMES = vocabulary("rank ranking place rang classement")
_SUMMARY = vocabulary(
    "avg average mean median total overall sum win wins loss losses tie ties rank ranks ranking score accuracy error "
    "std sd stdev stddev deviation dev geomean gmean of all best number count top first place 1st #1 "
    "mittelwert mittel durchschnitt schnitt summe gesamt insgesamt rang moyenne médiane somme classement promedio "
    "media média mediana suma somma soma totale gemiddelde średnia "
    "среднее итого сумма 平均 平均值 均值 总计 合計 평균 합계"
)  # of a row or a column that sums up the others


def words_of(name: str) -> list[str]:
    """The words of a column name, in the singular and lower case.

    >>> words_of("openmlTaskID"), words_of("n_epochs"), words_of("F1 (macro)")
    (['openml', 'task', 'id'], ['n', 'epoch'], ['f1', 'macro'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
    return [word[:-1] if word.endswith("s") and word[:-1] in _KNOWN else word for word in words]


_KNOWN = frozenset().union(*_NAMES.values(), _HIGH, _LOW, SCORE_NAMES)


def sums_up(name: Any) -> bool:
    """Whether a row or column is called like a summary: every word of its name says so.

    >>> [sums_up(name) for name in ("Avg.", "Avg. Rank", "#1", "Mean accuracy", "MeanShift", "1")]
    [True, True, True, True, False, False]
    >>> [sums_up(name) for name in ("Mittelwert", "Moyenne", "平均", "Media", "Waldmittel")]
    [True, True, True, True, False]
    """
    words = re.findall(r"# ?1\b|[^\W_]+", str(name).lower())
    return bool(words) and {word.replace(" ", "") for word in words} <= _SUMMARY


def role_of(name: str) -> str | None:
    """The role that a name says, or None.

    >>> [role_of(name) for name in ("dataset_id", "random_state", "used_fidelity", "benchmarkSeed", "model_size")]
    ['benchmark', 'seed', 'budget', 'seed', None]
    """
    words = words_of(name)
    while len(words) > 1 and words[-1] in _TAILS:
        words.pop()
    if not words:
        return None
    ends = {words[-1], "_".join(words[-2:])} | {words[-1].removesuffix(tail) for tail in ("id", "name", "idx")}
    for role, names in _NAMES.items():
        if ends & names:
            return role
    return None


def direction_of(name: str) -> Literal["minimize", "maximize"] | None:
    """Which scores are good, if the name of the score says so.

    >>> [direction_of(name) for name in ("val_accuracy", "test error", "neg_log_loss", "value", "accuracy_rank")]
    ['maximize', 'minimize', None, None, 'minimize']
    """
    words = set(words_of(name))
    if words & RANK_NAMES:
        return "minimize"
    high, low = bool(words & _HIGH), bool(words & _LOW)
    if high == low or words & _TURNED:
        return None
    return "maximize" if high else "minimize"


def is_unnamed(name: str) -> bool:
    """Whether a column has no name of its own, as the index has none that pandas writes to a file."""
    return not name.strip() or re.fullmatch(r"Unnamed: \d+(_level_\d+)*", name) is not None


_MEANS = "mean|avg|average|mu"
_SPREADS = (
    "std|sd|stdev|stddev|std_?dev|se|sem|stderr|std_?err|sigma|var|ci|ci_?95|ci_?low|ci_?high|ci_?lower|ci_?upper|±"
)
_MORE = "n|count|n_?runs|runs|n_?seeds|min|max|median|iqr"
_TAIL = re.compile(
    rf"(?:(?P<base>.+?)[\s_.\-/|:]+)?[(\[]?(?P<stat>{_MEANS}|{_SPREADS}|{_MORE})\.?[)\]]?", re.IGNORECASE
)
_HEAD = re.compile(rf"(?P<stat>{_MEANS}|{_SPREADS}|{_MORE})[\s_.\-/|:]+(?P<base>.+)", re.IGNORECASE)
_SCORE_WORDS = SCORE_NAMES | {"mean", "avg", "average"}


def is_statistic(name: str) -> bool:
    """Whether a name says a mean, a spread or a number of runs, and nothing else."""
    match = _TAIL.fullmatch(name.strip())
    return match is not None and match["base"] is None


def names_a_measure(name: str) -> bool:
    """Whether a name, without a statistic at its end, is that of a score and not of a method.

    >>> [names_a_measure(name) for name in ("accuracy", "loss_mean", "CatBoost")]
    [True, True, False]
    """
    match = _TAIL.fullmatch(name)
    name = match["base"] if match is not None and match["base"] else name
    return direction_of(name) is not None or set(words_of(name)) <= _SCORE_WORDS


def _kind_of(stat: str) -> str:
    for kind, pattern in (("mean", _MEANS), ("spread", _SPREADS)):
        if re.fullmatch(pattern, stat, re.IGNORECASE):
            return kind
    return "more"


# ---------------------------------------------------------------------- what a cell holds


MISSING_CELLS = frozenset(["", "-", "--", "---", "–", "—", "nan", "na", "n/a", "#n/a", "<na>", "none", "null"])
_LONGEST = 500  # characters of a number with marks; the patterns take the square of it
LARGEST = 10**300  # of whole numbers that are read as scores
_MARKS = (
    r"(?:\\(?:textbf|mathbf|boldsymbol|bm|bfseries|bf|underline|uline|emph|textit|mathit|mathrm|ensuremath|scriptstyle|scriptsize|small|tiny)(?![a-zA-Z])"
    r"|\\(?:dagger|ddagger|ast|star|dag|ddag)(?![a-zA-Z])|</?(?:b|i|u|em|strong)>|[*${}†‡§¶]|\s|\\[,;:!]|~)+"
)
# What stands between two digits is never taken away: 85.3 2 and 85.3*2 are not 85.32.
_MARKUP = re.compile(rf"(?<![\d.]){_MARKS}|{_MARKS}(?![\d.])")
_RAISED = re.compile(r"\^\{[^\d{}]*\}|\^[*†‡§¶a-zA-Z]")
_PM = re.compile(r"_?\{?\s*(?:\\[a-zA-Z]*pm(?![a-zA-Z])|\+/-|\+-|±)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+")
_COMMA = re.compile(r"(?<=\d),(?=\d)")
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_CELL = re.compile(rf"({_NUMBER})%?(?:±({_NUMBER})%?|\(±?({_NUMBER})%?\)%?|\[({_NUMBER})%?[,;]({_NUMBER})%?\]%?)?")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table as it was written; what is asked of it is found out once.

    Attributes
    ----------
    values : pandas.Series
        Its cells.
    decimal : {".", ","} or None
        The decimal sign; by default commas are one where they can be nothing else.
    numbers : (n,) float
        Its cells as numbers, those with ± without what stands behind it; NaN where there is none.
    kinds : dict of str to int
        Cells that are "plain" numbers, have a "spread", "percent" or other "markup".
    shown : dict of str to str
        One cell of each kind.
    words : dict of str to int
        Entries that are no number, with their counts.
    """

    values: pd.Series[Any]
    decimal: str | None = None

    # ------------------------------------------------------------------ its name

    @property
    def name(self) -> str:
        """As the table has it."""
        return str(self.values.name)

    @cached_property
    def words_of_name(self) -> frozenset[str]:
        """The words of its name, in the singular and lower case."""
        return frozenset(words_of(self.name))

    @cached_property
    def role(self) -> str | None:
        """The role that its name says; None where it says none."""
        return role_of(self.name)

    @cached_property
    def direction(self) -> Literal["minimize", "maximize"] | None:
        """Which scores are good, if its name says so."""
        return direction_of(self.name)

    @cached_property
    def sums_up(self) -> bool:
        """Whether its name is that of a summary of other columns."""
        return sums_up(self.name)

    @property
    def may_be_score(self) -> bool:
        """Whether it may be a score by its name, if its cells hold numbers."""
        return self.direction is not None or (self.role is None and bool(self.words_of_name & _SCORE_WORDS))

    @property
    def is_of_scores(self) -> bool:
        """Whether its name, without a statistic at its end, is that of a score and not of a method."""
        return names_a_measure(self.name)

    # ------------------------------------------------------------------ its cells

    @cached_property
    def is_numeric(self) -> bool:
        """Whether it holds numbers, or true and false."""
        return pd.api.types.is_numeric_dtype(self.values.dtype)

    @property
    def measures(self) -> bool:
        """Whether it holds numbers that are more than true and false."""
        return self.is_numeric and not pd.api.types.is_bool_dtype(self.values.dtype)

    @cached_property
    def is_true_or_false(self) -> bool:
        """Whether its cells, but for missing ones, are true and false."""
        known = self.values.dropna()
        return len(known) > 0 and all(isinstance(value, (bool, np.bool_)) for value in known.unique())

    @property
    def is_right_or_wrong(self) -> bool:
        """Whether its cells, but for missing ones, are true and false, or 1 and 0."""
        if self.is_true_or_false:
            return True
        return self.is_numeric and bool(np.isin(self.floats[np.isfinite(self.floats)], (0.0, 1.0)).all())

    @cached_property
    def is_text(self) -> bool:
        """Whether it holds neither numbers nor dates."""
        dtype = self.values.dtype
        return not (self.is_numeric or pd.api.types.is_datetime64_any_dtype(dtype) or dtype.kind in "mM")

    @cached_property
    def counts(self) -> bool:
        """Whether it may number rows or runs: dates, or whole numbers that are not only 0 and 1."""
        if not self.is_numeric:
            return not self.is_text
        return self.is_whole and not np.isin(self.floats[np.isfinite(self.floats)], (0.0, 1.0)).all()

    @cached_property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers."""
        values = self.floats[np.isfinite(self.floats)] if self.is_numeric else np.zeros(0)
        return bool(len(values) and (values == np.rint(values)).all())

    @cached_property
    def is_nested(self) -> bool:
        """Whether cells hold lists or records."""
        inner = (list, dict, set, tuple, np.ndarray)
        return self.values.dtype == object and any(isinstance(value, inner) for value in self.values)

    @cached_property
    def n_levels(self) -> int:
        """How many different values it holds."""
        return self.values.nunique()

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """A column of numbers, NaN where one is missing."""
        return self.values.to_numpy(dtype=float, na_value=np.nan)

    @cached_property
    def _read(self) -> tuple[NDArray[np.float64], dict[str, int], dict[str, str], dict[str, int]]:
        codes, levels = pd.factorize(self.values.astype(object))
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        commas = _decimal_commas([level for level in levels if isinstance(level, str)], self.decimal)
        numbers = np.full(len(levels) + 1, np.nan)
        kinds: Counter[str] = Counter()
        shown: dict[str, str] = {}
        words: dict[str, int] = {}
        for place, level in enumerate(levels):
            found = number_in(level, commas=commas)
            if found is None:
                words[str(level)] = int(counts[place])
                continue
            kind, numbers[place], _ = found
            if kind != "missing":
                kinds[kind] += int(counts[place])
                shown.setdefault(kind, str(level).strip())
        return numbers[codes], dict(kinds), shown, words  # code -1 is the last number

    @property
    def numbers(self) -> NDArray[np.float64]:
        return self._read[0]

    @property
    def kinds(self) -> dict[str, int]:
        return self._read[1]

    @property
    def shown(self) -> dict[str, str]:
        return self._read[2]

    @property
    def words(self) -> dict[str, int]:
        return self._read[3]

    @property
    def n_numbers(self) -> int:
        """Cells that hold a number."""
        return int(np.isfinite(self.numbers).sum())

    @property
    def mostly(self) -> bool:
        """Whether at least as many cells hold a number as hold a word."""
        return self.n_numbers >= sum(self.words.values()) and self.n_numbers > 0

    # ------------------------------------------------------------------ others made of it

    def first(self, n: int) -> Column:
        """Its first rows."""
        return replace(self, values=self.values.head(n))

    def at(self, rows: NDArray[np.intp]) -> Column:
        """Some rows, by their places."""
        return replace(self, values=self.values.iloc[rows].reset_index(drop=True))

    def as_numbers(self) -> Column:
        """The numbers in its cells."""
        return replace(self, values=pd.Series(self.numbers, index=self.values.index, name=self.values.name))


def read_columns(table: pd.DataFrame, decimal: str | None = None) -> dict[str, Column]:
    """The columns of a table by their names.

    >>> column = read_columns(pd.DataFrame({"test accuracy": ["0.91 ± 0.02", "**0.93**", "TIMEOUT"]}))["test accuracy"]
    >>> column.direction, column.kinds, column.words
    ('maximize', {'spread': 1, 'markup': 1}, {'TIMEOUT': 1})
    """
    return {name: Column(table[name], decimal) for name in table.columns}


def number_in(value: Any, *, commas: bool = False) -> tuple[str, float, float] | None:
    """The kind of a cell, its number and what stands behind it; None for a word.

    A cell with a comma is a word, unless commas are decimal signs.

    >>> number_in("85.3 ± 0.4"), number_in("**0.91**"), number_in("91.3 %"), number_in("TIMEOUT")
    (('spread', 85.3, 0.4), ('markup', 0.91, nan), ('percent', 91.3, nan), None)
    """
    if is_missing(value):
        return "missing", np.nan, np.nan
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, float, np.integer, np.floating)):
        return ("plain", float(value), np.nan) if not LARGEST < abs(value) < np.inf else None
    text = str(value).strip()
    if text.lower() in MISSING_CELLS:
        return "missing", np.nan, np.nan
    if commas:
        text = _COMMA.sub(".", text)
    try:
        number = float(text) if "_" not in text else np.nan  # Python reads 1_0 as 10
    except ValueError:
        number = np.nan
    if number == number:
        return "plain", number, np.nan
    if len(text) > _LONGEST:
        return None
    plain = _RAISED.sub("", text.replace("\N{MINUS SIGN}", "-").replace("\\%", "%"))
    plain = _MARKUP.sub("", _PM.sub("±", plain)).strip("_")
    if plain.lower() in MISSING_CELLS:
        return "missing", np.nan, np.nan
    match = _CELL.fullmatch(plain)
    if match is None:
        return None
    mean, behind = float(match[1]), [float(part) for part in match.groups()[1:] if part]
    spread = np.nan if not behind else behind[0] if len(behind) == 1 else abs(behind[1] - behind[0]) / 2.0
    kind = "percent" if "%" in plain else "spread" if behind else "markup"
    return (kind, mean, spread) if np.isfinite(mean) else None


def _decimal_commas(texts: list[str], decimal: str | None) -> bool:
    """Whether commas in these cells are decimal signs: as was said, or because they can be nothing else."""
    with_comma = [text for text in texts if _COMMA.search(text) and not re.search(r"\[.*,.*\]", text)]
    if decimal is not None or not with_comma:
        return decimal == ","
    return not (any(re.search(r"\d\.\d", text) for text in texts) or all(map(_THOUSANDS.search, with_comma)))


# ---------------------------------------------------------------------- several columns

LOOKED_AT = 1000  # rows, from which it is told what a column holds


def with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with texts as names of columns, of which several levels are joined, and a named index as columns.

    Raises
    ------
    DataError
        If the columns have levels with names, as a pivoted table has: whose values they are would be lost.
    """
    if isinstance(frame.columns, pd.MultiIndex):  # a level with one value is the name of the score
        alone: list[Any] = [place for place, level in enumerate(frame.columns.levels) if len(level) == 1]
        frame = frame.droplevel(alone[: frame.columns.nlevels - 1], axis=1)
    if isinstance(frame.columns, pd.MultiIndex) and any(name is not None for name in frame.columns.names):
        names = list(frame.columns.names)
        kept = next((name for name in names if name is not None and role_of(str(name)) == "algorithm"), names[0])
        for place, level in enumerate(frame.columns.levels):
            if names[place] != kept and all(isinstance(name, str) and direction_of(name) for name in level):
                raise DataError(
                    f"The columns have several scores, {listed(map(repr, level))}. Compare one at a time: "
                    f"df.xs({level[0]!r}, axis=1, level={place})."
                )
        others: list[Any] = [place if name is None else name for place, name in enumerate(names) if name != kept]
        moved = others[0] if len(others) == 1 else others
        raise DataError(
            f"The columns have {len(names)} levels ({listed(names)}): one must remain, the algorithms. Bring "
            f"{'the other' if len(others) == 1 else 'the others'} to the rows: df.stack({moved!r}).reset_index()."
        )
    index = frame.index
    if index.nlevels > 1 or index.name is not None or index.dtype.kind not in "iu":
        named_so = [name if name is not None else "" for name in index.names]
        index_names = [str(name) for name in named_so]
        if not set(index_names) & set(map(str, frame.columns)):
            frame = frame.rename_axis(index_names).reset_index()
    elif not index.is_unique:  # rows that were put together
        frame = frame.reset_index(drop=True)
    if isinstance(frame.columns, pd.MultiIndex):
        labels = ["_".join(format_level(part) for part in name if str(part).strip()) for name in frame.columns]
    else:
        labels = [name if isinstance(name, str) else format_level(name) for name in frame.columns]
    return frame.set_axis(labels, axis=1)


def are_wide(columns: dict[str, Column]) -> bool:
    """Whether the columns of a table are one of scores per method or data set, and perhaps one that names the rows."""
    text = [name for name, column in columns.items() if column.is_text and not column.first(LOOKED_AT).mostly]
    others = [name for name in columns if name not in text and not is_unnamed(name)]
    _, spare = mean_columns([columns[name] for name in others], of_methods=True)
    methods = [columns[name] for name in others if name not in spare and not columns[name].sums_up]
    if len(text) > 1 or len(methods) < 2 or len(methods[0].values) < 2:
        return False
    if any(column.role is not None and column.counts for column in methods):
        return False
    if any(column.is_of_scores for column in methods):
        return False
    answers = sum(column.is_true_or_false for column in methods)
    if answers > 1 and not all(column.is_right_or_wrong for column in methods):  # settings beside answers
        return False
    if not text:
        return all(bool(np.isin(column.values.dropna().unique(), (0, 1)).all()) for column in methods)
    labels = columns[text[0]].values
    return bool(labels.notna().all() and labels.is_unique)


def mean_columns(columns: Iterable[Column], *, of_methods: bool = False) -> tuple[dict[str, str], list[str]]:
    """Columns of means, each with its name without "mean", and the columns of spreads and counts that go with them.

    A pair needs a mean and a spread that is never negative; where a mean is called by its method alone, as in RF and
    RF_std, so must be at least half of the columns that are no spreads. With `of_methods` a name needs more than its
    statistic: Mean and VAR are methods.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"RF_mean": [0.9], "RF_std": [0.1], "n": [3]})
    >>> mean_columns(read_columns(table).values())
    ({'RF_mean': 'RF'}, ['RF_std'])
    """
    said: dict[str, dict[str, list[str]]] = {}
    named_so = {column.name: column for column in columns}
    numeric = [name for name, column in named_so.items() if not column.is_text]
    for name in numeric:
        match = _TAIL.fullmatch(name.strip()) or _HEAD.fullmatch(name.strip())
        if match is not None and (match["base"] or not of_methods):
            kind = _kind_of(match["stat"])
            if kind != "spread" or not (named_so[name].floats < 0.0).any():
                said.setdefault(match["base"] or "", {}).setdefault(kind, []).append(name)
    groups = {
        kinds["mean"][0]: base
        for base, kinds in said.items()
        if len(kinds.get("mean", ())) == 1 and kinds.get("spread")
    }
    bare = {base: base for base, kinds in said.items() if base in numeric and kinds.get("spread")}
    bare = {base: base for base in bare if base not in groups.values()}
    spare = [
        name for base in (*groups.values(), *bare) for kind in ("spread", "more") for name in said[base].get(kind, ())
    ]
    if bare:
        others = [name for name in numeric if name not in spare]
        if 2 * (len(bare) + len(groups)) < len(others) or len(bare) + len(groups) < 2:
            spare = [name for name in spare if not any(name in said[b].get(k, ()) for b in bare for k in said[b])]
            bare = {}
    return {**groups, **bare}, [name for name in named_so if name in spare]


def is_text(column: pd.Series[Any]) -> bool:
    """Whether a column holds no numbers."""
    return not pd.api.types.is_numeric_dtype(column.dtype)


_OF_RUNS = r"^(.+?)[\W_]+(?:seed|run|rep|fold|split|trial|s|r)[\W_]?(\d+)$"  # such as "PPO_seed3"


def runs_in_names(names: Iterable[Any], source: str = "", others: Sequence[str] = (), table: str = "df") -> str:
    """What is said of names that end in the number of a run, each with several numbers; nothing of others.

    `source` is the column of the names. Without it they are names of columns of `table`, beside `others`.

    >>> print(runs_in_names(["PPO_s0", "PPO_s1", "SAC_s0", "SAC_s1"], "run").partition(".str")[0])  # doctest: +ELLIPSIS
    The names 'PPO_s0', ... end in the number of a run, which is not what is compared. Take them apart, then call again:
      df[['algorithm', 'seed']] = df.pop('run')
    >>> runs_in_names(["resnet-50", "resnet-101"], "run"), runs_in_names(["A_r2", "B_r2"], "run")
    ('', '')
    """
    names = list(names)
    found = [re.match(_OF_RUNS, name, re.IGNORECASE) if isinstance(name, str) else None for name in names]
    stems = [match[1] for match in found if match is not None]
    if len(stems) < len(names) or not stems or min(map(stems.count, stems)) < 2:
        return ""
    rows = "" if source else f"  df = {table}.melt({[*others]}, var_name='run', value_name='score')\n"
    return (
        f"The names {listed(map(repr, names), most=2)} end in the number of a run, which is not what is compared. "
        f"Take them apart, then call again:\n{rows}"
        f"  df[['algorithm', 'seed']] = df.pop({source or 'run'!r}).str.extract(r'(?i){_OF_RUNS}')"
    )
