"""How much scores vary, and at which level: what a study must be planned with.

A score of one run in a study of algorithms on benchmarks with seeds is

    mean of the algorithm + benchmark + benchmark:algorithm + benchmark:seed + residual,

with independent normal effects. The difference of two algorithms is estimated by averages over the benchmarks, in which
``benchmark`` and ``benchmark:seed`` cancel, because both algorithms meet them alike. What is left per benchmark is

    2 v,   v = interaction_sd^2 + residual_sd^2 / n_seeds,

so more seeds shrink the second part only, and more benchmarks both. Where benchmarks come in families there are
``family`` and ``family:algorithm`` as well, and with m benchmarks of each family what is left per family is

    2 v,   v = family_interaction_sd^2 + (interaction_sd^2 + residual_sd^2 / n_seeds) / m.

Where it is known which sources a run draws anew
(tuning, data, init, ...), their parts of the residual have standard deviations of their own, `sources`, and
``residual_sd`` is what is left; all of them together are `run_sd`, which takes its place in the formula above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import Runs
from lmemtest.core.result import Result
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_columns, check_number, check_positive_int
from lmemtest.core.words import GROUPS, joined, listed, plural, suggest
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import variance_interval
from lmemtest.lmm.model.given import check_fit

_SDS = ("interaction_sd", "residual_sd", "seed_sd", "benchmark_sd", "family_interaction_sd", "family_sd")
COMPONENT_NAMES = (*_SDS, "sources", "pilot", "notes")
_MAY_BE_UNKNOWN = ("interaction_sd", "benchmark_sd", "family_interaction_sd", "family_sd")
# Names that are not those of sources: other components, and what the sources leave.
_NOT_SOURCES = ("benchmark", "interaction", "algorithm", "residual")

TOGETHER = " with "  # between the names of sources that always changed together, and have one number

_MEANING = {
    name: text.format(noun="benchmark", within="", where=" on one benchmark")
    for name, text in {
        "interaction_sd": f"{GROUPS['interaction'][1]} (benchmark:algorithm)",
        "residual_sd": GROUPS["run"][1],
        "seed_sd": f"{GROUPS['seed'][1]} (benchmark:seed); cancels from differences",
        "benchmark_sd": f"{GROUPS['benchmark'][1]}; cancels from differences",
    }.items()
}
_OF_FAMILIES = {
    "family_interaction_sd": f"{GROUPS['family_interaction'][1].format(noun='families')} (family:algorithm)",
    "family_sd": f"{GROUPS['family'][1].format(noun='families')}; cancels from differences",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """The study from which variances were estimated; `n_seeds` is the harmonic mean where it differs.

    Benchmarks count once for each of several families that they are in; `n_families` is the smallest number of families
    whose variances are among them.
    """

    n_algorithms: int
    n_benchmarks: int
    n_seeds: float
    n_families: int | None = None

    def in_words(self) -> str:
        """On how many benchmarks, of how many families."""
        return f"{self.n_benchmarks} benchmarks{f' of {self.n_families} families' if self.n_families else ''}"


@dataclass(repr=False, frozen=True, slots=True, kw_only=True)  # equal by value: it is an argument too
class VarianceComponents(Result):
    """Standard deviations of the parts of a score, on the score's scale.

    Attributes
    ----------
    interaction_sd : float >= 0 or None
        Of ``benchmark:algorithm``: how much an algorithm's advantage differs between benchmarks. What limits most
        studies. None stands for not known, as after a study on one benchmark: then nothing is said of comparisons
        over benchmarks.
    residual_sd : float >= 0
        Between runs of one algorithm on one benchmark, beyond what equal seeds share and beyond `sources`. Above 0
        unless a source is.
    seed_sd : float >= 0
        Of ``benchmark:seed``: what runs with the same seed on one benchmark share. It cancels from comparisons.
    benchmark_sd : float >= 0 or None
        Of ``benchmark``: difficulty. It cancels as well; None stands for ten times all else together, where an
        analysis never takes it for zero.
    family_interaction_sd, family_sd : float >= 0 or None
        The same of families of benchmarks: ``family:algorithm`` and ``family``; then the two above are of benchmarks
        within a family. None: no families.
    sources : mapping of str to float >= 0
        Of the named sources that a run draws anew, each on its own: ``{"tuning": 0.4, "data": 0.9, "init": 0.3}``.
        ``"data:init"`` is the interaction of two. None by default: all is in `residual_sd`.
    pilot : Pilot or None
        Size of the study that the numbers come from; with it the plan's own uncertainty is reported.
    notes : tuple of str
        What was left out.

    Examples
    --------
    >>> round(VarianceComponents(interaction_sd=0.02, residual_sd=0.03).of_difference(n_seeds=9), 6)
    0.001
    >>> named = VarianceComponents(interaction_sd=0.02, residual_sd=0.01, sources={"tuning": 0.02, "data": 0.02})
    >>> round(named.run_sd, 6)
    0.03
    """

    interaction_sd: float | None
    residual_sd: float
    seed_sd: float = 0.0
    benchmark_sd: float | None = None
    family_interaction_sd: float | None = None
    family_sd: float | None = None
    sources: Mapping[str, float] = field(default_factory=dict, hash=False)
    pilot: Pilot | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in _SDS:
            value = getattr(self, name)
            if not (value is None and name in _MAY_BE_UNKNOWN):
                check_sd(value, name)
        object.__setattr__(self, "sources", _checked_sources(self.sources))
        if not (self.pilot is None or isinstance(self.pilot, Pilot)):
            raise ArgumentError(
                f"pilot must be a Pilot, as VarianceComponents.of makes it, or None, got {self.pilot!r}."
            )
        if not (isinstance(self.notes, (tuple, list)) and all(isinstance(note, str) for note in self.notes)):
            raise ArgumentError(f"notes must be a tuple of sentences, got {self.notes!r}.")
        if self.run_sd == 0:
            raise ArgumentError(
                "residual_sd must be above 0, got 0: runs that never differ need no seeds. Plan with n_seeds=1 and put "
                "all variation between algorithms on a benchmark into residual_sd."
            )

    @property
    def run_sd(self) -> float:
        """Between runs of one algorithm on one benchmark that differ in every source: `sources` and `residual_sd`."""
        return math.hypot(self.residual_sd, *self.sources.values())

    @property
    def advantage_sd(self) -> float:
        """Of the advantages on a benchmark of a family of its own; comparisons over benchmarks cannot do without."""
        return math.hypot(self.own_advantage_sd, self.family_interaction_sd or 0.0)

    @property
    def own_advantage_sd(self) -> float:
        """`interaction_sd`, which comparisons over benchmarks cannot do without."""
        if self.interaction_sd is None:
            raise ArgumentError(
                f"components lacks 'interaction_sd': {_MEANING['interaction_sd']}, as a standard deviation in the "
                "score's unit. Runs on one benchmark do not tell; dataclasses.replace(components, interaction_sd=...)."
            )
        return float(self.interaction_sd)

    @property
    def difficulty_sd(self) -> float:
        """Of the levels of benchmarks of families of their own."""
        return math.hypot(self.own_difficulty_sd, self.family_sd or 0.0)

    @property
    def own_difficulty_sd(self) -> float:
        """`benchmark_sd`, or what stands for it."""
        if self.benchmark_sd is not None:
            return float(self.benchmark_sd)
        advantages = self.interaction_sd or 0.0, self.family_interaction_sd or 0.0
        return 10.0 * math.hypot(*advantages, self.seed_sd, self.run_sd)

    def of_mean(self, n_seeds: float, n_benchmarks: float = 1.0) -> float:
        """``v`` of the module's formulas: of one algorithm on so many benchmarks of one family."""
        on_one = self.own_advantage_sd**2 + self.run_sd**2 / n_seeds
        return (self.family_interaction_sd or 0.0) ** 2 + on_one / n_benchmarks

    def of_difference(self, n_seeds: float, n_benchmarks: float = 1.0) -> float:
        """Variance of the difference of two algorithms on one benchmark, by means over `n_seeds` seeds.

        With `n_benchmarks` that of the mean over so many benchmarks of one family.

        Returns
        -------
        float
            ``2 (family_interaction_sd^2 + (interaction_sd^2 + run_sd^2 / n_seeds) / n_benchmarks)``; ``n_seeds=inf``
            gives what no number of seeds removes.
        """
        return 2.0 * self.of_mean(n_seeds, n_benchmarks)

    def limits(self, n_seeds: float, alpha: float = 0.05, n_benchmarks: float = 1.0) -> tuple[float, float]:
        """Interval of `of_mean` as far as the pilot determines it; NaN without a pilot.

        Notes
        -----
        With the pilot's mean squares of ``benchmark:algorithm``, ``A`` on ``a`` df, and of the residual, ``E`` on
        ``e`` df, and ``m`` seeds, ``v = A / m + E (1 / n_seeds - 1 / m)``, whose chi-squared approximation has
        ``2 v^2 / var(v)`` degrees of freedom (Satterthwaite 1946, doi:10.2307/3002019); exact for ``n_seeds = m``.
        With that of ``family:algorithm``, ``C``, of families of ``c`` benchmarks each, ``v = C / (c m) + A (1 /
        n_benchmarks - 1 / c) / m + E (1 / n_seeds - 1 / m) / n_benchmarks``.
        """
        if self.pilot is None or min(self.pilot.n_algorithms, self.pilot.n_benchmarks) < 2:
            return math.nan, math.nan
        k, b, m = self.pilot.n_algorithms, self.pilot.n_benchmarks, self.pilot.n_seeds
        families = self.pilot.n_families if self.family_interaction_sd is not None else None
        f, each = (b, 1.0) if families is None else (families, b / families)
        on_one = self.own_advantage_sd**2 + self.run_sd**2 / m  # the mean square of benchmark:algorithm over m
        parts = [(self.of_mean(m, each), (k - 1.0) * (f - 1.0))]
        if b > f:
            parts.append((on_one * (1.0 / n_benchmarks - 1.0 / each), (k - 1) * (b - f)))
        if m > 1:
            parts.append((self.run_sd**2 * (1.0 / n_seeds - 1.0 / m) / n_benchmarks, b * (m - 1) * (k - 1)))
        v = self.of_mean(n_seeds, n_benchmarks)
        df = v**2 / sum(part**2 / part_df for part, part_df in parts)
        low, high = variance_interval(v, df, 1.0 - alpha)
        return float(low), float(high)

    def table(self) -> pd.DataFrame:
        """One row per part: ``name``, ``sd`` (NaN if not given), ``meaning``; sources come last."""
        meaning = dict(_MEANING)
        if self.family_interaction_sd is not None or self.family_sd is not None:
            meaning |= _OF_FAMILIES
        sd = np.array([getattr(self, name) for name in meaning], dtype=float)
        if self.sources:
            meaning["residual_sd"] = f"{meaning['residual_sd']}, beyond {joined(self.sources)}"
        rest = {name: f"one run against another by {' and '.join(name.split(':'))} alone" for name in self.sources}
        return pd.DataFrame(
            {
                "name": [*meaning, *rest],
                "sd": [*sd, *self.sources.values()],
                "meaning": [*meaning.values(), *rest.values()],
            }
        )

    @property
    def title(self) -> str:
        return f"Variance components{f' with {joined(self.sources)}' if self.sources else ''}"

    @property
    def facts(self) -> tuple[str, ...]:
        if self.pilot is None:
            return ()
        p = self.pilot
        runs = f"{written(p.n_seeds, '.4g')} runs each"
        return (f"Estimated from {p.n_algorithms} algorithms on {p.in_words()}, {runs}.",)

    @classmethod
    @one_blas_thread()
    def of(
        cls, fit: Any, *, algorithm: str | None = None, benchmark: str | None = None, seed: str | None = None
    ) -> VarianceComponents:
        """Variance components of a fitted model, for planning a study like it.

        Parameters
        ----------
        fit : LmmFit
            A model with ``(1 | benchmark:algorithm)`` on one row per run, such as ``fit_lmm(recommend(runs).formula,
            runs)`` of runs at one budget and one level of each metafeature.
        algorithm, benchmark, seed : str, optional
            Columns with these roles; those of the `Runs` behind the fit by default.

        Returns
        -------
        VarianceComponents
            ``(1 | benchmark)``, ``(1 | benchmark:algorithm)``, ``(1 | benchmark:seed)`` and the residual are taken
            over. ``(1 | seed)`` is not, with a note: it cancels from comparisons. ``(1 | seed:algorithm)`` is added to
            the residual, with a note: the planned study has new seeds on each benchmark. Such a model does not tell
            which source a residual comes from, so there are no `sources`. Of several levels of families the variances
            are added, with a note.

        Raises
        ------
        ArgumentError
            If the model has a term that the planned study cannot have, or lacks the one that it cannot do without.

        Examples
        --------
        >>> import lmemtest as lt
        >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
        >>> fit = lt.fit_lmm(lt.recommend(runs).formula, runs)
        >>> lt.VarianceComponents.of(fit).to_frame()[["name", "sd"]].round(4)
                     name      sd
        0  interaction_sd  0.0026
        1     residual_sd  0.0068
        2         seed_sd  0.0027
        3    benchmark_sd  0.2088
        """
        check_fit(fit, "fit")
        roles = _roles(fit, {"algorithm": algorithm, "benchmark": benchmark, "seed": seed})
        for argument in ("weights", "dispersion"):
            column = getattr(fit, argument)
            if column is not None:
                raise ArgumentError(
                    f"the model has {argument}='{column}', and a study is planned with one residual variance. Fit it "
                    f"without {argument}, or plan with VarianceComponents(...) of a typical benchmark."
                )
        sds, notes = _matched(fit, roles)
        if "interaction_sd" not in sds:
            raise ArgumentError(
                f"the model '{fit.formula}' has no term (1 | {roles['benchmark']}:{roles['algorithm']}), so it does "
                "not say how much an algorithm's advantage differs between benchmarks. Fit recommend(runs).formula to "
                "runs with several seeds, or plan with VarianceComponents(interaction_sd=..., residual_sd=...)."
            )
        pilot = _pilot(fit, roles, of_families="family_interaction_sd" in sds)
        if "seed_sd" not in sds and roles["seed"] is not None:
            notes.append(
                f"The model has no term (1 | {roles['benchmark']}:{roles['seed']}); its share is in the residual."
            )
        return cls(**sds, pilot=pilot, notes=tuple(notes))


