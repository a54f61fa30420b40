"""Five scikit-learn model families: search space, training at four fidelities, and the work it took.

A family maps a point of the unit cube to a configuration and trains it.  Fidelities are 1, 3, 9 and 27 parts
of 27: passes over the data (sgd, mlp), trees (forest: two per part; boosting: one round per part), or rows of
the training part (svm).  Where a model is trained step by step, one training run gives all four fidelities.

Work is counted, not timed, so that it can be reproduced: millions of feature values read or weights updated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, SVR
from tasks import Fold, Task

FIDELITIES = (1, 3, 9, 27)
FULL = FIDELITIES[-1]
TREES_PER_PART = 2
SMALLEST_TRAINING_PART = 12

Config = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one fold gives at one fidelity: predictions for both parts, and work in millions of operations."""

    valid: np.ndarray
    test: np.ndarray
    work: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One dimension of a search space: from a uniform number to a value."""

    low: float
    high: float
    log: bool = False
    integer: bool = False

    def value(self, u: float) -> float:
        """Return the value at quantile `u` of the search distribution (4 significant digits)."""
        if self.log:
            value = float(np.exp(np.log(self.low) + u * (np.log(self.high) - np.log(self.low))))
        else:
            value = self.low + u * (self.high - self.low)
        return float(round(value)) if self.integer else float(f"{value:.4g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A model family: its search space and how to train one configuration on one fold."""

    name: str
    space: Mapping[str, Parameter]
    train: Callable[[Task, Fold, Config, int], list[Outcome]]

    def config(self, point: np.ndarray) -> Config:
        """Return the configuration at a point of the unit cube."""
        return {name: p.value(u) for (name, p), u in zip(self.space.items(), point, strict=True)}


def evaluate(task: Task, family: Family, config: Config, index: int) -> list[dict[str, float]]:
    """Train one configuration on all folds; one row per fidelity: losses and work of the three fits."""
    per_fold = [_train_or_crash(task, family, config, fold, index) for fold in task.folds]
    rows = []
    for level, fidelity in enumerate(FIDELITIES):
        outcomes = [levels[level] for levels in per_fold]
        rows.append(
            {
                "fidelity": fidelity / FULL,
                "valid_loss": task.score([o.valid for o in outcomes], part="valid"),
                "test_loss": task.score([o.test for o in outcomes], part="test"),
                "cost": float(f"{sum(o.work for o in outcomes):.5g}"),
            }
        )
    return rows


def _train_or_crash(task: Task, family: Family, config: Config, fold: Fold, index: int) -> list[Outcome]:
    seed = 1000 * fold.index + index
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # unfinished convergence is what low fidelities are
        return family.train(task, fold, config, seed)


def _predict(model: object, fold: Fold) -> tuple[np.ndarray, np.ndarray]:
    return model.predict(fold.X_valid), model.predict(fold.X_test)


