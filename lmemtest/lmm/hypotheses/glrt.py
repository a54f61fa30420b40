"""Likelihood-ratio tests of two nested fits, with the right reference for variances on their boundary.

Is one fitted model contained in another, and what does the larger one add? Everything is compared on the combinations
of columns that occur: column spaces of the fixed part, and for each random term of the smaller model a term of the
larger one with the same groups whose basis spans it. A variance for each level, `diag(f | g)`, also contains the one
variance of all levels, `(1 | g:f)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.core.replicates import Executor, check_replicates
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError, EstimationError, NestingError
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.hypotheses.null_distributions import (
    SAME_OPTIMUM,
    ExactNull,
    exact_null,
    likelihood_ratio,
    null_draws,
    share_as_large,
)
from lmemtest.lmm.model.fitting import one_variance, same_partition
from lmemtest.lmm.model.given import check_fit, check_linear

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.formula.design import RandomDesign


REFERENCES = ("auto", "chi2", "mixture", "exact", "bootstrap")

MOST_LEVELS = 1500  # eigenvalues of a matrix of this size take a second; the mixture is accurate long before
_FEWEST_DRAWS = 1000
_ROUNDING = 1e-8  # relative to |llf|: two optima this close are one
_SPAN_TOLERANCE = 1e-7  # that of the rank decisions of the fit, relative to the length of a column
_SAME = 1e-8  # relative; sums over the same rows in another order differ by about 1e-13


@one_blas_thread()
def glrt(
    null: Any,
    alternative: Any,
    reference: str = "auto",
    *,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Answer:
    """Test a smaller model against a larger one that contains it.

    Parameters
    ----------
    null, alternative : LmmFit
        The smaller and the larger model, in this order, fitted to the same rows.
    reference : {"auto", "chi2", "mixture", "exact", "bootstrap"}
        Null distribution of the statistic. "bootstrap" fits both models to tables drawn from the null, which is
        right for any pair of models and any number of groups. "auto" takes "exact" when a single scalar variance
        is all the random part of the alternative, "mixture" when one variance is added (with or without
        covariances to the r columns of its term), and "chi2" otherwise.
    n_draws : int, optional
        Tables drawn for "bootstrap", by default 999, which give a p-value of 0.05 a Monte-Carlo error of 0.007; values
        drawn for "exact" in unbalanced data, at least 1000, by default 10,000 (balanced data need none).
    rng : int, numpy.random.Generator or None
        Source of these simulations; the same whatever `n_jobs` or `executor` is.
    n_jobs, executor, progress : int, object with a ``map``, bool
        Processes (-1: one per processor), or what computes instead, such as a client of Dask; a progress bar, by
        default on a terminal after two seconds.

    Returns
    -------
    Answer
        One row: ``statistic`` (twice the difference of the log-likelihoods), ``df`` (that of the numbers of parameters:
        fixed effects, covariances and residual variances), ``p_value``, ``reference``, ``method`` ("ML" or "REML",
        which likelihood was compared), ``llf_null``, ``llf_alternative``, ``n_obs``, and ``null`` and ``alternative``
        (the models: formulas, with residual variances and weights where the fits have them). Each is a value, too, with
        ``p_value_error`` (its Monte-Carlo error; 0 without simulation) and ``components`` (weights and degrees of
        freedom of the chi-squared distributions). "bootstrap" adds ``draws`` (the statistic of every table drawn from
        the null, zeros included; NaN where a model could not be fitted, which counts as a larger statistic),
        ``failed`` and ``unconverged`` (draws without a statistic; draws in which a search did not complete its
        certificate, which are kept).

    Raises
    ------
    NestingError
        If the models are not nested, in the wrong order, the same, or fitted to different data.
    ArgumentError
        If a reference does not apply to this pair, or an option is unknown.
    EstimationError
        If the alternative cannot be brought to the likelihood of the null that it contains.

    Notes
    -----
    Models with different fixed parts are compared by maximum likelihood (REML fits are
    refitted, with a note), models with the same fixed columns by REML if both are REML fits. On the
    boundary, one new variance gives 1/2 chi2(q) + 1/2 chi2(q + 1) and a column added to a term with r
    columns 1/2 chi2(q + r) + 1/2 chi2(q + r + 1), q the number of fixed effects tested (Self & Liang 1987;
    Stram & Lee 1994). The p-value of the bootstrap is (1 + #{T* >= T}) / (n_draws + 1) (Davison & Hinkley 1997,
    section 4.2); draws at zero count, and draws that failed count as larger.

    A variance for each of A algorithms, ``diag(algorithm | benchmark)``, against one for all,
    ``(1 | benchmark:algorithm)``, is no boundary: chi2(A - 1) by REML rejects 4 to 5 % of tables with equal variances
    from 6 benchmarks on (8 % with 15 algorithms on 12), and one algorithm of six with five times the standard
    deviation in 92 % of tables of 6 benchmarks and all of 12. It needs normal effects: with t-distributed ones it
    rejects equal variances in up to two thirds of the tables, where the exchanges of `diagnose` keep their level. The
    model with unequal variances is for 12 benchmarks or more: with one algorithm of six at three times the standard
    deviation, all pairs (Tukey) in the model that this test chooses at 10 % have a false positive in 9 % of tables of 6
    benchmarks, and in 6 % of 12 (250 tables each).

    References
    ----------
    Self & Liang (1987), doi:10.1080/01621459.1987.10478472; Stram & Lee (1994), doi:10.2307/2533455;
    Crainiceanu & Ruppert (2004), doi:10.1111/j.1467-9868.2004.00438.x

    Examples
    --------
    >>> import pandas as pd
    >>> from lmemtest.lmm.model import fit_lmm
    >>> runs = pd.DataFrame({"algorithm": list("AB") * 8, "task": list("wwwwxxxxyyyyzzzz"),
    ...                      "score": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 7]})
    >>> test = glrt(fit_lmm("score ~ algorithm", runs), fit_lmm("score ~ algorithm + (1|task)", runs))
    >>> test.df, test.reference, test.method, test.p_value < 0.001
    (1, 'exact', 'REML', True)
    """
    check_fit(null, "null")
    check_fit(alternative, "alternative")
    check_choice(reference, "reference", REFERENCES)
    if n_draws is not None:
        n_draws = check_positive_int(n_draws, "n_draws", minimum=1 if reference == "bootstrap" else _FEWEST_DRAWS)
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    if reference == "bootstrap":
        check_linear(
            null, "reference='bootstrap'", "Use reference='auto', or the tests of fit.emmeans() and fit.anova()."
        )
    nesting = check_nesting(null, alternative)
    null, alternative, notes = _same_likelihood(null, alternative, nesting)
    alternative = _not_below(null, alternative, nesting)
    statistic = _statistic(2.0 * (float(alternative.llf) - float(null.llf)))
    df = int(alternative.n_params - null.n_params)

    facts: dict[str, Any] = {
        "statistic": statistic,
        "df": df,
        "llf_null": float(null.llf),
        "llf_alternative": float(alternative.llf),
        "method": "REML" if null.reml else "ML",
        "null": null.label,
        "alternative": alternative.label,
        "n_obs": int(null.nobs),
    }
    if reference == "bootstrap":
        options = {
            "rng": rng,
            "n_jobs": n_jobs,
            "executor": executor,
            "progress": progress,
            "label": "Bootstrap of the null",
        }
        task = likelihood_ratio(null, alternative, nesting)
        draws, unconverged, reasons = null_draws(task, n_draws or 999, drawn="table drawn from the null", **options)
        notes += unfinished(null.converged, alternative.converged)
        return _of_draws(facts, draws, unconverged, reasons, notes)
    why_not_exact = _why_not_exact(null, alternative, nesting)
    chosen, components, why = choose_reference(
        reference, nesting, df, why_not_exact, _one_variance_at_zero(null, nesting)
    )
    statistic, p_value, error = likelihood_ratio_p(
        statistic, components, lambda: _exact_null(null, alternative), n_draws=n_draws, rng=rng
    )
    facts |= {"p_value": p_value, "p_value_error": error, "reference": chosen, "components": components}
    return likelihood_ratio_answer(facts, (*notes, *why, *_cautions(null, alternative, nesting)))


def likelihood_ratio_answer(values: dict[str, Any], notes: Sequence[str]) -> Answer:
    """The answer of `glrt` from its values."""
    columns = ("statistic", "df", "p_value", "reference", "method", "llf_null", "llf_alternative", "n_obs")
    table = pd.DataFrame([{name: values[name] for name in (*columns, "null", "alternative")}])
    return Answer(
        question="glrt",
        title="Likelihood-ratio test",
        tables={"table": table},
        values=values,
        facts=(f"Null: {values['null']}", f"Alternative: {values['alternative']}", _reference_text(values)),
        notes=tuple(notes),
        printed=table[[*columns]],
        formats={"llf_null": ".4f", "llf_alternative": ".4f"},
    )


def _reference_text(values: dict[str, Any]) -> str:
    error = written(values["p_value_error"], ".2g")
    if values["reference"] == "exact":
        simulated = f" (Monte-Carlo error {error})" if values["p_value_error"] else ""
        return f"Reference: exact finite-sample null distribution for one variance{simulated}."
    if values["reference"] == "bootstrap":
        return f"Reference: parametric bootstrap (Monte-Carlo error {error}); {values['method']}."
    parts = " + ".join(f"{w:g} chi2({df})" if w != 1 else f"chi2({df})" for w, df in values["components"])
    return f"Reference: {parts}; {values['method']} log-likelihoods."


def _of_draws(
    facts: dict[str, Any], draws: np.ndarray, unconverged: int, reasons: tuple[str, ...], notes: list[str]
) -> Answer:
    p_value, error = share_as_large(draws, facts["statistic"], SAME_OPTIMUM)
    zeros, failed = int(np.count_nonzero(draws <= SAME_OPTIMUM)), int(np.isnan(draws).sum())
    text = f"{len(draws):,} tables were drawn from the null and both models fitted to each; {zeros:,} statistics are 0."
    if failed:
        text += f" {failed:,} could not be fitted and count as larger than the observed one ({reasons[0]})."
    if unconverged:
        text += f" In {unconverged:,} a search did not complete its certificate; they are kept."
    facts |= {"p_value": p_value, "p_value_error": error, "reference": "bootstrap", "components": ()}
    facts |= {"draws": draws, "failed": failed, "unconverged": unconverged}
    return likelihood_ratio_answer(facts, (*notes, text))


# ---------------------------------------------------------------------- comparable likelihoods


def _same_likelihood(null: Any, alternative: Any, nesting: Nesting) -> tuple[Any, Any, list[str]]:
    """Bring both fits to the likelihood that can be compared; say which were refitted."""
    if null.distribution != "normal":  # pseudo-likelihoods are of different working scores
        note = "Likelihoods are maxima of Laplace's approximation."
        return *(fit.refit(reml=False) if fit.reml else fit for fit in (null, alternative)), [note]
    if null.reml and alternative.reml and nesting.same_fixed_columns:
        return null, alternative, []
    refitted = [name for name, fit in (("null", null), ("alternative", alternative)) if fit.reml]
    if not refitted:
        return null, alternative, []
    if nesting.fixed_df:
        why = "the fixed parts differ"
    elif nesting.same_fixed_columns:
        why = "the other was fitted by ML"
    else:
        why = "the fixed parts are coded differently"
    subject = f"The {refitted[0]} model was" if len(refitted) == 1 else "Both models were"
    note = f"{subject} fitted by REML and refitted by ML, because {why}."
    null, alternative = (fit.refit(reml=False) if fit.reml else fit for fit in (null, alternative))
    return null, alternative, [note]


def _not_below(null: Any, alternative: Any, nesting: Nesting) -> Any:
    """The alternative, refitted from the null's optimum if it stopped below the null's likelihood."""
    slack = _ROUNDING * max(1.0, abs(float(null.llf)))
    if alternative.llf >= null.llf:
        return alternative
    again = alternative.refit(reml=alternative.reml, theta_start=nesting.theta_of_null(null, alternative))
    best = again if again.llf > alternative.llf else alternative
    if best.llf < null.llf - slack:
        raise EstimationError(
            f"The alternative stopped at log-likelihood {written(best.llf, '.6f')}, below the null's "
            f"{written(null.llf, '.6f')}, "
            "although it contains the null. Check convergence (fit.optim) and the scale of numeric columns."
        )
    return best


# ---------------------------------------------------------------------- the reference


def choose_reference(
    reference: str, nesting: Nesting, df: int, why_not_exact: str, inside: list[str]
) -> tuple[str, tuple[tuple[float, int], ...], list[str]]:
    """The reference, its chi-squared components, and why it was chosen; `inside` is said where nothing is at a border.

    ``why_not_exact`` is empty where the exact reference applies.
    """
    plain = ((1.0, df),)
    mixture, why_not_mixture = _mixture(nesting, df)
    if reference == "chi2":
        return "chi2", plain, [_conservative(df)] if nesting.grown else []
    if reference == "mixture":
        if mixture is None:
            raise ArgumentError(f"reference='mixture' does not apply: {why_not_mixture}. Use 'auto' or 'chi2'.")
        return "mixture", mixture, []
    if reference == "exact":
        if why_not_exact:
            raise ArgumentError(f"reference='exact' does not apply: {why_not_exact}. Use 'auto'.")
        return "exact", (), []
    if not nesting.grown:
        return "chi2", plain, inside
    if not why_not_exact:
        return "exact", (), ["The single variance is tested with its exact finite-sample null distribution."]
    if mixture is not None:
        return "mixture", mixture, ["The null puts a variance on its boundary, so the reference is a mixture."]
    if any(r == -1 for _, r in nesting.grown):
        return "chi2", plain, [f"chi2({df}) is used because {why_not_mixture}."]
    return "chi2", plain, [f"No simple mixture applies ({why_not_mixture}). {_conservative(df)}"]


def _one_variance_at_zero(null: Any, nesting: Nesting) -> list[str]:
    """A variance for each level against one that is zero: then those of the levels are on a boundary after all."""
    if nesting.grown:
        return []
    lonely = [len(A) > 1 == A.shape[1] and bool(np.all(A == 1.0)) for A in nesting.maps]
    labels = [term.label for term, alone in zip(null.design.random, lonely, strict=True) if alone]
    zero = [label for label in labels if label in null.singular_terms]
    if not zero:
        return []
    return [
        f"The variance of {zero[0]} is estimated as zero, where the chi-squared reference is conservative: the p-value "
        "is too large. A parametric bootstrap gives the right reference: reference='bootstrap'."
    ]


def _conservative(df: int) -> str:
    return (
        f"The null puts variances on their boundary, where chi2({df}) is conservative: the p-value is too "
        "large. A parametric bootstrap gives the right reference: reference='bootstrap'."
    )


def _mixture(nesting: Nesting, df: int) -> tuple[tuple[tuple[float, int], ...] | None, str]:
    """The chi-squared mixture for one variance on the boundary, or the reason why there is none."""
    grown = nesting.grown
    if not grown:
        return None, "no variance is on its boundary under the null"
    if any(r == -1 for _, r in grown):
        return None, "covariances between existing terms are added, which are not on a boundary"
    if len(grown) > 1 or grown[0][0] - grown[0][1] > 1:
        return None, "several variances are on their boundary at once"
    if nesting.dispersion:
        return None, "residual variances are added as well"
    return ((0.5, df - 1), (0.5, df)), ""


def _why_not_exact(null: Any, alternative: Any, nesting: Nesting) -> str:
    terms = alternative.design.random
    if len(terms) != 1 or len(terms[0].names) != 1 or null.design.random:
        return "it is for one scalar variance that is the only random term of the alternative"
    if nesting.fixed_df or not nesting.same_fixed_columns:
        return "it needs the same fixed part in both models"
    if alternative.dispersion is not None:
        return "it needs one residual variance"
    if alternative.residual_variance is not None:
        return "it needs a residual variance that is estimated"
    if len(terms[0].levels) > MOST_LEVELS:
        return f"{terms[0].group} has {len(terms[0].levels)} levels, more than {MOST_LEVELS}"
    return ""


def _exact_null(null: Any, alternative: Any) -> ExactNull:
    term, cells = alternative.design.random[0], alternative.cells
    return exact_null(
        np.asarray(alternative.design.X, dtype=float)[:, ~alternative.params.isna().to_numpy()],
        term.basis[:, 0],
        term.codes,
        np.asarray(cells.n, dtype=float) * np.asarray(cells.weight, dtype=float),
        n_obs=int(null.nobs),
        reml=bool(null.reml),
    )


def likelihood_ratio_p(
    statistic: float,
    components: tuple[tuple[float, int], ...],
    exact: Callable[[], ExactNull],
    *,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> tuple[float, float, float]:
    """The statistic, its p-value and the error of that: from the exact distribution where there are no components."""
    statistic = _statistic(statistic)
    if not components:
        return (statistic, *exact().p_value(statistic, n_draws or 10_000, resolve_rng(rng)))
    return statistic, float(sum(w * _chi2_tail(statistic, d) for w, d in components)), 0.0


def _statistic(difference: float) -> float:
    """Zero where what is left is rounding: there the mixture's p-value jumps."""
    return 0.0 if difference <= SAME_OPTIMUM else difference


