"""Some of the rows of runs, with the same roles: `Runs.filter`, `drop_missing`, `drop_duplicates`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw

from lmemtest.bench.data.requirements import SINGLE_ROLES
from lmemtest.bench.data.study import subset
from lmemtest.core.caller import named
from lmemtest.core.validate import check_choice, check_columns
from lmemtest.core.words import joined, listed, suggest
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs


def filtered(runs: Runs, conditions: Mapping[str, Any]) -> Runs:
    """`Runs.filter`: the definition is there."""
    columns = runs.columns
    roles = {role: getattr(runs, role) for role in SINGLE_ROLES if role not in columns and getattr(runs, role)}
    if len(runs.family) == 1 and "family" not in columns:
        roles["family"] = runs.family[0]
    conditions = {roles.get(name, name): wanted for name, wanted in conditions.items()}
    check_columns(tuple(conditions), columns, argument="filter")
    frame, wanted = runs.frame, dict[str, Any]()
    for column, given in conditions.items():
        several = isinstance(given, (Sequence, set, frozenset)) or (hasattr(given, "__array__") and given.ndim == 1)
        values = list(given) if several and not isinstance(given, str) else [given]
        values = [value.item() if hasattr(value, "item") else value for value in values]  # numpy's scalars
        levels = runs.levels(column)
        for value in values:
            if value not in set(levels):
                raise DataError(
                    f"filter: {value!r} does not occur in the column {column!r}. "
                    f"Its values: {listed(map(repr, levels))}.{suggest(str(value), map(str, levels))}"
                )
        frame = frame.filter(nw.col(column).is_in(values))
        wanted[column] = values
    known = runs.study.seen(wanted) if runs.is_lazy else ()
    one = runs.algorithm in wanted  # asked for: looked at, not compared
    if known:
        found = runs.restricted(frame, [subset(groups, wanted) for groups in known], several=not one)
    else:
        found = runs._with(frame, several=not one)
    return found.following(runs, lambda runs: runs.filter(**wanted))


def without_missing(runs: Runs) -> Runs:
    """`Runs.drop_missing`: the definition is there."""
    from lmemtest.bench.data.runs import with_notes

    finite = nw.col(runs.score).cast(nw.Float64).is_finite().fill_null(False)
    if runs.failed is not None:
        return runs.score_failures("drop").drop_missing()
    found = runs._with(runs.frame.filter(finite)).following(runs, type(runs).drop_missing)
    if found.n_rows < runs.n_rows:
        left_out = (
            f"{runs.n_rows - found.n_rows:,} of {runs.n_rows:,} rows without a finite score were left out, which "
            "is right only if they are missing for reasons that have nothing to do with the algorithm."
        )
        return with_notes(found, (*found.notes, left_out))
    return found


def without_duplicates(runs: Runs, keep: Literal["first", "last", "mean"]) -> Runs:
    """`Runs.drop_duplicates`: the definition is there."""
    from lmemtest.bench.data.runs import with_notes

    check_choice(keep, "drop_duplicates", ("first", "last", "mean"))
    if runs.is_lazy:
        raise ArgumentError(
            f"{named('drop_duplicates')} needs a table in memory: the rows of a lazy one have no order."
        )
    keys = [name for name in (runs.algorithm, runs.benchmark, *runs.family, runs.seed, runs.budget) if name]
    keys += runs.metafeatures
    score = nw.col(runs.score).cast(nw.Float64)
    frame = runs.frame
    if keep == "mean":
        finite = score.is_finite().fill_null(False).cast(nw.Float64)
        share = frame.select(finite.mean().over(*keys).alias("share"))["share"].to_numpy()
        if ((share > 0.0) & (share < 1.0)).any():
            raise DataError(
                f"{named('drop_duplicates')}={keep!r} needs the scores of all rows of a run, and some have none "
                "(failed or missing). Keep 'first' or 'last', or say before what a failure counts."
            )
        frame = frame.with_columns(score.mean().over(*keys).alias(runs.score))
    which = "last" if keep == "last" else "first"
    found = runs._with(frame.unique(keys, keep=which, maintain_order=True))
    more = runs.n_rows - found.n_rows
    found = found.following(runs, partial(type(runs).drop_duplicates, keep=keep))
    if not more:
        return found
    copies = runs.n_rows - len(runs.frame.unique([*keys, runs.score]))
    parts = [f"{n:,} {what}" for n, what in ((copies, "exact copies"), (more - copies, "with other scores")) if n]
    kept = "the mean of its scores" if keep == "mean" else f"its {keep} row"
    note = f"{more:,} of {runs.n_rows:,} rows repeat a run (the same {joined(keys)}): {' and '.join(parts)}. "
    note += f"Of each such run {kept} was kept."
    return with_notes(found, tuple(dict.fromkeys((*runs.notes, *found.notes, note))))
