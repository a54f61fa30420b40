"""`fit_glmm`: answers that are right or wrong, successes and counts -> a fitted generalised linear mixed model."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.linalg import null_space

from lmemtest.core.frames import check_numeric
from lmemtest.core.hints import guided
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_columns, check_flag, resolve_rng
from lmemtest.core.words import format_level, joined, listed
from lmemtest.errors import ArgumentError, DataError, DesignError, EstimationError, FormulaError
from lmemtest.lmm.cells import Cells, compress, regroup
from lmemtest.lmm.engine.ddf import between_within, groups_left
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.engine.laplace import Laplace, Likelihood
from lmemtest.lmm.engine.pseudo import Answers, Working, linearised, pseudo_likelihood, working_scores
from lmemtest.lmm.engine.separation import separated, with_prior
from lmemtest.lmm.engine.theta import pack, root_of, unpack
from lmemtest.lmm.families import LARGEST, LARGEST_COUNT, Family, check_family, constant_of
from lmemtest.lmm.formula import build_design, parse_formula
from lmemtest.lmm.formula.design import Design
from lmemtest.lmm.model import predictions
from lmemtest.lmm.model.fit import DdfMethod, LmmFit
from lmemtest.lmm.model.fitting import notes_of, refuse_unidentified, table_for
from lmemtest.lmm.model.verbs import Verb

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index
    from lmemtest.core.result import Answer
    from lmemtest.lmm.formula import ParsedFormula

METHODS = ("pseudo", "laplace", "quadrature")
# Rows that a message shows.
_EXAMPLES = 3
# Where the logarithm of the size of a negative binomial is looked for: beyond, counts are Poisson's for all purposes.
_LOG_SIZES = (-6.0, 9.0)
# Degrees of freedom between groups up to which a note says that there are no fewer.
_FEW_DF = 3
# Successes of attempts as in R: cbind(k, n - k), or k / n.
_OF_R = re.compile(r"\s*cbind\s*\(|[^~`]*/[^~`]*~")
_UNITS = {"binomial": "answers", "poisson": "rows of counts", "negative-binomial": "rows of counts"}


@guided
def fit_glmm(
    formula: str,
    data: Any,
    *,
    family: str | Family = "binomial",
    link: str | None = None,
    trials: str | None = None,
    method: str = "pseudo",
) -> GlmmFit:
    """Fit a generalised linear mixed model to answers, shares of attempts or counts.

    Parameters
    ----------
    formula : str
        As in `fit_lmm`; ``offset(log(x))`` holds the exposure of counts. The response is 0 or 1 (or
        false and true), the number of successes among `trials`, or a count.
    data : Runs or dataframe
        One row per answer, per group of attempts, or per count; any dataframe that Narwhals reads.
    family : {"binomial", "poisson", "negative-binomial"} or Family
        Distribution of the response given the effects.
    link : {"logit", "probit", "cloglog"}, optional
        Of the binomial family; "logit" by default. Counts have "log".
    trials : str, optional
        Column of the number of attempts behind each number of successes.
    method : {"pseudo", "laplace", "quadrature"}
        Restricted pseudo-likelihood, whose tests have degrees of freedom; or the maximum of Laplace's approximation of
        the likelihood, with normal tests, as in lme4 and glmmTMB; or that of the likelihood itself, by adaptive
        Gauss-Hermite quadrature with 100 nodes, for one random effect of one factor.

    Returns
    -------
    GlmmFit
        What is asked of an `LmmFit` can be asked of it, on the scale of the link.

    Raises
    ------
    FormulaError, UnknownColumnError
        If the formula cannot be read, with the place.
    DataError
        If a score is outside the family's domain, with examples; or is missing.
    DesignError
        If all answers are the same, or the data cannot identify the model, such as a random effect with one answer in
        each of its groups.
    EstimationError
        By "laplace" and "quadrature" if each group of a random effect is all right or all wrong: the likelihood has no
        maximum.
    ArgumentError
        If an option is unknown, or does not belong to the family; with "quadrature" also if there are other random
        effects than one of one factor.

    Warns
    -----
    ConvergenceWarning
        If the estimates did not converge.

    Notes
    -----
    Restricted pseudo-likelihood (Wolfinger & O'Connell 1993): a sequence of linear mixed models of working scores,
    whose last one gives variances, means and their errors with Satterthwaite's degrees of freedom. Where a variance is
    estimated as zero these have no bound, and those between groups (Li & Redden 2015) take their place. Of few answers
    per group pseudo-likelihood takes variances for a little too small; Laplace's approximation is nearer to the
    likelihood, and its tests find differences of equal models too often where groups are few. ``fit.llf`` and
    ``fit.aic`` are Laplace's in both cases.

    Rows that agree in all columns of the formula are one cell, with its sum and its number of answers: these are
    sufficient, and the cost of the fit depends on the cells.

    References
    ----------
    Wolfinger & O'Connell (1993). Generalized linear mixed models: a pseudo-likelihood approach. J. Stat. Comput.
    Simul. 48, 233-243. doi:10.1080/00949659308811554. Li & Redden (2015). Comparing denominator degrees of freedom
    approximations for the generalized linear mixed model in analyzing binary outcome in small sample cluster-randomized
    trials. BMC Med. Res. Methodol. 15, 38. doi:10.1186/s12874-015-0026-x

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"right": [8, 6, 9, 5, 7, 7, 9, 4], "asked": [10] * 8, "model": ["A", "B"] * 4,
    ...          "task": list("ppqqrrss")}
    >>> fit = lt.fit_glmm("right ~ model + (1 | task)", table, trials="asked")
    >>> fit.params.round(3).to_dict()
    {'Intercept': 1.551, 'model[T.B]': -1.35}
    """
    family, method = check_family(family, link), check_choice(method, "method", METHODS)
    if _OF_R.match(str(formula)):
        raise FormulaError(
            f"the response is the column of successes, and trials= names that of the attempts, got "
            f"{formula.partition('~')[0].strip()!r}. Write 'k ~ ...' and trials='n', of columns k and n."
        )
    parsed = parse_formula(formula)
    table, _, names = table_for(parsed, data)
    if trials is not None:
        if not family.binomial:
            raise ArgumentError(
                f"trials={trials!r} goes with family='binomial', got {family.name!r}. The exposure of counts is a part "
                f"of the formula: offset(log({trials}))."
            )
        if not isinstance(trials, str):
            raise ArgumentError(
                f"trials must name a column, got {type(trials).__name__}. Add the trials to the table as a column."
            )
        check_columns(trials, names, argument="trials")
    observed, rows, constant = _observed(parsed, table, family, trials)
    design = build_design(parsed, observed.columns, observed.n)
    refuse_unidentified(design, observed, residual_known=True)
    _refuse_single_answers(design, observed, family)
    _refuse_offsets(design, family)
    if method == "quadrature" and [term.basis.shape[1] for term in design.random] != [1]:
        raise ArgumentError(
            "method='quadrature' integrates over one random effect of one factor, such as (1 | g), and the random part "
            f"is {joined([term.label for term in design.random] or ['empty'])}. Take method='laplace'."
        )
    kept = data.copy(deep=False) if isinstance(data, pd.DataFrame) else data
    return _fit_answers(
        formula,
        design,
        observed,
        data=kept,
        family=family,
        trials=trials,
        rows=rows,
        constant=constant,
        reml=method == "pseudo",
        quadrature=method == "quadrature",
    )


def _observed(
    parsed: ParsedFormula, table: Any, family: Family, trials: str | None
) -> tuple[Cells, Array, Callable[[Family], float]]:
    """Mean and number of answers of every cell, its rows, and the constant of the log-likelihood of a family."""
    response = parsed.response
    if parsed.response_function is not None:
        raise ArgumentError(
            f"the response of a generalised model is the answer or the count itself, got {parsed.score}. The family "
            f"has a link ({family.link}); write {response} ~ ..."
        )
    if family.binomial and table.collect_schema().get(response) == nw.Boolean():
        table = table.with_columns(nw.col(response).cast(nw.Int8()))
    for name, argument in ((response, "score"), *([(trials, "trials")] if trials is not None else [])):
        check_numeric(table, name, argument=argument)
    by = list(parsed.columns)
    if response in by:
        raise ArgumentError(f"the response {response!r} is on the right side of the formula, too. Leave it out there.")
    fine = compress(table, by=[*by, *([trials] if trials is not None else []), response], score=response)
    score = np.asarray(fine.frame[response], dtype=float)
    of_trials = np.ones(len(score)) if trials is None else np.asarray(fine.frame[trials], dtype=float)
    _check_domain(fine, score, of_trials, family, response, trials)
    rows = regroup(fine, by)
    n = rows.n if trials is None else np.round(rows.n * regroup(dataclasses.replace(fine, mean=of_trials), by).mean)
    total = np.round(rows.n * rows.mean)
    if family.binomial and total.sum() in (0, n.sum()):
        raise DesignError(
            f"all {int(n.sum()):,} answers in {response!r} are {'wrong' if not total.sum() else 'right'}, so there is "
            "nothing to compare. Add items that are easier or harder."
        )
    if not total.sum():
        raise DesignError(f"all counts in {response!r} are 0, so there is nothing to compare. Add exposure.")
    mean = total / n
    observed = dataclasses.replace(rows, n=n, mean=mean, ss=n * mean * (1.0 - mean) if family.binomial else rows.ss)
    return observed, rows.n, partial(constant_of, score=score, trials=of_trials, rows=fine.n)


def _check_domain(
    fine: Cells, score: Array, of_trials: Array, family: Family, response: str, trials: str | None
) -> None:
    """Refuse scores that the family does not have, and trials that are no numbers of attempts, with examples."""
    if trials is not None:
        none = ~((of_trials >= 1) & (of_trials == np.round(of_trials)))
        if none.any():
            raise DataError(
                f"trials must be whole numbers of at least 1, and {int(fine.n[none].sum()):,} of {fine.n_rows:,} rows "
                f"have others in {trials!r} ({_examples(fine, none)}). Leave out rows without attempts."
            )
        many = of_trials > LARGEST_COUNT  # of which a share has no standard error beside the rounding of its logit
        if many.any():
            raise DataError(
                f"trials must be at most {LARGEST_COUNT:g}, and {int(fine.n[many].sum()):,} of {fine.n_rows:,} rows "
                f"have more in {trials!r} ({_examples(fine, many)}). Of so many attempts the shares are known: fit "
                f"these, fit_lmm('share ~ ...')."
            )
    bad, rule = family.outside(score, of_trials)
    if bad.any():
        shares = family.binomial and trials is None and bool(((score >= 0.0) & (score <= 1.0)).all())
        correct = "Of shares of attempts give the successes, with the attempts as trials=" if shares else "Correct them"
        correct += ", or take fit_lmm for scores of other kinds"
        if not family.binomial and score[bad].min() > LARGEST_COUNT:  # all of them are counts, but for their size
            correct = f"Fit their logarithms: fit_lmm('log({response}) ~ ...')"
        raise DataError(
            f"{rule} for family={family.name!r}, and {int(fine.n[bad].sum()):,} of {fine.n_rows:,} rows have others in "
            f"{response!r} ({_examples(fine, bad)}). {correct}."
        )


def _refuse_single_answers(design: Design, observed: Cells, family: Family) -> None:
    """Refuse random effects of single answers, which change nothing but the shape of the link."""
    for term in design.random if family.binomial else ():
        if term.n_levels == int(observed.n.sum()):
            raise DesignError(
                f"the random effect {term.label} has one answer in each of its {term.n_levels:,} groups, and a "
                "single 0 or 1 does not show how groups vary. Leave the term out, or add repeated answers."
            )


def _refuse_offsets(design: Design, family: Family) -> None:
    """Refuse offsets that are further apart than the linear predictors of any data."""
    low, high = design.offset.min(), design.offset.max()
    if high - low > LARGEST:
        names = joined([str(offset) for offset in design.parsed.offsets])
        logarithm = "" if family.binomial else " An exposure enters by its logarithm: offset(log(h))."
        raise DesignError(
            f"offsets are on the scale of the {family.link} and must lie within {LARGEST:g} of each other, "
            f"{names} got {written(low, '.4g')} to {written(high, '.4g')}.{logarithm}"
        )


def _unbounded(design: Design, answers: Answers, family: Family) -> str | None:
    """The random effect, of the fewest levels, each of which has right or wrong answers only; None without one."""
    found = []
    for term in design.random if family.binomial else ():
        total, n = (np.bincount(term.codes, values, term.n_levels) for values in (answers.total, answers.n))
        if "Intercept" in term.names and ((total <= 0.0) | (total >= n)).all():
            found.append((term.n_levels, term.label))
    return min(found)[1] if found else None


def _on_unbounded(label: str) -> str:
    return f"each group of {label} has right answers only or wrong answers only, so nothing bounds its variance"


def _examples(fine: Cells, bad: Any) -> str:
    rows = fine.frame[bad].head(_EXAMPLES).itertuples(index=False)
    return "for example " + "; ".join(
        ", ".join(
            f"{name}={written(value, '.6g') if isinstance(value, float) else format_level(value)}"
            for name, value in zip(fine.names, row, strict=True)
        )
        for row in rows
    )


def _fit_answers(
    formula: str,
    design: Design,
    observed: Cells,
    *,
    data: Any,
    family: Family,
    trials: str | None,
    rows: Array,
    constant: Callable[[Family], float],
    reml: bool,
    quadrature: bool,
    theta: Array | None = None,
) -> GlmmFit:
    """Fit a design to the answers of its cells."""
    X, row = design.distinct, design.row
    total, n = observed.n * observed.mean, observed.n
    which = separated(X, row, total, n, binomial=family.binomial)
    total, n, added = with_prior(X, row, total, n, which, binomial=family.binomial)
    answers = Answers(total, n)
    unbounded = _unbounded(design, answers, family)
    if unbounded and not reml:
        raise EstimationError(
            f"the likelihood has no maximum: {_on_unbounded(unbounded)}. Compare probabilities by method='pseudo', "
            "fit.emmeans(..., type='response')."
        )
    try:
        with one_blas_thread():
            if family.name == "negative-binomial" and not np.isfinite(family.size):
                family = _with_size(design, answers, family, constant, quadrature=quadrature)
            asked: dict[str, Any] = {"reml": reml, "quadrature": quadrature, "theta": theta}
            working, laplace = _optimum(design, answers, family, **asked)
    except np.linalg.LinAlgError as error:
        raise EstimationError(
            f"'{formula}' could not be fitted: {error}. Look for columns on wildly different scales, or for random "
            "effects that copy each other."
        ) from None
    fit = GlmmFit(
        formula=formula,
        reml=reml,
        design=design,
        cells=dataclasses.replace(
            observed, n=n, weight=working.weight / n, mean=working.z, ss=n / (working.weight / n)
        ),
        data=data,
        weights=None,
        dispersion=None,
        residual_variance=1.0,
        problem=working.problem,
        optim=working.optimum,
        notes=(),
        family=family,
        trials=trials,
        observed=observed,
        rows=rows,
        constant=constant,
        working=working,
        answers=answers,
        prior=added,
        of_likelihood=laplace,
        quadrature=quadrature,
    )
    return dataclasses.replace(fit, notes=(*notes_of(fit), *notes_of_answers(fit)))


def _optimum(
    design: Design,
    answers: Answers,
    family: Family,
    *,
    reml: bool,
    quadrature: bool,
    theta: Array | None = None,
) -> tuple[Working, Laplace | None]:
    """The end of pseudo-likelihood, or by maximum likelihood the linear model at the optimum, and that."""
    terms, X, row = design.engine_terms, design.distinct, design.row
    working = pseudo_likelihood(terms, X, row, design.offset, answers, family, reml=reml, theta=theta)
    if reml:
        ended = working.optimum.converged and working.settled
        return dataclasses.replace(working, optimum=dataclasses.replace(working.optimum, converged=ended)), None
    kept = X[:, working.problem.kept]
    likelihood = Likelihood(tuple(terms), kept, row, design.offset, answers, family, quadrature)
    laplace = likelihood.maximise(working)
    at_mode = linearised(terms, X, row, design.offset, answers, family, eta=laplace.eta, reml=False)
    x = at_mode.point(at_mode.to_white(laplace.theta))
    z, weight = working_scores(laplace.eta, answers, family)
    return dataclasses.replace(
        working,
        eta=laplace.eta,
        z=z,
        weight=weight,
        problem=at_mode,
        optimum=dataclasses.replace(
            working.optimum, theta=x, criterion=at_mode.evaluate(x), converged=laplace.converged,
            evaluations=laplace.evaluations,
        ),
    ), laplace  # fmt: skip


def _with_size(
    design: Design, answers: Answers, family: Family, constant: Callable[[Family], float], *, quadrature: bool
) -> Family:
    """The negative binomial with the size of the largest likelihood."""
    from scipy.optimize import minimize_scalar

    def of(log_size: float) -> Family:
        return dataclasses.replace(family, size=float(np.exp(log_size)))

    def deviance(log_size: float) -> float:
        _, laplace = _optimum(design, answers, of(log_size), reml=False, quadrature=quadrature)
        return (np.inf if laplace is None else laplace.deviance) - 2.0 * constant(of(log_size))

    found = minimize_scalar(deviance, bounds=_LOG_SIZES, method="bounded", options={"xatol": 1e-6})
    if found.x > _LOG_SIZES[1] - 0.1:
        raise DesignError(
            "the counts scatter no more than Poisson counts do, so the size of a negative binomial has no estimate. "
            "Use family='poisson'."
        )
    return of(float(found.x))


def notes_of_answers(fit: GlmmFit) -> tuple[str, ...]:
    """What was done because of separation, and variances of zero or without a bound."""
    notes = []
    where = np.flatnonzero(fit.prior)
    if len(where):
        half, end = (
            (", half right and half wrong,", "0 or 1") if fit.family.binomial else (" with half an event each", "0")
        )
        added = written(float(fit.prior.sum()), ".3g")
        notes.append(
            f"Separation: the fixed effects fit the answers at {_places(fit, where)} perfectly, so that their "
            f"estimates would have no bound. A weak prior of {added} pseudo-answer{'s' * (added != '1')}{half} keeps "
            f"them finite; intervals there are rough near {end}, and those of fit.profile('fixed') not symmetric."
        )
    if unbounded := _unbounded(fit.design, fit.answers, fit.family):
        text = _on_unbounded(unbounded)
        notes.append(
            f"{text[0].upper()}{text[1:]}: its size here, and that of log odds, comes from the method and not from the "
            "data. Compare probabilities, fit.emmeans(..., type='response')."
        )
    if fit.singular_terms and fit.reml:
        notes.append(
            f"The variance of {joined(fit.singular_terms)} is estimated as zero, or a correlation as one: degrees of "
            "freedom are at most those between the groups there (between-within)."
        )
    if fit.reml and 0.0 < fit.least_df <= _FEW_DF:
        few = min(fit.design.random, key=lambda term: term.n_levels)
        notes.append(
            f"Degrees of freedom of at least {fit.least_df:g} are taken, those between the {few.n_levels} groups of "
            f"{few.group} (between-within), since Satterthwaite's are rough with so few."
        )
    return tuple(notes)


def _places(fit: GlmmFit, rows: Index) -> str:
    """Distinct rows of the fixed part by the levels of their factors."""
    names = [name for name in fit.cells.names if name in fit.design.factors or name in fit.design.numeric]
    first = [int(np.flatnonzero(fit.design.row == r)[0]) for r in rows[: _EXAMPLES + 1]]
    texts = [
        " and ".join(f"{name} = {format_level(fit.cells.frame[name].iloc[cell])}" for name in names) or "all rows"
        for cell in first
    ]
    return listed([*texts, *[""] * (len(rows) - len(texts))], _EXAMPLES)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GlmmFit(LmmFit):
    """A fitted generalised linear mixed model; made by `fit_glmm`, never changed afterwards.

    It is the linear mixed model of the working scores at its estimates, with a residual variance of 1, so that means,
    comparisons and tests are those of `LmmFit` on the scale of the link.

    Attributes
    ----------
    family : Family
        Distribution and link.
    trials : str or None
        Column of the number of attempts.
    observed : Cells
        Answers: their number ``n`` and their mean in each cell.
    rows : (n_cells,) float
        Rows of the table in each cell.
    constant : callable or None
        What the log-likelihood of a family has beside what depends on the effects; None of simulated answers.
    working : Working
        The linear model at the end, and how the sequence ended.
    answers : Answers
        What the estimates come from: the observed answers, and pseudo-answers where effects are separated.
    prior : (n_distinct,) float
        Pseudo-answers at each distinct row of the fixed part, 0 without separation.
    of_likelihood : Laplace or None
        The optimum of Laplace's approximation or of quadrature, whose estimates these are; None of pseudo-likelihood.
    quadrature : bool
        Whether the likelihood is that of quadrature, not Laplace's approximation.
    """

    diagnose: ClassVar[Verb[Answer]] = Verb("diagnostics.generalised:diagnose")  # type: ignore[misc, assignment]

    family: Family
    trials: str | None
    observed: Cells
    rows: Array
    constant: Callable[[Family], float]
    working: Working
    answers: Answers
    prior: Array
    of_likelihood: Laplace | None
    quadrature: bool

    @property
    def distribution(self) -> str:
        """Name of the family."""
        return self.family.name

    @property
    def score(self) -> str:
        """The response with its link: "logit(right)"."""
        return f"{self.family.link}({self.design.parsed.response})"

    @property
    def scores(self) -> Cells:
        """The answers of the cells."""
        return self.observed

    @property
    def rows_of_cells(self) -> Array:
        """Rows of the table in each cell, ``(n_cells,)``."""
        return self.rows

    @property
    def label(self) -> str:
        """The model in words that a result can show."""
        of = "" if self.trials is None else f" of {self.trials}"
        return f"{self.formula}, {self.family.name} ({self.family.link}){of}"

    @property
    def unfinished(self) -> str:
        """What is said where the estimates did not converge."""
        return "The estimates did not converge. Use a simpler random part."

    @property
    def nobs(self) -> int:
        """Answers, or rows of counts."""
        return int(self.observed.n.sum())

    @cached_property
    def laplace(self) -> Laplace:
        """The maximum of Laplace's approximation of the likelihood, by a refit where this fit has another one."""
        if self.prior.any():
            raise EstimationError(
                "the likelihood has no maximum: "
                f"{_places(self, np.flatnonzero(self.prior))} is fitted perfectly (separation). Compare models without "
                "the effects that do so, or take the tests of the means, fit.emmeans()."
            )
        return self.of_likelihood or self.refit(reml=False).laplace

    def deviance_at(self, row: Array, value: float) -> tuple[float, float]:
        """The least deviance where ``row @ b``, of the kept coefficients, has a value; and its slope in the value."""
        along, terms, design = row / (row @ row), tuple(self.design.engine_terms), self.design
        X, rest = design.distinct[:, self.problem.kept], null_space(row[None])
        of_held = value * (X @ along)[design.row]
        whole = Likelihood(terms, X, design.row, design.offset, self.answers, self.family, self.quadrature)
        held = dataclasses.replace(whole, X=X @ rest, offset=design.offset + of_held)
        working = pseudo_likelihood(
            terms, held.X, held.row, held.offset, held.answers, held.family, reml=False, theta=self.theta
        )
        found = held.maximise(working)
        point = np.concatenate([found.theta, rest @ found.b + value * along])
        of_fixed = whole.gradient(point, whole.mode(point, working))[whole.n_theta :]
        return found.deviance, float(of_fixed @ along)

    def deviance_with_sd(self, i: int, j: int, value: float) -> tuple[float, float]:
        """The least deviance where effect ``j`` of random term ``i`` has a standard deviation; its slope in that."""
        terms, design = self.design.engine_terms, self.design
        factors = unpack(self.theta, [term.shape for term in terms])
        first = [j, *(k for k in range(terms[i].k) if k != j)]  # whose standard deviation is an element of theta
        terms[i] = dataclasses.replace(terms[i], basis=terms[i].basis[:, first])
        factors[i] = root_of(
            factors[i][first][:, first] if terms[i].diagonal else factors[i][first], diagonal=terms[i].diagonal
        )
        shapes = [term.shape for term in terms]
        X = design.distinct[:, self.problem.kept]
        likelihood = Likelihood(tuple(terms), X, design.row, design.offset, self.answers, self.family, self.quadrature)
        working = pseudo_likelihood(
            terms, X, design.row, design.offset, self.answers, self.family, reml=False, theta=pack(factors, shapes)
        )
        place = sum(shape.n_theta for shape in shapes[:i])
        found = likelihood.maximise(working, held=(place, value))
        return found.deviance, float(found.slopes[place])

    @property
    def llf(self) -> float:
        """Largest log-likelihood: by quadrature of such a fit, else by Laplace's approximation."""
        return -0.5 * self.laplace.deviance + self.constant(self.family)

    @property
    def n_params(self) -> int:
        """Fixed effects, covariance parameters, and the size of a negative binomial."""
        return super().n_params + (self.family.name == "negative-binomial")

    @cached_property
    def _fixed(self) -> tuple[Array, Array]:
        """Kept coefficients and their covariance; of Laplace's optimum, from its curvature in all parameters."""
        found = self.of_likelihood
        try:
            return LmmFit._fixed.func(self) if found is None else (found.b, found.cov)  # type: ignore[attr-defined]
        except np.linalg.LinAlgError as error:
            raise EstimationError(
                f"the likelihood has no curvature at its maximum ({error}), so there are no standard errors. Take "
                "method='pseudo'."
            ) from None

    def df(self, L: Array | Functions, method: DdfMethod = "satterthwaite") -> Array:
        """Degrees of freedom of ``L b``, as `LmmFit.df`; at most those between the groups of a zero variance.

        At least `least_df`. Infinite at Laplace's optimum, whose tests are normal.
        """
        values = super().df(L, method if self.reml else "asymptotic")
        if method != "satterthwaite" or not self.reml or not self.design.random or not len(values):
            return values
        zero = [i for i, term in enumerate(self.design.random) if term.label in self.singular_terms]
        if zero:
            kept, row = self.problem.kept, self.design.row
            rows = self._checked(L).only(kept).times(np.eye(len(kept)))
            X = self.design.distinct[:, kept]
            values = np.minimum(values, between_within(self.problem, self.optim, rows, zero, row, X))
        return np.maximum(values, self.least_df)

    @cached_property
    def least_df(self) -> float:
        """Degrees of freedom between the groups of the random factor with the fewest, 0 without any.

        Satterthwaite's of a sum of mean squares are not below the fewest of these, but those of a pseudo-likelihood
        that is far from a parabola, as with three tasks, may be.
        """
        terms, X = self.design.random, self.design.distinct[:, self.problem.kept]
        if not terms:
            return 0.0
        fewest = min(range(len(terms)), key=lambda i: terms[i].n_levels)
        return groups_left(self.problem, fewest, self.design.row, X)

    # -- predictions --------------------------------------------------------------------------------------------

    def predict(
        self, frame: Any = None, *, random: bool = True, type: Literal["response", "link"] = "response"
    ) -> Array:
        """Predicted probabilities or counts, or linear predictors.

        Parameters
        ----------
        frame : dataframe, optional
            New rows with the columns of the model; by default those of the table that was fitted, in its order.
        random : bool
            Add the conditional modes of known groups. Without them a prediction is conditional, too: of groups whose
            effects are 0, not of the population's mean.
        type : {"response", "link"}
            Probability of a right answer (expected count), or its link.

        Returns
        -------
        (rows,) float

        Examples
        --------
        >>> import lmemtest as lt
        >>> table = {"right": [8, 6, 9, 5, 7, 7, 9, 4], "asked": [10] * 8, "model": ["A", "B"] * 4,
        ...          "task": list("ppqqrrss")}
        >>> fit = lt.fit_glmm("right ~ model + (1 | task)", table, trials="asked")
        >>> fit.predict({"model": ["A", "B"], "task": ["p", "p"]}).round(2).tolist()
        [0.82, 0.55]
        """
        check_choice(type, "type", ("response", "link"))
        eta = super().predict(frame, random=random)
        return self.family.mean(eta) if type == "response" else eta

    @property
    def fittedvalues(self) -> pd.Series:
        """Predicted probabilities or counts of the rows of the table that was fitted, by their labels."""
        cell, _, labels = predictions.rows_of(self)
        return pd.Series(self.family.mean(self.cell_predictions())[cell], index=labels, name="fitted")

    @property
    def resid(self) -> pd.Series:
        """Answers minus their predicted means, row by row; of shares of attempts those of the cells exist alone."""
        if self.trials is not None:
            raise ArgumentError(
                "residuals by row are of single answers or counts, and these are successes of "
                f"{self.trials!r}. Take those of the cells: fit.cell_residuals()."
            )
        cell, score, labels = predictions.rows_of(self)
        return pd.Series(score - self.family.mean(self.cell_predictions())[cell], index=labels, name="residual")

    def cell_residuals(self) -> Array:
        """Mean answers of the cells minus their predictions, ``(n_cells,)``, in the order of ``cells.frame``."""
        return self.observed.mean - self.family.mean(self.cell_predictions())

    # -- draws --------------------------------------------------------------------------------------------------

    def simulate(self, *, rng: int | np.random.Generator | None = None) -> Cells:
        """Draw answers with new random effects from the fitted model, as cells; `refit` takes them."""
        from lmemtest.lmm.hypotheses.null_distributions import simulator

        return simulator(self, self.observed)(resolve_rng(rng))

    @guided
    def refit(
        self, *, reml: bool | None = None, cells: Cells | None = None, theta_start: Array | None = None
    ) -> GlmmFit:
        """The same model again: on simulated answers, by the other likelihood, or from another start.

        Parameters
        ----------
        reml : bool, optional
            Restricted pseudo-likelihood (True) or the maximum of the likelihood; as in this fit by default.
        cells : Cells, optional
            Other answers, for instance from `simulate`.
        theta_start : (n_theta,) float, optional
            Where the search begins.

        Returns
        -------
        GlmmFit
            A new fit; this one is unchanged.
        """
        observed = self.observed if cells is None else cells
        same = observed.columns is self.observed.columns
        return _fit_answers(
            self.formula,
            self.design if same else build_design(self.design.parsed, observed.columns, observed.n),
            observed,
            data=self.data,
            family=self.family,
            trials=self.trials,
            rows=self.rows if same else observed.n,
            constant=self.constant if cells is None else self._constant_of(cells),
            reml=self.reml if reml is None else check_flag(reml, "reml"),
            quadrature=self.quadrature,
            theta=theta_start,
        )

    def _constant_of(self, cells: Cells) -> Callable[[Family], float]:
        """That of simulated answers, of which single rows are not drawn: a cell counts as one."""
        return partial(constant_of, score=np.round(cells.n * cells.mean), trials=cells.n, rows=np.ones(len(cells.n)))

    # -- words --------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """What it is."""
        return "Generalised linear mixed model"

    @property
    def facts(self) -> tuple[str, ...]:
        """The model, how it was fitted, and where the sequence stopped."""
        by = "adaptive Gauss-Hermite quadrature" if self.quadrature else "Laplace's approximation"
        method = "restricted pseudo-likelihood" if self.reml else f"maximum likelihood ({by})"
        end = "converged" if self.converged else "not converged"
        return (
            f"{self.label}, fitted by {method}: {self.nobs:,} {_UNITS[self.family.name]} in {len(self.cells.n):,} "
            f"cells, {self.n_params} parameters; {end}. Estimates are on the scale of "
            f"{self.score}, given the random effects.",
        )