def _chi2_tail(statistic: float, df: int) -> float:
    """P(chi2(df) >= statistic); chi2(0) is the point 0."""
    return float(special.chdtrc(df, statistic)) if df else float(statistic <= 0)


def _cautions(null: Any, alternative: Any, nesting: Nesting) -> list[str]:
    notes = []
    if nesting.fixed_df and alternative.design.random:
        smallest = min(alternative.design.random, key=lambda term: len(term.levels))
        notes.append(
            "Likelihood-ratio tests of fixed effects reject too often when there are few groups (here "
            f"{len(smallest.levels)} levels of {smallest.group}). Tests with Satterthwaite degrees of "
            "freedom, as in emmeans() and pairs(), do not need many groups, nor does reference='bootstrap'."
        )
    return [*notes, *unfinished(null.converged, alternative.converged)]


def unfinished(null: bool, alternative: bool) -> list[str]:
    """A note on the models whose search did not converge."""
    names = [name for name, converged in (("null", null), ("alternative", alternative)) if not converged]
    return [f"The optimiser's certificate of the {' and '.join(names)} model is not complete."] if names else []


# --------------------------------------------------------------------------------- is one model contained in the other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nesting:
    """What an alternative adds to a null model that it contains.

    ``fixed_df`` is the rank added to the fixed part; with ``same_fixed_columns`` the restricted likelihoods are
    comparable. For each random term of the null ``home`` is the term of the alternative that contains it and ``maps``
    its basis in terms of the alternative's, B0 = B A; where a variance for each level takes the place of one for all, A
    is a column of ones. ``grown`` has, of each random term that the alternative adds or extends, its columns and how
    many of them the null has in one term (0: a new term; -1: the null has them in several terms, without their
    covariance; one variance for all levels counts as all of them, since it is not on a boundary). ``dispersion``: the
    alternative adds residual variances.
    """

    fixed_df: int
    same_fixed_columns: bool
    home: tuple[int, ...]
    maps: tuple[Array, ...]
    grown: tuple[tuple[int, int], ...]
    dispersion: bool

    def theta_of_null(self, null: Any, alternative: Any) -> Array:
        """The theta of the alternative at which it is the null model."""
        factors = th.unpack(np.asarray(null.theta, dtype=float), null.problem.shapes)
        parts = []
        for j, shape in enumerate(alternative.problem.shapes):
            inside = [A @ L for A, L, h in zip(self.maps, factors, self.home, strict=True) if h == j]
            root = np.hstack([*inside, np.zeros((shape.k, shape.k))])
            parts.append(th.root_of(root, diagonal=shape.diagonal))
        return th.pack(parts, alternative.problem.shapes)


