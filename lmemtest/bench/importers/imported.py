"""The long table of an importer as runs, with notes of what was taken for what and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.failures import FLAGS, WELL, counted_kinds
from lmemtest.bench.data.requirements import required_direction
from lmemtest.bench.data.runs import Runs
from lmemtest.core.caller import advice, setting
from lmemtest.core.validate import check_column
from lmemtest.core.words import counted, format_level, listed
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

STATUS = "status"  # the column that says in which way runs failed
ROLES = ("algorithm", "benchmark", "seed", "budget")


def one_of(found: Sequence[str], given: str | None, *, argument: str, what: str, origin: str) -> str:
    """The one that is given, or the only one there is."""
    if given is not None:
        return check_column(given, found, argument=argument)
    if len(found) == 1:
        return found[0]
    raise ArgumentError(
        f"{origin} holds {len(found)} {what}: {listed(found)}. Say which: {setting(argument, found[0])}."
    )


def numbers_in(column: pd.Series[Any], *, name: str, advice: str) -> np.ndarray:
    """A column as numbers, NaN where there is none; text that is no number is refused."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    try:
        values = pd.to_numeric(column.astype(object), errors="coerce").astype(float)
    except (TypeError, OverflowError):  # a number that no double can hold
        raise DataError(f"The column {name!r} must hold numbers of ordinary size. {advice}") from None
    text = column[values.isna() & column.notna()]
    text = text[~text.map(lambda value: str(value).strip().lower() in ("", "nan", "none", "null", "na"))]
    if len(text):
        rows = f"{counted(len(text), 'row')} hold{'s' if len(text) == 1 else ''}"
        raise DataError(f"The column {name!r} must hold numbers, but {rows} something else: {text.iloc[0]!r}. {advice}")
    return values.to_numpy()


def is_nested(value: Any) -> bool:
    """Whether this is a list or a dictionary, or another thing that changes."""
    return getattr(type(value), "__hash__", None) is None


