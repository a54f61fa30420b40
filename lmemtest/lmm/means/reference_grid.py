"""The reference grid: all combinations of the levels of a model's factors, and how they are averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.codes import Keys
from lmemtest.core.rounding import written
from lmemtest.core.validate import several
from lmemtest.core.words import format_level, suggest
from lmemtest.errors import ArgumentError, UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.intervals.cluster_robust import ClusterRobust


_ROUNDING = 1e-9  # of the largest entry of design rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReferenceGrid:
    """Design rows of all combinations, as (target, nuisance, p); target: by and specs, nuisance: the rest."""

    rows: Array
    keys: Keys  # the combinations of the target
    target: Mapping[str, tuple[Any, ...]]
    nuisance: Mapping[str, tuple[Any, ...]]
    nuisance_factors: tuple[str, ...]
    ends: Mapping[str, Sequence[Keys]]  # the target at either end of the range of each numeric column with one value
    fit: Any
    along: str | None  # the numeric column of slopes

    @classmethod
    def build(
        cls, fit: Any, values: Mapping[str, tuple[Any, ...]], target_names: tuple[str, ...], along: str | None = None
    ) -> ReferenceGrid:
        """The grid of the predictions, or of their slopes along a numeric column."""
        target = {name: values[name] for name in target_names}
        nuisance = {name: values[name] for name in values if name not in target}
        keys = Keys.product(target)
        every = Keys.product({**target, **nuisance}) if nuisance else keys
        first = {**target, **{name: levels[:1] for name, levels in nuisance.items()}}
        ends = {
            name: [Keys.product({**first, name: (place,)}) for place in _places(fit, name, slopes=along is not None)]
            for name in fit.design.numeric
            if name == along or len(nuisance.get(name, ())) == 1
        }
        rows = design_rows(fit, every, along)
        return cls(
            rows=rows.reshape(keys.size, -1, rows.shape[1]),
            keys=keys,
            target=target,
            nuisance=nuisance,
            nuisance_factors=tuple(n for n in nuisance if n in fit.design.factors and len(nuisance[n]) > 1),
            ends=ends,
            fit=fit,
            along=along,
        )

    def at_ends(self, name: str) -> list[Array]:
        """Design rows of the target at either end of the range of a numeric column."""
        return [design_rows(self.fit, keys, self.along) for keys in self.ends[name]]

    def is_curved(self) -> bool:
        """Whether the slopes along the column change with that column."""
        low, high = self.at_ends(str(self.along))
        return bool(np.abs(low - high).max() > _ROUNDING * np.abs(low).max())

    def interacting(self) -> tuple[list[str], list[str]]:
        """What differences between the target's levels depend on: columns with several values, numbers with one."""
        tolerance = _ROUNDING * max(np.abs(self.rows).max(initial=1.0), 1.0)
        effect = self.rows - self.rows[:1]
        spread = effect.reshape(len(effect), *(len(values) for values in self.nuisance.values()), -1)
        several = [
            name
            for axis, name in enumerate(self.nuisance, start=1)
            if np.abs(spread - spread.take([0], axis=axis)).max(initial=0.0) > tolerance
        ]
        reference = effect[:, 0]
        single = [
            name
            for name in self.ends
            if len(self.nuisance.get(name, ())) == 1
            and any(np.abs((rows - rows[:1]) - reference).max() > tolerance for rows in self.at_ends(name))
        ]
        return several, single

    def average(self, weights: str) -> Array:
        """Average the nuisance combinations; a row without any weight is NaN."""
        share = np.ones(self.rows.shape[:2])
        if weights in ("benchmark", "family"):
            share = np.broadcast_to(_benchmarks(self.fit, self.nuisance, weights).ravel(), share.shape)
        elif weights != "equal":
            counts = _cell_counts(self.fit, {**self.target, **self.nuisance}).reshape(share.shape)
            share = counts if weights == "cells" else np.broadcast_to(counts.sum(axis=0), counts.shape)
        total = share.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0: no rows to average over
            return np.einsum("tn,tnp->tp", share / total, self.rows)