def check_nesting(null: Any, alternative: Any) -> Nesting:
    """Check that two fits use the same data and that the null is contained in the alternative.

    Raises
    ------
    NestingError
        If the data differ, the models are the same, in the wrong order, or not nested.
    """
    _check_same_data(null, alternative)
    problem, nesting = _contained(null, alternative)
    if nesting is None:
        if _contained(alternative, null)[1] is not None:
            raise NestingError(
                f"The models are in the wrong order: the null ({null.label}) contains the alternative "
                f"({alternative.label}). Swap them: the smaller model comes first."
            )
        raise NestingError(
            f"The null model ({null.label}) is not nested in the alternative ({alternative.label}): "
            f"{problem}. A likelihood-ratio test needs nested models; compare others by aic or bic."
        )
    if alternative.n_params <= null.n_params:
        raise NestingError(
            f"The alternative ({alternative.label}) has no parameter that the null ({null.label}) lacks: "
            f"both have {null.n_params}. They are the same model, so there is nothing to test."
        )
    return nesting


# ---------------------------------------------------------------------- same data


def _check_same_data(null: Any, alternative: Any) -> None:
    responses = [fit.score for fit in (null, alternative)]
    if responses[0] != responses[1]:
        raise NestingError(
            f"The models have different responses: {responses[0]} in the null, {responses[1]} in the "
            "alternative. Likelihoods of different responses cannot be compared; fit both to the same one."
        )
    kinds = [fit.distribution for fit in (null, alternative)]
    if kinds[0] != kinds[1]:
        raise NestingError(
            f"The response is {kinds[0]} in the null and {kinds[1]} in the alternative. Fit both with the same family."
        )
    if len({fit.quadrature for fit in (null, alternative) if fit.design.random and hasattr(fit, "quadrature")}) > 1:
        raise NestingError(
            "The likelihood of one model is by quadrature, that of the other by Laplace's approximation. Fit both with "
            "method='laplace'."
        )
    held = [fit.residual_variance for fit in (null, alternative)]
    if held[0] != held[1]:
        raise NestingError(
            f"The residual variance is {' and '.join('estimated' if v is None else f'held at {v:g}' for v in held)} in "
            "the null and the alternative. Fit both with the same residual_variance."
        )
    if null.nobs != alternative.nobs:
        raise NestingError(
            f"The models were fitted to different data: {null.nobs} rows in the null, {alternative.nobs} in "
            "the alternative. Fit both to the same rows."
        )
    moments = []  # sums that do not depend on how rows were grouped into cells
    for fit in (null, alternative):
        cells, weight = fit.scores, np.asarray(fit.scores.weight, dtype=float)
        squares = weight * (np.asarray(cells.ss) + np.asarray(cells.n) * np.asarray(cells.mean) ** 2)
        moments.append((float(np.sum(weight * cells.n)), float(np.sum(squares))))
    for what, first, second in zip(("sum of the weights", "sum of squares of the response"), *moments, strict=True):
        if not np.isclose(first, second, rtol=_SAME, atol=0.0):
            raise NestingError(
                f"The models were fitted to different data: the {what} is {written(first, '.10g')} in the null and "
                f"{written(second, '.10g')} in the alternative. Fit both to the same rows, with the same weights."
            )


