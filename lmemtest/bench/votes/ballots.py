"""Votes on pairs of models as codes: columns by name or by content, outcomes by their words, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from lmemtest.bench.data.roles import OUTCOMES, battle_roles
from lmemtest.core.arrays import Array, Index
from lmemtest.core.caller import advice, named
from lmemtest.core.codes import column_codes
from lmemtest.core.frames import as_pandas, check_numeric
from lmemtest.core.validate import as_frame, check_choice, check_column, check_columns, check_magnitude
from lmemtest.core.words import counted, format_level, joined, listed
from lmemtest.errors import ArgumentError, DataError, DesignError

SIDES = {"a": 1.0, "b": -1.0, "tie": 0.0}  # what `outcomes` may say
_HEAD = 10_000  # rows that tell the roles of columns


def read_votes(
    table: Any, roles: Mapping[str, str | None], outcomes: Mapping[Any, str], style: Sequence[str]
) -> tuple[dict[str, str], tuple[str, ...], dict[str, Any]]:
    """The columns of all roles; the names of the models; and by role the codes of each vote, after all checks.

    `model_a` and `model_b` are ``(n,)`` codes, `winner` 1, -1 or 0, `voter` and `prompt` ``(n,)`` codes of clusters,
    and `style` ``(n, q)`` in standard deviations, where zero stays zero.
    """
    frame = as_frame(table, argument="table")
    columns = frame.collect_schema().names()
    style = check_columns(style, columns, argument="style")
    given = {role: check_column(name, columns, argument=role) for role, name in roles.items() if name is not None}
    free = [name for name in columns if name not in style]
    if free:
        given = {**battle_roles(as_pandas(frame.lazy().select(*free).head(_HEAD).collect()), given), **given}
    lacking = next((role for role in ("model_a", "model_b", "winner") if role not in given), None)
    if lacking is not None:
        raise ArgumentError(f"{named(lacking)} must be the name of a column, got None. Columns: {listed(columns)}.")
    used = [*given.values(), *style]
    if len(set(used)) < len(used):
        twice = next(name for name in used if used.count(name) > 1)
        raise ArgumentError(f"The column {twice!r} has two roles. Each needs its own column.")
    for name in style:
        check_numeric(frame, name, argument="style")
    rows = as_pandas(frame.lazy().select(*used).collect()).reset_index(drop=True)
    if not len(rows):
        raise DataError("The table has no votes: it has no rows.")
    rows = rows.assign(**{name: rows[name].astype(float).replace([np.inf, -np.inf], np.nan) for name in style})
    for name in used:
        missing = np.flatnonzero(rows[name].isna())
        if len(missing):
            raise DataError(
                f"Column {name!r} has {counted(len(missing), 'missing value')}, the first at row {missing[0]}, counted "
                f"from 0. Fill them in, or leave these votes out: {advice('without_empty')}."
            )
    pair = {"first": given["model_a"], "second": given["model_b"]}
    together = pd.concat([rows[name] for name in pair.values()], ignore_index=True)
    codes, levels = column_codes(together.rename(pair["first"]))
    a, b = codes.reshape(2, -1)
    names = tuple(map(format_level, levels))
    same = np.flatnonzero(a == b)
    if len(same):
        away = advice("without_self", first=pair["first"], second=pair["second"])
        raise DataError(
            f"{counted(len(same), 'vote')} of a model against itself, the first at row {same[0]}, counted from 0: "
            f"{names[a[same[0]]]}. Leave them out: {away}."
        )
    outcome = _outcomes(rows[given["winner"]], a, b, names, pair, outcomes)
    _refuse_without_scale(a, b, outcome, names, pair)
    votes: dict[str, Any] = {"model_a": a, "model_b": b, "winner": outcome}
    votes |= {role: column_codes(rows[given[role]])[0] for role in ("voter", "prompt") if role in given}
    one = next((role for role in ("voter", "prompt") if role in votes and not votes[role].any()), None)
    if one is not None:
        raise DesignError(
            f"{named(one)} names {given[one]!r}, which has one value, so nothing shows how much results would change "
            "with others. Leave it out; results are then about this one only."
        )
    values = rows[list(style)].to_numpy(dtype=float)
    for name, column in zip(style, values.T, strict=True):
        check_magnitude(column)
        if np.ptp(column) == 0.0:
            raise DataError(f"style names {name!r}, which is {column[0]:g} in every vote. Leave it out.")
    return given, names, {**votes, "style": values / values.std(axis=0)}


def _outcomes(
    column: pd.Series[Any],
    a: Index,
    b: Index,
    names: Sequence[str],
    pair: Mapping[str, str],
    declared: Mapping[Any, str],
) -> Array:
    """1 where the first model won, -1 where the second one, 0 for ties."""
    codes, levels = column_codes(column)
    texts = [str(level) for level in levels]
    meant = {str(value): check_choice(side, "outcomes", tuple(SIDES)) for value, side in declared.items()}
    unused = [value for value in meant if value not in texts]
    if unused:
        raise ArgumentError(
            f"{named('outcomes')} has {unused[0]!r}, which is not in {column.name!r}. Values: {listed(texts, most=8)}."
        )
    words = {**OUTCOMES, pair["first"].lower(): "a", pair["second"].lower(): "b"}
    meant = {**{text: words[word] for text in texts if (word := text.strip().lower()) in words}, **meant}
    side = np.array([SIDES.get(meant.get(text, ""), np.nan) for text in texts])
    place = {name: i for i, name in enumerate(names)}
    model = np.array([place.get(format_level(level), -1) for level in levels])
    won = model[codes]
    by_name = np.where(won == a, 1.0, np.where(won == b, -1.0, np.nan))
    by_word = side[codes]
    declared_rows = np.array([text in set(map(str, declared)) for text in texts])[codes]
    outcome = np.where(np.isnan(by_word), by_name, by_word)
    # a model may be called as the other side: then only the user knows
    unclear = ~declared_rows & ((by_word * by_name == -1.0) | (by_word == 0.0) & (won >= 0))
    wrong = np.flatnonzero(np.isnan(outcome) | unclear)
    if len(wrong):
        text = texts[codes[wrong[0]]]
        what = (
            "both the name of a model and a word for another outcome"
            if unclear[wrong[0]]
            else (f"neither one of the two models of its row nor a known word: {listed(OUTCOMES, most=len(OUTCOMES))}")
        )
        raise DataError(
            f"{column.name!r} has {text!r} at row {wrong[0]}, counted from 0 ({counted(len(wrong), 'such vote')}), "
            f"which is {what}. Say what it means, {advice('outcome', value=text)}, or leave these votes out."
        )
    return np.asarray(outcome)


def _refuse_without_scale(a: Index, b: Index, outcome: Array, names: Sequence[str], pair: Mapping[str, str]) -> None:
    """Refuse models that no votes connect, and models above or below all others by every vote (Ford 1957)."""
    k = len(names)
    wins = np.bincount(a * k + b, (1.0 + outcome) / 2.0, k * k).reshape(k, k)
    wins += np.bincount(b * k + a, (1.0 - outcome) / 2.0, k * k).reshape(k, k)
    if not outcome.any():
        raise DesignError("All votes are ties, so the models cannot be distinguished.")
    part = connected_components(wins, connection="weak")[1]
    group = part == np.bincount(part).argmin()
    what = "are not connected with the other models by votes, directly or through others: they have no common scale"
    if part.max() == 0:
        n_parts, part = connected_components(wins, connection="strong")
        if n_parts == 1:
            return
        groups = [part == i for i in range(n_parts)]
        ends = {
            "won": [group for group in groups if not wins[np.ix_(~group, group)].any()],
            "lost": [group for group in groups if not wins[np.ix_(group, ~group)].any()],
        }
        verb, group = min(((verb, one) for verb in ends for one in ends[verb]), key=lambda end: int(end[1].sum()))
        what = f"{verb} every vote against the other models, without a tie: no finite rating is the most likely one"
    apart = [name for name, inside in zip(names, group, strict=True) if inside]
    raise DesignError(
        f"{joined(apart)} {what}. Collect more votes between them and the others, or leave them out: "
        f"{advice('without_models', names=apart, first=pair['first'], second=pair['second'])}."
    )
