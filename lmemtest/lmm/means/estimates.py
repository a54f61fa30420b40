"""The hub of everything that is estimated: linear functions L b of coefficients with covariance V and df(L).

Marginal means, slopes, contrasts of meta-features, curves: each question builds one `Estimates`, and every comparison
(`pairs`, `contrast`, `against`, margins, `best`, groups, a `joint` test, a figure) is made from that record alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.core.caller import advice, named, setting
from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_NAMES, ERROR_NAMES, JOINT_ADJUSTMENTS
from lmemtest.core.result import Result, result
from lmemtest.core.validate import check_direction, check_fraction
from lmemtest.core.words import format_level, joined
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.largest_t import LargestT, largest_t
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.engine.functions import Functions, OfFunctions, asked
from lmemtest.lmm.means.contrasts import against, best, contrast, pairs
from lmemtest.lmm.means.f_tests import FTest, joint, wald_f_test

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Self

    from lmemtest.core.arrays import Array, Mask
    from lmemtest.lmm.diagnostics.advantages import AdvantageShape
    from lmemtest.lmm.means.comparisons import Comparisons
    from lmemtest.lmm.means.decisions import Decisions
    from lmemtest.lmm.means.moderated import ModeratedMeans


_FEWEST_DF = 0.5  # an estimate with fewer degrees of freedom says nothing


def _same_df(df: float, rows: Functions) -> Array:
    """The degrees of freedom of every function."""
    return np.full(len(rows), df)


@result
class Estimates(Result):
    """Estimates ``L b`` with standard errors, degrees of freedom and intervals, and what can be made of them.

    Build one with `Estimates.of`, which takes L, b, V and the degrees of freedom and evaluates them.

    Attributes
    ----------
    L : (m, p) float
        One linear function per row, over all coefficients.
    frame : pandas.DataFrame, m rows
        What each row stands for: the columns of `specs` and `by`.
    b : (p,) float
        Coefficients, 0 where a column of the design was dropped as aliased.
    V : (p, p) float
        Covariance of `b`, 0 in dropped rows and columns.
    df_function : callable
        Maps an (r, p) matrix of linear functions to their r degrees of freedom.
    specs : tuple of str
        Columns of `frame` whose combinations have an estimate each.
    by : tuple of str
        Columns that split the estimates into groups of their own.
    estimate, se, df, ci_low, ci_high : (m,) float
        Estimate, standard error, degrees of freedom and interval at 1 - `alpha`; NaN where not estimable.
    alpha : float
        One minus the confidence level of each interval (not adjusted for several estimates).
    score : str
        What is estimated, for instance ``log(value)``.
    direction : {"minimize", "maximize"} or None
        Which end is better; None if that is not known.
    ddf : str
        Rule for the degrees of freedom.
    errors : {"model", "moderated", "larger", "own", "cluster-robust", ""}
        Where standard errors come from; "own" is for a single comparison where those of many are moderated. Empty: from
        `V` as it was given, taken for one variance of all comparisons.
    n_obs : int or None
        Rows behind the estimates.
    estimable_function, variance_function : callable or None
        Map an (r, p) matrix to r booleans: do the data identify the function, does `V` hold its variance? None: of all.
    f_function : callable or None
        Maps an (r, p) matrix to the `FTest` that all its functions are zero; None: Wald with Satterthwaite's rule.
    largest_se : float
        A standard error above it, like one that is infinite or has less than half a degree of freedom, is that of a
        function that the data do not identify.
    n_known : int
        Last columns of `L` that have a known coefficient of 1: one for a model with an offset, else none.
    moderate : ModeratedMeans or None
        Takes the place of standard errors from `V` and of `df_function`, which it is given.
    ends : callable or None
        Maps estimates and half widths to the ends of their intervals; None: symmetric ones.
    comparable : (m, m) bool or None
        Which two may be compared: those of algorithms that met on a benchmark; None where all may.
    subject : str
        What sentences on differences begin with where it is not the mean: "Slope along budget: ".
    column : str
        What the column of the estimates is called in ``to_frame()``: "emmean" and "slope" of those of a model.
    ratio_of : str
        What differences of logarithms are the ratios of.
    averaged_over : tuple of str
        Factors that were averaged over.
    covariates : dict of str to tuple of float
        Values at which numeric columns were held.
    roster : tuple of str
        Names of all that are compared in the whole table, in its order, by which figures give them their colours; empty
        for those of the estimates.
    notes : tuple of str
        What was averaged over, what is not estimable, and what else a reader must know.

    Examples
    --------
    >>> found = Estimates.of({"tool": ["A", "B"]}, b=[1.0, 2.0], V=[[0.04, 0.0], [0.0, 0.05]], df=10.0,
    ...                      score="loss", direction="minimize")
    >>> found.pairs().sentences()
    ('A is better than B by 1.000 (95 % CI 0.3316 to 1.668, p = 0.008).',)
    """

    L: Array
    frame: pd.DataFrame
    b: Array
    V: Array
    df_function: Callable[[Array], Array]
    specs: tuple[str, ...]
    by: tuple[str, ...]
    estimate: Array
    se: Array
    df: Array
    ci_low: Array
    ci_high: Array
    alpha: float
    score: str
    direction: str | None = None
    ddf: str = "satterthwaite"
    errors: str = ""
    n_obs: int | None = None
    estimable_function: Callable[[Array], Mask] | None = None
    variance_function: Callable[[Array], Mask] | None = None
    f_function: Callable[[Array], FTest] | None = None
    largest_se: float = np.inf
    n_known: int = 0
    moderate: ModeratedMeans | None = None
    ends: Callable[[Array, Array], tuple[Array, Array]] | None = None
    comparable: Mask | None = None
    subject: str = ""
    column: str = "estimate"
    ratio_of: str = "geometric means"
    averaged_over: tuple[str, ...] = ()
    covariates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    roster: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    parts: ClassVar[Mapping[str, str]] = {"estimates": "table"}
    figure: ClassVar[str | None] = "emmeans_plot"

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame | Mapping[str, Any],
        *,
        b: ArrayLike,
        V: ArrayLike,
        df: float | Callable[[Array], Array],
        score: str,
        L: ArrayLike | None = None,
        specs: Sequence[str] | None = None,
        by: Sequence[str] = (),
        alpha: float = 0.05,
        **facts: Any,
    ) -> Self:
        """Build estimates from arrays; no fit is needed.

        Parameters
        ----------
        frame : pandas.DataFrame, or mapping of str to m values
            What each estimate stands for.
        b : (p,) float
            The estimates themselves, or the coefficients that `L` is over.
        V : (p, p) float
            Covariance of `b`; of prediction errors where these are predictions.
        df : float > 0 or callable
            Degrees of freedom of every function of `b` (``inf``: normal), or a map from (r, p) functions to theirs.
        score : str
            What is estimated.
        L : (m, p) float, optional
            Default: `b` are the estimates.
        specs : sequence of str, optional
            Default: all columns of `frame` but those in `by`.
        by : sequence of str
            Columns whose levels are compared within, not between.
        alpha : float in (0, 1)
            One minus the confidence level of each interval.
        **facts
            Other attributes: direction, ddf, n_obs, notes, subject, ...

        Returns
        -------
        Estimates
        """
        import pandas as pd

        b = np.asarray(b, dtype=float)
        L = np.eye(len(b)) if L is None else np.asarray(L, dtype=float)
        table = pd.DataFrame(frame)
        unknown = np.full(len(L), np.nan)
        by = tuple(by)
        estimates = cls(
            L=L,
            frame=table,
            b=b,
            V=np.asarray(V, dtype=float),
            df_function=df if callable(df) else OfFunctions(partial(_same_df, float(df))),
            specs=tuple(str(name) for name in table.columns if name not in by) if specs is None else tuple(specs),
            by=by,
            estimate=unknown,
            se=unknown,
            df=unknown,
            ci_low=unknown,
            ci_high=unknown,
            alpha=check_fraction(alpha, "alpha"),
            score=score,
            **facts,
        )
        sizes = sorted({len(rows) for _, rows in estimates.groups()})
        if len(sizes) > 1:
            raise ArgumentError(
                f"by must split frame into groups of one size, got {joined(list(map(str, sizes)))} rows. Build "
                "Estimates for each."
            )
        return estimates.with_errors()

    def with_errors(self, **changes: Any) -> Self:
        """The same estimates after a change of what their standard errors come from."""
        changed = replace(self, **changes)
        if {*changes} <= {"moderate", "errors"} and self.moderate is None and changed.moderate is not None:
            estimate = self.estimate  # with the errors of the model, which are known
            se, df = changed.moderate(Functions.of(self.fixed), self.se, self.df)
        else:
            estimate, se, df = changed.evaluate()
        half = t_quantile(self.alpha / 2.0, df) * se
        low, high = (estimate - half, estimate + half) if changed.ends is None else changed.ends(estimate, half)
        return replace(changed, estimate=estimate, se=se, df=df, ci_low=low, ci_high=high)

    @property
    def level(self) -> float:
        """Confidence level of the intervals: 1 - `alpha`."""
        return 1.0 - self.alpha

    # ------------------------------------------------------------------ what follows from them

    pairs = pairs
    contrast = contrast
    against = against
    best = best
    joint = joint

    def equivalence(self, margin: float | tuple[float, float], **options: Any) -> Comparisons:
        """Which pairs are equal but for a margin: `Comparisons.equivalence` of `pairs`, with its options."""
        return self.pairs().equivalence(margin, **options)

    def noninferiority(self, margin: float, control: Any, **options: Any) -> Comparisons:
        """Which are not worse than a control by a margin: `Comparisons.noninferiority` of `against`."""
        return self.against(control).noninferiority(margin, **options)

    def decisions(self, alpha: float | None = None, *, direction: str | None = None) -> Decisions:
        """Groups within which no difference is shown, with letters (``cld()``): `Comparisons.decisions` of `pairs`."""
        return self.pairs().decisions(alpha, direction=direction)

    def better_end(self, direction: Any, verb: str) -> str:
        """Which end is better: as asked for, else that of the runs; refused where neither says so."""
        if direction is not None:
            return check_direction(direction)
        if self.direction is None:
            raise ArgumentError(
                f"{verb} must know which end of the response is better: give direction='minimize' or 'maximize', or "
                "fit Runs."
            )
        return self.direction

    # ------------------------------------------------------------------ linear functions

    @property
    def one_variance(self) -> bool:
        """Whether `V` has the variances of all comparisons, so that their joint distribution follows from it."""
        return self.errors in ("", "model")

    @property
    def fixed(self) -> Array:
        """L over the columns of the design, without that of the offset."""
        return self.L[:, : self.L.shape[1] - self.n_known]

    def evaluate(self, L: Array | Functions | None = None) -> tuple[Array, Array, Array]:
        """Estimate, standard error and degrees of freedom of the rows of L (default: all); NaN where not estimable."""
        rows = Functions.of(self.L if L is None else L)
        finite = rows.finite
        if self.estimable_function is not None:
            finite[finite] = asked(self.estimable_function, rows.where(finite))
        estimate, se, df = (np.full(len(rows), np.nan) for _ in range(3))
        if finite.any():
            used = rows.where(finite)
            estimate[finite] = used.at(self.b)
            se[finite] = np.sqrt(np.maximum(0.0, used.quadratic_forms(self.V[None])[0]))
            df[finite] = asked(self.df_function, used)
            if self.variance_function is not None:
                se[finite] = np.where(asked(self.variance_function, used), se[finite], np.nan)
            nothing = (se > self.largest_se) | np.isinf(se) | (df < _FEWEST_DF)
            estimate[nothing], se[nothing], df[nothing] = np.nan, np.nan, np.nan
        if self.moderate is not None:
            se, df = self.moderate(rows.first(rows.width - self.n_known), se, df)
        return estimate, se, df

    def t_tests(self, L: Array | Functions) -> tuple[Array, Array, Array, Array]:
        """`evaluate`, and the t ratios: NaN where there is no degree of freedom, or the standard error is rounding."""
        rows = Functions.of(L)
        estimate, se, df = self.evaluate(rows)
        # a variance at rounding level relative to its terms is zero: rows that cancel exactly have no test
        scale = np.sqrt(rows.squares().at(np.abs(np.diag(self.V))))
        testable = (se > 1e-10 * np.maximum(scale, np.finfo(float).tiny)) & ~np.isnan(df)
        return estimate, se, df, np.divide(estimate, se, out=np.full(len(rows), np.nan), where=testable)

    def largest_t(self, L: Array, alternative: str, rng: np.random.Generator) -> LargestT | None:
        """Joint t distribution of the rows of L, which all have a standard error; None if there are none."""
        if not len(L):
            return None
        covariance = L @ self.V @ L.T
        sd = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(sd, sd)
        correlation = (correlation + correlation.T) / 2.0
        np.fill_diagonal(correlation, 1.0)
        return largest_t(correlation, alternative=alternative, rng=rng)

    def f_test(self, L: Array) -> FTest:
        """Test that the rows of L, which are estimable, are all zero."""
        if self.f_function is not None:
            return self.f_function(L)
        return wald_f_test(L, self.b, L @ self.V @ L.T, self.df_function, self.ddf)

    def all_equal(self) -> FTest | None:
        """One F-test of all differences between the means; None without the model's standard errors, and if fewer than
        two means are estimable or not all pairs can be compared."""
        if self.comparable is not None or self.errors != "model":
            return None
        rows = self.L[np.isfinite(self.estimate)]
        return self.f_test(rows[1:] - rows[0]) if len(rows) > 1 else None

    @property
    def advantage_shape(self) -> AdvantageShape | None:
        """Whether the advantages behind moderated standard errors are about normal; None where runs are the sample."""
        from lmemtest.lmm.diagnostics.advantages import advantage_shape

        if self.moderate is None or self.moderate.between_repeats:
            return None
        rows, scores = self.moderate.advantages()
        names = self.labels()
        return advantage_shape(scores, [names[i] for i in rows])

    def by_model(self) -> Self:
        """The same with the standard errors of the model instead of moderated ones."""
        if self.moderate is None:
            return self
        notes = tuple(note for note in self.notes if note not in self.moderation_notes)
        return self.with_errors(moderate=None, errors="model", notes=notes)

    def alone(self) -> Self:
        """The same for single comparisons: moderated standard errors give way to each comparison's own.

        Moderation keeps the error of a whole family. It pulls the variance of the pair that varies most down, so this
        pair by itself would be called different too often.
        """
        if self.moderate is None or self.errors == "own" or self.moderate.level is not None:
            return self
        kept = tuple(note for note in self.notes if note not in self.moderation_notes)
        note = (
            "Single comparisons have their own standard errors, not moderated ones: from the scatter "
            f"over the {self.moderate.robust.n_clusters} levels of {self.moderate.robust.label} alone (in complete "
            "tables the paired t-test over their means)."
        )
        return self.with_errors(moderate=self.moderate.alone(), errors="own", notes=(*kept, note))

    def with_vcov(self, vcov: str | None, adjust: str, *, single: bool = False) -> tuple[Self, tuple[str, ...]]:
        """The same with the standard errors that are asked for by name, and what to say of the adjustment with them.

        A `single` comparison, which nothing adjusts for, has its own where those of many are moderated.
        """
        if vcov == "model":
            return self.by_model(), ()
        if vcov == "moderated" and self.errors != "moderated":
            raise ArgumentError(
                f"{setting('vcov', vcov)} needs estimates with moderated standard errors, and these have "
                f"{ERROR_NAMES.get(self.errors, 'other')} ones. "
                f"{advice('moderated_errors', ddf=setting('ddf', 'satterthwaite'))}"
            )
        one_variance = adjust in ("tukey", *JOINT_ADJUSTMENTS)
        if one_variance and self.errors in ("moderated", "larger", "own"):
            raise ArgumentError(
                f"{setting('adjust', adjust)} is for one variance of all comparisons, and moderated standard errors "
                f"give each its own. Give {setting('vcov', 'model')} with it, or leave {named('adjust')} out."
            )
        if one_variance and self.errors == "cluster-robust":
            return self, (
                f"The {ADJUSTMENT_NAMES[adjust]} adjustment is for one shared variance. With separate variances, "
                "from few clusters, it rejects too often (all pairs: 7 to 24 % instead of 5 % with 6 to 12 clusters); "
                "adjust='holm' does not.",
            )
        return self.alone() if single else self, ()

    def as_shown(self) -> Estimates:
        """The same numbers for tables and figures, without the fit behind them, so that further ones have no test."""
        return replace(
            self,
            df_function=partial(_same_df, np.nan),
            estimable_function=None,
            variance_function=None,
            f_function=None,
            moderate=None,
        )

    # ------------------------------------------------------------------ rows

    @property
    def factor(self) -> str:
        """What is compared: the names of `specs`, joined by colons."""
        return ":".join(self.specs)

    def labels(self) -> tuple[str, ...]:
        """One label per row from the values of `specs`, for tables and figures; unique within each group."""
        columns = [[format_level(v) for v in self.frame[name].tolist()] for name in self.specs]
        labels = tuple(", ".join(row) for row in zip(*columns, strict=True))
        if len(self.specs) == 1 or len(set(labels)) == len(set(zip(*columns, strict=True))):
            return labels
        return tuple(
            ", ".join(f"{name}={value}" for name, value in zip(self.specs, row, strict=True))
            for row in zip(*columns, strict=True)
        )

    def groups(self) -> tuple[tuple[dict[str, Any], NDArray[np.intp]], ...]:
        """The groups of `by`: their values, and the rows of the result that belong to each."""
        if not self.by:
            return (({}, np.arange(len(self.frame))),)
        members: dict[tuple[Any, ...], list[int]] = {}
        for i, key in enumerate(zip(*(self.frame[name] for name in self.by), strict=True)):
            members.setdefault(key, []).append(i)
        return tuple((dict(zip(self.by, key, strict=True)), np.array(rows)) for key, rows in members.items())

    def rows(self, keep: Mask, by: tuple[str, ...]) -> Self:
        """Some of the estimates, in the groups of fewer factors."""
        parts = {name: getattr(self, name)[keep] for name in ("L", "estimate", "se", "df", "ci_low", "ci_high")}
        frame = self.frame[keep][[*self.specs, *by]].reset_index(drop=True)
        comparable = None if self.comparable is None else self.comparable[np.ix_(keep, keep)]
        return replace(self, frame=frame, by=by, comparable=comparable, **parts)

    def differences(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> Functions:
        """Linear functions at `left` less those at `right`; NaN where the two may not be compared."""
        identified: Mask = np.asarray(np.isfinite(self.L).all(axis=1))
        both = Functions.differences(left, right, len(self.L)).then(np.where(identified[:, None], self.L, 0.0))
        return both.filled(self.met(left, right) & identified[left] & identified[right], np.nan)

    def met(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> Mask:
        """Whether the estimates at `left` and at `right` may be compared."""
        return np.ones(len(left), dtype=bool) if self.comparable is None else self.comparable[left, right]

    def apart(self) -> frozenset[tuple[str, str]]:
        """Labels of two estimates that may not be compared, in both orders."""
        if self.comparable is None:
            return frozenset()
        labels = self.labels()
        return frozenset((labels[i], labels[j]) for i, j in np.argwhere(~self.comparable))

    # ------------------------------------------------------------------ shown

    def table(self) -> pd.DataFrame:
        """One row per estimate: `specs` and `by`, the estimate, se, df, ci_low, ci_high; sorted by group."""
        values = {self.column: self.estimate, "se": self.se, "df": self.df}
        return self.frame.assign(**values, ci_low=self.ci_low, ci_high=self.ci_high)

    @property
    def title(self) -> str:
        """What is estimated, of what."""
        by = f" by {', '.join(self.by)}" if self.by else ""
        what = {"emmean": "Estimated marginal means", "slope": "Marginal slopes"}.get(self.column, "Estimates")
        return f"{what} of {', '.join(self.specs)}{by}"

    @property
    def source(self) -> str:
        """The response, the rows behind it and the rule for the degrees of freedom."""
        rows = "" if self.n_obs is None else f", n = {self.n_obs} rows"
        return f"Response {self.score}{rows}; {DDF_NAMES[self.ddf]} degrees of freedom"

    @property
    def facts(self) -> tuple[str, ...]:
        """How the table was obtained."""
        return (f"{self.source}; {100 * self.level:.4g} % confidence intervals, not simultaneous.",)

    @property
    def moderation_notes(self) -> tuple[str, ...]:
        """What is said of the moderated standard errors."""
        if self.moderate is None:
            return ()
        names = [", ".join(f"{name} = {format_level(v)}" for name, v in key.items()) for key, _ in self.groups()]
        return self.moderate.notes(self.labels(), [f"At {name}: " if name else "" for name in names])