# ---------------------------------------------------------------------- containment


def _contained(null: Any, alternative: Any) -> tuple[str, Nesting | None]:
    """The reason why not, or what the alternative adds."""
    frame = _joint_frame(null, alternative)
    if not np.allclose(null.design.known(frame), alternative.design.known(frame), rtol=_SAME, atol=0.0):
        return "their offsets differ", None
    if null.dispersion is not None and null.dispersion != alternative.dispersion:
        return f"the alternative has no residual variances by {null.dispersion!r}", None
    X0, X = _fixed_rows(null, alternative, frame)
    same = X.shape == X0.shape and bool(np.allclose(X, X0, rtol=1e-12, atol=0.0))
    U = np.empty((len(X), 0)) if same else _orthonormal(X)
    if not (same or _within(U, X0)):
        return "the fixed part of the alternative does not contain that of the null", None
    home, maps = [], []
    for i, term in enumerate(null.design.random):
        wider = _home_of(null, i, alternative, frame)
        if wider is None:
            return f"no random term of the alternative contains {term.label}", None
        home.append(wider[0])
        maps.append(wider[1])
    added = [_added(j, term, null, home, maps) for j, term in enumerate(alternative.design.random)]
    return "", Nesting(
        fixed_df=0 if same else U.shape[1] - _orthonormal(X0).shape[1],
        same_fixed_columns=same,
        home=tuple(home),
        maps=tuple(maps),
        grown=tuple((k, r) for k, r in added if k != r),
        dispersion=null.dispersion != alternative.dispersion,
    )