def as_components(plan: Any) -> VarianceComponents:
    """The components that the first argument of `power` means: components, a dict of them, a fit or another result."""
    if isinstance(plan, VarianceComponents):
        return plan
    if isinstance(plan, Result) and callable(components := getattr(plan, "components", None)):  # a variance study
        return as_components(components())
    if isinstance(plan, Mapping):
        unknown = [name for name in plan if name not in COMPONENT_NAMES]
        if unknown:
            raise ArgumentError(
                f"components has no entry {unknown[0]!r}. Entries: {listed(COMPONENT_NAMES[:-2])}."
                f"{suggest(unknown[0], COMPONENT_NAMES)}"
            )
        missing = [name for name in ("interaction_sd", "residual_sd") if name not in plan]
        if missing:
            raise ArgumentError(
                f"components lacks {missing[0]!r}: {_MEANING[missing[0]]}, as a standard deviation in the score's unit."
            )
        return VarianceComponents(**plan)
    if not (hasattr(plan, "design") and hasattr(plan, "llf")):
        raise ArgumentError(
            f"components must be a fitted model, VarianceComponents or a dict, got {type(plan).__name__}. Of runs that "
            "there are: variance_sources(runs). Of a study to come: VarianceComponents(interaction_sd=..., "
            "residual_sd=...)."
        )
    return VarianceComponents.of(plan)


