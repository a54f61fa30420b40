"""Two learning pipelines in which every source of randomness has a seed of its own.

A training of ``mlp`` (one hidden layer) or ``linear`` (none) is a function of hyperparameters and of four seeds:

    data     which observations are trained on, validated on and tested on (out-of-bootstrap)
    init     the weights before training
    order    the order of the observations in each epoch, and so the mini-batches
    augment  the noise that is added to the inputs in each epoch

A fifth, ``tuning``, belongs to the random search: the hyperparameters that it tries, and the init, order and augment
seeds of its trials. What a search finds is thus a function of the seeds ``tuning`` and ``data`` alone.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))  # where paper_figures is

import numpy as np
from paper_figures.splits import OutOfBootstrap
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

SOURCES = ("data", "init", "order", "augment")  # of a training; "tuning" is the search's
TRIALS = 25
EPOCHS = 15
BATCH = 20
PIPELINES = ("linear", "mlp")
LOADERS = {"digits": load_digits, "cancer": load_breast_cancer, "wine": load_wine}
TRAIN_SIZES = {"digits": 240, "cancer": 120, "wine": 60}  # small, so that one training takes milliseconds

Seeds = Mapping[str, int]


class Hyperparameters(NamedTuple):
    """What the search chooses: log-uniform, 4 significant digits."""

    learning_rate: float  # of Adam, 0.003 to 0.3
    alpha: float  # L2 penalty, 1e-5 to 1
    noise: float  # standard deviation of the noise on standardised inputs, 0.03 to 1
    hidden_units: int  # 8 to 64; 0 in `linear`


class Split(NamedTuple):
    """Positions of the observations of a split."""

    train: np.ndarray  # for the trials of a search
    valid: np.ndarray  # what these are scored on
    both: np.ndarray  # for the final training
    test: np.ndarray


@functools.cache
def load(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and classes."""
    return LOADERS[dataset](return_X_y=True)


@functools.lru_cache(maxsize=64)
def split(dataset: str, seed: int) -> Split:
    """An out-of-bootstrap split, of which the training part is split again; copies stay on one side."""
    X, y = load(dataset)
    outer, inner = np.random.default_rng(seed).spawn(2)
    ((both, test),) = OutOfBootstrap(1, train_size=TRAIN_SIZES[dataset], stratify=True, rng=outer).split(X, y)
    ((train, valid),) = OutOfBootstrap(1, rng=inner).split(both, groups=both)
    return Split(both[train], both[valid], both, test)


def fit_and_score(
    dataset: str, hyperparameters: Hyperparameters, seeds: Seeds, train: np.ndarray, test: np.ndarray
) -> float:
    """Accuracy on `test` after training on `train`."""
    X, y = load(dataset)
    scaler = StandardScaler().fit(X[train])
    inputs, classes = scaler.transform(X[train]), np.unique(y)
    order, augment = (np.random.default_rng(seeds[name]) for name in ("order", "augment"))
    model = MLPClassifier(
        hidden_layer_sizes=(hyperparameters.hidden_units,) if hyperparameters.hidden_units else (),
        learning_rate_init=hyperparameters.learning_rate,
        alpha=hyperparameters.alpha,
        batch_size=BATCH,
        shuffle=False,  # so that the model's own generator makes weights only
        random_state=seeds["init"] % 2**32,
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(EPOCHS):
            noisy = inputs + hyperparameters.noise * augment.normal(size=inputs.shape)  # before rows change places
            rows = order.permutation(len(train))
            model.partial_fit(noisy[rows], y[train][rows], classes=classes)
    return float(np.mean(model.predict(scaler.transform(X[test])) == y[test]))


# ---------------------------------------------------------------------- what the estimators take


class Study(NamedTuple):
    """One pipeline on one data set: the callables that `ideal_estimator` and `fixed_tuning_estimator` ask for."""

    pipeline: str
    dataset: str

    def test_score(self, hyperparameters: Hyperparameters, seeds: Seeds) -> float:
        """Train on the training and validation parts, score on the test part."""
        parts = split(self.dataset, seeds["data"])
        return fit_and_score(self.dataset, hyperparameters, seeds, parts.both, parts.test)

    def validation_score(self, hyperparameters: Hyperparameters, seeds: Seeds) -> float:
        """Train on the training part, score on the validation part."""
        return _validation_score(self.dataset, hyperparameters, tuple(seeds[name] for name in SOURCES))

    def search(self, train: Callable[[Hyperparameters, Seeds], float], seeds: Seeds) -> Hyperparameters:
        """Random search; of equal scores the first."""
        rng = np.random.default_rng(seeds["tuning"])
        points = rng.random((TRIALS, 4))
        own = rng.integers(2**31, size=(TRIALS, 3)).tolist()
        trials = [hyperparameters_at(point, self.pipeline) for point in points]
        scores = [
            train(trial, {**seeds, "init": init, "order": order, "augment": augment})
            for trial, (init, order, augment) in zip(trials, own, strict=True)
        ]
        return trials[int(np.argmax(scores))]


@functools.lru_cache(maxsize=5000)
def _validation_score(dataset: str, hyperparameters: Hyperparameters, seeds: tuple[int, ...]) -> float:
    """Designs that share a tuning run ask for its trials again."""
    named = dict(zip(SOURCES, seeds, strict=True))
    parts = split(dataset, named["data"])
    return fit_and_score(dataset, hyperparameters, named, parts.train, parts.valid)


def hyperparameters_at(point: np.ndarray, pipeline: str) -> Hyperparameters:
    """From the unit cube; both pipelines get the same ones, but for the hidden layer."""

    def between(low: float, high: float, u: float) -> float:
        return float(f"{low * (high / low) ** u:.4g}")

    return Hyperparameters(
        learning_rate=between(3e-3, 3e-1, point[0]),
        alpha=between(1e-5, 1.0, point[1]),
        noise=between(0.03, 1.0, point[2]),
        hidden_units=round(between(8, 64, point[3])) if pipeline == "mlp" else 0,
    )