def _joint_frame(null: Any, alternative: Any) -> pd.DataFrame:
    """Combinations of all columns of both models: the alternative's cells, or a new pass over its data.

    The null may use columns that the alternative does not, for instance the number behind one of its factors.
    """
    names = dict.fromkeys((*alternative.design.parsed.columns, *null.design.parsed.columns))
    if all(name in alternative.cells.frame.columns for name in names):
        return alternative.cells.frame
    from lmemtest.lmm.cells import compress

    return compress(alternative.data, by=list(names), score=alternative.design.parsed.response).frame


def _fixed_rows(null: Any, alternative: Any, frame: pd.DataFrame) -> tuple[Array, Array]:
    """Rows of both fixed parts for every distinct combination of their columns."""
    names = list(
        dict.fromkeys(name for fit in (null, alternative) for name in (*fit.design.factors, *fit.design.numeric))
    )
    distinct = frame[names].drop_duplicates() if names else frame.iloc[:1]
    return np.asarray(null.design.rows(distinct)), np.asarray(alternative.design.rows(distinct))


def _home_of(null: Any, index: int, alternative: Any, frame: pd.DataFrame) -> tuple[int, Array] | None:
    """The first term of the alternative with the same groups whose basis spans that of a null term."""
    basis, codes = null.design.random_rows(index, frame)
    term = null.design.random[index]
    for j, other in enumerate(alternative.design.random):
        larger, larger_codes = alternative.design.random_rows(j, frame)
        if same_partition(codes, larger_codes) and _spans(larger, basis):
            A = np.linalg.lstsq(larger, basis, rcond=None)[0]
            # independent effects of the alternative leave a null term as it is: one of them for each of its own
            alone = ((np.abs(A) > _SPAN_TOLERANCE * np.abs(A).max(axis=0)).sum(axis=0) == 1).all()
            if not other.diagonal or (alone and (term.diagonal or A.shape[1] == 1)):
                return j, A
        if one_variance(term.names, codes, other, larger, larger_codes):
            return j, np.ones((larger.shape[1], 1))
    return None