def check_sd(value: Any, name: str) -> float:
    """Check that a value can be a standard deviation."""
    meaning = "a standard deviation on the score's scale, the square root of a variance"
    return check_number(value, name, low=0, meaning=meaning)


def _checked_sources(sources: Any) -> dict[str, float]:
    if not isinstance(sources, Mapping) or not all(isinstance(name, str) and name.strip(": ") for name in sources):
        raise ArgumentError(
            f"sources must map names of sources to standard deviations, such as {{'tuning': 0.4}}, got {sources!r}."
        )
    taken = [name for name in sources if set(name.split(":")) & {*_NOT_SOURCES}]
    if taken:
        raise ArgumentError(
            f"sources has an entry {taken[0]!r}, and sources are what runs of one algorithm on one benchmark differ "
            "by. Other components are interaction_sd, benchmark_sd, and residual_sd for what is left."
        )
    return {name: check_sd(value, f"sources[{name!r}]") for name, value in sources.items()}


# ---------------------------------------------------------------------- from a fit


def _roles(fit: Any, arguments: dict[str, str | None]) -> dict[str, str | None]:
    for role, name in arguments.items():
        if name is not None and not (isinstance(name, str) and name):
            raise ArgumentError(f"{role} must be the name of a column, got {name!r}.")
    runs = fit.data if isinstance(fit.data, Runs) else None
    roles = {role: name or getattr(runs, role, None) for role, name in arguments.items()}
    for role in ("algorithm", "benchmark"):
        if roles[role] is None:
            where = "the runs name none" if runs is not None else "the model was fitted to a plain table"
            raise ArgumentError(
                f"which column is the {role}? {where[0].upper()}{where[1:]}. Use VarianceComponents.of(fit, "
                "algorithm=..., benchmark=..., seed=...)."
            )
    if fit.data is not None:
        columns = as_frame(fit.data).collect_schema().names()
        for role, name in roles.items():
            if name is not None:
                check_columns(name, columns, argument=role)
    return roles


