"""Likelihood-ratio tests of two nested fits, with the right reference for variances on their boundary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.core.replicates import Executor, check_replicates
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError, EstimationError
from lmemtest.lmm.hypotheses.exact_null import ExactNull, exact_null
from lmemtest.lmm.hypotheses.nesting import Nesting, check_nesting
from lmemtest.lmm.hypotheses.simulated_null import SAME_OPTIMUM, likelihood_ratio, null_draws, share_as_large
from lmemtest.lmm.means.reference_grid import check_fit

REFERENCES = ("auto", "chi2", "mixture", "exact", "bootstrap")

MOST_LEVELS = 1500  # eigenvalues of a matrix of this size take a second; the mixture is accurate long before
_FEWEST_DRAWS = 1000
_ROUNDING = 1e-8  # relative to |llf|: two optima this close are one


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
    check_choice(reference, "reference", REFERENCES)
    check_fit(null, "null")
    check_fit(alternative, "alternative")
    if n_draws is not None:
        n_draws = check_positive_int(n_draws, "n_draws", minimum=1 if reference == "bootstrap" else _FEWEST_DRAWS)
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
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
