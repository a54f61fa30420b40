"""F-tests of several degrees of freedom: of linear functions, the terms of a model, and the factors of its means.

*Hypotheses of the fixed terms*: which linear functions of the fixed effects say "this term does nothing".

Type III hypotheses are stated for the overparametrised model with an indicator column for every level and combination
of levels, so they do not depend on how the formula codes its factors. Among the functions that the data identify, let
S_F be those that involve only a term F and the terms that contain F, and S_C those that involve only the latter. The
hypothesis of F is what S_F has beyond S_C, orthogonal to it (Goodnight 1980, Commun. Stat. Theory Methods 9, 167-180;
lmerTest's doctrine). A term contains another if it has the same numeric columns, and all its factors and more. The
rows that span a hypothesis are its differences from the first level, as in lmerTest. F and Kenward-Roger do not depend
on that choice; Satterthwaite's df of several degrees of freedom do a little when the data are unbalanced, so whatever
tests a hypothesis of a factor takes these rows (`differences`).

Types I and II: let Q be an orthonormal basis of what the columns of a term have beyond those of some other terms, over
the rows of the table. The hypothesis "the term adds nothing to these" is Q'X b = 0, X being the whole design. Type I
puts the terms in the order of the formula (main effects first); type II gives each term all others but those that
contain it, which is the type III hypothesis of a term that none contains. Both are the definitions of SAS and lmerTest:
rows count alike, whatever their precision. In unbalanced data the hypothesis of a factor therefore depends on how many
rows its levels have with those of other factors; type III does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from lmemtest.core.options import DDF_METHODS, DDF_NAMES
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError
from lmemtest.lmm.engine.span import independent_columns
from lmemtest.lmm.formula.columns import Coding
from lmemtest.lmm.means.reference_grid import ReferenceGrid, check_specs, check_vcov, grid_values, name_tuple
from lmemtest.lmm.model.given import check_fit, given_fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.formula.design import Design
    from lmemtest.lmm.intervals.cluster_robust import ClusterRobust
    from lmemtest.lmm.means.estimates import Estimates

    _Row = tuple[dict[Any, Any], str, Array]  # levels of `by`, term, linear functions


Hypotheses = Literal["type I", "type II", "type III", "marginal means"]
STATISTICS = ("df_num", "df_den", "f_ratio", "p_value", "f_scale")
# Relative variance below which a combination of rows is rounding (lmerTest: 1.5e-8).
_ROUNDING = 1e-10
_TYPES: dict[int, Hypotheses] = {1: "type I", 2: "type II", 3: "type III"}
_MEANING = {
    1: "Each term is tested beyond those above it, so another order gives other tests unless the table is balanced.",
    2: "Each term is tested beyond all others but those that contain it.",
}
# Singular values below this share of the largest are rounding: columns have unit size.
_RANK = 1e-9
# An orthonormal row with less than this outside a subspace lies in it.
_INSIDE = 1e-7


# ------------------------------------------------------------------------------------------------------------ one test


@dataclass(frozen=True, slots=True, kw_only=True)
class FTest:
    """F-test that all rows of ``L b`` are zero.

    Attributes
    ----------
    f_ratio : float
        Wald statistic over `df_num`, the independent rows of L, times `f_scale`.
    df_den : float
        Denominator degrees of freedom by the rule `ddf`; NaN where Kenward and Roger's approximation does not exist,
        or the clusters are too few.
    p_value : float
        Probability of an F at least as large under the hypothesis.
    f_scale : float
        Kenward and Roger's scale factor, or that of the robust test (HTZ); 1 for the other methods.
    """

    f_ratio: float
    df_num: float
    df_den: float
    p_value: float
    f_scale: float
    ddf: str

    @classmethod
    def of(cls, statistic: float, df_num: float, df_den: float, ddf: str, scale: float = 1.0) -> FTest:
        """With the p-value that belongs to a statistic, of chi-square if `df_den` is infinite."""
        if not df_num:
            nan = float("nan")
            return cls(f_ratio=nan, df_num=0, df_den=nan, p_value=nan, f_scale=nan, ddf=ddf)
        chi2 = np.isinf(df_den)
        p = special.chdtrc(df_num, df_num * statistic) if chi2 else special.fdtrc(df_num, df_den, statistic)
        return cls(f_ratio=statistic, df_num=df_num, df_den=df_den, p_value=float(p), f_scale=scale, ddf=ddf)


def wald_f_test(L: Array, b: Array, cov: Array, df_function: Callable[[Array], Array], ddf: str) -> FTest:
    """The Wald test, with degrees of freedom combined from those of its principal contrasts (Fai & Cornelius 1996).

    `L` holds estimable functions, of which rows that depend on others count once; `cov` is the covariance of ``L b``.
    """
    contrasts, variances = principal(L, cov)
    if not len(contrasts):
        return FTest.of(np.nan, 0, np.nan, ddf)
    statistic = float(np.sum((contrasts @ b) ** 2 / variances) / len(contrasts))
    return FTest.of(statistic, len(contrasts), combined_df(df_function(contrasts)), ddf)


def combined_df(df: Array) -> float:
    """Denominator degrees of freedom of a sum of squares from those of its independent terms.

    >>> combined_df(np.array([6.0, 6.0])), round(combined_df(np.array([4.0, 10.0])), 3)
    (6.0, 5.2)
    """
    if np.isinf(df).all() or np.allclose(df, df[0], rtol=1e-8, atol=0.0):
        return float(df[0])
    if (df <= 2.0).any():
        return 2.0
    excess = float(np.sum(2.0 / (df - 2.0)))  # E - q, from v / (v - 2) = 1 + 2 / (v - 2)
    return 2.0 * (len(df) + excess) / excess


def principal(L: Array, V: Array) -> tuple[Array, Array]:
    """Uncorrelated combinations of the rows of L, and their variances."""
    values, vectors = np.linalg.eigh(V)
    kept = values > _ROUNDING * max(values[-1], 0.0)
    return vectors[:, kept].T @ L, values[kept]


def f_tests_answer(
    question: str,
    records: list[dict[Any, Any]],
    hypotheses: Hypotheses,
    by: tuple[str, ...],
    ddf: str,
    score: str,
    n_obs: int | None,
    notes: Sequence[str],
) -> Answer:
    """The answer of a question that has F-tests, one record each."""
    within = f" by {', '.join(by)}" if by else ""
    rows = "" if n_obs is None else f", n = {n_obs} rows"
    return Answer(
        question=question,
        title=f"F-tests of the fixed terms ({hypotheses} hypotheses){within}",
        tables={"table": pd.DataFrame(records, columns=[*by, "term", *STATISTICS])},
        values={"hypotheses": hypotheses, "by": by, "ddf": ddf, "score": score, "n_obs": n_obs},
        facts=(f"Response {score}{rows}; {DDF_NAMES[ddf]} degrees of freedom.",),
        notes=tuple(notes),
    )


def joint(em: Estimates) -> Answer:
    """F-test that the estimates of a group are all equal, with the model's standard errors if these are moderated.

    Those that are not estimable are left out.

    Returns
    -------
    Answer
        One row per group of `by`: the columns of `by`, term, df_num, df_den, f_ratio, p_value, f_scale. Values:
        ``hypotheses``, ``by``, ``ddf``, ``score`` and ``n_obs``, as `anova` has them.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "loss": [1.0, 2, 9, 2, 1, 8] * 2}
    >>> means = lt.fit_lmm("loss ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.joint().to_frame()[["term", "df_num", "df_den", "f_ratio"]].round(3)
       term  df_num  df_den  f_ratio
    0  tool       2     9.0    196.0
    """
    plain = em.by_model()
    notes = ["All that are estimable are tested for equality."] if np.isnan(em.estimate).any() else []
    if plain is not em:
        notes.append("The joint test is by the model's standard errors, not by the moderated ones.")
    term = em.factor
    records = []
    for key, rows in plain.groups():
        identified = plain.L[rows[np.isfinite(plain.estimate[rows])]]
        test = (
            plain.f_test(identified[1:] - identified[0])
            if len(identified) > 1
            else FTest.of(np.nan, 0, np.nan, plain.ddf)
        )
        records.append({**key, "term": term, **{name: getattr(test, name) for name in STATISTICS}})
    notes = [*plain.notes, *notes]
    return f_tests_answer("joint", records, "marginal means", em.by, em.ddf, em.score, em.n_obs, notes)


# ------------------------------------------------------------------------------------------------ of terms and factors


def f_test(fit: Any, L: Array, *, ddf: str = "satterthwaite") -> FTest:
    """Test that several linear functions of the fixed effects, (rows, p) over all columns of the design, are all zero.

    Rows that depend on others count once; NaN with `df_num` 0 where no row has a variance. Satterthwaite:
    df = 2 E / (E - q), E = sum of v / (v - 2) over the degrees of freedom v of the q principal contrasts, 2 if one of
    them is 2 or less. Kenward-Roger: the Wald statistic with the adjusted covariance, scaled so that its approximate
    mean and variance are those of F. `ClusterRobust.f_test` is the one that is robust to clusters.

    Fai & Cornelius (1996), doi:10.1080/00949659608811740; Kenward & Roger (1997), doi:10.2307/2533558

    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> test = f_test(lt.fit_lmm("score ~ tool + (1|task)", runs), np.eye(3)[1:], ddf="kenward-roger")
    >>> test.df_num, round(test.df_den, 6), round(test.f_ratio, 3)
    (2, 6.0, 48.0)
    """
    check_choice(ddf, "ddf", DDF_METHODS)
    L = np.atleast_2d(np.asarray(L, dtype=float))
    if not np.all(fit.estimable(L)):
        raise ArgumentError("L must hold estimable functions only; fit.estimable(L) tells which rows are not.")
    if ddf == "kenward-roger" and not fit.reml:
        raise ArgumentError("ddf='kenward-roger' needs a REML fit; use fit.refit(reml=True).")
    if ddf == "kenward-roger":
        contrasts, _ = principal(L, fit.cov(L))
        if not len(contrasts):
            return FTest.of(np.nan, 0, np.nan, ddf)
        kept = fit.problem.kept
        statistic, df_den, scale = fit.kenward_roger.f_test(contrasts[:, kept], fit.params.to_numpy()[kept])
        return FTest.of(statistic, len(contrasts), df_den, ddf, scale)
    return wald_f_test(L, np.nan_to_num(fit.params.to_numpy(dtype=float)), fit.cov(L), lambda K: fit.df(K, ddf), ddf)


@one_blas_thread()
def term_test(fit: Any, columns: Sequence[str], *, ddf: str = "satterthwaite") -> FTest | None:
    """The type III test, as in `anova`, of the one fixed term that has these columns.

    None where the model has no such term, or the data identify no hypothesis of it.

    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> test = term_test(lt.fit_lmm("score ~ tool + (1|task)", runs), ["tool"])
    >>> test.df_num, round(test.f_ratio, 3)
    (2, 48.0)
    """
    fit, ddf, _ = fit.for_ddf(ddf)
    hypotheses = type_three(fit.design)
    terms = zip(fit.design.terms, fit.design.term_columns, strict=True)
    rows = [hypotheses[label] for (label, _), names in terms if {*names} == {*columns}]
    tests = [f_test(fit, L, ddf=ddf) for L in rows if len(L)]
    return next((test for test in tests if test.df_num), None)


@one_blas_thread()
def anova(
    fit: Any,
    *,
    ddf: str = "satterthwaite",
    type: int = 3,
    vcov: ClusterRobust | None = None,
) -> Answer:
    """Test every fixed term of a model: type III F-tests, or those of type I or II.

    Parameters
    ----------
    fit : LmmFit
        A fitted model.
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Denominator degrees of freedom. Kenward-Roger refits a maximum-likelihood fit by REML, with a note.
    type : {3, 2, 1}
        3: each term where all others, interactions included, are in the model; 2: beyond all terms that do not contain
        it; 1: beyond the terms before it.
    vcov : ClusterRobust, optional
        From `cluster_robust` of the same fit, for tests that are robust to clusters (HTZ).

    Returns
    -------
    Answer
        One row per term: term, df_num, df_den, f_ratio, p_value, f_scale. Values: ``hypotheses`` ("type I", "type II",
        "type III"), ``by``, ``ddf`` (rule for the denominator degrees of freedom; "cluster-robust" with `vcov`),
        ``score`` (the response as the model sees it) and ``n_obs`` (rows behind the fit).

    Raises
    ------
    ArgumentError
        If an option is unknown.

    Notes
    -----
    Type III is the default since its hypotheses are about means that do not depend on how many runs there are. In
    balanced tables of factors the types agree. Types I and II are those of SAS and lmerTest: "beyond" is in ordinary
    least squares over the rows, and a term contains another if it has the same numbers, and all its factors and more.
    R's car goes by the model's precision instead, and lets `a:x` contain `a` for a number x.

    The type III hypothesis of a term is stated through estimable functions, so it does not depend on the coding of the
    factors. A term inside an interaction with a factor is tested on average over that factor's levels, each level
    counting the same; inside an interaction with a number it is tested where that number is 0, so centre it if 0 is no
    place of interest, or use `joint_tests`.

    References
    ----------
    Goodnight (1980), Commun. Stat. Theory Methods 9, 167-180; Kuznetsova, Brockhoff & Christensen (2017),
    doi:10.18637/jss.v082.i13

    Examples
    --------
    >>> import pandas as pd, lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]})
    >>> fit = lt.fit_lmm("score ~ algorithm + (1|task)", runs)
    >>> fit.anova(ddf="kenward-roger").to_frame().round(4)[["term", "df_num", "df_den", "f_ratio", "p_value"]]
            term  df_num  df_den  f_ratio  p_value
    0  algorithm       2     6.0     48.0   0.0002
    """
    check_fit(fit, "fit")
    check_choice(ddf, "ddf", DDF_METHODS)
    if isinstance(type, bool) or not isinstance(type, (int, np.integer)) or type not in _TYPES:
        raise ArgumentError(f"type must be 1, 2 or 3 (the number itself), got {type!r}.")
    check_vcov(fit, vcov, ddf)
    fit, ddf, changes = fit.for_ddf(ddf)
    if type == 3:
        hypotheses = type_three(fit.design)
    else:
        counts = np.asarray(fit.cells.n, dtype=float)
        hypotheses = type_one(fit.design, counts) if type == 1 else type_two(fit.design, counts)
        changes = (*changes, _MEANING[type])
    rows: list[_Row] = [({}, term, L) for term, L in hypotheses.items()]
    return _tests("anova", fit, rows, _TYPES[type], (), ddf, changes, vcov)


@one_blas_thread()
def joint_tests(
    fit: Any,
    *,
    by: str | Sequence[str] | None = None,
    ddf: str = "satterthwaite",
    vcov: ClusterRobust | None = None,
) -> Answer:
    """Test every factor, and every interaction of factors, through marginal means.

    Parameters
    ----------
    fit : LmmFit or result of statsmodels
        A fitted model; of statsmodels' as in `emmeans`.
    by : str or sequence of str, optional
        Factors whose levels are tested apart: "does the algorithm matter under each prior?"
    ddf : {"satterthwaite", "kenward-roger", "residual", "asymptotic"}
        Denominator degrees of freedom. Kenward-Roger refits a maximum-likelihood fit by REML, with a note.
    vcov : ClusterRobust, optional
        From `cluster_robust` of the same fit, for tests that are robust to clusters (HTZ).

    Returns
    -------
    Answer
        One row per term: the columns of `by`, term, df_num, df_den, f_ratio, p_value, f_scale. Values as of `anova`;
        ``hypotheses`` is "marginal means": that these do not differ or interact.

    Raises
    ------
    UnknownColumnError, ArgumentError
        If `by` is not a factor of the fixed part.

    Notes
    -----
    The hypothesis of a term is that the (interaction) contrasts of its marginal means are zero; the other factors are
    averaged with equal weights, numeric columns held around their mean (at two values, the mean plus and minus 1, or
    less where that would leave the range of the data, so that their slopes are tested as well). This agrees with
    `anova` where all combinations occur and no number interacts. Combinations without data leave fewer degrees of
    freedom, with a note.

    References
    ----------
    Searle, Speed & Milliken (1980), doi:10.1080/00031305.1980.10483031

    Examples
    --------
    >>> import pandas as pd, lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("AB") * 8, "prior": list("ggbb") * 4,
    ...                      "task": list("wwwwxxxxyyyyzzzz"),
    ...                      "score": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 7]})
    >>> fit = lt.fit_lmm("score ~ algorithm * prior + (1|task)", runs)
    >>> fit.joint_tests(by="prior").to_frame().round(3)[["prior", "term", "df_num", "df_den", "f_ratio"]]
      prior       term  df_num  df_den  f_ratio
    0     b  algorithm       1     9.0    2.382
    1     g  algorithm       1     9.0    6.618
    """
    fit = given_fit(fit)
    check_choice(ddf, "ddf", DDF_METHODS)
    by_names = name_tuple(by, "by")
    check_specs(fit, (), by_names, {})
    check_vcov(fit, vcov, ddf)
    fit, ddf, changes = fit.for_ddf(ddf)
    values = grid_values(fit, _around_means(fit))
    names = [name for name in values if name not in by_names and len(values[name]) > 1]
    if not names:
        if by_names:
            raise ArgumentError(
                f"by= names {listed(by_names)}, and the fixed part has nothing else that could be tested within its "
                f"levels. Leave it out: joint_tests(fit) tests {listed(by_names)}."
            )
        raise ArgumentError(
            f"joint_tests needs a factor or a number in the fixed part, and '{fit.formula}' has none that varies."
        )
    together = [set(columns) for columns in fit.design.term_columns]
    rows: list[_Row] = []
    reduced = []
    for size in range(1, len(names) + 1):
        for group in combinations(names, size):
            if not any(set(group) <= columns for columns in together):
                continue
            grid = ReferenceGrid.build(fit, values, by_names + group)
            L = grid.average("equal")
            # differences of consecutive levels of the first factor, of those along the second, and so on
            steps = [np.diff(np.eye(len(values[name])), axis=0) for name in group]
            K = reduce(lambda left, right: np.asarray(np.kron(left, right)), steps)
            target = grid.keys.frame()
            keys = target[list(by_names)].to_dict("records") if by_names else [{}] * len(target)
            for start in range(0, len(L), K.shape[1]):
                wanted = K @ L[start : start + K.shape[1]]
                identified = identified_part(wanted, fit.design.X)
                contrasts = differences(identified, identified @ K) @ wanted
                label = ":".join(group)
                rows.append((keys[start], label, contrasts))
                if len(contrasts) < np.linalg.matrix_rank(wanted):
                    reduced.append(label + "".join(f" at {n} = {format_level(v)}" for n, v in keys[start].items()))
    notes = list(changes)
    if reduced:
        notes.append(f"Combinations without data leave fewer degrees of freedom for {'; '.join(reduced)}.")
    return _tests("joint_tests", fit, rows, "marginal means", by_names, ddf, tuple(notes), vcov)


def _tests(
    question: str,
    fit: Any,
    rows: Sequence[_Row],
    hypotheses: Hypotheses,
    by: tuple[str, ...],
    ddf: str,
    notes: tuple[str, ...],
    vcov: ClusterRobust | None,
) -> Answer:
    records, untested, undefined, alone = [], [], [], []
    tested = partial(f_test, fit, ddf=ddf) if vcov is None else vcov.f_test
    for key, term, L in rows:
        if vcov is not None and not vcov.has_variance(L).all():
            alone.append(term)
            continue
        test = tested(L) if len(L) else None
        if test is None or not test.df_num:
            untested.append(term)
            continue
        if np.isnan(test.df_den):
            undefined.append(term)
        records.append({**key, "term": term, **{name: getattr(test, name) for name in STATISTICS}})
    more = []
    if untested:
        names = list(dict.fromkeys(untested))
        possessive = "its" if len(names) == 1 else "their"
        more.append(f"The data identify no hypothesis of {possessive} own for {', '.join(names)}.")
    if alone:
        more.append(
            f"No robust test of {', '.join(dict.fromkeys(alone))}: a single cluster determines a part of it, or all "
            "clusters agree on it."
        )
    if undefined and vcov is not None:
        more.append(
            f"{vcov.n_clusters} clusters are too few to test all of {', '.join(dict.fromkeys(undefined))} at once. "
            "Compare single means instead."
        )
    elif undefined:
        more.append(
            f"Kenward and Roger's approximation does not exist for {', '.join(dict.fromkeys(undefined))}: the "
            "variances are estimated from too little. Use ddf='satterthwaite' or a bootstrap."
        )
    rule = ddf if vcov is None else "cluster-robust"
    robust = [] if vcov is None else [f"{vcov.described()}, HTZ tests."]
    score, n_obs = fit.design.parsed.score, int(fit.nobs)
    return f_tests_answer(question, records, hypotheses, by, rule, score, n_obs, [*robust, *notes, *more])


def _around_means(fit: Any) -> dict[str, tuple[float, ...]]:
    """Two values of every numeric column of the fixed part, its mean between them."""
    at: dict[str, tuple[float, ...]] = {}
    for name, mean in fit.design.numeric.items():
        column = np.asarray(fit.cells.frame[name], dtype=float)
        step = min(1.0, float(mean - column.min()), float(column.max() - mean))
        at[name] = (mean - step, mean + step) if step > 0 else (mean,)
    return at


# --------------------------------------------------------------------------------------------- the hypotheses of terms


def type_three(design: Design) -> dict[str, Array]:
    """Type III hypothesis of every fixed term but the intercept: (q, p) over the columns of the design.

    One row per degree of freedom; none for a term that the data do not identify apart from those that contain it.
    """
    indicators, owner, sizes = _indicators(design)
    first = ~pd.DataFrame(indicators).duplicated().to_numpy()
    U, s, Vt = np.linalg.svd(indicators[first], full_matrices=False)
    rank = int(np.sum(s > _RANK * s[0])) if len(s) else 0
    estimable = Vt[:rank]
    to_design = (U[:, :rank] / s[:rank]).T @ design.X[first]  # of an estimable function, through its coordinates
    terms = design.fixed_block.terms
    contains = containment(design)
    out = {}
    for i, (label, _) in enumerate(design.terms):
        if not terms[i]:
            continue
        mine = _involving(estimable, np.isin(owner, [i, *contains[i]]))
        larger = _involving(estimable, np.isin(owner, contains[i]))
        coordinates = _beyond(mine, larger)
        of_term = (coordinates @ estimable)[:, owner == i] * sizes[owner == i]
        out[label] = differences(coordinates, of_term) @ to_design
    return out


def type_one(design: Design, counts: Array) -> dict[str, Array]:
    """Type I hypotheses, as `type_three`, with the rows per cell; no rows for a term that adds nothing."""
    every = list(range(len(design.terms)))
    return {design.terms[i][0]: _added(design, counts, every[:i], i) for i in _tested(design)}


def type_two(design: Design, counts: Array) -> dict[str, Array]:
    """Type II hypotheses, as `type_three`, with the rows per cell."""
    contains, every = containment(design), range(len(design.terms))
    marginal = type_three(design)
    out = {}
    for i in _tested(design):
        label = design.terms[i][0]
        before = [j for j in every if j != i and j not in contains[i]]
        out[label] = _added(design, counts, before, i) if contains[i] else marginal[label]
    return out


def _tested(design: Design) -> list[int]:
    return [i for i, term in enumerate(design.fixed_block.terms) if term]


def _added(design: Design, counts: Array, before: list[int], term: int) -> Array:
    """Rows with 1 at one of the term's columns each, and 0 at its earlier ones and the columns before."""
    X = design.X
    columns = np.concatenate([np.arange(X.shape[1])[design.terms[j][1]] for j in [*before, term]])
    kept = columns[independent_columns(X[:, columns], counts)]
    root = np.sqrt(counts)[:, None]
    Q, R = np.linalg.qr(X[:, kept] * root)
    rows = Q.T @ (X * root) / R.diagonal()[:, None]
    of_term = design.terms[term][1]
    return np.asarray(rows[(kept >= of_term.start) & (kept < of_term.stop)])


