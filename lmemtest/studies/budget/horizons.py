"""Algorithms compared at several budgets or windows of budgets: which differ where, and whether that changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from lmemtest._options import ADJUSTMENT_NAMES, DDF_METHODS, DDF_NAMES
from lmemtest._result import Result, result
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_flag, check_fraction
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError, DataError
from lmemtest.formula.tokens import quote_name
from lmemtest.model import fit_lmm
from lmemtest.studies.budget.horizon_changes import change_sentences, compare_changes
from lmemtest.studies.budget.horizon_scores import (
    Curves,
    HorizonScores,
    checked_places,
    collect_curves,
    place_label,
    scored_runs,
    scores_at,
)
from lmemtest.studies.budget.horizon_tests import ACROSS, WITHIN, best_sentence, families_of
from lmemtest.studies.modelling.recommend import recommend
from lmemtest.words import format_level, listed

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs
    from lmemtest.inference.means.comparisons import Comparisons
    from lmemtest.inference.means.estimates import Estimates
    from lmemtest.inference.means.separation import Separation
    from lmemtest.model import LmmFit

BUDGET_EFFECTS = ("averaged", "fixed", "random")
_MOST_EFFECTS = 50  # budgets with an effect each; more would eat the data


@result
class Horizon(Result):
    """The comparison at one horizon.

    Attributes
    ----------
    label : str
        The budget, or "first-last" of a window.
    start, end : float
        The first and last budget; equal at a single one.
    budgets : tuple of float
        Budgets whose scores were used.
    fit : LmmFit
        The recommended model of the scores here.
    emmeans : Estimates
    pairs : Comparisons
        P-values are adjusted for the pairs of this horizon; intervals are at 1 - `alpha`.
    separation : Separation
        Decisions at `alpha`, the same as in the table of the whole result.
    alpha : float
        The level of this horizon, its share of that of the whole.
    paper : pandas.DataFrame or None
        The same pairs by the model that counts rows: left, right, estimate, se, df, p_value (adjusted within the
        horizon); if asked for.
    notes : tuple of str
    """

    parts = {"pairs": "_pairs"}

    label: str
    start: float
    end: float
    budgets: tuple[float, ...]
    fit: LmmFit
    emmeans: Estimates
    pairs: Comparisons
    separation: Separation
    alpha: float
    paper: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_window(self) -> bool:
        """Whether it is a window of budgets."""
        return self.start != self.end

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
        return (best_sentence(self.separation, f"{'Over' if self.is_window else 'At'} {self.label}"),)

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
        ``p_value`` (of this test alone), ``p_adjusted`` (for all pairs and, unless ``across="none"``, all horizons),
        ``significant`` (missing without a test), ``ci_low``, ``ci_high`` (simultaneous for the pairs of a horizon, at
        the horizon's level).
    changes : pandas.DataFrame
        One row per pair of horizons, of which none is a part of the other, and pair of algorithms: ``earlier``,
        ``later`` (by their ends, if they overlap), ``left``, ``right``, ``estimate_earlier``, ``estimate_later``
        (left - right at each), ``change`` (later - earlier), ``se``, ``df``, ``p_value`` (of this test alone),
        ``p_adjusted``, ``significant``, ``ci_low``, ``ci_high``, ``pattern``: "reverses" (significant at both, in
        opposite directions, and so is the change), "grows", "shrinks" (a significant change of a difference that keeps
        its sign), "changes" (another significant change) or "not shown".
    change_formula : str or None
        The model of the change of a run between two horizons.
    budget, score : str
    direction : {"minimize", "maximize"}
    budget_effect, adjust, across, ddf : str
    alpha : float
        Level of all comparisons together, and again of all changes together.
    notes : tuple of str
    """

    parts = {"table": "table", "changes": "changes", "paper": "paper_frame"}

    horizons: tuple[Horizon, ...]
    table: pd.DataFrame
    changes: pd.DataFrame
    change_formula: str | None
    budget: str
    score: str
    direction: str
    budget_effect: str
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
        """One of the horizons.

        Parameters
        ----------
        label : str, float or tuple of two floats
            Its name, its budget, or its window.

        Returns
        -------
        Horizon

        Raises
        ------
        ArgumentError
            If there is none of this name.
        """
        name = label if isinstance(label, str) else None
        if name is None and isinstance(label, Sequence) and len(label) == 2:
            name = place_label((label[0], label[1]))
        name = format_level(label) if name is None else name
        for horizon in self.horizons:
            if horizon.label == name:
                return horizon
        raise ArgumentError(f"there is no horizon {label!r}. Horizons: {listed(map(repr, self.labels))}.")

    def sentences(self) -> tuple[str, ...]:
        """The best at each horizon, then what changes between horizons."""
        overlaps = frozenset(
            (first.label, second.label)
            for first, second in combinations(self.horizons, 2)
            if max(first.start, second.start) <= min(first.end, second.end)
        )
        return (
            *(sentence for horizon in self.horizons for sentence in horizon.sentences()),
            *change_sentences(self.changes, self.table, self.direction, overlaps),
        )

    def paper_frame(self) -> pd.DataFrame:
        """The pairs by the model that counts rows, beside the recommended one.

        Returns
        -------
        pandas.DataFrame
            ``horizon``, ``left``, ``right``, ``estimate``, ``se``, ``p_value`` (adjusted for the pairs of the horizon)
            and, by the other model, ``paper_estimate``, ``paper_se``, ``paper_p_value``.

        Raises
        ------
        ArgumentError
            If it was not asked for.
        """
        parts = []
        for horizon in self.horizons:
            if horizon.paper is None:
                raise ArgumentError("the paper's model was not fitted. Ask for it: horizons(..., paper=True).")
            frame = horizon.pairs.to_frame()[["left", "right", "estimate", "se", "p_value"]]
            other = horizon.paper[["estimate", "se", "p_value"]].add_prefix("paper_")
            both = pd.concat([frame, other], axis=1)
            both.insert(0, "horizon", horizon.label)
            parts.append(both)
        return pd.concat(parts, ignore_index=True)

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
            f"p_adjusted: {within}, {over}; alpha = {self.alpha:g}, {DDF_NAMES[self.ddf]} degrees of freedom.",
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
    budget_effect: str = "averaged",
    adjust: str | None = None,
    across: str = "holm",
    alpha: float = 0.05,
    ddf: str = "satterthwaite",
    paper: bool = False,
) -> Horizons:
    """Compare algorithms at several budgets or windows of budgets, and test what changes between them.

    Parameters
    ----------
    runs : Runs
        With numeric budgets.
    budgets : sequence of number or of two numbers, optional
        Horizons, at most eight: a budget, or a window ``(first, last)``, both included. They are put in the order of
        their ends, a window after the horizons that lie in it. By default up to four budgets spread over the range.
    budget_effect : {"averaged", "fixed", "random"}
        Inside windows. "averaged": each run counts once, with its mean over the budgets. "fixed" and "random" keep the
        rows, with an effect ``C(budget)`` or ``(1 | budget)``, and the terms that make them one curve.
    adjust : {"stepdown", "tukey", "holm", "sidak", "bonferroni", "none"}, optional
        Adjustment for the pairs of a horizon; by default that of `pairs`, with moderated standard errors where there
        are three benchmarks or more. "tukey" is Tukey's HSD on the model's standard errors.
    across : {"holm", "none"}
        Whether the error is controlled over all horizons together.
    alpha : float in (0, 1)
        Level of all comparisons together, and again of all changes together.
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Degrees of freedom.
    paper : bool
        Fit ``score ~ algorithm + (1|budget) + (1|benchmark)`` as well, to see what counting rows would claim.

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
    budgets of one run are one curve. With complete tables its mean over the budgets says all about the comparison: the
    t-tests are those of the models of the rows with ``(1 | benchmark:budget)`` and ``(1 |
    benchmark:algorithm:budget)``, which "fixed" and "random" have, as long as no variance is estimated as zero.

    Where not all runs have a score at a budget, the last one at or before it counts if the runs are best-so-far
    curves; else it is an error. In a window, budgets that not all runs have are left out.

    Over horizons the level is shared as by Holm: each of H horizons is tested at alpha / H, one whose pairs are all
    significant hands its share on.

    "Better at 5 and not significantly better at 15" is no evidence of a change (Gelman & Stern 2006). Changes have
    tests of their own: each run's score at the later horizon minus that at the earlier is compared between algorithms
    by the model recommended for one score per run. With complete tables of one instance per benchmark that is the
    paired t-test of the benchmarks' mean changes.

    References
    ----------
    Gelman & Stern (2006), Am. Stat. 60, 328-331, doi:10.1198/000313006X152649; Holm (1979), Scand. J. Stat. 6, 65-70;
    Geburek, Mallik, Stoll, Bouthillier & Hutter (2024), arXiv:2408.02533, figure 5.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.studies.budget.horizons import horizons
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
    alpha, paper = check_fraction(alpha, "alpha"), check_flag(paper, "paper")
    check_choice(budget_effect, "budget_effect", BUDGET_EFFECTS)
    if adjust is not None:
        check_choice(adjust, "adjust", WITHIN)
    check_choice(across, "across", ACROSS)
    check_choice(ddf, "ddf", DDF_METHODS)
    curves = collect_curves(runs)
    _check_repeated(curves)
    places, notes = checked_places(curves, budgets)
    at = [scores_at(curves, place) for place in places]
    models = [_model(curves, scores, budget_effect) for scores in at]
    scope = recommend(scored_runs(curves, at[0].scores, runs.score)).notes  # of the design, the same at all horizons
    fits = [fit_lmm(formula, table) for table, formula, _ in models]
    options: dict[str, Any] = {"adjust": adjust, "across": across, "alpha": alpha, "ddf": ddf}
    families = families_of(fits, runs.algorithm, **options)
    tables = [family.table() for family in families]
    changes, change_formula, flat = compare_changes(curves, at, tables, **options)
    found = tuple(
        Horizon(
            label=scores.label,
            start=scores.start,
            end=scores.end,
            budgets=scores.budgets,
            fit=fit,
            emmeans=family.pairs.estimates,
            pairs=family.pairs,
            separation=family.separation,
            alpha=family.alpha,
            paper=_paper(curves, scores, adjust) if paper else None,
            notes=(*scores.notes, *how),
        )
        for scores, fit, family, (_, _, how) in zip(at, fits, families, models, strict=True)
    )
    frames = [table.copy() for table in tables]
    for frame, scores in zip(frames, at, strict=True):
        frame.insert(0, "horizon", scores.label)
    return Horizons(
        horizons=found,
        table=pd.concat(frames, ignore_index=True),
        changes=changes,
        change_formula=change_formula,
        budget=str(runs.budget),
        score=runs.score,
        direction=runs.direction,
        budget_effect=budget_effect,
        adjust=found[0].pairs.adjust,
        across=across,
        ddf=ddf,
        alpha=alpha,
        notes=tuple(dict.fromkeys([*notes, *(note for horizon in found for note in horizon.notes), *flat, *scope])),
    )


def _check_repeated(curves: Curves) -> None:
    runs = curves.runs
    if curves.n_runs > runs.study.count(runs.algorithm):
        return
    if runs.seed is None:
        raise DataError(
            "Which rows belong to one run is not known, and there is one benchmark, so that runs are the sample. Name "
            "the seed column: Runs(table, ..., seed=...)."
        )
    raise DataError(
        "There is one benchmark and one run per algorithm, so a difference cannot be distinguished from chance. Bring "
        "more seeds (they show what holds on this benchmark) or more benchmarks."
    )


# ---------------------------------------------------------------------- the model of a horizon


def _model(curves: Curves, scores: HorizonScores, budget_effect: str) -> tuple[Runs, str, tuple[str, ...]]:
    """The table of a horizon, its model, and what a reader must know."""
    runs = curves.runs
    if not scores.exact:
        table = scored_runs(curves, scores.scores, runs.score)
        kept = budget_effect == "averaged" or scores.start == scores.end
        note = f"At {scores.label} budget_effect='averaged' was used, since not all runs have scores at its budgets."
        return table, recommend(table).formula, () if kept else (note,)
    if len(scores.budgets) == 1:
        table = runs.filter(**{str(runs.budget): _levels(runs, scores.budgets)})
        return table, recommend(table).formula, ()
    if budget_effect == "averaged":
        table = scored_runs(curves, scores.scores, runs.score)
        return table, recommend(table).formula, ()
    if budget_effect == "fixed" and len(scores.budgets) > _MOST_EFFECTS:
        raise ArgumentError(
            f"budget_effect='fixed' has one effect per budget, and there are {len(scores.budgets)} in {scores.label}, "
            f"more than {_MOST_EFFECTS}. Use budget_effect='averaged', or a narrower window."
        )
    table = runs.filter(**{str(runs.budget): _levels(runs, scores.budgets)})
    terms = [recommend(table).formula, *_budget_terms(table, budget_effect)]
    return table, " + ".join(terms), ()


def _levels(runs: Runs, budgets: tuple[float, ...]) -> list[Any]:
    """Budgets as the column has them, whole numbers or not."""
    wanted = set(budgets)
    return [level for level in runs.levels(str(runs.budget)) if float(level) in wanted]


def _budget_terms(table: Runs, budget_effect: str) -> list[str]:
    """The effect of the budget, and the random effects that keep benchmarks from bending as one."""
    budget, algorithm = quote_name(str(table.budget)), quote_name(table.algorithm)
    terms = [f"C({budget})" if budget_effect == "fixed" else f"(1 | {budget})"]
    if not table.study.several_benchmarks:
        return terms
    instance = ":".join(map(quote_name, table.study.instance))
    terms.append(f"(1 | {instance}:{budget})")
    columns = [*table.study.instance, table.algorithm, str(table.budget)]
    if table.study.count(*columns) < table.n_rows:
        terms.append(f"(1 | {instance}:{algorithm}:{budget})")
    return terms


def _paper(curves: Curves, scores: HorizonScores, adjust: str | None) -> pd.DataFrame:
    """Pairs by the model of the paper, in which every row is an observation of its own."""
    from lmemtest.inference.means.contrasts import pairs
    from lmemtest.inference.means.emmeans import emmeans

    runs = curves.runs
    if scores.exact:
        table = runs.filter(**{str(runs.budget): _levels(runs, scores.budgets)})
    else:
        table = scored_runs(curves, scores.scores, runs.score)
    several = table.budget is not None and len(scores.budgets) > 1
    algorithm = quote_name(runs.algorithm)
    if table.frame.collect_schema()[runs.algorithm].is_numeric():
        algorithm = f"C({algorithm})"
    terms = [algorithm, *([f"(1 | {quote_name(str(runs.budget))})"] if several else [])]
    if runs.benchmark is not None and runs.study.several_benchmarks:
        terms.append(f"(1 | {quote_name(runs.benchmark)})")
    fit = fit_lmm(f"{quote_name(runs.score)} ~ {' + '.join(terms)}", table)
    found = pairs(emmeans(fit, runs.algorithm, vcov="model"), adjust=adjust).to_frame()
    return found[["left", "right", "estimate", "se", "df", "p_value"]]