def _matched(fit: Any, roles: dict[str, str | None]) -> tuple[dict[str, Any], list[str]]:
    """Standard deviation per component, what cancels, and who a plan with families is for."""
    algorithm, benchmark, seed = (roles[name] for name in ("algorithm", "benchmark", "seed"))
    targets = {
        frozenset({benchmark}): "benchmark_sd",
        frozenset({benchmark, algorithm}): "interaction_sd",
        frozenset({benchmark, seed}): "seed_sd",
    }
    named = {*fit.data.family} if isinstance(fit.data, Runs) else set()
    sds: dict[str, Any] = {}
    families: dict[str, float] = {}  # variances, and the levels that they are of
    levels = set()
    notes, shared, crossed = [], 0.0, _crossed(fit)
    for bar, term, covariance in zip(fit.design.parsed.bars, fit.design.random, fit.covariances, strict=True):
        groups, intercept = frozenset(bar.groups), tuple(term.names) == ("Intercept",)
        variance = float(covariance[0, 0])
        if intercept and groups == {seed}:
            notes.append(f"{term.label} is left out: runs with the same seed share it, so it cancels from comparisons.")
        elif intercept and groups == {seed, algorithm}:
            shared = variance
            notes.append(
                f"{term.label} is a part of residual_sd: each benchmark of the planned study has its own seeds. "
                "With the same seeds on all benchmarks its share would not fall with their number."
            )
        elif intercept and groups & named and groups <= {*named, algorithm}:
            name = "family_interaction_sd" if algorithm in groups else "family_sd"
            families[name] = families.get(name, 0.0) + variance
            levels.add(groups - {algorithm})
        else:
            in_families = benchmark in groups and bool(groups & crossed)
            target = targets.get(groups - crossed if in_families else groups) if intercept else None
            if target is None or (target in sds and not crossed):
                slopes = {column for effect in bar.effects for column in effect.columns}
                raise ArgumentError(
                    f"the term {term.label} has no place in the planned study, which knows (1 | {benchmark}), "
                    f"(1 | {benchmark}:{algorithm}) and (1 | {benchmark}:{seed or 'seed'}). "
                    f"{_instead(fit, groups, slopes, roles)}"
                )
            sds[target] = math.hypot(sds.get(target, 0.0), math.sqrt(variance))
    benchmarks = plural(str(benchmark))
    if crossed:
        notes.append(
            "What a benchmark has in all of its families and what it has in one are added: no benchmark of the planned "
            f"study is in several families, though here {benchmarks} are."
        )
    sds["residual_sd"] = math.sqrt(fit.scale + shared)
    if named and fit.data.study.families:
        nouns = plural(fit.data.study.families[-1][-1])
        if "family_interaction_sd" not in families:
            notes.append(
                f"The model has no advantages that change between {nouns}, so the planned study is one of new "
                f"{benchmarks} of these {nouns} and says nothing about new {nouns}."
            )
        elif len(levels) > 1:
            notes.append(
                "The variances of several levels of families are added, as if each family of the planned study were of "
                "another one at every level."
            )
    return sds | {name: math.sqrt(variance) for name, variance in families.items()}, notes


