"""One score per run: the observations that a check of seeds or benchmarks may count as independent.

The scores of one run at several budgets are one curve. Counting them one by one makes every seed and every benchmark
look important, so each run is first reduced to its mean over budgets that all runs of its instance have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.data.cells import group_means, group_numbers
from lmemtest.errors import DataError
from lmemtest.words import listed

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs

# Names of the columns of `RunScores.frame`.
INSTANCE, ALGORITHM, SEED, SCORE = "instance", "algorithm", "seed", "score"
ONLY_INSTANCE = "all runs"  # the label where no column tells instances apart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunScores:
    """Runs, each with one score.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row per run: ``instance`` (text), ``algorithm``, ``seed`` (None if the runs have no seeds), ``score``.
        Repeated rows of a run without budgets are kept apart.
    instances : pandas.DataFrame
        The columns behind each instance, indexed by its label.
    notes : tuple of str
        What was averaged.
    """

    frame: pd.DataFrame
    instances: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def several_levels(self) -> bool:
        """Whether some benchmark was run at several levels of its metafeatures."""
        return bool(self.instances.shape[1] > 1 and self.instances.iloc[:, 0].duplicated().any())


def run_scores(runs: Runs) -> RunScores:
    """Reduce every run to one score.

    Parameters
    ----------
    runs : Runs

    Returns
    -------
    RunScores

    Raises
    ------
    DataError
        If scores are missing or infinite, or the runs of an instance have no budget in common.
    """
    keys = [*runs.instance, runs.algorithm, *([runs.seed] if runs.seed else [])]
    notes: tuple[str, ...] = ()
    if runs.budget is None:
        table = _rows(runs, keys)
    else:
        table, notes = _averaged(runs, keys, runs.budget)
    columns = runs.study.instance
    labels = _labels(table, columns)
    frame = pd.DataFrame(
        {
            INSTANCE: labels,
            ALGORITHM: table[runs.algorithm].to_numpy(),
            SEED: table[runs.seed].to_numpy() if runs.seed else None,
            SCORE: table["\0y"].to_numpy(dtype=float),
        }
    )
    instances = table[list(columns)].assign(**{"\0label": labels}).drop_duplicates("\0label")
    return RunScores(frame=frame, instances=instances.set_index("\0label").rename_axis(INSTANCE), notes=notes)


def _rows(runs: Runs, keys: list[str]) -> pd.DataFrame:
    return runs.study.rows(keys).rename(columns={runs.score: "\0y"})


def _averaged(runs: Runs, keys: list[str], column: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Means of the runs over the budgets that all runs of an instance have."""
    assert runs.budget is not None
    cells = runs.study.cells([*keys, column])
    table = cells.frame.assign(**{"\0y": cells.mean})
    instance = _codes(table, runs.instance)
    run = _codes(table, keys)
    budget = _codes(table, [column])
    runs_of_instance = np.bincount(instance[np.unique(run, return_index=True)[1]])
    place = instance * (budget.max() + 1) + budget
    common = np.bincount(place)[place] == runs_of_instance[instance]
    empty = np.setdiff1d(instance, instance[common])
    if len(empty):
        names = _labels(table, runs.study.instance)
        where = list(dict.fromkeys(names[np.isin(instance, empty)]))
        raise DataError(
            f"the runs of {listed(where)} have no budget in common, so one score per run would compare different "
            f"budgets. Filter the runs to budgets that all of them reached: runs.filter({column}=[...])."
        )
    kept = table[common]
    means = group_means(kept, keys, "\0y")[0]
    return means, (_budget_note(runs, common, instance, budget),)


def _budget_note(runs: Runs, common: np.ndarray, instance: np.ndarray, budget: np.ndarray) -> str:
    pairs = pd.DataFrame({"i": instance[common], "b": budget[common]}).drop_duplicates()
    counts = np.unique(np.bincount(pairs["i"])[np.unique(instance)])
    number = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    if len(counts) == 1 and counts[0] == 1:
        text = f"Each run counts once, with its score at one {runs.budget}."
    else:
        text = f"Each run counts once, with its mean over {number} values of {runs.budget}."
    if not common.all():
        text += " Others, which some runs of the instance do not have, were left out."
    return text


def _codes(table: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    return group_numbers(table, columns)


def _labels(table: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    if not columns:
        return np.full(len(table), ONLY_INSTANCE, dtype=object)
    parts = [table[column].astype(str).to_numpy(dtype=object) for column in columns]
    return np.array([" / ".join(row) for row in zip(*parts, strict=True)], dtype=object)
