"""Rows to cells, for a table of runs and for any other table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lmemtest.bench.data.runs import Runs
from lmemtest.bench.data.study import regrouped
from lmemtest.core.validate import as_frame, check_columns
from lmemtest.lmm.cells import (
    Cells,
    Groups,
    Transform,
    aggregate,
    as_float,
    cells_of,
    check_numeric,
    refuse_weights,
    transformed,
)

__all__ = ["compress"]


def compress(
    frame: Runs | Any,
    by: Sequence[str],
    *,
    score: str,
    transform: Transform | None = None,
    weights: str | None = None,
) -> Cells:
    """Compress a table to its cells: counts, means and sums of squares, exact to rounding, whatever the backend.

    A transform is applied to the scores, row by row, before they are summarised. Rows with different prior weights go
    to different cells. Missing keys, scores that are not finite and weights that are not positive are refused.

    >>> table = {"algorithm": ["HB", "RS", "RS"], "loss": [0.5, 1.0, 2.0]}
    >>> compress(table, ["algorithm"], score="loss").to_frame()
      algorithm    n  weight  mean   ss
    0        HB  1.0     1.0   0.5  0.0
    1        RS  2.0     1.0   1.5  0.5
    """
    table = as_frame(frame, argument="frame")
    columns = table.collect_schema().names()
    by = check_columns(tuple(dict.fromkeys([by] if isinstance(by, str) else by)), columns, argument="by")
    check_columns(score, columns, argument="score")
    keys = by if weights is None or weights in by else (*by, weights)
    check_columns(keys, columns, argument="weights")
    check_numeric(table, score, argument="score")
    if weights is not None:
        check_numeric(table, weights, argument="weights")
    groups = _of_study(frame, keys, score, transform) if isinstance(frame, Runs) else None
    if groups is None:
        groups = aggregate(table, keys, score, transform=transform)
        if isinstance(frame, Runs):
            frame.study.require_unchanged(groups)
    if isinstance(frame, Runs) and score == frame.score:
        frame.study.refuse(groups)
    cells = cells_of(groups, table, score)
    if weights is None:
        return cells
    weight = as_float(cells.frame[weights])
    refuse_weights(weight, cells.n, weights)
    return replace(cells, columns=groups.keys.only(by), weight=weight)


def _of_study(runs: Runs, keys: tuple[str, ...], score: str, transform: Transform | None) -> Groups | None:
    """What the study of the runs knows already; None where the table has to be asked."""
    study = runs.study
    if score != runs.score or not set(keys) <= set(study.columns):
        return None
    if transform is None:
        return study.groups(keys)
    finest = study.groups(study.columns)
    if (finest.n > 1).any():  # a transformed mean is not the mean of transformed scores
        return None
    y = transformed(finest.mean, transform)
    return regrouped(replace(finest, mean=y, above=np.zeros(len(y)), low=y, high=y), keys)
