"""Comparisons of estimates, of every kind: one record with its table, its sentences and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.core.options import ADJUSTMENT_NAMES, JOINT_ADJUSTMENTS, STEPWISE_ADJUSTMENTS
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, tie_order
from lmemtest.core.words import confidence, format_level, format_number, joined, p_text
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.means.adjust import critical_values
from lmemtest.lmm.means.comparison_intervals import comparison_intervals
from lmemtest.lmm.means.decisions import decisions
from lmemtest.lmm.means.margins import equivalence, noninferiority

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.distributions.largest_t import LargestT
    from lmemtest.lmm.means.estimates import Estimates


LOGARITHMS = {"log": math.e, "log2": 2.0, "log10": 10.0, "logit": math.e}
_LEAD = ("estimate", "ci_low", "ci_high", "se", "p_value")  # columns of a lead
_VERBS = {
    "pairs": "pairs()",
    "control": "against()",
    "contrasts": "contrast()",
    "equivalence": "equivalence()",
    "noninferiority": "noninferiority()",
    "best": "best()",
}  # what makes each kind of comparisons


def turned(table: pd.DataFrame, rows: NDArray[np.bool_]) -> pd.DataFrame:
    """Differences of pairs, in some rows the other way round: of the right from the left."""
    import pandas as pd

    other = table.rename(columns={"left": "right", "right": "left", "ci_low": "ci_high", "ci_high": "ci_low"})
    signed = [name for name in ("estimate", "ci_low", "ci_high", "t_ratio") if name in other]
    other[signed] = -other[signed]
    return pd.concat([table[~rows], other.loc[rows, table.columns]]).sort_index()


@result
class Comparisons(Result):
    """Comparisons of estimates, within each group of `by`.

    Attributes
    ----------
    kind : {"pairs", "control", "contrasts", "equivalence", "noninferiority", "best"}
        What was compared.
    table : pandas.DataFrame
        One row per comparison, `by` columns first; p-values and intervals are adjusted. The columns of each kind are
        those of its method: `Estimates.pairs`, `contrast`, `against`, `best`, `equivalence`, `noninferiority`.
    estimates : Estimates
        What was compared.
    by : tuple of str
        Factors whose levels split the comparisons into families.
    adjust : str
        Adjustment of the p-values, and of the intervals that agree with them; `intervals` says what these mean.
    level : float
        Confidence level of the intervals.
    alpha : float
        Level of the tests of each family.
    family_size : int
        Number of estimates in each group.
    direction : {"minimize", "maximize"} or None
        Which end of the response is better.
    control : str or None
        Label of the control, if there is one.
    margin : float, (float, float) or None
        What counts as equivalent, or as not inferior, on the scale of the response.
    coefficients : pandas.DataFrame or None
        Of "contrasts": one row per contrast, one column per level.
    selected : dict
        Values of former `by` factors, after `select`.
    joint : tuple of LargestT or None
        Joint t distribution of each group for "mvt" and "dunnett", otherwise empty.
    notes : tuple of str
        What a reader must know.
    """

    kind: str
    table: pd.DataFrame
    estimates: Estimates
    by: tuple[str, ...]
    adjust: str
    level: float
    alpha: float
    family_size: int
    direction: str | None = None
    control: str | None = None
    margin: float | tuple[float, float] | None = None
    coefficients: pd.DataFrame | None = None
    selected: Mapping[str, Any] = field(default_factory=dict)
    joint: tuple[LargestT | None, ...] = ()
    notes: tuple[str, ...] = ()
    _columns: dict[str, NDArray[Any]] = field(init=False, default_factory=dict)

    figure: ClassVar[str | None] = "pairs_plot"

    comparison_intervals = comparison_intervals
    decisions = decisions
    equivalence = equivalence
    noninferiority = noninferiority

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns of the table as arrays, made once."""
        if not self._columns:
            self._columns.update((str(name), values.to_numpy()) for name, values in self.table.items())
        return self._columns

    @property
    def ddf(self) -> str:
        """Rule for the degrees of freedom."""
        return self.estimates.ddf

    @property
    def levels(self) -> tuple[str, ...]:
        """Labels of what was compared, in the order of the factor, without the control."""
        return tuple(name for name in dict.fromkeys(self.estimates.labels()) if name != self.control)

    @property
    def candidates(self) -> dict[tuple[Any, ...], tuple[str, ...]]:
        """Of "best": levels that can still be the best, by the values of the `by` factors (empty without `by`)."""
        keys = [tuple(key.values()) for key, _ in self.estimates.groups()]
        groups = zip(keys, np.split(np.arange(len(self.table)), len(keys)), strict=True)
        named = self.table[self.estimates.factor].where(self.table["can_be_best"].fillna(False).astype(bool))
        return {key: tuple(named.iloc[rows].dropna()) for key, rows in groups}

    @property
    def errors(self) -> str:
        """Where standard errors come from: "model", "moderated", "larger" (of both), "own" or "cluster-robust"."""
        return self.estimates.errors

    @property
    def intervals(self) -> str:
        """What the intervals of differences mean together: "simultaneous", "stepwise", "selected" or "single".

        Every interval excludes zero exactly where the difference is significant at `alpha`. "stepwise" is the
        interval of the step at which a difference was decided, "selected" controls the share of intervals that miss,
        "single" is unadjusted.
        """
        return intervals_kind(self.adjust, adjusted=len(self.table) > len(self.estimates.groups()))

    def require(self, verb: str, *kinds: str) -> None:
        """Refuse comparisons of a kind that a verb is not for."""
        if self.kind not in kinds:
            wanted = " or ".join(_VERBS[kind] for kind in kinds)
            raise ArgumentError(f"{verb} is for the result of {wanted}, and this is that of {_VERBS[self.kind]}.")

    def half_widths(self, alpha: float, *, first_step: bool = False) -> Array:
        """Half widths of the intervals at another alpha, ``(rows,)``; NaN where a difference has no test.

        Those of the first step do not depend on which differences are significant: a difference beyond its own is,
        whatever the others are.
        """
        n_groups, columns = len(self.estimates.groups()), self.columns
        df, t_ratio = (columns[name].astype(float).reshape(n_groups, -1) for name in ("df", "t_ratio"))
        if self.adjust in JOINT_ADJUSTMENTS:
            rows = [
                np.full(len(nu), np.nan) if joint is None else joint.isf(alpha, nu)
                for joint, nu in zip(self.joint, df, strict=True)
            ]
        else:
            options: dict[str, Any] = {
                "method": self.adjust,
                "n_tests": df.shape[1],
                "n_means": self.family_size,
                "alpha": alpha,
            }
            raw = [None if first_step else two_sided_p(*pair) for pair in zip(t_ratio, df, strict=True)]
            rows = [critical_values(nu, p, **options) for nu, p in zip(df, raw, strict=True)]
        half = np.concatenate(rows) * columns["se"].astype(float)
        return np.where(np.isnan(columns["p_value"].astype(float)), np.nan, half)

    def select(self, **values: Any) -> Comparisons:
        """Comparisons of one group, or of the groups that share the values given.

        Parameters
        ----------
        **values
            A value for one or more of the `by` factors. Families are groups, so p-values do not change.

        Returns
        -------
        Comparisons

        Raises
        ------
        UnknownColumnError, ArgumentError
            If a name is not a `by` factor, or no group has these values.

        Examples
        --------
        >>> import lmemtest as lt
        >>> runs = {"tool": list("AB") * 8, "prior": list("ggbb") * 4, "task": list("wwwwxxxxyyyyzzzz"),
        ...         "score": [1.0, 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 5, 6, 8, 7, 7]}
        >>> pairs = lt.fit_lmm("score ~ tool * prior + (1|task)", runs).emmeans("tool", by="prior").pairs()
        >>> pairs.select(prior="b").to_frame()[["left", "right", "estimate"]].round(2)
          left right  estimate
        0    A     B     -0.75
        """
        for name in values:
            if name not in self.by:
                names = ", ".join(self.by) or "none, so there is nothing to select"
                raise UnknownColumnError(f"select names {name!r}, not a by factor. By factors: {names}.")
        keep, keep_means = _matches(self.table, values), _matches(self.estimates.frame, values)
        if not keep.any():
            groups = "; ".join(_described(key) for key, _ in self.estimates.groups()[:12])
            raise ArgumentError(f"No group has {_described(values)}. Groups: {groups}.")
        by = tuple(name for name in self.by if name not in values)
        kept_groups = keep.reshape(len(self.estimates.groups()), -1)[:, 0]
        return replace(
            self,
            joint=tuple(joint for joint, kept in zip(self.joint, kept_groups, strict=False) if kept),
            table=self.table[keep].drop(columns=list(values)).reset_index(drop=True),
            estimates=self.estimates.rows(keep_means, by),
            by=by,
            selected={**self.selected, **values},
        )

    def best_first(self) -> Comparisons:
        """The same pairs, each less the worse mean from the better one, those of better means first, in each group.

        Without a direction they stay as they are.

        Examples
        --------
        >>> import lmemtest as lt
        >>> scores = [6.0, 3, 5, 8, 3, 7, 8, 5, 8, 9, 6, 9]
        >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": scores}
        >>> pairs = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool").pairs()
        >>> replace(pairs, direction="minimize").best_first().to_frame()[["left", "right", "estimate"]]
          left right  estimate
            0    B     C      -3.0
        1    B     A      -3.5
        2    C     A      -0.5
        """
        self.require("best_first", "pairs")
        if self.direction is None:
            return self
        table, names = self.to_frame(), self.estimates.labels()
        sign = -1.0 if self.direction == "maximize" else 1.0
        place: dict[tuple[Any, ...], tuple[int, int]] = {}  # of a mean: its group, and its rank there
        for group, (values, members) in enumerate(self.estimates.groups()):
            order = members[tie_order(sign * self.estimates.estimate[members])]
            place |= {(*values.values(), names[member]): (group, rank) for rank, member in enumerate(order)}
        keys = (table[[*self.by, side]].itertuples(index=False, name=None) for side in ("left", "right"))
        left, right = ([place[key] for key in side] for side in keys)
        table = turned(table, np.array([one > other for one, other in zip(left, right, strict=True)], dtype=bool))
        ends = [sorted(both) for both in zip(left, right, strict=True)]
        rows = sorted(range(len(table)), key=ends.__getitem__)
        return replace(self, table=table.iloc[rows].reset_index(drop=True))

    def behind(self, best: str, direction: str) -> pd.DataFrame:
        """By how much each other level is worse than one of them, from the same tests and intervals.

        Parameters
        ----------
        best : str
            The level that the others are compared with.
        direction : {"minimize", "maximize"}

        Returns
        -------
        pandas.DataFrame
            ``estimate`` (positive where the level is worse), ``ci_low``, ``ci_high``, ``se`` and ``p_value`` by level;
            NaN where a difference is not identified.

        Examples
        --------
        >>> import lmemtest as lt
        >>> scores = [1.0, 3, 5, 3, 3, 7, 3, 5, 8, 6, 6, 9]
        >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "score": scores}
        >>> pairs = lt.fit_lmm("score ~ tool + (1|task)", runs).emmeans("tool").pairs()
        >>> pairs.behind("A", "minimize")["estimate"].round(6).to_dict()
        {'B': 1.0, 'C': 4.0}
        """
        rows = self.leads(best, direction)
        order = [level for level in self.levels if level in rows]
        return type(self.table)([rows[level] for level in order], index=order, columns=_LEAD)

    def leads(self, best: str, direction: str) -> dict[str, tuple[float, ...]]:
        """What `behind` has, by level."""
        self.require("behind", "pairs")
        columns = self.columns
        left, right = columns["left"], columns["right"]
        rows = np.flatnonzero((left == best) | (right == best))
        other = np.where(left[rows] == best, right[rows], left[rows]).tolist()
        values = np.column_stack([columns[name][rows].astype(float) for name in _LEAD])
        turned = (left[rows] == best) == (direction == "minimize")  # left - right: the smaller score is the better one
        values[turned, :3] = -values[turned][:, [0, 2, 1]]
        return dict(zip(other, map(tuple, values.tolist()), strict=True))

    def ratios(self) -> pd.DataFrame:
        """The differences of logarithms as ratios, left over right: of geometric means, of odds, of expected values.

        Differences on the scale of log odds are conditional odds ratios, given all effects of the model; those of
        ``emmeans(fit, ..., type="log")`` are ratios of probabilities, or of expected counts.

        Returns
        -------
        pandas.DataFrame
            One row per pair: the `by` columns, left, right, ``ratio``, ``p_value``, ``ci_low``, ``ci_high``.

        Raises
        ------
        ArgumentError
            If differences are not of logarithms.

        Examples
        --------
        >>> import lmemtest as lt
        >>> runs = {"tool": list("AB") * 4, "task": list("wwxxyyzz"), "seconds": [1.0, 2, 10, 19, 7, 16, 50, 99]}
        >>> pairs = lt.fit_lmm("log(seconds) ~ tool + (1|task)", runs).emmeans("tool").pairs()
        >>> pairs.ratios()[["left", "right", "ratio"]].round(2)
          left right  ratio
        0    A     B   0.49
        """
        base = self.log_base
        if self.estimates.subject:
            raise ArgumentError(f"ratios() is for means, and these are differences of the {self.estimates.score}.")
        if base is None:
            if self.estimates.column == "response":  # of a model with a link, whose answers have no logarithms
                advice = "Take emmeans(..., type='log')."
            else:
                score = self.estimates.score if self.estimates.score.isidentifier() else "score"
                advice = f"Fit for instance 'log({score}) ~ ...', if all scores are positive."
            raise ArgumentError(
                f"ratios() is for differences of logarithms, and these are of {self.estimates.score}. {advice}"
            )
        table = self.table[[*self.by, "left", "right"]].copy()
        table["ratio"], table["p_value"] = base ** self.table["estimate"], self.table["p_value"]
        table["ci_low"], table["ci_high"] = base ** self.table["ci_low"], base ** self.table["ci_high"]
        return table

    @property
    def log_base(self) -> float | None:
        """The base of the logarithm (of odds, too) that differences are of; None of others."""
        name, opened, _ = self.estimates.score.partition("(")
        return LOGARITHMS.get(name) if opened else None

    def sentences(self) -> tuple[str, ...]:
        """One plain sentence per comparison ("best": per group), for readers who do not read tables of tests."""
        if self.kind == "contrasts":
            return ()
        if self.kind == "best":
            sentences = [self._on_the_best(*group) for group in self.candidates.items()]
        else:
            write = {"equivalence": self._on_equivalence, "noninferiority": self._on_noninferiority}.get(
                self.kind, self._on_difference
            )
            apart = self.estimates.apart()
            ratios = self.ratios().to_dict("records") if self.kind == "pairs" and self.log_base is not None else []
            what = "conditional odds ratio" if self.estimates.score.startswith("logit(") else "ratio"
            sentences = []
            columns = self.columns
            for i, values in enumerate(zip(*(column.tolist() for column in columns.values()), strict=True)):
                row = dict(zip(columns, values, strict=True))
                both = f"{row['left']} and {row['right']}"
                if (row["left"], row["right"]) in apart:
                    text = f"{both} have no benchmark in common, so there is no verdict."
                elif np.isnan(row["p_value"]):
                    text = f"{both} cannot be compared with these data."
                else:
                    text = write(row) + (
                        f" {row['left']} / {row['right']}: a {what} of {ratio_text(ratios[i])}." if ratios else ""
                    )
                sentences.append(_where({name: row[name] for name in self.by}) + text)
        return tuple(self.estimates.subject + text for text in sentences)

    def _on_difference(self, row: Mapping[Any, Any]) -> str:
        left, right = row["left"], row["right"]
        low, high, difference = row["ci_low"], row["ci_high"], row["estimate"]
        p, interval = p_text(row["p_value"], level=self.alpha), f"{confidence(self.level)} CI"
        if not below(row["p_value"], self.alpha):
            return (
                f"{left} and {right} are not significantly different (difference {format_number(difference)}, "
                f"{interval} {format_number(low)} to {format_number(high)}, {p})."
            )
        if difference < 0:
            left, right, low, high, difference = right, left, -high, -low, -difference
        if self.direction == "minimize":  # the lower mean is the better one: name it first
            left, right = right, left
        verb = "better" if self.direction else "higher"
        return (
            f"{left} is {verb} than {right} by {format_number(difference)} "
            f"({interval} {format_number(low)} to {format_number(high)}, {p})."
        )

    def _on_equivalence(self, row: Mapping[Any, Any]) -> str:
        both, (low, high) = f"{row['left']} and {row['right']}", self.margin  # type: ignore[misc]
        within = f"the margin of {low:g} to {high:g}"
        equivalence, difference = (p_text(row[name], level=self.alpha) for name in ("p_value", "p_difference"))
        p = f"equivalence {equivalence}, difference {difference}"
        return {
            "equivalent": f"{both} are equivalent within {within} ({p}).",
            "trivially different": f"{both} differ, but by less than {within} ({p}).",
            "different": f"{both} differ, and not provably by less than {within} ({p}).",
            "undecided": f"{both}: neither a difference nor equivalence within {within} is shown ({p}).",
        }[row["decision"]]

    def _on_noninferiority(self, row: Mapping[Any, Any]) -> str:
        left, right, p, margin = row["left"], row["right"], p_text(row["p_value"], level=self.alpha), f"{self.margin:g}"
        return {
            "superior": f"{left} is better than {right} ({p} against a margin of {margin}, and the lower limit of its "
            "gain is above 0).",
            "non-inferior": f"{left} is not worse than {right} by more than {margin} ({p}).",
            "undecided": f"{left} may be worse than {right} by more than {margin} ({p}).",
        }[row["decision"]]

    def _on_the_best(self, key: tuple[Any, ...], names: tuple[str, ...]) -> str:
        group = dict(zip(self.by, key, strict=True))
        where, at = _where(group), f"{confidence(self.level)} confidence"
        here = self.table[_matches(self.table, group)]
        unknown = here.loc[here["can_be_best"].isna(), self.estimates.factor].tolist()
        if not names:
            return f"{where}The levels cannot be compared with these data, so none is known to be the best or not."
        others = len(here) - len(names) - len(unknown)
        tail = f" Nothing is known of {' and '.join(unknown)}." if unknown else ""
        if len(names) == 1:
            return f"{where}{names[0]} is the best{' of those compared' if unknown else ''} ({at}).{tail}"
        listed = joined(names, most=len(names))
        if not others:
            return f"{where}No level can be ruled out as the best ({at}): {listed}.{tail}"
        rest = "the other one" if others == 1 else f"the other {others}"
        return f"{where}{listed} can be the best; {rest} cannot ({at}).{tail}"

    @property
    def title(self) -> str:
        """What was compared with what."""
        specs = ", ".join(self.estimates.specs)
        by = f" by {', '.join(self.by)}" if self.by else ""
        by += "".join(f", {name} = {format_level(v)}" for name, v in self.selected.items())
        return {
            "pairs": f"Pairwise differences of {specs}{by}",
            "control": f"Differences of {specs} from {self.control}{by}",
            "contrasts": f"Contrasts of {specs}{by}",
            "equivalence": f"Equivalence of {specs} within a margin{by}",
            "noninferiority": f"Non-inferiority of {specs} to {self.control}{by}",
            "best": f"Comparisons of {specs} with the best{by}",
        }[self.kind]

    @property
    def facts(self) -> tuple[str, ...]:
        """How the table was obtained."""
        p_values, level = ADJUSTMENT_NAMES[self.adjust], confidence(self.level)
        if self.kind == "best":
            how = (
                f"{self.direction}; simultaneous {level} intervals for the lead over the best of the others "
                "(positive is better), constrained to contain zero."
            )
        elif self.kind == "noninferiority":
            how = (
                f"{self.direction}; non-inferiority margin {self.margin:g}; one-sided tests with {p_values} "
                f"adjustment, lower limits at {level} that agree with them."
            )
        elif self.kind == "equivalence":
            low, high = self.margin  # type: ignore[misc]
            how = (
                f"equivalence margin {low:g} to {high:g}; two one-sided tests with {p_values} adjustment, {level} "
                f"intervals that agree with them; alpha = {self.alpha:g}."
            )
        else:
            how = f"p-values with {p_values} adjustment{self._family()}, {intervals_text(self)}."
        ratio = f"ratio: of the {self.estimates.ratio_of}, left over right; ratios() has its interval."
        logarithm = self.kind == "pairs" and self.log_base is not None
        return (f"{self.estimates.source}; {how}", *([ratio] if logarithm else []))

    def _family(self) -> str:
        """What the adjustment counts: the means, or with "mvt" the tests if some pairs have none."""
        if self.kind == "contrasts":
            return ""
        tested = self.table["p_value"].notna().to_numpy()
        if self.kind == "control":
            size = f"{len(self.levels)} comparisons"
        elif self.adjust not in JOINT_ADJUSTMENTS or tested.all():
            size = f"a family of {self.family_size} means"
        else:
            counts = tested.reshape(-1, self.family_size * (self.family_size - 1) // 2).sum(axis=1)
            low, high = counts.min(), counts.max()
            number = f"{low}" if low == high else f"{low} to {high}"
            size = f"a family of {number} {'test' if high == 1 else 'tests'}, those that exist"
        return f" for {size}{' in each group' if self.by else ''}"

    def shown(self) -> pd.DataFrame:
        """The table, of pairs of logarithms with their ratios."""
        frame = self.to_frame()
        return frame.assign(ratio=self.ratios()["ratio"]) if self.kind == "pairs" and self.log_base else frame


def intervals_text(pairs: Comparisons) -> str:
    """What the intervals of differences are."""
    return intervals_of(pairs.intervals, pairs.level, several=len(pairs.table) > 1)


def intervals_kind(adjust: str, *, adjusted: bool) -> str:
    """The kind of intervals that an adjustment leads to, as `Comparisons.intervals`; of one difference it has none."""
    if adjust == "none" or not adjusted:
        return "single"
    return {"fdr": "selected"}.get(adjust, "stepwise" if adjust in STEPWISE_ADJUSTMENTS else "simultaneous")


def intervals_of(kind: str, level: float, *, several: bool) -> str:
    """Intervals of a kind in words; of one difference they are neither individual nor simultaneous."""
    percent = confidence(level)
    return {
        "simultaneous": f"simultaneous {percent} intervals",
        "stepwise": f"{percent} intervals of the step-down tests",
        "selected": f"{percent} intervals that control the false coverage rate",
        "single": f"individual {percent} intervals" if several else f"{percent} intervals",
    }[kind]


def ratio_text(row: Mapping[Any, Any]) -> str:
    """A ratio with its interval."""
    ratio, low, high = (format_number(row[name], 3) for name in ("ratio", "ci_low", "ci_high"))
    return f"{ratio} ({low} to {high})"


def _where(group: Mapping[str, Any]) -> str:
    named = ", ".join(f"{name} = {format_level(value)}" for name, value in group.items())
    return f"At {named}: " if named else ""


def _matches(frame: pd.DataFrame, values: Mapping[str, Any]) -> NDArray[np.bool_]:
    keep = np.ones(len(frame), dtype=bool)
    for name, value in values.items():
        keep &= (frame[name] == value).to_numpy()
    return keep


def _described(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
