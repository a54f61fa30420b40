"""Tables as people have them: one study, in the structures and under the names in which studies come."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

ALGORITHMS = ("Ours", "XGBoost", "RandomForest", "SVM", "kNN")
BENCHMARKS = (
    "adult",
    "bank",
    "car",
    "credit-g",
    "diabetes",
    "eeg",
    "higgs",
    "kc1",
    "letter",
    "mnist",
    "phoneme",
    "sick",
)

# What the columns of algorithms, benchmarks, seeds and scores are called; the score says its direction or not.
NAMES = {
    "usual": ("method", "dataset", "seed", "test_acc"),
    "others": ("clf", "data", "run", "f1"),
    "german": ("Verfahren", "Datensatz", "Lauf", "Genauigkeit"),
    "half": ("who", "task", "rep", "accuracy"),
}


@dataclass(frozen=True)
class Table:
    """A table and what is right for it: the roles of its one reading, or the arguments between which only a user can
    choose, and a word that the answer holds.
    """

    frame: pd.DataFrame
    roles: dict[str, Any] = field(default_factory=dict)
    open: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    wide: bool = False


def scores(rng: Any, *levels: tuple[Any, ...], noise: float = 0.01) -> pd.DataFrame:
    """A row for each combination of an algorithm, a benchmark and other levels, with a score in [0.5, 1]."""
    rows = pd.DataFrame(list(itertools.product(*levels)), columns=["a", "b", *range(len(levels) - 2)])
    better = rows["a"].map({name: 0.02 * (len(levels[0]) - i) for i, name in enumerate(levels[0])})
    easier = rows["b"].map(dict(zip(levels[1], rng.uniform(0.6, 0.8, len(levels[1])), strict=True)))
    return rows.assign(score=(better + easier + rng.normal(0.0, noise, len(rows))).round(4))


def long(names: str = "usual", *, seeds: int = 3) -> Table:
    """A row per run."""
    algorithm, benchmark, seed, score = NAMES[names]
    frame = scores(np.random.default_rng(1), ALGORITHMS, BENCHMARKS, tuple(range(seeds)))
    frame.columns = [algorithm, benchmark, seed, score]
    roles = {"score": score, "direction": "maximize", "algorithm": algorithm, "benchmark": benchmark, "seed": seed}
    return Table(frame, roles)


def nameless() -> Table:
    """Crossed columns whose names say nothing: what is compared is one of two."""
    table = long()
    frame = table.frame.set_axis(["x1", "x2", "x3", "accuracy"], axis=1)
    return Table(frame, {"score": "accuracy", "direction": "maximize", "seed": "x3"}, open=("algorithm", "benchmark"))


def cross_validation() -> Table:
    """Repeats and folds, and times that were measured."""
    rng = np.random.default_rng(2)
    frame = scores(rng, ALGORITHMS[:3], BENCHMARKS[:6], tuple(range(3)), tuple(range(4)), noise=0.03)
    frame.columns = ["clf", "data", "repeat", "fold", "accuracy"]
    frame = frame.assign(fit_time=rng.uniform(0.5, 4.0, len(frame)).round(2))
    roles = {"algorithm": "clf", "benchmark": "data", "seed": ("repeat", "fold"), "budget": None}
    return Table(frame, {"score": "accuracy", "direction": "maximize", **roles}, left_out=("fit_time",))


def curves() -> Table:
    """Epochs of named runs."""
    rng = np.random.default_rng(3)
    frame = scores(rng, ("sgd", "adam"), BENCHMARKS[:3], (0, 1, 2), tuple(range(1, 9)))
    frame.columns = ["optimizer", "dataset", "seed", "epoch", "val_acc"]
    run = frame["optimizer"] + "_" + frame["dataset"] + "_s" + frame["seed"].astype(str)
    frame.insert(0, "run_name", run)
    frame.insert(5, "step", frame["epoch"] * 391)
    roles = {"algorithm": "optimizer", "benchmark": "dataset", "seed": "seed", "budget": "epoch"}
    return Table(frame, {"score": "val_acc", "direction": "maximize", **roles}, left_out=("run_name", "step"))


def two_metrics() -> Table:
    """Budgets and two scores, of which a user means one."""
    frame = scores(np.random.default_rng(4), ("random", "tpe", "bohb"), BENCHMARKS[:6], (0, 1, 2), (1, 3, 9, 27))
    frame.columns = ["optimizer", "task", "seed", "epochs", "valid_error"]
    frame = frame.assign(test_error=frame["valid_error"] + 0.01)
    roles = {"algorithm": "optimizer", "benchmark": "task", "seed": "seed", "budget": "epochs", "direction": "minimize"}
    return Table(frame, roles, open=("score",))


def undirected() -> Table:
    """A score whose name does not say which end is good."""
    table = long()
    frame = table.frame.rename(columns={"test_acc": "value"})
    return Table(frame, {**table.roles, "score": "value", "direction": None}, open=("direction",))


def families(column: str = "suite") -> Table:
    """Five groups of four benchmarks, in a column of any name."""
    groups = tuple(f"g{i}_{j}" for i in range(5) for j in range(4))
    frame = scores(np.random.default_rng(5), ALGORITHMS[:4], groups, (0, 1, 2))
    frame.columns = ["method", "task", "seed", "error"]
    frame.insert(0, column, frame["task"].str.partition("_")[0])
    roles = {"algorithm": "method", "benchmark": "task", "seed": "seed", "family": (column,)}
    return Table(frame, {"score": "error", "direction": "minimize", **roles})


def few_groups() -> Table:
    """Groups that are too few to be a sample."""
    table = long()
    frame = table.frame.assign(kind=table.frame["dataset"].map(lambda name: "small" if name < "d" else "large"))
    return Table(frame, {**table.roles, "family": ()}, left_out=("kind",))


def judged() -> Table:
    """Ratings of three systems by three judges."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(itertools.product(range(20), ("base", "sft", "dpo"), ("j1", "j2", "j3")))
    frame.columns = ["prompt", "system", "judge"]
    frame = frame.assign(loss=rng.integers(1, 11, len(frame)))
    roles = {"algorithm": "system", "benchmark": "prompt", "metafeatures": ("judge",)}
    return Table(frame, {"score": "loss", "direction": "minimize", **roles})


