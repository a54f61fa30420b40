"""Algorithms compared at several budgets or windows of budgets: which differ where, and whether that changes."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from lmemtest.bench.budget.curves import ONE_RUN, unknown_runs
from lmemtest.bench.budget.horizon_scores import Place, one_score, places_of, rows_at, run_curves, scores_at
from lmemtest.bench.budget.horizon_tests import (
    ACROSS,
    WITHIN,
    best_sentence,
    change_sentences,
    compare_changes,
    families_of,
)
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_METHODS, DDF_NAMES
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.formula import Term

if TYPE_CHECKING:
    from lmemtest.bench.budget.anytime import Anytime
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.model import LmmFit, ModelSpec

WINDOWS = ("averaged", "fixed", "random")
_MOST_EFFECTS = 50  # budgets with an effect each; more would eat the data


@one_blas_thread()
def at(
    curves: Anytime,
    /,
    budgets: Any = None,
    *,
    windows: str = "averaged",
    adjust: str | None = None,
    vcov: str | None = None,
    across: str = "holm",
    alpha: float = 0.05,
    ddf: str = "satterthwaite",
) -> Answer:
    """Compare algorithms at several budgets or windows of budgets, and test what changes between them.

    Parameters
    ----------
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
    Answer
        - ``table``, a row per horizon and pair: ``horizon``, ``left``, ``right``, ``estimate`` (left - right), ``se``,
          ``df``, ``p_raw`` (of this test alone), ``p_value`` (for all pairs and, unless ``across="none"``, all
          horizons), ``significant`` (missing without a test), ``ci_low``, ``ci_high`` (at the level of the horizon;
          they exclude zero where the pair is significant).
        - ``changes``, a row per pair of algorithms and of horizons, of which none is a part of the other: ``earlier``,
          ``later`` (by their ends), ``left``, ``right``, ``estimate_earlier``, ``estimate_later``, ``change`` (later -
          earlier), the same numbers of its test, and ``pattern``: "reverses" (significant at both in opposite
          directions, and so is the change), "grows", "shrinks" (a significant change of a difference that keeps its
          sign), "changes" (another significant change) or "not shown".
        - ``horizons``, by label ("8", "16-32" for a window), in the order of ``labels``: each an `Answer` with its
          ``place`` (start, end), ``budgets`` (whose scores were used), ``fit`` (the recommended model of the scores
          there), ``pairs`` (adjusted for those of this horizon; ``pairs.estimates`` are the means), ``decisions`` (at
          the level of this horizon, the same as in the table).
        - ``change_formula`` (the model of the change of a run between two horizons, None without), ``budget``,
          ``score``, ``direction``, ``windows``, ``adjust``, ``across``, ``ddf``, ``alpha`` (of all comparisons
          together, and again of all changes together).

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
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE"], prior="good")
    >>> found = lt.anytime(runs).at([2, 8, (12, 32)])
    >>> found.labels
    ('2', '8', '12-32')
    >>> print(found.horizons["2"].sentences()[0])
    At 2 HB has the best mean, significantly better than all others.
    >>> found.changes[["earlier", "later", "left", "right", "change", "pattern"]].head(3).round(4)
      earlier later left right  change    pattern
    0       2     8   HB    RS  0.0374  not shown
    1       2     8   HB   TPE  0.0394  not shown
    2       2     8   RS   TPE  0.0019  not shown
    """
    runs, alpha = curves.runs, check_fraction(alpha, "alpha")
    check_choice(windows, "windows", WINDOWS)
    if adjust is not None:
        check_choice(adjust, "adjust", WITHIN)
    check_choice(across, "across", ACROSS)
    check_choice(ddf, "ddf", DDF_METHODS)
    keys, points, common = run_curves(runs)
    if len(keys) <= runs.study.count(runs.algorithm):
        one = ONE_RUN.format(so="a difference cannot be distinguished from chance")
        raise DataError(unknown_runs() if runs.seed is None else one)
    places, notes = places_of(budgets, runs, points, common)
    scored = [scores_at(place, runs, keys, points, common) for place in places]
    scores = [score for score, *_ in scored]
    models = [_model(place, runs, keys, one, windows) for place, one in zip(places, scored, strict=True)]
    scope = recommend(one_score(runs, keys, scores[0], runs.score)).notes  # of the design, the same at all horizons
    fits = [spec.fit(table) for table, spec, _ in models]
    options: dict[str, Any] = {"adjust": adjust, "vcov": vcov, "across": across, "alpha": alpha, "ddf": ddf}
    families = families_of(fits, runs.algorithm, **options)
    tables = [table for _, _, table in families]
    changes, change_formula, flat = compare_changes(runs, keys, places, scores, tables, **options)
    horizons: dict[str, Answer] = {}
    for place, (_, used, _, note), fit, (pairs, decisions, _), (_, _, how) in zip(
        places, scored, fits, families, models, strict=True
    ):
        horizons[place.label] = _horizon(place, used, fit, pairs, decisions, tuple(filter(None, (note, how))))
    notes += [note for horizon in horizons.values() for note in horizon.notes]
    table = pd.concat(dict(zip(horizons, tables, strict=True)), names=["horizon", None])
    table = table.reset_index(level=0).reset_index(drop=True)
    overlaps = frozenset((a.label, b.label) for a, b in combinations(places, 2) if a.overlaps(b))
    adjust = families[0][0].adjust
    over = (
        "Holm's sharing of the level over horizons: the error holds for all comparisons together"
        if across == "holm"
        else "none over horizons: the error holds for each horizon by itself"
    )
    facts = [
        f"p_value: {ADJUSTMENT_NAMES[adjust]} adjustment for the pairs of a horizon, {over}; alpha = {alpha:g}, "
        f"{DDF_NAMES[ddf]} degrees of freedom.",
        *(f"Model: {formula}" for formula in dict.fromkeys(fit.formula for fit in fits)),
    ]
    if change_formula:
        facts.append(f"Model of the changes between horizons (one score per run): {change_formula}")
    return Answer(
        question="horizons",
        title=f"Pairwise differences of {runs.score} at {len(places)} horizons of {runs.budget}",
        tables={"table": table, "changes": changes},
        values={
            "horizons": horizons,
            "labels": tuple(horizons),
            "change_formula": change_formula,
            "budget": str(runs.budget),
            "score": runs.score,
            "direction": runs.direction,
            "windows": windows,
            "adjust": adjust,
            "across": across,
            "ddf": ddf,
            "alpha": alpha,
        },
        facts=tuple(facts),
        findings=(
            *(sentence for horizon in horizons.values() for sentence in horizon.findings),
            *change_sentences(changes, table, runs.direction, overlaps),
        ),
        notes=tuple(dict.fromkeys([*notes, *flat, *scope])),
        figure="horizons_plot",
    )


def _horizon(
    place: Place,
    budgets: tuple[float, ...],
    fit: LmmFit,
    pairs: Comparisons,
    decisions: Decisions,
    notes: tuple[str, ...],
) -> Answer:
    """The comparison at one horizon."""
    printed = pairs.to_table()
    return Answer(
        question="horizon",
        title=f"Pairwise differences at {place.label}",
        tables={"table": pairs.to_frame()},
        values={
            "label": place.label,
            "place": place,
            "budgets": budgets,
            "formula": fit.formula,
            "fit": fit,
            "pairs": pairs,
            "decisions": decisions,
        },
        facts=(f"Model: {fit.formula}", *printed.notes),
        findings=(best_sentence(decisions, f"{'Over' if place.is_window else 'At'} {place.label}"),),
        notes=notes,
        printed=printed.frame,
    )


def _model(
    place: Place,
    runs: Runs,
    keys: pd.DataFrame,
    scored: tuple[Array, tuple[float, ...], bool, str],
    windows: str,
) -> tuple[Runs, ModelSpec, str]:
    """The table of a horizon, its model, and what a reader must know."""
    scores, budgets, exact, _ = scored
    n = len(budgets)
    if not exact or (n > 1 and windows == "averaged"):
        table = one_score(runs, keys, scores, runs.score)
        note = f"At {place.label} windows='averaged' was used, since not all runs have scores at its budgets."
        return table, recommend(table).spec, "" if windows == "averaged" or not place.is_window else note
    if n > _MOST_EFFECTS and windows == "fixed":
        raise ArgumentError(
            f"windows='fixed' has one effect per budget, and there are {n} in {place.label}, more than "
            f"{_MOST_EFFECTS}. Use windows='averaged', or a narrower window."
        )
    table = rows_at(runs, budgets)
    spec = recommend(table, curves="model").spec
    if n == 1:
        return table, spec, ""
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
    return table, spec, ""