def _places(fit: Any, name: str, *, slopes: bool) -> tuple[float, float]:
    """The ends of the range of a numeric column; of slopes two places inside it: sqrt(x) has none at 0."""
    observed = np.asarray(fit.cells.columns.values(name), dtype=float)
    low, high = float(observed.min()), float(observed.max())
    return (low + 0.17 * (high - low), high - 0.29 * (high - low)) if slopes else (low, high)


def design_rows(fit: Any, keys: Keys, along: str | None) -> Array:
    """Rows of the fixed part at combinations of values, or their derivatives along a numeric column."""
    return np.asarray(fit.design.rows(keys) if along is None else fit.design.slopes(keys, along), dtype=float)


def _cell_counts(fit: Any, values: Mapping[str, tuple[Any, ...]]) -> Array:
    """Rows of the data in each combination of factor levels; numeric columns repeat the counts."""
    factors = [name for name in values if name in fit.design.factors]
    return _totals(fit.cells.frame, np.asarray(fit.cells.n, dtype=float), values, factors)


def _benchmarks(fit: Any, values: Mapping[str, tuple[Any, ...]], weights: str) -> Array:
    """Benchmarks in each combination of factor levels, divided by those of their family for weights by family."""
    factors = [name for name in values if name in fit.design.factors]
    frame, amounts = fit.scope.amounts(weights, factors)
    return _totals(frame, amounts, values, factors)


def _totals(
    frame: pd.DataFrame, amounts: Array, values: Mapping[str, tuple[Any, ...]], factors: Sequence[str]
) -> Array:
    """Sums of amounts over the rows of each combination of levels; columns that are no factors repeat them."""
    import pandas as pd

    keep = np.ones(len(frame), dtype=bool)
    position = np.zeros(len(frame), dtype=np.intp)
    for name in factors:
        code = pd.Index(values[name]).get_indexer(pd.Index(frame[name]))
        keep &= code >= 0
        position = position * len(values[name]) + code
    size = math.prod(len(values[name]) for name in factors)
    totals = np.bincount(position[keep], weights=amounts[keep], minlength=size)
    full = [len(values[name]) if name in factors else 1 for name in values]
    return np.broadcast_to(totals.reshape(full), [len(v) for v in values.values()]).copy()


