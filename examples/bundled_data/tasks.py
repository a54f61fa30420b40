"""The learning tasks: real data sets that installed packages ship, with their fixed splits.

Every task is split once into a development part (75 %) and a test part (25 %), and the development part into
three cross-validation folds, stratified for classification.  Features are standardised on each training part.
Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

N_FOLDS = 3
SPLIT_SEED = 20240601
# A regression that diverges would otherwise score 1e30 and decide every mean; predicting the mean scores 1.
WORST_SQUARED_ERROR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One training part, standardised, with what it is scored on."""

    index: int
    X: np.ndarray  # (n_train, d)
    y: np.ndarray  # (n_train,) class codes, or standardised target
    X_valid: np.ndarray
    X_test: np.ndarray
    order: np.ndarray  # (n_train,) fixed random order whose every prefix is as good as stratified


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A data set with its split.

    `score` turns predictions for all folds into a loss: the share of wrong labels (classification), or the
    squared error divided by that of predicting the training mean (regression).
    """

    name: str
    kind: Literal["classification", "regression"]
    folds: tuple[Fold, ...]
    y_valid: tuple[np.ndarray, ...]
    y_test: tuple[np.ndarray, ...]  # per fold, because regression targets are standardised per fold

    @property
    def n_classes(self) -> int:
        """Number of classes, 1 for regression."""
        return int(self.folds[0].y.max()) + 1 if self.kind == "classification" else 1

    def score(self, predictions: list[np.ndarray], *, part: Literal["valid", "test"]) -> float:
        """Loss of one list of predictions per fold, pooled over the folds and rounded to 6 decimals."""
        truth = np.concatenate(self.y_valid if part == "valid" else self.y_test)
        predicted = np.concatenate(predictions)
        if self.kind == "classification":
            return round(float(np.mean(predicted != truth)), 6)
        with np.errstate(over="ignore", invalid="ignore"):
            relative = np.sum((predicted - truth) ** 2) / np.sum(truth**2)
        return round(float(min(relative, WORST_SQUARED_ERROR)), 6) if np.isfinite(relative) else WORST_SQUARED_ERROR


def _digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


def _cancer() -> tuple[np.ndarray, np.ndarray]:
    return load_breast_cancer(return_X_y=True)


def _vote() -> tuple[np.ndarray, np.ndarray]:
    from statsmodels.datasets import anes96

    table = anes96.load_pandas().data
    return table.drop(columns=["vote", "logpopul"]).to_numpy(float), table["vote"].to_numpy(int)


def _diabetes() -> tuple[np.ndarray, np.ndarray]:
    return load_diabetes(return_X_y=True)


SOURCES: dict[str, tuple[str, Callable[[], tuple[np.ndarray, np.ndarray]]]] = {
    "digits": ("classification", _digits),
    "cancer": ("classification", _cancer),
    "vote": ("classification", _vote),
    "diabetes": ("regression", _diabetes),
}


def load_task(name: str) -> Task:
    """Load one task by its name in `SOURCES`."""
    kind, source = SOURCES[name]
    X, y = source()
    labels = y if kind == "classification" else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=SPLIT_SEED, stratify=labels)
    folds, y_valid, y_tests = [], [], []
    for index, (train, valid) in enumerate(_splits(kind, X, y)):
        x_scale = StandardScaler().fit(X[train])
        centre, spread = (0, 1) if kind == "classification" else (y[train].mean(), y[train].std())
        target = (y[train] - centre) / spread if kind == "regression" else y[train]
        folds.append(
            Fold(
                index=index,
                X=x_scale.transform(X[train]),
                y=target,
                X_valid=x_scale.transform(X[valid]),
                X_test=x_scale.transform(X_test),
                order=_stratified_order(y[train] if kind == "classification" else np.zeros(len(train), int)),
            )
        )
        y_valid.append((y[valid] - centre) / spread)
        y_tests.append((y_test - centre) / spread)
    return Task(name=name, kind=kind, folds=tuple(folds), y_valid=tuple(y_valid), y_test=tuple(y_tests))


def _splits(kind: str, X: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    splitter = StratifiedKFold if kind == "classification" else KFold
    return splitter(n_splits=N_FOLDS, shuffle=True, random_state=SPLIT_SEED).split(X, y)


def _stratified_order(labels: np.ndarray) -> np.ndarray:
    """Order rows by their quantile within their class, so that small prefixes hold every class."""
    rng = np.random.default_rng(SPLIT_SEED)
    position = np.empty(len(labels))
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        position[rng.permutation(rows)] = (np.arange(len(rows)) + 0.5) / len(rows)
    return np.argsort(position, kind="stable")