def identified_part(rows: Array, X: Array) -> Array:
    """Which combinations of ``rows``, (r, p), lie in the row space of the design X: ``(q, r)``, q = r if all do."""
    size = np.sqrt(np.mean(X**2, axis=0))
    size[size == 0] = 1.0
    _, s, Vt = np.linalg.svd(np.linalg.qr(X / size, mode="r"))
    basis = Vt[: int(np.sum(s > _RANK * s[0]))]
    scaled = rows / size
    outside = scaled - (scaled @ basis.T) @ basis
    lengths = np.linalg.norm(scaled, axis=1)
    keep = lengths > 0
    out = np.zeros((0, len(rows)))
    if keep.any():
        null_space = _left_null(outside[keep] / lengths[keep, None])
        out = np.zeros((len(null_space), len(rows)))
        out[:, keep] = null_space / lengths[keep]
    return out


def _indicators(design: Design) -> tuple[Array, NDArray[np.intp], Array]:
    """Columns of the overparametrised model, scaled to unit size; the term that owns each; and the sizes."""
    block = design.fixed_block
    parts: list[Array] = []
    scales: list[Array] = []
    for atom, of_atom in zip(block.atoms, design.fixed_values, strict=True):
        values = atom.columns(of_atom, False)[design.row]
        scale = np.ones((1, values.shape[1]))
        if not isinstance(atom, Coding):
            scale[0] = np.sqrt(np.mean(values**2, axis=0))
            scale[scale == 0] = 1.0
        parts.append(values / scale)
        scales.append(scale)
    matrices = [reduce(_products, [parts[i] for i in term], np.ones((len(design.row), 1))) for term in block.terms]
    sizes = [reduce(_products, [scales[i] for i in term], np.ones((1, 1))) for term in block.terms]
    owner = np.repeat(np.arange(len(matrices)), [m.shape[1] for m in matrices])
    none = [np.empty((len(design.row), 0))]
    return np.hstack(matrices or none), owner, np.hstack(sizes or [np.empty((1, 0))])[0]


