"""F-tests of several degrees of freedom: the terms of a model, and the factors of its marginal means."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.options import DDF_METHODS
from lmemtest.core.result import Answer
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError
from lmemtest.lmm.intervals.cluster_robust import ClusterRobust, check_vcov
from lmemtest.lmm.means.f_test import STATISTICS, FTest, Hypotheses, f_tests_answer, principal, wald_f_test
from lmemtest.lmm.means.reference_grid import ReferenceGrid, check_fit, check_specs, grid_values, name_tuple
from lmemtest.lmm.means.term_hypotheses import (
    differences,
    identified_part,
    term_columns,
    type_one,
    type_three,
    type_two,
)

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array

    _Row = tuple[dict[Any, Any], str, Array]  # levels of `by`, term, linear functions

_TYPES: dict[int, Hypotheses] = {1: "type I", 2: "type II", 3: "type III"}
_MEANING = {
    1: "Each term is tested beyond those above it, so another order gives other tests unless the table is balanced.",
    2: "Each term is tested beyond all others but those that contain it.",
}


def f_test(fit: Any, L: Array, *, ddf: str = "satterthwaite", vcov: ClusterRobust | None = None) -> FTest:
    """Test that several linear functions of the fixed effects, (rows, p) over all columns of the design, are all zero.

    Rows that depend on others count once; NaN with `df_num` 0 where no row has a variance. With `vcov` the test is
    `ClusterRobust.f_test`. Satterthwaite: df = 2 E / (E - q), E = sum of v / (v - 2) over the degrees of freedom v of
    the q principal contrasts, 2 if one of them is 2 or less. Kenward-Roger: the Wald statistic with the adjusted
    covariance, scaled so that its approximate mean and variance are those of F.

    Fai & Cornelius (1996), doi:10.1080/00949659608811740; Kenward & Roger (1997), doi:10.2307/2533558

    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": [1.0, 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]}
    >>> test = f_test(lt.fit_lmm("score ~ tool + (1|task)", runs), np.eye(3)[1:], ddf="kenward-roger")
    >>> test.df_num, round(test.df_den, 6), round(test.f_ratio, 3)
    (2, 6.0, 48.0)
    """
    check_choice(ddf, "ddf", DDF_METHODS)
    L = np.atleast_2d(np.asarray(L, dtype=float))
    if vcov is not None:
        check_vcov(fit, vcov, ddf)
    if not np.all(fit.estimable(L)):
        raise ArgumentError("L must hold estimable functions only; fit.estimable(L) tells which rows are not.")
    if vcov is not None:
        return vcov.f_test(L)
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
    fit, changes = fit_for_ddf(fit, ddf)
    if type == 3:
        hypotheses = type_three(fit.design, fit.cells.frame)
    else:
        counts = np.asarray(fit.cells.n, dtype=float)
        hypotheses = type_one(fit.design, counts) if type == 1 else type_two(fit.design, fit.cells.frame, counts)
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
    fit : LmmFit
        A fitted model.
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
    check_fit(fit, "fit")
    check_choice(ddf, "ddf", DDF_METHODS)
    by_names = name_tuple(by, "by")
    check_specs(fit, (), by_names, {})
    check_vcov(fit, vcov, ddf)
    fit, changes = fit_for_ddf(fit, ddf)
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
    together = [set(columns) for columns in term_columns(fit.design)]
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
            target = grid.target_keys().frame()
            keys = target[list(by_names)].to_dict("records") if by_names else [{}] * len(target)
            for start in range(0, len(L), K.shape[1]):
                wanted = K @ L[start : start + K.shape[1]]
                known = identified_part(wanted, fit.design.X)
                found = differences(known, known @ K) @ wanted
                label = ":".join(group)
                rows.append((keys[start], label, found))
                if len(found) < np.linalg.matrix_rank(wanted):
                    reduced.append(label + "".join(f" at {n} = {format_level(v)}" for n, v in keys[start].items()))
    notes = list(changes)
    if reduced:
        notes.append(f"Combinations without data leave fewer degrees of freedom for {'; '.join(reduced)}.")
    return _tests("joint_tests", fit, rows, "marginal means", by_names, ddf, tuple(notes), vcov)


def fit_for_ddf(fit: Any, ddf: str) -> tuple[Any, tuple[str, ...]]:
    """The fit that a rule for the degrees of freedom is defined for, and a note if that is another one."""
    if ddf != "kenward-roger" or fit.reml:
        return fit, ()
    note = "Kenward-Roger is defined for REML, so the fit by maximum likelihood was refitted by REML."
    return fit.refit(reml=True), (note,)


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
    for key, term, L in rows:
        if vcov is not None and not vcov.has_variance(L).all():
            alone.append(term)
            continue
        test = f_test(fit, L, ddf=ddf, vcov=vcov) if len(L) else None
        if test is None or not test.df_num:
            untested.append(term)
            continue
        if np.isnan(test.df_den):
            undefined.append(term)
        records.append({**key, "term": term, **{name: getattr(test, name) for name in STATISTICS}})
    more = []
    if untested:
        names = list(dict.fromkeys(untested))
        own = "its" if len(names) == 1 else "their"
        more.append(f"The data identify no hypothesis of {own} own for {', '.join(names)}.")
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