def _crossed(fit: Any) -> set[str]:
    """Families of which some benchmark is in several, where the model has effects of it in each of them."""
    grouped = {name for bar in fit.design.parsed.bars for name in bar.groups}
    return grouped & set(fit.data.study.crossed) if isinstance(fit.data, Runs) else set()


def _instead(fit: Any, groups: frozenset[str | None], slopes: set[str], roles: dict[str, str | None]) -> str:
    extra = sorted(str(name) for name in (groups | slopes) - set(roles.values()))
    if extra:
        return _filtered(extra)
    if groups == {roles["benchmark"], roles["algorithm"], roles["seed"]}:
        return f"Fit one row per run. {_why_repeated(fit, [str(name) for name in roles.values()])}"
    return f"Fit (1 | {roles['benchmark']}:{roles['algorithm']}) in its place, or plan with VarianceComponents(...)."


def _filtered(names: Sequence[str]) -> str:
    """The way to one row per run: keep one value of some columns."""
    values = ", ".join(f"{name}=..." for name in names)
    return (
        f"A study is planned at one value of {' and '.join(names)}: fit the runs there, one = runs.filter({values}) "
        "with recommend(one).formula."
    )


def _pilot(fit: Any, roles: dict[str, str | None], *, of_families: bool) -> Pilot:
    place = [str(roles["benchmark"]), *sorted(_crossed(fit))]
    cell = [*place, str(roles["algorithm"])]
    table = as_frame(fit.data).lazy()
    run = [name for name in (*cell, roles["seed"]) if name is not None]
    rows, distinct = fit.nobs, _n_distinct(fit.data, run)
    if roles["seed"] is not None and distinct < rows:
        raise ArgumentError(
            f"the model was fitted to {rows:,} rows of {distinct:,} runs, and a study is planned with one score per "
            f"run. {_why_repeated(fit, run)}"
        )
    # of several levels of families, the fewest
    families = {
        name for bar in fit.design.parsed.bars for name in bar.groups if of_families and name in fit.data.family
    }
    counts = table.select(cell).collect().to_pandas().groupby(cell[::-1], observed=True).size()
    return Pilot(
        n_algorithms=check_positive_int(counts.index.get_level_values(cell[-1]).nunique(), "n_algorithms"),
        n_benchmarks=len(counts.index.droplevel(cell[-1]).unique()),
        n_seeds=float(len(counts) / np.sum(1.0 / counts.to_numpy())),
        n_families=min(fit.data.study.count(name) for name in families) if of_families else None,
    )


