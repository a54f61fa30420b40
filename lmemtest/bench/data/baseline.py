"""Scores relative to what is known or to a baseline: one formula, (x - reference) / (target - reference), and its kin.

A baseline is the mean of an algorithm's scores in each group, a column, a number, or a value for each benchmark. The
mean of an algorithm is measured with error, which all scores of its group share; `Noise` says how large it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from lmemtest.core.caller import advice, named
from lmemtest.core.rounding import written
from lmemtest.core.validate import LARGEST_SCORE, as_frame, is_finite, is_number, is_size
from lmemtest.core.words import counted, format_level, format_number, joined, listed, percent, suggest
from lmemtest.errors import ArgumentError, DataError, DataWarning, UnknownColumnError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array


RELATIVE = ("baseline", "gap", "improvability")
# The bias of a mean of shares, the squared relative error, over the standard error of that mean: at most this. In
# simulations a comparison with the baseline at 5 % finds 5 to 7 % below, 8 to 16 % at 0.8 to 1.3.
_BIASED = 0.7
_SHOWN = 3


class Noise(NamedTuple):
    """How well the reference is known: the error of its means as a share of what scores are divided by.

    ``runs`` is the smallest number of runs behind a mean, ``error`` the root mean square of the relative standard
    errors over the groups, ``largest`` the largest of them, ``where`` its group. A mean of one run does not show its
    error: where ``borrowed``, its runs are taken to scatter as those of the other algorithms. NaN where nothing was
    repeated.
    """

    runs: int
    error: float
    largest: float
    where: str
    borrowed: bool

    @property
    def bias(self) -> float:
        """What the noise takes from means of others: E[x / m] is E[x] / E[m] times 1 + the squared relative error."""
        return self.error**2


class _Anchor:
    """One value for each group of scores: its words, its numbers group by group, and its expression."""

    def __init__(self, runs: Runs, given: Any, argument: str, groups: tuple[str, ...]) -> None:
        self.runs, self.given, self.argument, self.groups = runs, given, argument, groups
        self.algorithm: Any = None
        self.runs_behind = self.se = np.array([])  # of an algorithm: how many runs are behind its means, their errors
        known = runs.study.groups(groups).keys.frame()
        self.keys = list(zip(*(known[name] for name in groups), strict=True))
        if isinstance(given, Mapping):
            self.words = "values given for each benchmark"
            self.values = self._of_mapping()
        elif is_number(given):
            if not is_size(given):
                raise ArgumentError(f"{named(argument)} must be finite and below {LARGEST_SCORE:g}, got {given}.")
            if str(given) in map(str, runs.algorithms):
                raise ArgumentError(
                    f"{named(argument)}={given} is a number, and the name of an algorithm. "
                    + advice("name_or_number", name=str(given), number=float(given))
                )
            self.words = format_number(float(given))
            self.values = np.full(len(self.keys), float(given))
        else:
            self._named()

    def _named(self) -> None:
        """An algorithm or a column, by its name."""
        given, runs = self.given, self.runs
        levels = {str(level): level for level in runs.algorithms}
        if not isinstance(given, str) or (given not in levels and given not in runs.columns):
            options = [*levels, *runs.columns]
            raise (UnknownColumnError if isinstance(given, str) else ArgumentError)(
                f"{named(self.argument)} must be {advice('anchors')}, got {given!r}. Algorithms: {listed(levels)}. "
                f"Columns: {listed(runs.columns)}."
                f"{suggest(str(given), options)}"
            )
        if given in levels and given in runs.columns:
            raise ArgumentError(
                f"{named(self.argument)} names {given!r}, which is both an algorithm and a column. Rename one of them."
            )
        if given in levels:
            self.algorithm, self.words = levels[given], f"the mean of {given}"
            self.values = self._of_algorithm()
        else:
            self.words = f"column {given!r}"
            self.values = self._of_column()

    def _of_algorithm(self) -> Array:
        found = self.runs.study.groups((*self.groups, self.runs.algorithm))
        keys = found.keys.frame()
        mine = (keys[self.runs.algorithm] == self.algorithm).to_numpy()
        at = dict(zip(zip(*(keys[name][mine] for name in self.groups), strict=True), np.flatnonzero(mine), strict=True))
        self._require([key in at for key in self.keys])
        index = np.array([at[key] for key in self.keys])
        n = found.n[index]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.se = np.sqrt(np.where(n > 1, found.ss[index] / (n - 1) / n, np.nan))
        self.runs_behind = n
        return found.mean[index]

    def _of_column(self) -> Array:
        if not self.runs.frame.collect_schema()[self.given].is_numeric():
            raise DataError(f"{named(self.argument)} names the column {self.given!r}, which holds no numbers.")
        frame = self.runs.study.groups((*self.groups, self.given)).keys.frame()
        frame = frame[np.isfinite(frame[self.given].to_numpy(dtype=float))]
        by_group = frame.groupby(list(self.groups), observed=True)[self.given]
        several = by_group.size()[by_group.size() > 1]
        if len(several):
            where = _label(several.index[0])
            raise DataError(
                f"{named(self.argument)} must have one value in each group of {', '.join(self.groups)}, but the column "
                f"{self.given!r} has {several.iloc[0]} on {where}. Give one value for each."
            )
        known = {key if isinstance(key, tuple) else (key,): value for key, value in by_group.first().items()}
        self._require([key in known for key in self.keys])
        return np.array([known[key] for key in self.keys], dtype=float)

    def _of_mapping(self) -> Array:
        benchmark = self.runs.benchmark
        if benchmark is None or benchmark not in self.groups:
            raise ArgumentError(
                f"{named(self.argument)} is a value for each benchmark, but scores are not grouped by a benchmark. "
                "Give a number or a column."
            )
        at = self.groups.index(benchmark)
        values = {**{str(name): value for name, value in self.given.items()}, **self.given}
        found = [values.get(key[at], values.get(str(key[at]))) for key in self.keys]
        self._require([value is not None for value in found])
        wrong = [value for value in found if not is_finite(value)]
        if wrong:
            raise ArgumentError(f"{named(self.argument)} must hold finite numbers, got {wrong[0]!r}.")
        return np.array(found, dtype=float)

    def _require(self, has: list[bool]) -> None:
        """Refuse groups without a value, by name."""
        lacking = [_label(key) for key, there in zip(self.keys, has, strict=True) if not there]
        if not lacking:
            return
        which = f"{len(lacking):,} of {len(has):,} groups of {', '.join(self.groups)}: {listed(lacking, 5)}"
        if self.algorithm is not None:
            column = self.runs.benchmark or self.groups[0]
            others = advice("anchor_values", column=column, argument=named(self.argument))
            raise DataError(
                f"{self.given} has no score in {which}, so scores there have nothing to be compared with. {others}"
            )
        raise DataError(f"{named(self.argument)} ({self.words}) has no value in {which}. Add it, or leave these out.")

    def name(self) -> str:
        """The algorithm, or the words of a constant."""
        return str(self.given) if self.algorithm is not None else self.words

    def expression(self) -> nw.Expr:
        """The value in each row; that of an algorithm is in a column of its own, see `relative`."""
        if isinstance(self.given, Mapping):
            benchmark = str(self.runs.benchmark)
            at = self.groups.index(benchmark)
            values = {key[at]: value for key, value in zip(self.keys, self.values.tolist(), strict=True)}
            return nw.col(benchmark).replace_strict(
                list(values), list(values.values()), default=None, return_dtype=nw.Float64
            )
        return nw.lit(float(self.given)) if not isinstance(self.given, str) else nw.col(self.given).cast(nw.Float64)


def check_anchors(method: str, given: Mapping[str, Any]) -> None:
    """Each method gets what it needs and nothing else."""
    needed = {"baseline": "reference", "gap": "best_known", "improvability": "best_known"}.get(method)
    allowed = {needed, "target"} if method == "baseline" else {needed}
    for argument, value in given.items():
        if value is not None and argument not in allowed:
            raise ArgumentError(
                f"{named(argument)} is not an argument of {advice('method', method=method)}. Leave it out."
            )
    if needed is not None and given[needed] is None:
        example = "'RandomForest'" if needed == "reference" else "{benchmark: value}"
        how = advice("anchor", argument=named(needed), example=example)
        raise ArgumentError(
            f"{advice('method', method=method)} needs {named(needed)}: {advice('anchors')}, for instance {how}."
        )


def relative(
    runs: Runs, method: str, groups: tuple[str, ...], column: str, given: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The table with scores relative to what was given, in a new column, and what that was, as `Scale` holds it."""
    range_of = runs.study.groups(groups)
    lowest, highest = range_of.low, range_of.high
    x = nw.col(runs.score).cast(nw.Float64)
    better = 1.0 if runs.direction == "maximize" else -1.0
    if method == "baseline":
        reference = _Anchor(runs, given["reference"], "reference", groups)
        target = None if given["target"] is None else _Anchor(runs, given["target"], "target", groups)
        frame, names = _with_means(runs, [anchor for anchor in (reference, target) if anchor is not None])
        r = names[0]
        if target is None:
            _check_ratio(runs, reference, lowest)
            divisor, values = reference.values, (x - r if better > 0 else r - x) / r
        else:
            divisor = target.values - reference.values
            _check_targets(runs, reference, target, better * divisor)
            values = (x - r) / (names[1] - r)
        noise = _noise(runs, groups, [anchor for anchor in (reference, target) if anchor is not None], divisor)
        if noise is not None and reference.algorithm is not None and target is None:
            _warn_of_noise(reference, noise, len(divisor))
    else:
        reference, target, noise = _Anchor(runs, given["best_known"], "best_known", groups), None, None
        frame, (r,) = _with_means(runs, [reference])
        _check_best(runs, reference, lowest, highest)
        values = r - x if better > 0 else x - r
        if method == "gap":
            if (reference.values == 0).any():
                where = _label(reference.keys[int(np.flatnonzero(reference.values == 0)[0])])
                raise DataError(
                    f"A gap is a share of the best known value, which is 0 on {where}. Use {advice('share_of_score')}"
                )
            values = values / r.abs()
        else:
            _check_errors(runs, reference, lowest)
            values = nw.when(x == 0.0).then(nw.lit(0.0)).otherwise(values / x)
    frame = frame.with_columns(values.alias(column))
    frame = frame.drop(*(name for name in frame.collect_schema().names() if name.startswith(_OWN)))
    made = {"reference": reference.name(), "target": "" if target is None else target.name()}
    return frame, {**made, "baseline": reference.algorithm, "noise": noise, "arguments": dict(given)}