def train_svm(task: Task, fold: Fold, config: Config, _seed: int) -> list[Outcome]:
    """Kernel machine on a growing prefix of the training rows; work: values in the kernel rows it read."""
    outcomes = []
    for fidelity in FIDELITIES:
        rows = fold.order[: max(SMALLEST_TRAINING_PART, -(-len(fold.y) * fidelity // FULL))]
        make = SVC if task.kind == "classification" else SVR
        model = make(C=config["C"], gamma=config["gamma"], max_iter=50_000)
        model.fit(fold.X[rows], fold.y[rows])
        valid, test = _predict(model, fold)
        work = 2e-6 * _kernel_entries(task, model.n_iter_, fold.y[rows]) * fold.X.shape[1]
        outcomes.append(Outcome(valid=valid, test=test, work=work))
    return outcomes


def _kernel_entries(task: Task, n_iter: np.ndarray, y: np.ndarray) -> float:
    """Rows of each sub-problem times the steps it took; a step of the solver reads two kernel rows."""
    if task.kind == "regression":
        return float(np.sum(n_iter)) * len(y)
    size = np.bincount(y, minlength=task.n_classes)
    pairs = combinations(range(task.n_classes), 2)  # the order of n_iter_: one machine per pair of classes
    return float(sum(steps * (size[a] + size[b]) for steps, (a, b) in zip(n_iter, pairs, strict=True)))


def train_forest(task: Task, fold: Fold, config: Config, seed: int) -> list[Outcome]:
    """Random forest of 54 trees, read after 2, 6, 18 and 54; work: values that split searches looked at."""
    make = RandomForestClassifier if task.kind == "classification" else RandomForestRegressor
    model = make(
        n_estimators=TREES_PER_PART * FULL,
        max_features=config["max_features"],
        max_samples=config["max_samples"],
        min_samples_leaf=int(config["min_samples_leaf"]),
        random_state=seed,
        n_jobs=1,
    ).fit(fold.X, fold.y)
    both = np.concatenate([fold.X_valid, fold.X_test]).astype(np.float32)
    vote = (lambda t: t.predict_proba(both)) if task.kind == "classification" else (lambda t: t.predict(both))
    votes = np.cumsum([vote(tree) for tree in model.estimators_], axis=0)
    tried = max(1, int(config["max_features"] * fold.X.shape[1]))
    work = np.cumsum([1e-6 * _values_read(tree.tree_, tried) for tree in model.estimators_])
    outcomes = []
    for fidelity in FIDELITIES:
        last = TREES_PER_PART * fidelity - 1
        predicted = votes[last].argmax(axis=1) if task.kind == "classification" else votes[last] / (last + 1)
        valid, test = np.split(predicted, [len(fold.X_valid)])
        outcomes.append(Outcome(valid=valid, test=test, work=float(work[last])))
    return outcomes


def _values_read(tree: object, features_tried: int) -> float:
    """Features tried times rows at each split, plus one reading of the sample: a bare root costs too."""
    split = tree.n_node_samples[tree.children_left >= 0].sum()
    return float(features_tried * split + tree.n_node_samples[0])


def train_boosting(task: Task, fold: Fold, config: Config, seed: int) -> list[Outcome]:
    """Histogram gradient boosting, read after 1, 3, 9 and 27 rounds; work: values added to histograms."""
    make = HistGradientBoostingClassifier if task.kind == "classification" else HistGradientBoostingRegressor
    model = make(
        max_iter=FULL,
        learning_rate=config["learning_rate"],
        max_leaf_nodes=int(config["max_leaf_nodes"]),
        l2_regularization=config["alpha"],
        min_samples_leaf=5,
        max_bins=63,
        early_stopping=False,
        random_state=seed,
    ).fit(fold.X, fold.y)
    valid = list(model.staged_predict(fold.X_valid))
    test = list(model.staged_predict(fold.X_test))
    rounds = [sum(_rows_histogrammed(tree.nodes) for tree in trees) for trees in model._predictors]
    work = np.cumsum(rounds) * 1e-6 * fold.X.shape[1]
    return [
        Outcome(valid=valid[f - 1], test=test[f - 1], work=float(work[f - 1]))  # one round per part
        for f in FIDELITIES
    ]


def _rows_histogrammed(nodes: np.ndarray) -> float:
    return float(nodes["count"][nodes["is_leaf"] == 0].sum())


def train_mlp(task: Task, fold: Fold, config: Config, seed: int) -> list[Outcome]:
    """One hidden layer, Adam, read after 1, 3, 9 and 27 passes; work per pass: 3 times weights times rows."""
    make = MLPClassifier if task.kind == "classification" else MLPRegressor
    units = int(config["hidden_units"])
    model = make(
        hidden_layer_sizes=(units,),
        learning_rate_init=config["learning_rate"],
        alpha=config["alpha"],
        batch_size=int(config["batch_size"]),
        random_state=seed,
    )
    outputs = 1 if task.n_classes <= 2 else task.n_classes
    per_pass = 3e-6 * len(fold.y) * units * (fold.X.shape[1] + outputs)
    return _read_by_pass(task, fold, model, per_pass)


def train_sgd(task: Task, fold: Fold, config: Config, seed: int) -> list[Outcome]:
    """Linear model (log-loss or squared error), constant steps, elastic net; work: weights times rows."""
    shared = {
        "penalty": "elasticnet",
        "alpha": config["alpha"],
        "l1_ratio": config["l1_ratio"],
        "learning_rate": "constant",
        "eta0": config["learning_rate"],
        "random_state": seed,
    }
    model = SGDClassifier(loss="log_loss", **shared) if task.kind == "classification" else SGDRegressor(**shared)
    outputs = 1 if task.n_classes <= 2 else task.n_classes
    return _read_by_pass(task, fold, model, 2e-6 * fold.X.size * outputs)


def _read_by_pass(task: Task, fold: Fold, model: object, work_per_pass: float) -> list[Outcome]:
    first = {"classes": np.arange(task.n_classes)} if task.kind == "classification" else {}
    outcomes: list[Outcome] = []
    for number in range(1, FULL + 1):
        try:
            model.partial_fit(fold.X, fold.y, **(first if number == 1 else {}))
        except ValueError:  # weights overflowed: the run has crashed, and every later reading is as bad as can be
            return outcomes + [_crashed(fold, work_per_pass * number)] * (len(FIDELITIES) - len(outcomes))
        if number in FIDELITIES:
            valid, test = _predict(model, fold)
            outcomes.append(Outcome(valid=valid, test=test, work=work_per_pass * number))
    return outcomes


def _crashed(fold: Fold, work: float) -> Outcome:
    """Return predictions that are wrong for every class and infinitely far off in a regression."""
    return Outcome(valid=np.full(len(fold.X_valid), np.inf), test=np.full(len(fold.X_test), np.inf), work=work)


FAMILIES = {
    family.name: family
    for family in (
        Family(
            name="svm",
            space={
                "C": Parameter(low=1e-2, high=1e3, log=True),
                "gamma": Parameter(low=1e-5, high=10, log=True),
            },
            train=train_svm,
        ),
        Family(
            name="forest",
            space={
                "max_features": Parameter(low=0.02, high=1.0),
                "max_samples": Parameter(low=0.05, high=1.0),
                "min_samples_leaf": Parameter(low=1, high=60, log=True, integer=True),
            },
            train=train_forest,
        ),
        Family(
            name="boosting",
            space={
                "learning_rate": Parameter(low=0.005, high=2.0, log=True),
                "max_leaf_nodes": Parameter(low=2, high=64, log=True, integer=True),
                "alpha": Parameter(low=1e-4, high=1e2, log=True),
            },
            train=train_boosting,
        ),
        Family(
            name="mlp",
            space={
                "learning_rate": Parameter(low=1e-4, high=0.3, log=True),
                "alpha": Parameter(low=1e-6, high=3.0, log=True),
                "hidden_units": Parameter(low=4, high=128, log=True, integer=True),
                "batch_size": Parameter(low=16, high=256, log=True, integer=True),
            },
            train=train_mlp,
        ),
        Family(
            name="sgd",
            space={
                "learning_rate": Parameter(low=1e-5, high=1.0, log=True),
                "alpha": Parameter(low=1e-6, high=1.0, log=True),
                "l1_ratio": Parameter(low=0.0, high=1.0),
            },
            train=train_sgd,
        ),
    )
}
