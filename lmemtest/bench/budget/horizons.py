"""Algorithms compared at several budgets or windows of budgets: which differ where, and whether that changes."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from lmemtest.bench.budget.curves import ONE_RUN, UNKNOWN_RUNS
from lmemtest.bench.budget.horizon_scores import HorizonScores, Place, RunCurves
from lmemtest.bench.budget.horizon_tests import (
    ACROSS,
    WITHIN,
    best_sentence,
    change_sentences,
    compare_changes,
    families_of,
)
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_METHODS, DDF_NAMES
from lmemtest.core.result import Result, result
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.formula import Term

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.model import LmmFit, ModelSpec

WINDOWS = ("averaged", "fixed", "random")
_MOST_EFFECTS = 50  # budgets with an effect each; more would eat the data


@result
class Horizon(Result):
    """The comparison at one horizon.

    Attributes
    ----------
    place : Place
        The budget, or the window: ``start``, ``end``, ``is_window``, ``label`` ("first-last" of a window).
    budgets : tuple of float
        Budgets whose scores were used.
    fit : LmmFit
        The recommended model of the scores here.
    pairs : Comparisons
        P-values are adjusted for the pairs of this horizon; ``pairs.estimates`` are the marginal means.
    decisions : Decisions
        Decisions at the level of this horizon, the same as in the table of the whole result.
    notes : tuple of str
    """

    parts = {"pairs": "_pairs"}

    place: Place
    budgets: tuple[float, ...]
    fit: LmmFit
    pairs: Comparisons
    decisions: Decisions
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The budget, or "first-last" of a window."""
        return self.place.label

    @property
    def formula(self) -> str:
        """The model."""
        return self.fit.formula

    @property
    def title(self) -> str:
        """Of what pairs."""
        return f"Pairwise differences at {self.label}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model, and how the pairs were compared."""
        return (f"Model: {self.formula}", *self.pairs.to_table().notes)

    def sentences(self) -> tuple[str, ...]:
        """The best algorithm, and those that do not differ significantly from it."""
        return (best_sentence(self.decisions, f"{'Over' if self.place.is_window else 'At'} {self.label}"),)

    def shown(self) -> pd.DataFrame:
        """The pairs, as they print themselves."""
        return self.pairs.to_table().frame

    def _pairs(self) -> pd.DataFrame:
        return self.pairs.to_frame()