_OWN = "__lmemtest_"  # columns that are there while scores are made


def _with_means(runs: Runs, anchors: list[_Anchor]) -> tuple[Any, list[nw.Expr]]:
    """The table with the means of the algorithms among the anchors, and an expression for each anchor."""
    frame, found = runs.frame, []
    for number, anchor in enumerate(anchors):
        if anchor.algorithm is None:
            found.append(anchor.expression())
            continue
        name = f"{_OWN}mean{number}"
        found.append(nw.col(name))
        if frame.implementation.is_dask():  # it has no means within groups of a column that was just made
            import dask.dataframe as dd
            import pandas as pd

            means = pd.DataFrame(anchor.keys, columns=list(anchor.groups)).assign(**{name: anchor.values})
            small = as_frame(dd.from_pandas(means, npartitions=1)).lazy()
            frame = frame.join(small, on=list(anchor.groups), how="left")
            continue
        own = nw.col(runs.algorithm).is_in([anchor.algorithm]).cast(nw.Float64)
        weight, part = f"{_OWN}weight{number}", f"{_OWN}part{number}"
        frame = frame.with_columns(own.alias(weight))
        frame = frame.with_columns((nw.col(runs.score).cast(nw.Float64) * nw.col(weight)).alias(part))
        mean = nw.col(part).sum().over(*anchor.groups) / nw.col(weight).sum().over(*anchor.groups)
        frame = frame.with_columns(mean.alias(name))
    return frame, found