def check_labels(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse columns of names that hold lists or dictionaries."""
    for name in columns:
        values = table[name] if table[name].dtype == object else table[name][:0]
        nested = values[values.map(is_nested)]
        if len(nested):
            raise DataError(
                f"The column {name!r} must hold names or numbers, but {counted(len(nested), 'row')} "
                f"hold{'s' if len(nested) == 1 else ''} something else: {nested.iloc[0]!r:.60}. Make it text, or name "
                "another column."
            )


def imported(
    table: pd.DataFrame,
    *,
    source: str,
    score: str,
    direction: Any,
    algorithm: str,
    benchmark: str | None = None,
    family: str | None = None,
    seed: str | None = None,
    budget: str | None = None,
    metafeatures: Sequence[str] = (),
    ignore: Sequence[str] = (),
    within: Sequence[str] = (),
    seed_shared: bool = True,
    trials: bool = False,
    kinds: pd.Series[Any] | None = None,
    said: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    repeated: str | None = None,
    alone: str,
) -> Runs:
    """Runs of the columns that have a role or are ignored; the others are left out.

    `said` tells where roles came from that are no columns of the source; `alone` what to do if there is one algorithm
    only; `repeated` what to do with several rows of one run, told apart by `within`, None where there can be none.
    Rows without a finite score are failed runs, unless they are single `trials`. `kinds` says in which way they failed,
    as far as the source does; it becomes the column of the role `failed`, with "missing" where nothing says it.
    """
    direction = required_direction(direction)
    given = {"algorithm": algorithm, "benchmark": benchmark, "seed": seed, "budget": budget}
    roles = {role: name for role, name in given.items() if name is not None}
    check_labels(table, [*roles.values(), *([family] if family else []), *metafeatures, *within])
    finite = np.isfinite(table[score].to_numpy(dtype=float, na_value=np.nan))
    if not finite.any():
        raise DataError(
            f"{source} with no finite score: there is nothing to compare. Did every run fail, or is another column "
            f"than {score!r} the score?"
        )
    levels = table[algorithm].dropna().unique()
    if len(levels) == 1:
        only = format_level(levels[0])
        raise DataError(f"{source} with one algorithm only, {only!r}: there is nothing to compare. {alone}")
    if repeated is not None:
        _refuse_repeated(table, [*roles.values(), *metafeatures, *within], source, repeated)
    families: tuple[str, ...] = ()
    if family is not None:  # it groups the benchmarks if there are several, and more benchmarks than families
        n = table[family].nunique()
        groups = benchmark is not None and 1 < n < table[benchmark].nunique() and not table[family].isna().any()
        families, ignore = ((family,), ignore) if groups else ((), [*ignore, family])
    kept = list(dict.fromkeys([*roles.values(), *families, *metafeatures, score, *ignore]))
    failed = "nonfinite" if not finite.all() and not trials else None
    if failed and kinds is not None and kinds[~finite].notna().any():
        failed = next(name for name in (STATUS, f"{STATUS}_", f"{STATUS}__") if name not in kept)
        no_kind = kinds.isna() | kinds.astype(str).str.lower().isin((*WELL, *FLAGS))
        table = table.assign(**{failed: kinds.mask(no_kind, "missing").where(~finite, "ok")})
        kept.append(failed)
    table = table[kept].reset_index(drop=True)
    runs = Runs(
        table,
        score=score,
        direction=direction,
        algorithm=algorithm,
        benchmark=benchmark,
        family=families,
        seed=seed,
        budget=budget,
        metafeatures=tuple(metafeatures),
        ignore=tuple(ignore),
        seed_shared=seed_shared,
        failed=failed,
    )
    several = {"family": listed(families), "metafeatures": listed(metafeatures)}
    taken = {**roles, **{role: names for role, names in several.items() if names}, "score": score}
    where = [f"{role} is {(said or {}).get(role, name)}" for role, name in taken.items()]
    first = f"{source}: {'; '.join(where)}; {direction}."
    lost = [] if finite.all() else [_failures(table, ~finite, algorithm, trials=trials)]
    by_kind = counted_kinds(runs) if failed in kept else ""
    if by_kind:
        lost.append(f"The column {failed} says why.{advice('policies_by_kind', kinds=by_kind)}")
    return runs.remembering(notes=[first, *notes, *lost])


def best_of_trials(runs: Runs) -> Runs:
    """The best score so far of each run; where a run has none yet it counts as failed."""
    best = runs.best_so_far()
    none_yet = int(best.to_frame()[best.score].isna().sum())
    notes = [*runs.notes, "The score is the best one up to each trial."]
    if none_yet:
        best = Runs(best.frame, **{**best.roles(), "failed": "missing"})
        notes.append(
            f"{counted(none_yet, 'row')} before the first score of a run: failed so far. Begin later, "
            f"{advice('at_budgets')}, or say what they count, {advice('score_failures')}."
        )
    return best.remembering(notes=notes)


def _refuse_repeated(table: pd.DataFrame, keys: list[str], source: str, advice: str) -> None:
    again = table.duplicated(keys)
    if again.any():
        row = table.loc[again, keys].iloc[0]
        run = ", ".join(f"{name} = {format_level(value)}" for name, value in row.items())
        raise DataError(
            f"{source}: {counted(int(again.sum()), 'row')} repeat{'s' if again.sum() == 1 else ''} a run that is there "
            f"already, such as {run}. {advice}"
        )


def _failures(table: pd.DataFrame, bad: np.ndarray, algorithm: str, *, trials: bool) -> str:
    """A note on scores that are missing or infinite, by algorithm."""
    by = table.loc[bad, algorithm].value_counts(sort=False)
    each = listed(f"{name} {count:,}" for name, count in sorted((format_level(n), c) for n, c in by.items()))
    what = "rows" if not trials else "trials"
    have = "has" if bad.sum() == 1 else "have"
    lost = f"{int(bad.sum()):,} of {len(table):,} {what} {have} no finite score ({each})"
    means = "they improve nothing" if trials else f"failed. Say what they count: {advice('score_failures')}"
    return f"{lost}: {means}."
