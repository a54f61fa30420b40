"""Groups of what is not shown to differ: the maximal cliques of a graph, and one letter for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.core.arrays import Mask


_MOST_GROUPS = 2000  # real decisions have about as many groups as levels; a graph of 30 levels can have 3^10
_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def groups_with_letters(
    significant: Mask, levels: tuple[str, ...]
) -> tuple[tuple[tuple[str, ...], ...], dict[str, str]]:
    """Groups of levels that are not shown to differ, and the letters of each level.

    From the 53rd group on letters are numbers in brackets, so that none is used twice.
    """
    cliques = maximal_cliques(~significant)
    names = [*_ALPHABET, *(f"[{i + 1}]" for i in range(len(_ALPHABET), len(cliques)))]
    letters = dict.fromkeys(levels, "")
    for name, clique in zip(names, cliques, strict=False):
        for i in clique:
            letters[levels[i]] += name
    return tuple(tuple(levels[i] for i in clique) for clique in cliques), letters


def maximal_cliques(adjacent: Mask) -> tuple[tuple[int, ...], ...]:
    """Maximal cliques of a symmetric graph, sorted, each sorted; every vertex is in one at least.

    >>> maximal_cliques(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=bool))
    ((0, 1), (1, 2))
    """
    neighbours = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(np.asarray(adjacent))]
    found: list[tuple[int, ...]] = []
    pending: list[tuple[tuple[int, ...], set[int], set[int]]] = [((), set(range(len(neighbours))), set())]
    while pending:
        clique, candidates, excluded = pending.pop()
        if not candidates:
            if not excluded and clique:
                found.append(tuple(sorted(clique)))
                if len(found) > _MOST_GROUPS:
                    raise ArgumentError(
                        f"The levels form more than {_MOST_GROUPS} groups without significant differences, too many to "
                        "show. Compare fewer levels (at=...), or read the table of pairs."
                    )
            continue
        pivot = max(sorted(candidates | excluded), key=lambda v: len(neighbours[v] & candidates))
        for vertex in sorted(candidates - neighbours[pivot]):
            pending.append(((*clique, vertex), candidates & neighbours[vertex], excluded & neighbours[vertex]))
            candidates = candidates - {vertex}
            excluded = excluded | {vertex}
    return tuple(sorted(found))