def _check_ratio(runs: Runs, reference: _Anchor, lowest: Array) -> None:
    """Shares of a reference need scores that begin at zero."""
    remedy = (
        f"Say what counts as 1 with {advice('argument', name='target')} (the perfect score, or an algorithm): scores "
        "are then shares of the way from the reference to it. Or compare by 'rank' or 'minmax'."
    )
    if (reference.values <= 0).any():
        at = int(np.argmin(reference.values))
        which = "it" if isinstance(reference.given, (int, float, np.number)) else reference.words
        raise DataError(
            f"Improvements are shares of the reference, which must be positive, but {which} is "
            f"{format_number(float(reference.values[at]))} on {_label(reference.keys[at])}. {remedy}"
        )
    if (lowest < 0).any():
        at = int(np.argmin(lowest))
        raise DataError(
            f"Improvements are shares of the reference, which mean something for scores from 0 on only, but the lowest "
            f"of {runs.score!r} on {_label(reference.keys[at])} is {format_number(float(lowest[at]))}. {remedy}"
        )


def _check_targets(runs: Runs, reference: _Anchor, target: _Anchor, distance: Array) -> None:
    """A target that is not better than the reference leaves no way to go."""
    worse = np.flatnonzero(~(distance > 0))
    if len(worse):
        at = worse[np.argmin(distance[worse])]
        places = [_label(reference.keys[i]) for i in worse]
        raise DataError(
            f"{named('target')} ({target.words}) must be better than {named('reference')} ({reference.words}), but "
            f"{runs.direction} {runs.score} and it is not on {listed(places, 5)}: "
            f"{format_number(float(target.values[at]))} against {format_number(float(reference.values[at]))} on "
            f"{_label(reference.keys[at])}. Leave these out, or give another target."
        )