def _products(left: Array, right: Array) -> Array:
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def containment(design: Design) -> list[list[int]]:
    """Terms that contain each term."""
    block = design.fixed_block
    factors = [frozenset(i for i in term if isinstance(block.atoms[i], Coding)) for term in block.terms]
    numbers = [frozenset(term) - factor for term, factor in zip(block.terms, factors, strict=True)]
    return [
        [j for j in range(len(factors)) if factors[i] < factors[j] and numbers[i] == numbers[j]]
        for i in range(len(factors))
    ]


def _involving(estimable: Array, allowed: NDArray[np.bool_]) -> Array:
    """Coordinates of the functions that involve only the ``allowed`` columns, ``(q, rank)``, orthonormal."""
    return _left_null(estimable[:, ~allowed])


def _beyond(whole: Array, part: Array) -> Array:
    """Orthonormal basis of what ``whole`` has and ``part``, a subspace of it, has not."""
    return _left_null(whole @ part.T) @ whole


def differences(coordinates: Array, of_term: Array) -> Array:
    """Rows with the same span that have 1 at one of the term's columns and 0 at the others that can be chosen freely.

    `of_term` holds what the rows have at the columns of the term. The last columns are chosen first, so the first level
    is what is left to differ from.
    """
    if not len(coordinates):
        return coordinates
    size = np.abs(of_term)
    last_first = np.where(size > _RANK * size.max(initial=0.0), of_term, 0.0)[:, ::-1]  # noise is no column
    free = of_term.shape[1] - 1 - independent_columns(last_first, np.ones(len(of_term)))
    return np.asarray(np.linalg.solve(of_term[:, np.sort(free)], coordinates))


def _left_null(matrix: Array) -> Array:
    """Orthonormal rows ``c`` with ``c @ matrix = 0``."""
    if not matrix.size:
        return np.eye(len(matrix))
    U, s, _ = np.linalg.svd(matrix)
    return np.asarray(U[:, int(np.sum(s > _INSIDE)) :].T)
