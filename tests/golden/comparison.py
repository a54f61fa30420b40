"""Differences between two golden records: numbers, what is gone, classes of errors; words apart from them."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Numbers are equal when |old - new| <= relative * (|old| + FLOOR * largest of the column). The floor is for zeros that
# are sums of numbers of the size of their column, so that their digits are rounding.
RELATIVE, FLOOR = 1e-10, 1e-2
# On another kernel of the linear algebra, as on another processor, the optimiser stops elsewhere within its tolerance:
# between Nehalem, Haswell and SkylakeX standard errors, df and p-values differed by up to 3e-9. As in tests/kernels:
RELATIVE_OTHER_KERNEL = 1e-7
# What stands for zero in a column of nothing else, as the statistic of a term without variance: scores of the cases are
# of the size of one, so this is rounding.
ROUNDING = 1e-14
# A p-value below this is a difference of numbers close to one, or a tail whose digits magnify those of its statistic
# (d log p = -t dt): they are compared to 1e-6.
TINY_P, RELATIVE_TINY_P = 1e-12, 1e-6
P_NAME = re.compile(r"(^|[._/])p(_|$|value|-)|pvalue|(^|/)P-val", re.IGNORECASE)

FAILS = ("number", "error", "gone", "size", "formula")
NOTED = ("attribute",)  # shown, and no failure: a public field beside a table, as a setting that has another place now
WORDS = ("words", "labels")


@dataclass(frozen=True)
class Difference:
    """One column that differs: its kind (of FAILS or WORDS), where it is, and what to show."""

    kind: str
    where: str
    text: str


class Names:
    """The renames: what an old column, attribute, class or unit is called now.

    `names` maps a name of a column, attribute or part wherever it stands, `scoped` within a class (its old name);
    a value may be a list of names of which one is there, or null for what is gone on purpose. `units` maps the
    beginning of a unit (``"thin:fidelity"``), `errors` the classes of errors.
    """

    def __init__(self, table: dict[str, Any]) -> None:
        self.names: dict[str, Any] = table.get("names", {})
        self.scoped: dict[str, dict[str, Any]] = table.get("scoped", {})
        self.errors: dict[str, str] = table.get("errors", {})
        self.units: dict[str, str] = table.get("units", {})

    def unit(self, old: str) -> str:
        for start in sorted(self.units, key=len, reverse=True):
            if old.startswith(start):
                return self.units[start] + old[len(start) :]
        return old

    def paths(self, path: str, old: dict[str, list[Any]]) -> list[str] | None:
        """Where a path of the old record may be in the new one; None where it is gone on purpose."""
        found, prefix = [""], ""
        for part in path.split("/"):
            scope = self.scoped.get(_class_of(prefix, old), {})
            bare = part.removeprefix(".")
            new = scope.get(part, scope.get(bare, self.names.get(part, self.names.get(bare, part))))
            if new is None:
                return None
            choices = [new] if isinstance(new, str) else [*new]
            if part.startswith(".") and new != part:
                choices = [x for c in choices for x in (f".{c.removeprefix('.')}", c)]
            found = [f"{start}/{choice}" if start else choice for start in found for choice in choices]
            prefix = f"{prefix}/{part}" if prefix else part
        return found


def _class_of(prefix: str, old: dict[str, list[Any]]) -> str | None:
    """The class of the value that a path is in: that of the result, for a column of one of its tables."""
    while prefix and f"{prefix}/(class)" not in old:
        prefix = prefix.rpartition("/")[0]
    return old.get(f"{prefix}/(class)" if prefix else "(class)", [None])[0]


def compare_entries(
    old: list[Any], new: list[Any], names: Names, *, is_page: bool = False
) -> tuple[list[Difference], int]:
    """Differences of two lists of `[item, columns]`, and how many old items have moved.

    Items of one name (a variable of a page that is bound again) are matched in their order. Where their number differs
    on a page, its blocks were edited: an item whose numbers are bound to no variable there counts as moved.
    """
    differences: list[Difference] = []
    moved = 0
    stopped = dict(new).get("(stopped)")
    if stopped is not None and "(stopped)" not in dict(old):
        text = f"stopped by {stopped['(error)'][0]}: {stopped['(message)'][0]:.300}"
        return [Difference("error", "", text)], 0
    for item in dict.fromkeys(name for name, _ in old):
        before = [columns for name, columns in old if name == item]
        after = [columns for name, columns in new if name == item]
        if not is_page and not after:
            differences.append(Difference("gone", item, "is not there"))
            continue
        if len(before) == len(after) or not is_page:
            matched = list(zip(before, after, strict=False))
        else:
            pool = [columns for _, columns in new]
            missing = [x for x in before if not any(same_numbers(x, y, names) for y in pool)]
            matched, moved = [], moved + len(missing)
        for a, b in matched:
            differences += [
                Difference(d.kind, f"{item}: {d.where}" if item else d.where, d.text)
                for d in compare_columns(a, b, names)
            ]
    return differences, moved


def same_numbers(old: dict[str, Any], new: dict[str, Any], names: Names) -> bool:
    return not any(d.kind in FAILS for d in compare_columns(old, new, names))


def compare_columns(old: dict[str, list[Any]], new: dict[str, list[Any]], names: Names) -> Iterator[Difference]:
    """Differences of what is recorded of one value."""
    if "(error)" in old or "(error)" in new:
        was, now = (x.get("(error)", ["a result"])[0] for x in (old, new))
        if names.errors.get(was, was) != now:
            yield Difference("error", "", f"{was} -> {now}: {new.get('(message)', [''])[0]:.300}")
            return
    for path, values in old.items():
        paths = names.paths(path, old)
        if paths is None or path == "(error)":
            continue
        there = next((p for p in paths if p in new), None)
        if there is not None:
            yield from compare_values(path, values, new[there])
        elif _is_word(path, values):
            yield Difference("words", path, "gone")
        else:
            same = [p for p, found in new.items() if p not in old and not list(compare_values(path, values, found))]
            kind = "attribute" if _beside_a_table(path, old) else "gone"
            hint = f"; the same numbers are in {', '.join(same[:3])}" if same else ""
            yield Difference(kind, path, f"is not there ({_short(values)}){hint}")


def _beside_a_table(path: str, old: dict[str, list[Any]]) -> bool:
    start, _, last = path.rpartition("/")
    siblings = (p for p in old if p.rpartition("/")[0] == start and p[len(start) :].strip("/")[0] not in ".(")
    return last.startswith(".") and next(siblings, None) is not None


def _is_word(path: str, values: list[Any]) -> bool:
    return (
        path.endswith("(class)")
        or path in ("(message)", "(warnings)", "(text)", "(printed)")
        or (all(isinstance(v, str) for v in values))
    )


def compare_values(path: str, old: list[Any], new: list[Any]) -> Iterator[Difference]:
    """Differences of one column."""
    if len(old) != len(new):
        kind = "words" if _is_word(path, old) and _is_word(path, new) else "size"
        yield Difference(kind, path, f"{len(old)} values -> {len(new)}: {_short(old)} -> {_short(new)}")
        return
    largest = max((abs(x) for x in old if _is_number(x) and math.isfinite(x)), default=0.0)
    worst, shown, count, words = 0.0, "", 0, []
    for i, (a, b) in enumerate(zip(old, new, strict=True)):
        if isinstance(a, str) and isinstance(b, str):
            if a != b:
                words.append((a, b))
            continue
        error = _error(a, b, largest, is_p=bool(P_NAME.search(path)))
        if error > 1.0:
            count += 1
            if error > worst:
                worst, shown = error, f"[{i}] {_short([a])} -> {_short([b])}{_relative(a, b)}"
    if count:
        yield Difference("number", path, f"{count} of {len(old)} differ, most {shown}")
    if words:
        a, b = words[0]
        squeezed = [re.sub(r"\s+", "", text) for text in (a, b)]
        if "~" in a and len(a) < 300 and squeezed[0] != squeezed[1] and path.rsplit("/", 1)[-1].endswith("formula"):
            yield Difference("formula", path, f"{a} -> {b}")
        elif " " in a.strip() or (_is_word(path, old) and path.startswith("(")):
            yield Difference("words", path, _changed(a, b))
        else:
            yield Difference("labels", path, f"{len(words)} of {len(old)}: {a!r} -> {b!r}")


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def _error(a: Any, b: Any, largest: float, *, is_p: bool) -> float:
    """Difference of two values in tolerances; infinite where they are not of one kind."""
    if not (_is_number(a) and _is_number(b)):
        return 0.0 if a == b and isinstance(a, bool) == isinstance(b, bool) else math.inf
    if not (math.isfinite(a) and math.isfinite(b)):
        return 0.0 if a == b else math.inf
    if is_p and 0.0 < a < TINY_P:
        return abs(a - b) / (RELATIVE_TINY_P * a)
    slack = RELATIVE * (abs(a) + FLOOR * largest) + ROUNDING
    return abs(a - b) / slack if a != b else 0.0


def _relative(a: Any, b: Any) -> str:
    return f" (relative {abs(a - b) / abs(a):.1e})" if _is_number(a) and _is_number(b) and a else ""


def _short(values: list[Any]) -> str:
    some = ", ".join(f"{v:.12g}" if isinstance(v, float) else str(v)[:60] for v in values[:4])
    return some + (", ..." if len(values) > 4 else "")


def _changed(a: str, b: str) -> str:
    """The lines that differ, or the words."""
    if "\n" not in a:
        return f"{a[:200]!r} -> {b[:200]!r}"
    lines = difflib.unified_diff(a.splitlines(), b.splitlines(), lineterm="", n=0)
    return "\n      ".join(["lines:", *[line for line in lines if not line.startswith(("---", "+++", "@@"))][:12]])