def _n_distinct(data: Any, names: Sequence[str]) -> int:
    """How many combinations of some columns occur; of runs, their study knows it."""
    if isinstance(data, Runs) and {*names} <= {*data.study.columns} - {data.budget}:
        return data.study.count(*names)
    return len(as_frame(data).lazy().select(list(names)).unique().collect())


def _varies(data: Any, run: Sequence[str], name: str) -> bool:
    """Whether a column differs between rows of one run; at a few budgets of a large table, if that shows it."""
    few = data.study.detailed if isinstance(data, Runs) else None
    if few is not None and {*run, name} <= {*few.columns} and few.count(*run, name) > few.count(*run):
        return True
    return _n_distinct(data, [*run, name]) > _n_distinct(data, run)


def _why_repeated(fit: Any, run: list[str]) -> str:
    """The columns in which the rows of one run differ, and the way out."""
    columns = as_frame(fit.data).lazy().collect_schema().names()
    candidates = [name for name in columns if name not in (*run, fit.design.parsed.response)]
    if isinstance(fit.data, Runs):
        named = [name for name in (fit.data.budget, *fit.data.metafeatures) if name in candidates]
        candidates = [*named, *(name for name in candidates if name not in named)]
    else:
        named = []
    varying = [name for name in candidates if _varies(fit.data, run, name)]
    reasons = [name for name in varying if name in named]
    if not reasons:  # of all other columns the one with the fewest values is a condition, the rest may be measurements
        reasons = sorted(varying, key=lambda name: _n_distinct(fit.data, [name]))[:1]
    if not reasons:
        return "No column distinguishes the rows of one run: are some of them copies? Drop these."
    return f"The rows of a run differ in {' and '.join(reasons)}. {_filtered(reasons)}"
