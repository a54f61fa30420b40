"""Variance study of a learning pipeline: how much of the variation of its score each source of randomness brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.power.components import TOGETHER, VarianceComponents
from lmemtest.bench.variation.source_designs import Layout
from lmemtest.bench.variation.source_variances import NOISE, RESIDUAL, SourceVariances, of_lines, of_model
from lmemtest.bench.variation.study_tables import (
    ROLES,
    columns_of,
    in_residual,
    labelled,
    name_of,
    notes_of,
    read,
    tables_of,
    where_of,
)
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, in_tie_order, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import (
    as_frame,
    check_choice,
    check_fraction,
    check_magnitude,
)
from lmemtest.core.words import counted, format_number, joined, listed, p_text, percent
from lmemtest.errors import ArgumentError, DesignError
from lmemtest.lmm.intervals.variances import METHODS
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LEAST = 1e-70  # range of the scores: fourth powers of smaller differences are no numbers


@result
class VarianceStudy(Result):
    """Variance of a score by source, of each algorithm on each benchmark.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per source, interaction and rest: ``algorithm`` and ``benchmark`` where there are such columns,
        ``source``, ``kind`` ("source", "interaction", "together", "noise", "residual"), ``n`` (seeds, or trainings of
        the last two), ``df``, ``variance``, ``sd`` with ``ci_low`` and ``ci_high``; ``share`` of the sum of all rows
        and ``relative``, the variance over that of `relative_to`, each with ``_low`` and ``_high``; ``may_be_largest``,
        the part with the largest estimate and those whose variance over its own has an interval that reaches 1. What
        the table does not identify is NaN (False); shares have no interval where one of the parts has none.
    at_once : pandas.DataFrame
        Trainings in which several sources are new at once: ``sources``, ``n``, ``sd``, ``ci_low``, ``ci_high``;
        ``added_sd``, what these sources have added up; ``ratio`` of the two variances, ``ratio_low``, ``ratio_high``;
        ``p_raw`` of "they add up", and ``p_value`` (Holm, over all rows).
    designs : pandas.DataFrame
        Per algorithm and benchmark: ``design`` ("one at a time" or "crossed"), ``n``, ``mean``, ``repeated`` (degrees
        of freedom of the noise), ``left_over`` (trainings that are not used).
    scores : pandas.DataFrame
        The samples behind sources that vary one at a time or at once: ``source`` ("all at once" where every source is
        new), ``sample``, ``score`` (the mean of trainings with equal seeds).
    sources : tuple of str
    relative_to : str or None
        Source whose variance is the unit of ``relative``.
    method : {"bonett", "chi-squared"}
        Of intervals of variances of samples.
    level : float
        Of each interval.
    score : str
    notes : tuple of str
    """

    figure = "variance_study_plot"
    parts: ClassVar = {"table": "table", "at_once": "at_once", "designs": "designs", "scores": "scores"}
    formats: ClassVar = {
        **dict.fromkeys(["share", "share_low", "share_high"], percent),
        **dict.fromkeys(["relative", "relative_low", "relative_high"], ".2f"),
    }

    table: pd.DataFrame
    at_once: pd.DataFrame
    designs: pd.DataFrame
    scores: pd.DataFrame
    sources: tuple[str, ...]
    relative_to: str | None
    method: str
    level: float
    score: str
    notes: tuple[str, ...] = ()

    @property
    def by(self) -> tuple[str, ...]:
        """Those of "algorithm" and "benchmark" that the tables have."""
        return tuple(role for role in ROLES if role in self.designs)

    @property
    def title(self) -> str:
        """What was taken apart."""
        return f"Variance of {self.score} by source"

    @property
    def facts(self) -> tuple[str, ...]:
        """Where the numbers come from."""
        facts = []
        found, level = set(self.designs["design"]), f"{100 * self.level:.4g} %"
        if "one at a time" in found:
            name = "Bonett" if self.method == "bonett" else "chi-squared"
            facts.append(f"One source at a time: sample variances; {level} {name} intervals, combined by MOVER.")
        if "crossed" in found:
            facts.append(f"Crossed: REML; {level} profile intervals, combined by MOVER; effects are taken as normal.")
        if self.relative_to is not None:
            facts.append(f"relative: variance over that of {self.relative_to}.")
        if tests := int(self.at_once["p_value"].notna().sum()):
            facts.append(f"Sources at once against their sum: p-values, Holm over {counted(tests, 'sample')}.")
        return tuple(facts)

    def shown(self) -> pd.DataFrame:
        """Without columns that say the same."""
        unit = [] if self.relative_to is None else ["relative", "relative_low", "relative_high"]
        return self.table[[*self.by, "source", "n", "sd", "ci_low", "ci_high", "share", *unit]]

    def sentences(self) -> tuple[str, ...]:
        """Per algorithm and benchmark: the largest part, what is smaller than the unit, and whether sources add up."""
        return tuple(
            text
            for key in self._keys(self.designs)
            for text in (*self._of_parts(self._rows(self.table, key), where_of(key)), *self._of_sum(key))
        )

    def components(self, *, algorithm: Any = None, benchmark: Any = None) -> VarianceComponents:
        """Components for a plan: standard deviations of the sources, and the rest as residual.

        Parameters
        ----------
        algorithm, benchmark : optional
            Which ones; variances are averaged over all that are left.

        Returns
        -------
        VarianceComponents
            Without ``interaction_sd``: the trainings of one benchmark say nothing of others.
        """
        rows = self._chosen(self.table, {"algorithm": algorithm, "benchmark": benchmark})
        mean = rows.groupby("source", sort=False)["variance"].mean()  # NaN where one is not known
        known = mean[rows.groupby("source", sort=False)["variance"].apply(lambda v: v.notna().all())]
        notes = []
        both = [name for name in known.index if TOGETHER in name and ":" not in name]
        for name in both:
            notes.append(f"{name}: two sources with one number, which a plan counts with the coarser of them.")
        groups = self._chosen(self.designs, {"algorithm": algorithm, "benchmark": benchmark})
        new = set.intersection(*(in_residual(self._rows(rows, key)) for key in self._keys(groups)))
        if rest := [name for name in mean.index if name in new]:
            notes.append(f"Without numbers of their own, and a part of residual_sd: {joined(rest)}.")
        seen = {*known.index, *new, *(part for name in both for part in name.split(TOGETHER))}
        if lost := [name for name in mean.index if name not in seen]:
            notes.append(f"Not identified by the study, and in none of the numbers: {joined(lost)}.")
        if zero := [name for name in known.index if known[name] == 0.0 and name in self.sources]:
            notes.append(f"Estimated as zero, which does not show that there is no effect: {joined(zero)}.")
        left = [name for name in (NOISE, RESIDUAL) if name in known.index]
        if not left:
            notes.append("No training was run again with equal seeds: each source holds the noise as well.")
        if len(groups) > 1:
            notes.append(f"Mean variances of {len(groups)} studies.")
        return VarianceComponents(
            interaction_sd=None,
            residual_sd=float(sum(known[name] for name in left)) ** 0.5,
            sources={str(name): float(known[name]) ** 0.5 for name in known.index if name not in left},
            notes=tuple(notes),
        )

    def _chosen(self, table: pd.DataFrame, key: dict[str, Any]) -> pd.DataFrame:
        for role, level in key.items():
            if level is None:
                continue
            if role not in table:
                raise ArgumentError(f"{role}={level!r}: the study has no column {role!r}. Leave it out.")
            known = table[role].unique().tolist()
            if level not in known:
                raise ArgumentError(f"{role} must be one of {listed(known)}, got {level!r}.")
        return self._rows(table, {role: level for role, level in key.items() if level is not None})

    def _keys(self, designs: pd.DataFrame) -> list[dict[Any, Any]]:
        """Algorithm and benchmark of each design, as far as studies differ in them."""
        return designs[[*self.by]].to_dict("records") if self.by else [{}] * len(designs)

    def _rows(self, table: pd.DataFrame, key: Mapping[Any, Any]) -> pd.DataFrame:
        for role, level in key.items():
            table = table[table[role] == level]
        return table

    def _of_parts(self, rows: pd.DataFrame, where: str) -> tuple[str, ...]:
        known = rows[rows["share"].notna()]
        if known.empty:
            return (_said(where, "no source varies the score."),)
        level = f"{100 * self.level:.4g} %"
        if len(known) == 1:
            only = known.to_dict("records")[0]
            text = f"of {only['source']} alone the variance is known: standard deviation {format_number(only['sd'], 3)}"
            ends = f" ({level} interval {format_number(only['ci_low'], 3)} to {format_number(only['ci_high'], 3)})"
            return (_said(where, f"{text}{ends if np.isfinite(only['ci_low']) else ''}."),)
        first, *behind = in_tie_order(known.to_dict("records"), lambda row: row["share"], descending=True)
        open_ = [row["source"] for row in behind if row["may_be_largest"]]
        ends = f" ({level} interval {percent(first['share_low'])} to {percent(first['share_high'])})"
        ends = ends if np.isfinite(first["share_low"]) else ""
        every = len(known) == len(rows)
        text = (
            f"{'the largest part of the variance' if every else 'of the parts with a number the largest'} is "
            f"{'estimated to be ' if open_ else ''}{first['source']}: {percent(first['share'])} of "
            f"{'the' if every else 'their'} sum{ends}, standard deviation {format_number(first['sd'], 3)}"
            f"{f'; {joined(open_)} cannot be excluded' if open_ else ''}."
        )
        others = rows[rows["relative_low"].notna() & (rows["source"] != self.relative_to) & (rows["kind"] == "source")]
        if others.empty:
            return (_said(where, text),)
        parts = [
            f"{row['source']} {written(row['relative'], '.2f')} ({_range(row['relative_low'], row['relative_high'])})"
            for row in others.to_dict("records")
        ]
        relative = f"variances relative to {self.relative_to}: {joined(parts, 99)}."
        return _said(where, text), _said(where, relative)

    def _of_sum(self, key: Mapping[Any, Any]) -> tuple[str, ...]:
        texts, alpha = [], 1.0 - self.level
        holm = "Holm-adjusted " if int(self.at_once["p_value"].notna().sum()) > 1 else ""
        for row in self._rows(self.at_once, key).to_dict("records"):
            if np.isnan(row["p_value"]):
                continue
            found = below(row["p_value"], alpha)
            how = ("more" if row["ratio"] > 1.0 else "less") if found else "not shown to be more or less"
            close = "" if found else "; this does not show that they add up"
            text = (
                f"with new {row['sources']} at once the variance is {written(row['ratio'], '.2f')} times "
                f"the sum of theirs ({written(row['ratio_low'], '.2f')} to {written(row['ratio_high'], '.2f')}), "
                f"{how} than the sum ({holm}{p_text(row['p_value'])}){close}."
            )
            texts.append(_said(where_of(key), text))
        return tuple(texts)


def _range(low: float, high: float) -> str:
    """An interval of a ratio, which may have no upper end."""
    return f"{written(low, '.2f')} to {written(high, '.2f')}" if np.isfinite(high) else f"{written(low, '.2f')} or more"


def _said(where: str, text: str) -> str:
    return f"{where}{text}" if where else f"{text[:1].upper()}{text[1:]}"


@one_blas_thread()
def variance_study(
    table: Any,
    *,
    score: str,
    sources: Sequence[str],
    algorithm: str | None = None,
    benchmark: str | None = None,
    relative_to: str | None = None,
    method: str = "bonett",
    level: float = 0.95,
) -> VarianceStudy:
    """Take the variance of a pipeline's score apart by the sources of randomness whose seeds a table names.

    Parameters
    ----------
    table : dataframe or mapping
        One row per training; anything that Narwhals reads.
    score : str
        Column of the score.
    sources : sequence of str
        Columns of the sources ("data", "init", "order", "dropout", "tuning", ...): equal values are the same seed.
    algorithm, benchmark : str, optional
        Columns of pipelines and data sets: each combination is a study of its own.
    relative_to : str, optional
        Source whose variance is the unit of the others; by default the one with "data" or "split" in its name.
    method : {"bonett", "chi-squared"}
        Intervals of variances of samples: with the kurtosis of the scores, or for normal scores.
    level : float in (0, 1)
        Of each interval.

    Returns
    -------
    VarianceStudy

    Raises
    ------
    ArgumentError, UnknownColumnError
        If an argument breaks its rule.
    DataError
        If a score or a seed is missing.
    DesignError
        If the seeds of all sources change together, so that no variance is identified, or no score differs.

    Notes
    -----
    The design is seen from the seeds. Where each source is varied with all others fixed, its variance is that of these
    scores, less that of trainings run again with equal seeds (the noise; without such trainings every source holds
    it). The variance of a source then includes its interactions at the seeds of the others that were fixed. Trainings
    in which several sources are new at once give the variance of all together, and a test of whether it is the sum.

    Otherwise a mixed model with crossed random effects of the sources is fitted, with their interactions by pairs
    where each combination is run twice on average.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3; Bonett (2006),
    Approximate confidence interval for standard deviation of nonnormal distributions, Computational Statistics & Data
    Analysis 50; Zou & Donner (2008), Construction of confidence limits about effect measures, Statistics in Medicine 27

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> runs = pd.DataFrame({"data": [*range(30), *[0] * 35], "init": [*[0] * 30, *range(30), *[0] * 5]})
    >>> effects = 0.02 * rng.normal(size=30), 0.01 * rng.normal(size=30)
    >>> runs["accuracy"] = 0.9 + effects[0][runs["data"]] + effects[1][runs["init"]] + 0.002 * rng.normal(size=65)
    >>> study = variance_study(runs, score="accuracy", sources=["data", "init"])
    >>> study.to_frame()[["source", "n", "sd", "ci_low", "ci_high", "relative"]].round(4)
      source   n      sd  ci_low  ci_high  relative
    ...
    """
    columns = as_frame(table, argument="table").collect_schema().names()
    score, names, by, unit = columns_of(columns, score, sources, algorithm, benchmark, relative_to)
    method = check_choice(method, "method", METHODS)
    level = check_fraction(level, "level")
    frame = read(table, score, names, by)
    tables: dict[str, list[pd.DataFrame]] = {"table": [], "at_once": [], "designs": [], "scores": []}
    notes: dict[str, list[str]] = {}
    groups = frame.groupby(list(by), sort=False, observed=True) if by else [((), frame)]
    for key, rows in groups:
        labels = dict(zip(by, key, strict=True))
        layout = Layout.of(rows, names, "score")
        found = _variances(layout, labels, level, method)
        made = tables_of(layout, found, unit)
        for name, part in made.items():
            tables[name].append(labelled(part, labels))
        for note in notes_of(layout, found, made["table"], unit):
            notes.setdefault(note, []).append(name_of(labels))
    joint = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
    p = joint["at_once"]["p_raw"].to_numpy(dtype=float)
    joint["at_once"]["p_value"] = adjust_raw(p, "holm", int(np.isfinite(p).sum()))
    return VarianceStudy(
        **joint,
        sources=names,
        relative_to=unit,
        method=method,
        level=level,
        score=score,
        notes=tuple(
            note if len(where) == len(joint["designs"]) else f"{joined(where)}: {note}" for note, where in notes.items()
        ),
    )


def _variances(layout: Layout, labels: dict[str, Any], level: float, method: str) -> SourceVariances:
    where = where_of(labels)
    check_magnitude(layout.score)
    if len(layout.score) < 2 or np.ptp(layout.score) == 0.0:
        raise DesignError(f"{where}all scores are the same, so nothing varies that could be taken apart.")
    if np.ptp(layout.score) < _LEAST:
        raise DesignError(f"{where}scores differ by {np.ptp(layout.score):.2g} at most. Give them in another unit.")
    single = layout.one_at_a_time()
    if single is not None:
        return of_lines(single, layout.varied, level, method)
    try:
        return of_model(layout, level)
    except DesignError as error:
        raise DesignError(f"{where}{error}") from None
