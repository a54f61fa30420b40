"""One table, four verdicts: what counts as the sample decides how many pairs of algorithms differ.

    LMEMTEST_DATA=/path/to/data python four_verdicts.py

HPO-B (Pineda Arango et al. 2021, arXiv:2106.06257), version 3, at trial 50, as hpob.parquet in that folder: 13 methods
on 86 tasks (data sets in 16 search spaces) with 5 seeds. The table is not a part of the project.
"""

import argparse
import os
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

import lmemtest as lt

LAST, COMPLETE = 50, 430  # the trial, and the scores of a method that ran everywhere


def table(folder: Path) -> pd.DataFrame:
    """One row per method, task and seed."""
    frame = pd.read_parquet(folder / "hpob.parquet").query(f"trial == {LAST}").drop(columns="trial")
    names = ["method", "search_space", "dataset", "seed"]
    frame = frame.astype(dict.fromkeys(names, str))
    frame = frame[frame.groupby("method")["method"].transform("size") == COMPLETE]
    return frame.assign(task=frame["search_space"] + " / " + frame["dataset"])


def by_signed_ranks(frame: pd.DataFrame, unit: list[str]) -> int:
    """Significant pairs by Wilcoxon's test with Holm's adjustment, a unit being what counts as independent."""
    wide = frame.pivot_table("best_accuracy", unit, "method")
    p = [wilcoxon(wide[a], wide[b], zero_method="pratt").pvalue for a, b in combinations(wide.columns, 2)]
    return int(np.cumprod(np.sort(p) <= 0.05 / np.arange(len(p), 0, -1)).sum())


def runs_of(frame: pd.DataFrame, **family: str) -> lt.Runs:
    """The table with its roles, with or without families."""
    return lt.Runs(
        frame, score="best_accuracy", direction="maximize", algorithm="method", benchmark="task", seed="seed",
        ignore=["dataset", "search_space"][: 1 if family else 2], **family,
    )  # fmt: skip


def by_model(frame: pd.DataFrame, adjust: str | None, **family: str) -> int:
    """Significant pairs by the recommended model of ranks within tasks."""
    runs = runs_of(frame, **family)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lt.errors.DataWarning)  # on two tasks all methods reach the same accuracy
        ranks = runs.normalize("rank")
    pairs = lt.analyze(ranks, adjust=adjust, vcov="model" if adjust == "tukey" else None).pairs.to_frame()
    return int(np.sum(pairs["p_value"] < 0.05))


def by_single_runs(frame: pd.DataFrame, **family: str) -> int:
    """Pairs of which one is significantly more often better with the same seed on the same task."""
    found = lt.outperforming(runs_of(frame, **family)).to_frame()
    return int(((found["ci_low"] > 0.5) | (found["ci_high"] < 0.5)).sum())


def by_interquartile_means(frame: pd.DataFrame, **family: str) -> int:
    """Pairs whose interquartile means differ significantly, by bootstrap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lt.errors.DataWarning)
        scaled = runs_of(frame, **family).normalize("minmax")
    found = lt.aggregate_scores(scaled, "iqm", resample="benchmarks", rng=1)
    return int((found.estimates().pairs().to_frame()["p_value"] < 0.05).sum())


def verdicts(frame: pd.DataFrame) -> dict[str, int]:
    """Significant pairs of 78, by what counts as the sample."""
    return {
        "task-seed rows, signed ranks": by_signed_ranks(frame, ["task", "seed"]),
        "tasks, signed ranks of their means": by_signed_ranks(frame, ["task"]),
        "tasks, model": by_model(frame, None),
        "tasks, model, Tukey": by_model(frame, "tukey"),
        "search spaces, model": by_model(frame, None, family="search_space"),
        "search spaces, model, Tukey": by_model(frame, "tukey", family="search_space"),
        "tasks, single runs": by_single_runs(frame),
        "search spaces, single runs": by_single_runs(frame, family="search_space"),
        "tasks, interquartile means": by_interquartile_means(frame),
        "search spaces, interquartile means": by_interquartile_means(frame, family="search_space"),
    }


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()  # --help; nothing is written
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder or not (Path(folder) / "hpob.parquet").is_file():
        print("HPO-B is not a part of the project: set LMEMTEST_DATA to the folder of hpob.parquet.")
        return
    for sample, count in verdicts(table(Path(folder))).items():
        print(f"{count:3d} of 78 pairs differ: {sample}")


if __name__ == "__main__":
    main()