def grid_values(fit: Any, at: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Values of every column of the fixed part in the grid: all levels, means of numbers, or those of `at`."""
    levels = {name: tuple(levels) for name, levels in fit.design.factors.items()}
    means = {name: (float(mean),) for name, mean in fit.design.numeric.items()}
    return {name: at.get(name, values) for name, values in {**levels, **means}.items()}


# ---------------------------------------------------------------------- argument checks


def name_tuple(choice: str | Sequence[str] | None, argument: str) -> tuple[str, ...]:
    if not (choice is None or several(choice)):
        raise ArgumentError(f"{argument} must be a name or several names of columns, got {choice!r}.")
    names = () if choice is None else (choice,) if isinstance(choice, str) else tuple(choice)
    other = [name for name in names if not isinstance(name, str)]
    if other:
        raise ArgumentError(
            f"{argument} must name columns by strings, got {other[0]!r} of type {type(other[0]).__name__}."
        )
    if argument == "specs" and not names:
        raise ArgumentError("specs must name at least one factor of the model, got none.")
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise ArgumentError(f"{argument} names {repeated[0]!r} twice; name each factor once.")
    return names


def check_at(fit: Any, at: Any) -> Mapping[str, Any]:
    """The values of `at=`, which are of columns of the fixed part; none where it is not given."""
    if at is None:
        return {}
    if not isinstance(at, Mapping):
        raise ArgumentError(
            f"at must be a dict of column names and values, got {at!r}. Write for instance "
            "at={'algorithm': ['A', 'B']}."
        )
    for name in at:
        if name not in fit.design.factors and name not in fit.design.numeric:
            raise UnknownColumnError(unknown_message("at", name, fit))
    return at


def check_values(fit: Any, at: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The values of `at=`: levels that there are, in their order, and finite numbers."""
    factors = fit.design.factors
    return {
        name: _chosen_levels(name, choice, tuple(factors[name])) if name in factors else _chosen_numbers(name, choice)
        for name, choice in at.items()
    }


def _chosen_levels(name: str, choice: Any, levels: tuple[Any, ...]) -> tuple[Any, ...]:
    wanted = _as_list(choice)
    unknown = [v for v in wanted if v not in levels]
    if unknown or not wanted:
        problem = f"has no level {unknown[0]!r}" if unknown else "is empty"
        raise ArgumentError(
            f"at[{name!r}] {problem}. Levels: {listed(levels)}."
            + (suggest(str(unknown[0]), map(str, levels)) if unknown else "")
        )
    return tuple(v for v in levels if v in wanted)


def _chosen_numbers(name: str, choice: Any) -> tuple[float, ...]:
    wanted = _as_list(choice)
    try:
        numbers = [float(v) for v in wanted]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(math.isfinite(v) for v in numbers):
        raise ArgumentError(f"at[{name!r}] must be one or more finite numbers, got {choice!r}.")
    return tuple(dict.fromkeys(numbers))


def _as_list(choice: Any) -> list[Any]:
    if isinstance(choice, str) or not isinstance(choice, Iterable):
        return [choice]
    return list(choice)


def check_vcov(fit: Any, vcov: ClusterRobust | None, ddf: str) -> str:
    """The rule for the degrees of freedom, after a check that `vcov` belongs to the fit."""
    if vcov is None:
        return ddf
    if not (hasattr(vcov, "fit") and hasattr(vcov, "contributions")):  # of a `ClusterRobust`, which stands on this file
        raise ArgumentError(
            "vcov must be the result of cluster_robust(fit, cluster), for marginal means also of "
            f"moderated(fit, cluster), 'moderated' or 'model', got {type(vcov).__name__}."
        )
    if vcov.fit is not fit:
        raise ArgumentError(
            f"vcov belongs to another fit ({vcov.fit.label}) than the one given ({fit.label}). Make it from this "
            f"fit: cluster_robust(fit, {vcov.label!r})."
        )
    if ddf != "satterthwaite":
        raise ArgumentError(f"vcov= brings its own degrees of freedom, so ddf={ddf!r} has no use. Leave ddf out.")
    return "cluster-robust"


def check_specs(fit: Any, specs: tuple[str, ...], by: tuple[str, ...], at: Mapping[str, Any]) -> None:
    for argument, names in (("specs", specs), ("by", by)):
        for name in names:
            if name in fit.design.numeric and name not in at:
                raise ArgumentError(
                    f"{argument} names {name!r}, a numeric column; give the values at which the means are "
                    f"wanted, for instance at={{{name!r}: [{written(float(fit.design.numeric[name]), '.4g')}]}}."
                )
            if name not in fit.design.factors and name not in fit.design.numeric:
                raise UnknownColumnError(unknown_message(argument, name, fit))
    overlap = [name for name in specs if name in by]
    if overlap:
        raise ArgumentError(f"{overlap[0]!r} is in both specs and by; name it in one of them.")


def check_along(fit: Any, name: Any) -> None:
    """Refuse what is not a numeric column of the fixed part."""
    if not isinstance(name, str):
        raise ArgumentError(f"var must name a numeric column of the fixed part, got {name!r}.")
    if name in fit.design.factors:
        numeric = listed(tuple(fit.design.numeric)) or "none"
        raise ArgumentError(f"var names {name!r}, a factor, which has no slope. Numeric columns: {numeric}.")
    if name not in fit.design.numeric:
        raise UnknownColumnError(unknown_message("var", name, fit))


def unknown_message(argument: str, name: Any, fit: Any) -> str:
    names = (*fit.design.factors, *fit.design.numeric)
    numeric = f" Numeric columns: {listed(tuple(fit.design.numeric))}." if fit.design.numeric else ""
    groups = {part for term in getattr(fit.design, "random", ()) for part in term.group.split(":")}
    hint = (
        f" {name!r} is a grouping factor of the random part; its levels are in fit.random_effects({name!r})."
        if name in groups
        else suggest(str(name), names)
    )
    factors = listed(tuple(fit.design.factors)) or "none"
    return f"{argument} names {name!r}, not in the fixed part of the model. Factors: {factors}.{numeric}{hint}"


def listed(values: Sequence[Any], limit: int = 12) -> str:
    first = ", ".join(format_level(v) for v in values[:limit])
    return first + (f" and {len(values) - limit} more" if len(values) > limit else "")