def wide() -> Table:
    """A column per algorithm."""
    frame = long(seeds=1).frame.pivot(index="dataset", columns="method", values="test_acc").reset_index()
    return Table(frame.rename_axis(columns=None), open=("direction",), wide=True)


def ranks() -> Table:
    """Ranks in the place of scores."""
    frame = wide().frame
    frame[list(ALGORITHMS)] = frame[list(ALGORITHMS)].rank(axis=1, ascending=False)
    return Table(frame, {"direction": "minimize"}, wide=True)


def with_words() -> Table:
    """Runs that crashed, by a word in the place of their score."""
    table = long()
    frame = table.frame.astype({"test_acc": object})
    frame.loc[[3, 50, 90], "test_acc"] = "crash"
    return Table(frame, table.roles, options=("--failed", "crash"))


def one_benchmark() -> Table:
    """Ten seeds on one benchmark, which has no column."""
    frame = scores(np.random.default_rng(7), ALGORITHMS, ("only",), tuple(range(10)))
    frame.columns = ["model", "b", "seed", "f1"]
    roles = {"score": "f1", "direction": "maximize", "algorithm": "model", "benchmark": None, "seed": "seed"}
    return Table(frame.drop(columns="b"), roles)


def copied() -> Table:
    """A third of the rows stands twice."""
    table = long()
    frame = pd.concat([table.frame, table.frame[::3]]).sample(frac=1.0, random_state=np.random.RandomState(0))
    return Table(frame.reset_index(drop=True), table.roles)


def pivoted() -> Table:
    """What `DataFrame.pivot` makes of long runs: benchmarks and seeds are the index."""
    frame = long().frame.pivot(index=["dataset", "seed"], columns="method", values="test_acc")
    return Table(frame, {"seed": "seed"}, open=("direction",), wide=True)


def printed() -> Table:
    """A paper's table: each cell is a mean and a standard deviation, as text."""
    frame = long().frame.groupby(["dataset", "method"], sort=False)["test_acc"].agg(["mean", "std"])
    cells = (100 * frame["mean"]).map("{:.1f}".format) + " ± " + (100 * frame["std"]).map("{:.1f}".format)
    return Table(cells.unstack("method").reset_index(), open=("direction",), wide=True)


def best_so_far() -> Table:
    """Trials of hyperparameter optimisers, whose data sets occur in several search spaces, as in HPO-B."""
    spaces = {"rf": BENCHMARKS[:8], "svm": BENCHMARKS[4:], "mlp": BENCHMARKS[::2]}
    rows = []
    for at, (space, data) in enumerate(spaces.items()):
        part = scores(np.random.default_rng(at), ALGORITHMS, data, ("test0", "test1", "test2"), (1, 2, 5, 10, 50))
        rows.append(part.assign(space=space))
    frame = pd.concat(rows, ignore_index=True)
    frame["score"] = frame.groupby(["a", "b", "space", 0], sort=False)["score"].cummax()
    frame = frame.rename(columns={"a": "method", "b": "dataset", 0: "seed", 1: "trial", "score": "best_accuracy"})
    roles = {"score": "best_accuracy", "direction": "maximize", "algorithm": "method", "benchmark": "dataset"}
    return Table(frame, {**roles, "seed": "seed", "budget": "trial", "metafeatures": ("space",)})


def costs() -> Table:
    """Evaluations up to a target, as BBOB has them: settings are numbers, and the score is called like a budget."""
    levels = (("CMA-ES", "BFGS", "NM"), tuple(f"f{i}" for i in range(1, 9)), (5, 10, 20), (10.0, 0.1, 1e-8))
    frame = scores(np.random.default_rng(10), *levels, noise=0.1)
    frame.columns = ["algorithm", "function", "dimension", "target", "evaluations"]
    frame["evaluations"] = (1e6 * frame["evaluations"]).round()
    roles = {"algorithm": "algorithm", "benchmark": "function", "metafeatures": ("dimension", "target")}
    return Table(frame, {"score": "evaluations", "direction": "minimize", "budget": None, **roles})


TABLES: dict[str, Callable[[], Table]] = {
    **{f"long, {names} names": lambda names=names: long(names) for names in NAMES},  # type: ignore[misc]
    "long, seeds once": lambda: Table(long(seeds=1).frame.drop(columns="seed"), {**long().roles, "seed": None}),
    "nameless": nameless,
    "cross-validation": cross_validation,
    "curves": curves,
    "best so far": best_so_far,
    "two metrics": two_metrics,
    "undirected": undirected,
    **{f"families, {name}": lambda name=name: families(name) for name in ("suite", "subject", "zz")},  # type: ignore[misc]
    "few groups": few_groups,
    "judged": judged,
    "wide": wide,
    "pivoted": pivoted,
    "ranks": ranks,
    "one benchmark": one_benchmark,
    "copied": copied,
    "costs": costs,
}
