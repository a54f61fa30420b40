"""The algorithms of a table, compared by one model: the model that its design calls for, the fit, and all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmemtest.bench.data.per_run import CURVE_CHOICES, reduced
from lmemtest.bench.modelling.recommend import as_written, model_of, recommend
from lmemtest.core.options import DDF_METHODS, REPORT_ADJUSTMENTS, VCOV
from lmemtest.core.validate import check_choice
from lmemtest.errors import ArgumentError, FormulaError
from lmemtest.lmm.formula.bars import parse_formula
from lmemtest.lmm.means.emmeans import marginal_means
from lmemtest.lmm.model.fitting import fitted_quietly

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.result import Answer
    from lmemtest.lmm.formula.bars import ParsedFormula
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.model import LmmFit, ModelSpec


def compared(
    runs: Runs,
    options: Mapping[str, Any],
    *,
    population: str | None = None,
    curves: str | None = None,
    parsed: ParsedFormula | None = None,
) -> tuple[Answer, LmmFit, Comparisons]:
    """The recommended model, its fit, or that of one's own model of the rows as they are, and all pairs."""
    if parsed is None:
        runs = reduced(runs, curves)
    model = model_of(runs, population)
    if parsed is not None:
        check_formula(parsed, runs)
    fit = fitted(model, runs, parsed, options.get("dispersion"))
    return model, fit, pairs_of(fit, runs, options)


def fitted(model: Answer, runs: Runs, parsed: ParsedFormula | None = None, dispersion: str | None = None) -> LmmFit:
    """The recommended model, or one's own; residual variances are one's own too, or as recommended."""
    if parsed is None:
        parsed, dispersion = as_written(model), dispersion or model.spec.dispersion
    return fitted_quietly(parsed, runs, dispersion)


def pairs_by(spec: ModelSpec, runs: Runs, options: Mapping[str, Any]) -> Comparisons:
    """All pairs by a given model of these runs, such as that of the same runs with another score."""
    return pairs_of(fitted_quietly(spec.parsed, runs, spec.dispersion), runs, options)


def pairs_of(fit: LmmFit, runs: Runs, options: Mapping[str, Any]) -> Comparisons:
    """All pairs of the algorithms by the options of an analysis: `alpha`, and `adjust`, `vcov`, `ddf` where given."""
    ddf = options.get("ddf", "satterthwaite")
    means = marginal_means(fit, (runs.algorithm,), ddf=ddf, alpha=options["alpha"])
    return means.pairs(adjust=options.get("adjust"), vcov=options.get("vcov"))


# ------------------------------------------------------------------------------------------------- the options of one


def checked_options(options: Mapping[str, Any]) -> ParsedFormula | None:
    """Each option of an analysis by its rule, as far as it needs no table; a formula of one's own, read."""
    formula, population, curves, dispersion = (
        options[name] for name in ("formula", "population", "curves", "dispersion")
    )
    choices = {"adjust": REPORT_ADJUSTMENTS, "vcov": VCOV, "ddf": DDF_METHODS, "curves": CURVE_CHOICES}
    for name, allowed in choices.items():
        if name == "ddf" or options[name] is not None:
            check_choice(options[name], name, allowed)
    if not (dispersion is None or isinstance(dispersion, str)):
        raise ArgumentError(f"dispersion must be one column, got {dispersion!r}. Name the one whose levels scatter.")
    if formula is None:
        return None
    parsed = parse_formula(formula)
    if population is not None:
        raise ArgumentError(
            f"population={population!r} chooses the model, and formula= is one of your own: give one of them. A random "
            "effect of families and algorithms makes families the sample."
        )
    if curves not in (None, "model"):
        raise ArgumentError(
            f"curves={curves!r} reduces curves before the model, and formula= is one of your own for the rows as they "
            f"are: give one of them, or the formula for runs.per_run({curves!r})."
        )
    return parsed


def check_formula(parsed: ParsedFormula, runs: Runs) -> None:
    """Refuse a formula of another score, of columns that are not there, or without the algorithms."""
    if parsed.response != runs.score:
        raise FormulaError(
            f"formula models {parsed.response!r}, but the score of these runs is {runs.score!r}. Write "
            f"{runs.score!r} on the left, or give the runs another score."
        )
    parsed.check_columns(runs.columns)
    if runs.algorithm not in {name for term in parsed.terms for name in term.columns}:
        raise FormulaError(
            f"formula must have the algorithm {runs.algorithm!r} in its fixed part, because its means are compared; "
            f"got {parsed.text!r}. Write for instance {recommend(runs, curves='model').formula!r}."
        )
