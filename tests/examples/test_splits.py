"""Out-of-bootstrap splits: what is drawn, what is left out, and the interface of scikit-learn."""

from __future__ import annotations

import inspect
from math import comb

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from paper_figures.splits import OutOfBootstrap

from lmemtest.errors import ArgumentError, DataError


def splits(X, y=None, groups=None, **options):
    return list(OutOfBootstrap(**options).split(X, y, groups))


def test_the_test_set_is_what_the_bootstrap_sample_left_out():
    for train, test in splits(np.zeros((50, 3)), n_splits=5, rng=1):
        assert len(train) == 50
        assert_array_equal(np.union1d(train, test), np.arange(50))
        assert np.intersect1d(train, test).size == 0
        assert len(np.unique(test)) == len(test)


def test_an_observation_is_left_out_as_often_as_theory_says():
    """With n = 20 draws of 20: (1 - 1/20)^20; its copies are binomial."""
    found = splits(range(20), n_splits=1000, rng=2)
    left = np.array([np.isin(np.arange(20), test) for _, test in found])
    assert_allclose(left.mean(), 0.95**20, atol=4 * np.sqrt(0.36 * 0.64 / 20_000))
    once = np.mean([np.bincount(train, minlength=20) == 1 for train, _ in found])
    assert_allclose(once, comb(20, 1) * 0.05 * 0.95**19, atol=0.015)


def test_sizes_are_obeyed_and_the_sets_stay_apart():
    for train, test in splits(range(40), n_splits=4, train_size=10, test_size=100, rng=3):
        assert (len(train), len(test)) == (10, 100)
        assert np.intersect1d(train, test).size == 0


def test_classes_keep_their_shares():
    y = np.array(["a"] * 30 + ["b"] * 15 + ["c"] * 6)
    for train, test in splits(y, y, n_splits=4, stratify=True, rng=4):
        assert_array_equal(np.unique(y[train], return_counts=True)[1], [30, 15, 6])
        assert set(y[test]) == {"a", "b", "c"}
    for train, test in splits(y, y, n_splits=4, stratify=True, train_size=17, test_size=18, rng=4):
        assert_array_equal(np.unique(y[train], return_counts=True)[1], [10, 5, 2])
        assert_array_equal(np.unique(y[test], return_counts=True)[1], [11, 5, 2])
        assert np.intersect1d(train, test).size == 0


def test_a_rare_class_is_on_both_sides():
    y = np.array([0] * 98 + [1] * 2)
    for train, test in splits(y, y, n_splits=20, stratify=True, train_size=10, rng=5):
        assert len(train) == 10
        assert set(y[train]) == set(y[test]) == {0, 1}


def test_groups_stay_together_so_a_training_set_can_be_split_again():
    train, test = splits(range(30), n_splits=1, rng=6)[0]
    for inner, held_out in splits(train, groups=train, n_splits=5, rng=7):
        assert not set(train[inner]) & set(train[held_out])
        assert set(train[inner]) | set(train[held_out]) == set(train)
        assert not set(test) & set(train[inner])


def test_an_integer_gives_the_same_splits_and_a_generator_moves_on():
    fixed, moving = OutOfBootstrap(2, rng=1), OutOfBootstrap(2, rng=np.random.default_rng(1))
    again = [[np.concatenate(pair).tolist() for pair in splitter.split(range(9))] for splitter in (fixed, fixed)]
    assert again[0] == again[1]
    moved = [[np.concatenate(pair).tolist() for pair in moving.split(range(9))] for _ in range(2)]
    assert moved[0] == again[0]
    assert moved[0] != moved[1]


def test_it_has_the_interface_of_scikit_learn():
    """Its utilities ask for these two methods with these arguments, and index with what they give."""
    splitter = OutOfBootstrap(n_splits=3, rng=1)
    assert list(inspect.signature(splitter.split).parameters) == ["X", "y", "groups"]
    assert list(inspect.signature(splitter.get_n_splits).parameters) == ["X", "y", "groups"]
    frame = pd.DataFrame({"x": range(12)})
    assert splitter.get_n_splits(frame, None, None) == len(list(splitter.split(X=frame, y=None, groups=None))) == 3
    for pair in splitter.split(frame):
        assert all(part.dtype == np.intp and len(frame.iloc[part]) == len(part) for part in pair)


def test_it_serves_scikit_learn():
    selection = pytest.importorskip("sklearn.model_selection")
    dummy = pytest.importorskip("sklearn.dummy")
    X, y = np.zeros((40, 1)), np.arange(40) % 2
    cv = OutOfBootstrap(4, stratify=True, rng=1)
    assert selection.check_cv(cv) is cv
    assert_allclose(selection.cross_val_score(dummy.DummyClassifier(), X, y, cv=cv).shape, (4,))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: splits(range(5), stratify=True), ArgumentError, "stratify=True needs the classes y"),
        (lambda: splits(range(4), [1, 1, 2, 2], [1, 1, 2, 2], stratify=True), ArgumentError, "cannot keep groups"),
        (lambda: splits([1]), DataError, "needs at least 2 in X"),
        (lambda: splits(range(3), [1, 1, 2], stratify=True), DataError, "at least 2 in each class of y.*got 1"),
        (lambda: splits(range(3), groups=[1, 1, 1]), DataError, "at least 2 in groups"),
        (lambda: splits(range(3), groups=[1, 1]), DataError, r"groups must have one label.*got shape \(2,\)"),
        (lambda: splits(range(3), train_size=500, rng=1), DataError, "leave nothing to test on"),
        (lambda: splits(range(4), [1, 1, 2, 2], stratify=True, train_size=1), DataError, "at least 2, one for each"),
    ],
)
def test_what_cannot_be_split_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