@result
class Horizons(Result):
    """Comparisons at several horizons, and the changes between them.

    Attributes
    ----------
    horizons : tuple of Horizon
        In the order of their ends; a window comes after the horizons that lie in it.
    table : pandas.DataFrame
        One row per horizon and pair: ``horizon``, ``left``, ``right``, ``estimate`` (left - right), ``se``, ``df``,
        ``p_raw`` (of this test alone), ``p_value`` (for all pairs and, unless ``across="none"``, all horizons),
        ``significant`` (missing without a test), ``ci_low``, ``ci_high`` (at the level of the horizon; they exclude
        zero where the pair is significant).
    changes : pandas.DataFrame
        One row per pair of algorithms and of horizons, of which none is a part of the other: ``earlier``, ``later`` (by
        their ends), ``left``, ``right``, ``estimate_earlier``, ``estimate_later``, ``change`` (later - earlier), the
        same numbers of its test, and ``pattern``: "reverses" (significant at both in opposite directions, and so is the
        change), "grows", "shrinks" (a significant change of a difference that keeps its sign), "changes" (another
        significant change) or "not shown".
    change_formula : str or None
        The model of the change of a run between two horizons.
    budget, score, direction : str
    windows, adjust, across, ddf : str
        As given, or chosen.
    alpha : float
        Level of all comparisons together, and again of all changes together.
    notes : tuple of str
    """

    figure = "horizons_plot"
    parts = {"table": "table", "changes": "changes"}

    horizons: tuple[Horizon, ...]
    table: pd.DataFrame
    changes: pd.DataFrame
    change_formula: str | None
    budget: str
    score: str
    direction: str
    windows: str
    adjust: str
    across: str
    ddf: str
    alpha: float
    notes: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the horizons."""
        return tuple(horizon.label for horizon in self.horizons)

    def horizon(self, label: Any) -> Horizon:
        """One of the horizons, by its name, its budget or its window; `ArgumentError` if there is none."""
        if isinstance(label, (tuple, list)) and len(label) == 2:
            name = Place(*label).label
        else:
            name = label if isinstance(label, str) else format_level(label)
        for horizon in self.horizons:
            if horizon.label == name:
                return horizon
        raise ArgumentError(f"there is no horizon {label!r}. Horizons: {listed(map(repr, self.labels))}.")

    def sentences(self) -> tuple[str, ...]:
        """The best at each horizon, then what changes between horizons."""
        overlaps = frozenset(
            (first.label, second.label)
            for first, second in combinations(self.horizons, 2)
            if first.place.overlaps(second.place)
        )
        return (
            *(sentence for horizon in self.horizons for sentence in horizon.sentences()),
            *change_sentences(self.changes, self.table, self.direction, overlaps),
        )

    @property
    def title(self) -> str:
        """Of what pairs at how many horizons."""
        return f"Pairwise differences of {self.score} at {len(self.horizons)} horizons of {self.budget}"

    @property
    def facts(self) -> tuple[str, ...]:
        """How p-values are adjusted, and the models."""
        within = f"{ADJUSTMENT_NAMES[self.adjust]} adjustment for the pairs of a horizon"
        over = (
            "Holm's sharing of the level over horizons: the error holds for all comparisons together"
            if self.across == "holm"
            else "none over horizons: the error holds for each horizon by itself"
        )
        formulas = dict.fromkeys(horizon.formula for horizon in self.horizons)
        facts = [
            f"p_value: {within}, {over}; alpha = {self.alpha:g}, {DDF_NAMES[self.ddf]} degrees of freedom.",
            *(f"Model: {formula}" for formula in formulas),
        ]
        if self.change_formula:
            facts.append(f"Model of the changes between horizons (one score per run): {self.change_formula}")
        return tuple(facts)


@one_blas_thread()
def horizons(
    runs: Runs,
    budgets: Any = None,
    *,
    windows: str = "averaged",
    adjust: str | None = None,
    se: str | None = None,
    across: str = "holm",
    alpha: float = 0.05,
    ddf: str = "satterthwaite",
) -> Horizons:
    """Compare algorithms at several budgets or windows of budgets, and test what changes between them.

    Parameters
    ----------
    runs : Runs
        With numeric budgets.
    budgets : sequence of number or of two numbers, optional
        Horizons, at most eight: a budget, or a window ``(first, last)``, both included. They are put in the order of
        their ends, a window after the horizons that lie in it. By default up to four budgets spread over the range.
    windows : {"averaged", "fixed", "random"}
        What becomes of the budgets of a window. "averaged": each run counts once, with its mean over them. "fixed" and
        "random" keep the rows, with an effect ``C(budget)`` or ``(1 | budget)`` and the terms that make them one curve.
    adjust : {"stepdown", "singlestep", "tukey", "holm", "sidak", "bonferroni", "none"}, optional
        Adjustment for the pairs of a horizon; by default that of `pairs`, with moderated standard errors where there
        are three benchmarks or more. "tukey" is Tukey's HSD on the model's standard errors.
    across : {"holm", "none"}
        Whether the error is controlled over all horizons together.
    alpha : float in (0, 1)
        Level of all comparisons together, and again of all changes together.
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Degrees of freedom.

    Returns
    -------
    Horizons

    Raises
    ------
    ArgumentError
        If there is no numeric budget, a horizon is malformed, named twice, or has no scores, or an option is unknown.
    DataError
        If there is one budget only, runs have no scores at a horizon, or nothing is repeated.

    Notes
    -----
    The model of a horizon is that of `recommend` for the scores there: benchmarks are the sample. In a window the
    budgets of one run are one curve, and with complete tables its mean says all about the comparison: the t-tests are
    those of the rows with "fixed" and "random", as long as no variance is estimated as zero. Where not all runs have a
    score at a budget, the last one at or before it counts if the runs are best-so-far curves; else it is an error. In a
    window, budgets that not all runs have are left out.

    Over horizons the level is shared as by Holm: each of H horizons is tested at alpha / H, one whose pairs are all
    significant hands its share on. Changes have tests of their own, since "better at 5 and not significantly better at
    15" is no evidence of a change (Gelman & Stern 2006): each run's score at the later horizon minus that at the
    earlier is compared between algorithms by the model recommended for one score per run.

    References
    ----------
    Gelman & Stern (2006), Am. Stat. 60, 328-331, doi:10.1198/000313006X152649; Holm (1979), Scand. J. Stat. 6, 65-70;
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, figure 5.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.budget.horizons import horizons
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE"], prior="good")
    >>> found = horizons(runs, [2, 8, (12, 32)])
    >>> found.labels
    ('2', '8', '12-32')
    >>> print(found.horizon(2).sentences()[0])
    At 2 HB has the best mean, significantly better than all others.
    >>> found.changes[["earlier", "later", "left", "right", "change", "pattern"]].head(3).round(4)
      earlier later left right  change    pattern
    0       2     8   HB    RS  0.0374  not shown
    1       2     8   HB   TPE  0.0394  not shown
    2       2     8   RS   TPE  0.0019  not shown
    """
    require_runs(runs)
    alpha = check_fraction(alpha, "alpha")
    check_choice(windows, "windows", WINDOWS)
    if adjust is not None:
        check_choice(adjust, "adjust", WITHIN)
    check_choice(across, "across", ACROSS)
    check_choice(ddf, "ddf", DDF_METHODS)
    curves = RunCurves.of(runs)
    if curves.n_runs <= runs.study.count(runs.algorithm):
        one = ONE_RUN.format(so="a difference cannot be distinguished from chance")
        raise DataError(UNKNOWN_RUNS if runs.seed is None else one)
    places, notes = curves.places(budgets)
    at = [curves.at(place) for place in places]
    models = [_model(curves, scores, windows) for scores in at]
    scope = recommend(curves.table(at[0].scores, runs.score)).notes  # of the design, the same at all horizons
    fits = [spec.fit(table) for table, spec, _ in models]
    options: dict[str, Any] = {"adjust": adjust, "se": se, "across": across, "alpha": alpha, "ddf": ddf}
    families = families_of(fits, runs.algorithm, **options)
    changes, change_formula, flat = compare_changes(curves, at, [family.table for family in families], **options)
    found = tuple(
        Horizon(
            place=scores.place,
            budgets=scores.budgets,
            fit=fit,
            pairs=family.pairs,
            decisions=family.decisions,
            notes=(*scores.notes, *how),
        )
        for scores, fit, family, (_, _, how) in zip(at, fits, families, models, strict=True)
    )
    tables = {scores.place.label: family.table for scores, family in zip(at, families, strict=True)}
    notes += [note for horizon in found for note in horizon.notes]
    return Horizons(
        horizons=found,
        table=pd.concat(tables, names=["horizon", None]).reset_index(level=0).reset_index(drop=True),
        changes=changes,
        change_formula=change_formula,
        budget=str(runs.budget),
        score=runs.score,
        direction=runs.direction,
        windows=windows,
        adjust=found[0].pairs.adjust,
        across=across,
        ddf=ddf,
        alpha=alpha,
        notes=tuple(dict.fromkeys([*notes, *flat, *scope])),
    )


def _model(curves: RunCurves, scores: HorizonScores, windows: str) -> tuple[Runs, ModelSpec, tuple[str, ...]]:
    """The table of a horizon, its model, and what a reader must know."""
    label, n = scores.place.label, len(scores.budgets)
    if not scores.exact or (n > 1 and windows == "averaged"):
        table = curves.table(scores.scores, curves.runs.score)
        note = f"At {label} windows='averaged' was used, since not all runs have scores at its budgets."
        kept = windows == "averaged" or not scores.place.is_window
        return table, recommend(table).spec, () if kept else (note,)
    if n > _MOST_EFFECTS and windows == "fixed":
        raise ArgumentError(
            f"windows='fixed' has one effect per budget, and there are {n} in {label}, more than {_MOST_EFFECTS}. Use "
            "windows='averaged', or a narrower window."
        )
    table = curves.rows_at(scores.budgets)
    spec = recommend(table, curves="model").spec
    if n == 1:
        return table, spec, ()
    # the effect of the budget, and the random effects that keep benchmarks from bending as one
    study, budget = table.study, str(table.budget)
    spec = spec.without(*(term for term in spec.terms if budget in term.columns))
    spec = spec.without(*(bar for bar in spec.bars if budget in bar.columns))
    spec = spec.with_term(Term.levels(budget)) if windows == "fixed" else spec.with_random(budget)
    if study.several_benchmarks:
        spec = spec.with_random(*study.instance, budget)
        groups = (*study.instance, table.algorithm, budget)
        if study.count(*groups) < table.n_rows:
            spec = spec.with_random(*groups)
        if study.sampled.noun == "family":
            family = str(study.sampled.column)
            spec = spec.with_random(family, budget).with_random(family, table.algorithm, budget)
    return table, spec, ()