def _check_best(runs: Runs, best: _Anchor, lowest: Array, highest: Array) -> None:
    """No score is better than the best known."""
    reached = lowest if runs.direction == "minimize" else highest
    beyond = reached < best.values if runs.direction == "minimize" else reached > best.values
    if beyond.any():
        at = np.flatnonzero(beyond)[:_SHOWN]
        parts = [
            f"{_label(best.keys[i])} ({format_number(float(found))} against {format_number(float(best.values[i]))})"
            for i, found in zip(at, reached[at], strict=True)
        ]
        raise DataError(
            f"{named('best_known')} must be at least as good as every score, but {counted(int(beyond.sum()), 'group')} "
            f"of {', '.join(best.groups)} {'has' if beyond.sum() == 1 else 'have'} better ones: {joined(parts, 9)}. "
            "Update the best known values; a single run that beats them counts, too."
        )


def _check_errors(runs: Runs, best: _Anchor, lowest: Array) -> None:
    if runs.direction == "maximize":
        raise DataError(
            f"Improvability is a share of an error, which is to be minimised, but {runs.score!r} is to be maximised. "
            f"Use {advice('method', method='gap')}, or model the error (1 minus an accuracy)."
        )
    if min(lowest.min(), best.values.min()) < 0:
        low = format_number(float(min(lowest.min(), best.values.min())))
        raise DataError(
            f"Improvability is a share of an error, which is not negative, but the lowest is {low}. Use 'gap'."
        )


def _noise(runs: Runs, groups: tuple[str, ...], anchors: list[_Anchor], divisor: Array) -> Noise | None:
    """The relative standard error of the divisor, where groups hold repetitions of one thing."""
    measured = [anchor for anchor in anchors if anchor.algorithm is not None]
    known_apart = {*groups, runs.seed, runs.algorithm}
    if not measured or any(name not in known_apart and runs.study.count(name) > 1 for name in runs.study.columns):
        return None
    found = runs.study.groups((*groups, runs.algorithm))
    repeated = (found.n > 1) & (found.mean != 0)
    scatter = found.ss[repeated] / (found.n[repeated] - 1) / found.mean[repeated] ** 2
    typical = float(np.sqrt(scatter.mean())) if repeated.any() else float("nan")
    squares = np.zeros(len(divisor))
    for anchor in measured:
        borrowed = np.abs(anchor.values) * typical / np.sqrt(anchor.runs_behind)
        squares += np.where(np.isnan(anchor.se), borrowed, anchor.se) ** 2
    error = np.sqrt(squares) / np.abs(divisor)
    at = int(np.argmax(error))
    return Noise(
        runs=min(int(anchor.runs_behind.min()) for anchor in measured),
        error=float(np.sqrt(np.mean(error**2))),
        largest=float(error[at]),
        where=_label(measured[0].keys[at]),
        borrowed=any(bool(np.isnan(anchor.se).any()) for anchor in measured),
    )


def _warn_of_noise(reference: _Anchor, noise: Noise, n_groups: int) -> None:
    if not noise.error * np.sqrt(n_groups) > _BIASED:
        return
    alike = ", if its runs scatter as those of the others" * noise.borrowed
    warnings.warn(
        f"The means of {reference.given} are noisy: their standard error is {percent(noise.error)} of them (root mean "
        f"square; {percent(noise.largest)} on {noise.where}{alike}), which by itself lowers the mean improvement of "
        f"every other algorithm by about {written(100 * noise.bias, '.2g')} percentage points. More runs of "
        f"{reference.given} help; differences of logarithms ({advice('normalize', method='log')}) have no such bias.",
        DataWarning,
        stacklevel=4,
    )


def _label(key: Any) -> str:
    return " / ".join(map(format_level, key if isinstance(key, tuple) else (key,)))
