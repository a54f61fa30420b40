"""Files of other tools, and what runs made of them hold."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import lmemtest as lt

FILES = Path(__file__).parent / "bench" / "data" / "files"


def levels(runs: lt.Runs) -> dict[str, tuple[Any, ...]]:
    """The levels of each role that the runs have, by the name of its column."""
    names = [runs.algorithm, runs.benchmark, runs.seed, runs.budget, *runs.metafeatures]
    return {name: runs.levels(name) for name in names if name is not None}


def scores(runs: lt.Runs, **conditions: Any) -> list[float]:
    table = runs.to_frame()
    for name, value in conditions.items():
        table = table[table[name].isin(value if isinstance(value, list) else [value])]
    return table[runs.score].tolist()


def logged_returns(algorithm: str, benchmark: str, seed: int) -> list[float]:
    """What the runs of files/clearml and of `tracked` logged as "return" at 0, 100 and 200, and last as "final"."""
    rng = random.Random(f"{algorithm}{benchmark}{seed}")
    return [*(step + rng.random() for step in range(3)), rng.random()]


def tracked(folder: Path, *, indexed: bool = True) -> Path:
    """A repository of Aim, written by its package: two algorithms on one benchmark, two seeds, three steps."""
    from aim import Run

    if folder.exists():
        return folder
    folder.mkdir()
    quiet: Any = {"system_tracking_interval": None, "log_system_params": False, "capture_terminal_logs": False}
    for algorithm in ("sac", "ppo"):
        for seed in range(2):
            run = Run(repo=str(folder), experiment="study", **quiet)
            run.name = f"{algorithm}-pendulum-{seed}"
            run["hparams"] = {"algorithm": algorithm, "env": "pendulum", "seed": seed, "opt": {"lr": 0.1}}
            for step, value in enumerate(logged_returns(algorithm, "pendulum", seed)[:3]):
                run.track(value, name="return", step=step * 100, context={"subset": "test"})
                run.track(1 / (step + 1), name="loss", step=step * 100, context={"subset": "train"})
            run.close()
    if indexed:
        command = [str(Path(sys.executable).with_name("aim")), "storage", "--repo", str(folder), "reindex", "-y"]
        subprocess.run(command, check=True, capture_output=True)
    return folder
