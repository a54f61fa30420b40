"""Labels of objects by role, from names and what objects say of themselves; seeds are numbered where there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lmemtest.bench.importers.sources import KEYS, Part, one_type
from lmemtest.core.words import listed
from lmemtest.errors import DataError

__all__ = ["NUMBERED", "labelled"]

NUMBERED = "their number in the order given"

Named = dict[str, tuple[Any, str]]  # by role: the label (or column) and where it is from


def labelled(
    found: Sequence[Named], parts: Sequence[Part], *, advice: str
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The labels of every object, and where each role is from; every one has an algorithm and a seed."""
    for role in KEYS:
        without = [part.shown for part, named in zip(parts, found, strict=True) if role not in named]
        if role == "algorithm" and without:
            raise DataError(f"Nothing says the algorithm of {listed(without, most=3)}. {advice}")
        if without and len(without) < len(parts):
            raise DataError(
                f"Nothing says the {role} of {listed(without, most=3)}, but that of others is known. {advice}"
            )
    labels = [{role: label for role, (label, _) in named.items()} for named in found]
    if all(isinstance(label.get("seed"), (int, str)) for label in labels):
        for label, seed in zip(labels, one_type([label["seed"] for label in labels]), strict=True):
            label["seed"] = seed
    said = {role: " or ".join(dict.fromkeys(named[role][1] for named in found)) for role in KEYS if role in found[0]}
    if "seed" not in said:
        said["seed"], seen = NUMBERED, Counter[str]()
        for label in labels:
            run = repr([str(label.get(role)) for role in KEYS[:2]])
            label["seed"] = seen[run]
            seen[run] += 1
    return labels, said
