"""The pairs of the algorithms in one other analysis: a part of the runs, another scale, population or level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.normalise import METHODS
from lmemtest.bench.data.per_run import reduced
from lmemtest.bench.data.runs import require_runs
from lmemtest.bench.data.selection import levels_named
from lmemtest.bench.modelling.recommend import POPULATIONS, fitted, model_of
from lmemtest.bench.robustness.variants import checked_options, pairs_of, raw_runs
from lmemtest.core.hints import guided
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_columns, check_fraction
from lmemtest.core.words import format_level, joined
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.result import Answer
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.model import LmmFit

_MOST = 4  # levels that a note names


@guided
@one_blas_thread()
def variant(
    runs: Runs,
    *,
    without: Mapping[str, Any] | None = None,
    only: Mapping[str, Any] | None = None,
    scale: str | None = None,
    population: str | None = None,
    curves: str | None = None,
    alpha: float = 0.05,
    adjust: str | None = None,
    vcov: str | None = None,
    ddf: str = "satterthwaite",
    formula: str | None = None,
    dispersion: str | None = None,
) -> Comparisons:
    """All pairs of algorithms, as `analyze` compares them, in a variant of the analysis.

    The variant is what `analyze` would say of the reduced table: the model is recommended anew, fitted and compared.
    Checks, diagnoses and figures are left out, and rows that were grouped are not read again unless scores are
    normalised, so that it takes milliseconds.

    Parameters
    ----------
    runs : Runs
        The whole table. The more that is asked of the same runs the less each variant has to do: their rows are
        grouped once.
    without : mapping of str to a value or values, optional
        What is left out: ``{"benchmark": "adult"}``, ``{"algorithm": ["RS", "HB"]}``. Names are roles or columns, as in
        `Runs.filter`; of several columns everything that has one of the values of any.
    only : mapping of str to a value or values, optional
        What is kept, as in `Runs.filter`: ``{"budget": 8}``.
    scale : {"minmax", "normalized_regret", "rank", "zscore", "log", "regret"}, optional
        The scores that are left are normalised by this method of `Runs.normalize`, of normalised runs from the raw
        score. By default they stay as they are: ranks among all algorithms also where one is left out.
    population : {"family", "benchmark", "run"}, optional
        What the claims are about; see `recommend`.
    curves : {"mean", "last", "best", "area", "model"}, optional
        What the scores of a run over its budgets count; see `recommend`.
    alpha : float in (0, 1), default 0.05
        Level of the intervals, for all pairs together.
    adjust : {"stepdown", "singlestep", "tukey", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none"}, optional
        As in `analyze`.
    vcov : {"moderated", "model"}, optional
        As in `analyze`.
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Degrees of freedom.
    formula, dispersion : str, optional
        As in `analyze`: a model of one's own instead of the recommended one, and the column whose levels scatter.

    Returns
    -------
    Comparisons
        Of all pairs. ``decisions(alpha=...)`` are the verdicts at any level, ``estimates.pairs(adjust=...)`` the same
        pairs adjusted otherwise: neither needs another fit. The notes say what is another one than in the whole table.

    Raises
    ------
    ArgumentError
        If an option is unknown.
    FormulaError
        If the formula cannot be read, models another score, or lacks the algorithms.
    UnknownColumnError
        If `without` or `only` name no column.
    DataError
        If a value does not occur, nothing is left, or the scores cannot be normalised.
    DesignError
        If what is left identifies no model.

    Notes
    -----
    Each variant keeps its level by itself. Who looks at many and reports the one that pleases does not: state the
    analysis beforehand, and variants as what they are.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, prior="good")
    >>> pairs = lt.variant(runs, without={"algorithm": "RS"}, scale="rank")
    >>> pairs.notes[-1]
    'A variant of the analysis: without algorithm RS, by loss_rank. Its level holds for this one variant.'
    >>> pairs.decisions(alpha=0.01).alpha
    0.01
    """
    *_, pairs, changes = varied(
        runs,
        without=without,
        only=only,
        scale=scale,
        population=population,
        curves=curves,
        alpha=alpha,
        adjust=adjust,
        vcov=vcov,
        ddf=ddf,
        formula=formula,
        dispersion=dispersion,
    )
    if not changes:
        return pairs
    note = f"A variant of the analysis: {', '.join(changes)}. Its level holds for this one variant."
    return replace(pairs, notes=(*pairs.notes, note))


def varied(
    runs: Runs,
    *,
    alpha: float = 0.05,
    adjust: str | None = None,
    vcov: str | None = None,
    ddf: str = "satterthwaite",
    **of_model: Any,
) -> tuple[Runs, Answer, LmmFit, Comparisons, list[str]]:
    """The part of the runs that a variant is of, the model recommended for it, fit, pairs, and what is another one.

    `of_model` are the arguments of `refitted`.
    """
    require_runs(runs)
    tests = {"alpha": check_fraction(alpha, "alpha"), "adjust": adjust, "vcov": vcov, "ddf": ddf}
    checked_options(tests)
    part, model, fit, changes = refitted(runs, **of_model)
    return part, model, fit, pairs_of(fit, part, tests), changes


def refitted(
    runs: Runs,
    *,
    without: Mapping[str, Any] | None = None,
    only: Mapping[str, Any] | None = None,
    scale: str | None = None,
    population: str | None = None,
    curves: str | None = None,
    formula: str | None = None,
    dispersion: str | None = None,
) -> tuple[Runs, Answer, LmmFit, list[str]]:
    """What variants share that differ in their tests alone: part of the runs, model, fit, and what is another one."""
    left_out, kept = (_conditions(runs, values, name) for name, values in (("without", without), ("only", only)))
    for name, value, allowed in (("scale", scale, METHODS), ("population", population, POPULATIONS)):
        if value is not None:
            check_choice(value, name, allowed)
    parsed = checked_options({"formula": formula, "population": population, "curves": curves, "dispersion": dispersion})
    if dispersion is not None:
        check_columns(dispersion, runs.columns, argument="dispersion")
    part = runs.filter(**kept) if kept else runs
    for column, levels in left_out.items():
        part = part.filter(**{column: [level for level in part.levels(column) if level not in set(levels)]})
    if scale is not None:
        part = (raw_runs(part) or part).normalize(scale)
    part = part.with_named_algorithms()
    modelled = part if parsed is not None else reduced(part, curves)
    model = model_of(modelled, population)
    fit = fitted(model, modelled, parsed, dispersion)
    changes = [
        f"{word} {column} {joined([*map(format_level, levels)], most=_MOST)}"
        for word, named in (("without", left_out), ("only", kept))
        for column, levels in named.items()
    ]
    changes += [f"by {part.score}"] if scale is not None else []
    changes += [f"for {model.claim}"] if population is not None else []
    return part, model, fit, changes


def _conditions(runs: Runs, values: Any, argument: str) -> dict[str, list[Any]]:
    """Columns and the levels of them that are named."""
    if values is None:
        return {}
    if not isinstance(values, Mapping) or not values:
        raise ArgumentError(
            f"{argument} must be a mapping of columns or roles to values, such as {{'benchmark': "
            f"{runs.levels(runs.benchmark or runs.algorithm)[0]!r}}}, got {values!r}."
        )
    return levels_named(runs, values, argument)