def _added(j: int, term: RandomDesign, null: Any, home: Sequence[int], maps: Sequence[Array]) -> tuple[int, int]:
    k, inside = len(term.names), [i for i in range(len(home)) if home[i] == j]
    if not inside:
        return k, 0
    if term.diagonal:  # nothing but variances: of single levels, or one for all of them
        return k, min(k, sum(k if np.all(maps[i] == 1.0) else maps[i].shape[1] for i in inside))
    if len(inside) > 1 or null.design.random[inside[0]].diagonal:
        return k, -1
    return k, maps[inside[0]].shape[1]


def _orthonormal(X: Array) -> Array:
    """Orthonormal basis of the column space of X, columns scaled to length one first."""
    length = np.linalg.norm(X, axis=0)
    scaled = X[:, length > 0] / length[length > 0]
    if scaled.shape[1] == 0:
        return np.zeros((len(X), 0))
    U, d, _ = np.linalg.svd(scaled, full_matrices=False)
    return U[:, d > _SPAN_TOLERANCE * d[0]]


def _spans(X: Array, inner: Array) -> bool:
    """Is every column of `inner` a linear combination of the columns of X?"""
    return _within(_orthonormal(X), inner)


def _within(U: Array, inner: Array) -> bool:
    """The same of the columns of an orthonormal basis."""
    residual = inner - U @ (U.T @ inner)
    return bool(np.all(np.linalg.norm(residual, axis=0) <= _SPAN_TOLERANCE * np.linalg.norm(inner, axis=0)))
