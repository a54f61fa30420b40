"""Out-of-bootstrap splits: train on a bootstrap sample of the observations, test on those that it left out.

Cross-validation ties the number of splits to the size of the training sets, and its training sets overlap by design.
Bootstrap samples are drawn independently of each other, as many as one likes, all of one size; what a sample leaves
out is the test set, so no observation is on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmemtest.errors import ArgumentError, DataError

Indices = NDArray[np.intp]

MOST_TRIES = 1000  # draws of a training set before it is said to leave nothing out


class OutOfBootstrap:
    """Out-of-bootstrap splits, to be used wherever scikit-learn takes a cross-validation object (``cv=``).

    Parameters
    ----------
    n_splits : int, >= 1
    train_size : int, optional
        Observations of a training set, drawn with replacement; by default as many as there are.
    test_size : int, optional
        Observations of a test set, drawn with replacement from those that the training set left out; by default each
        of them once, about 37 % of the data.
    stratify : bool
        Whether each class of `y` is drawn by itself, so that its share is the same in all training sets, and in the
        test sets where `test_size` is given.
    rng : int, numpy.random.Generator or None
        With an integer every call of `split` gives the same splits; a generator moves on.

    Notes
    -----
    With ``groups`` whole groups are drawn instead of observations, and sizes count groups. This is also how a training
    set is split again for tuning: it holds copies of observations, and ``split(train, groups=train)`` keeps all copies
    of one on the same side.

    A training set that leaves nothing out (of a class, with `stratify`) is drawn again; this happens with a handful of
    observations only.

    References
    ----------
    Hothorn, Leisch, Zeileis & Hornik (2005), doi:10.1198/106186005X59630

    Examples
    --------
    >>> for train, test in OutOfBootstrap(2, rng=1).split(range(6)):
    ...     print(train, test)
    [0 0 2 3 4 5] [1]
    [1 1 2 4 5 5] [0 3]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        train_size: int | None = None,
        test_size: int | None = None,
        stratify: bool = False,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.train_size = train_size
        self.test_size = test_size
        self.stratify = stratify
        self.rng = rng

    def __repr__(self) -> str:
        sizes = f"train_size={self.train_size}, test_size={self.test_size}, stratify={self.stratify}, rng={self.rng!r}"
        return f"OutOfBootstrap(n_splits={self.n_splits}, {sizes})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002 - the protocol's
        """Number of splits; the arguments are those of scikit-learn's interface and change nothing."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Positions of the training and of the test observations of each split.

        Parameters
        ----------
        X : sequence, array or data frame
            The observations; only their number is used.
        y : sequence of length n, optional
            Classes, needed with `stratify`.
        groups : sequence of length n, optional
            Observations that belong together, by label.

        Returns
        -------
        iterator of (train, test)
            Two sorted arrays of positions. Those of `train` occur as often as they were drawn.

        Raises
        ------
        ArgumentError
            If `stratify` meets no classes, or groups.
        DataError
            If there are fewer than two observations or groups (of a class, with `stratify`), lengths differ, or the
            training sets are so large that they leave nothing out.
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)  # a sparse matrix has no length
        if self.stratify and (y is None or groups is not None):
            what = "needs the classes y" if y is None else "draws observations within classes and cannot keep groups"
            raise ArgumentError(f"stratify=True {what}. Give split(X, y), or use stratify=False.")
        strata = _members(y, n, "y") if self.stratify else [np.arange(n)]
        if groups is not None:
            units = _members(groups, n, "groups")
            strata = [np.arange(len(units))]
        else:
            units = list(np.arange(n)[:, None])
        for stratum in strata:
            if len(stratum) < 2:
                where = "each class of y" if self.stratify else "groups" if groups is not None else "X"
                raise DataError(
                    f"an out-of-bootstrap split needs at least 2 in {where}, one to train on and one to test on, "
                    f"got {len(stratum)}."
                )
        return self._draw(strata, units)

    def _draw(self, strata: Sequence[Indices], units: Sequence[Indices]) -> Iterator[tuple[Indices, Indices]]:
        rng = np.random.default_rng(self.rng)
        sizes = np.array([len(stratum) for stratum in strata])
        train_sizes = sizes if self.train_size is None else _shares(self.train_size, sizes, "train_size")
        test_sizes = None if self.test_size is None else _shares(self.test_size, sizes, "test_size")
        for _ in range(self.n_splits):
            train, test = [], []
            for i, stratum in enumerate(strata):
                drawn, left = _leaving_some(stratum, int(train_sizes[i]), rng)
                train.append(drawn)
                test.append(left if test_sizes is None else rng.choice(left, int(test_sizes[i])))
            yield _observations(train, units), _observations(test, units)


def _leaving_some(stratum: Indices, size: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """A bootstrap sample and what it left out, which is something."""
    for _ in range(MOST_TRIES):
        drawn = rng.choice(stratum, size)
        left = np.setdiff1d(stratum, drawn)
        if len(left):
            return drawn, left
    raise DataError(
        f"training sets of {size} drawn from {len(stratum)} leave nothing to test on. Use a smaller train_size."
    )


def _members(labels: Any, n: int, argument: str) -> list[Indices]:
    """Positions of each label."""
    values = np.asarray(labels)
    if values.shape != (n,):
        raise DataError(f"{argument} must have one label for each of the {n} observations, got shape {values.shape}.")
    try:
        _, codes = np.unique(values, return_inverse=True)
    except TypeError:
        raise DataError(f"{argument} must have labels of one type that can be put in order.") from None
    return [np.flatnonzero(codes == code) for code in range(codes.max(initial=-1) + 1)]


def _shares(total: int, sizes: NDArray[np.int_], argument: str) -> NDArray[np.int_]:
    """A total in proportion to the sizes, rounded so that it is kept; every stratum has at least one."""
    if total < len(sizes):
        raise DataError(f"{argument} must be at least {len(sizes)}, one for each class of y, got {total}.")
    n = sizes.sum()
    shares = np.maximum(total * sizes // n, 1)
    while (rest := total - shares.sum()) != 0:
        owed = total * sizes - shares * n  # in whole numbers, so that ties do not depend on rounding
        if rest > 0:
            shares[np.argmax(owed)] += 1
        else:  # rare strata were given one
            shares[np.argmin(np.where(shares > 1, owed, np.iinfo(owed.dtype).max))] -= 1
    return shares


def _observations(chosen: Sequence[Indices], units: Sequence[Indices]) -> Indices:
    return np.sort(np.concatenate([units[unit] for unit in np.concatenate(chosen)]))
