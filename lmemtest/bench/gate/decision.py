"""The decision over one metric or several, in words.

With the gain d of the new version in the good direction of a metric and the margin m > 0, d = -m is the border, and
both claims are about it:

    not worse:   reject d <= -m at level alpha; the lower bound of d is above -m,
    worse:       reject d >= -m at level alpha; the upper bound of d is below -m;

otherwise nothing is said. Where differences are about normal over tasks, a loss within the margin is called worse with
probability alpha at most, however large the study, and more runs settle every case but d = -m itself. What a sample
of tasks cannot show, `rare_losses` says. A difference that is significantly below 0 with bounds on either side of
-m is a loss of unknown importance; it is reported as such and decides nothing (Piaggio et al. 2012).

Over metrics: the version passes if it is not worse on *all* of them, an intersection-union test, in which each metric
is tested at the full alpha (Berger 1982). It fails if it is worse on *any* of them, a union-intersection test, for
which the p-values are adjusted by Holm's method.

References
----------
Piaggio, Elbourne, Pocock, Evans & Altman (2012). Reporting of noninferiority and equivalence randomized trials. JAMA
308(24), doi:10.1001/jama.2012.87802; Berger (1982). Multiparameter hypothesis testing and acceptance sampling.
Technometrics 24(4), doi:10.1080/00401706.1982.10487790; Holm (1979), Scand. J. Stat. 6, 65-70
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.gate.difference import THESE
from lmemtest.bench.gate.rare_losses import share_at_most, tasks_for
from lmemtest.core.caller import advice
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below
from lmemtest.core.words import format_number, joined, p_text, percent, plural
from lmemtest.lmm.means.adjust import adjust_raw

NOT_WORSE, WORSE, CANNOT_SAY = "not worse", "worse", "cannot say"
EXIT_CODES = {NOT_WORSE: 0, WORSE: 1, CANNOT_SAY: 2}
ALLOWED = ("missing", "identical")
_SHOWN = ("metric", "decision", "old", "new", "difference", "margin", "ci_low", "ci_high", "p_not_worse", "p_worse")


def decided(table: pd.DataFrame, alpha: float, max_broken: float | None = None) -> pd.DataFrame:
    """The table with adjusted p-values and a decision for each metric."""
    out = table.copy()
    for name in ("p_worse", "p_any_loss"):
        out[name] = adjust_raw(out[name].to_numpy(dtype=float), "holm", len(out))
    few = True if max_broken is None else ~below(max_broken, out["broken_high"])
    passed = below(out["p_not_worse"], alpha) & few | (out["difference"].eq(0.0) & out["se"].isna()).to_numpy()
    failed = below(out["p_worse"], alpha)
    out["decision"] = np.select([passed, failed], [NOT_WORSE, WORSE], CANNOT_SAY)
    return out


@result
class Gate(Result):
    """Whether a new version is worse than an old one.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per metric: ``metric``, ``direction``, ``old`` and ``new`` (means over common tasks, each task counting
        once), ``difference`` (how much better the new version is; negative where it is worse), ``margin``, ``se``,
        ``df``, ``ci_low`` and ``ci_high`` (one-sided bounds of the difference, each at 1 - alpha), ``p_not_worse`` (of
        "worse by the margin or more"; missing where ``doubt`` says why no test lets the version pass: losses by few
        failed runs decide, or losses are skewed), ``p_worse`` (of "not worse by more than the margin") and
        ``p_any_loss`` (of "not worse at all"), both Holm-adjusted over the metrics, ``reason`` (why there is no
        number), ``claim`` (what it is about, where tasks come in families), ``unit`` and ``n`` (of the sample: tasks,
        families of tasks, or runs of a version on a task), ``n_needed`` (with which equal versions would pass),
        ``broken_loss`` (what a task loses more of that is broken: the margin over `max_broken`, or over the share that
        n tasks without a broken one leave open), ``n_broken`` (tasks that lost so much, in means of their runs;
        families with such a task), ``broken_high`` (upper limit of their share among tasks like these, at 1 - alpha)
        and ``decision``.
    tasks : pandas.DataFrame
        What was observed, one row per metric and task: ``metric``, ``task``, ``old``, ``new``, ``difference``,
        ``n_old``, ``n_new``.
    decision : {"not worse", "worse", "cannot say"}
        Over all metrics.
    new, old, subject : str
        Names of the versions; that of the new one as it begins a sentence.
    population : {"like these", "these"}
        Which tasks the claim is about.
    missing : tuple of str
        Tasks and runs of the old version that the new one does not have.
    n_tasks : int
        Tasks that both versions have.
    alpha, power : float
    max_broken : float or None
        The share of broken tasks that was asked for.
    n_failed : int or None
        Runs of the new version that failed; None where nothing says which.
    n_runs : int
        Runs of the new version.
    notes : tuple of str
    """

    formats: ClassVar = {"p_not_worse": "p", "p_worse": "p"}
    parts: ClassVar = {"metrics": "table", "decision": "_decided", "tasks": "tasks"}

    table: pd.DataFrame
    tasks: pd.DataFrame
    decision: str
    new: str
    old: str
    subject: str
    population: str
    missing: tuple[str, ...]
    n_tasks: int
    alpha: float
    power: float
    max_broken: float | None = None
    n_failed: int | None = None
    n_runs: int = 0
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Of ``lmemtest gate``: 0 not worse, 1 worse, 2 cannot say."""
        return EXIT_CODES[self.decision]

    @property
    def title(self) -> str:
        """The decision."""
        return f"Gate: {self.decision}, {self._where}"

    @property
    def _where(self) -> str:
        if self.n_tasks == 0:
            return "without a common task"
        if self.n_tasks == 1:
            return "on this task" if self.population == THESE else "for tasks like this one"
        claims = [claim for claim in self.table["claim"].unique() if claim]
        if claims:
            return f"for {joined(claims)}"
        these = f"these {self.n_tasks:,}"
        return f"on {these} tasks" if self.population == THESE else f"for tasks like {these}"

    @property
    def facts(self) -> tuple[str, ...]:
        """The tests."""
        level, side = percent(self.alpha), percent(1.0 - self.alpha)
        adjusted = ", adjusted by Holm's method over the metrics" if len(self.table) > 1 else ""
        units = "runs" if self.population == THESE else "tasks"
        broken = "" if self.max_broken is None else f", and at most {percent(self.max_broken)} of tasks broken"
        return (
            f"difference: how much better {self.new} is; ci_low, ci_high: one-sided {side} bounds.",
            f"Not worse: above -margin on every metric, each tested at {level}{broken}. Worse: below -margin on some "
            f"metric, tested at {level}{adjusted}. The tests take differences between {units} as about normal.",
        )

    def shown(self) -> pd.DataFrame:
        """The decisions and the numbers."""
        return self.table[[*_SHOWN]]

    def _decided(self) -> pd.DataFrame:
        """The decision over all metrics, in one row."""
        row = {"decision": self.decision, "exit_code": self.exit_code, "new": self.new, "old": self.old}
        row |= {"population": self.population, "n_tasks": self.n_tasks, "alpha": self.alpha, "power": self.power}
        row |= {"max_broken": self.max_broken, "n_failed": self.n_failed, "n_runs": self.n_runs}
        return pd.DataFrame([row | {"missing": ", ".join(self.missing)}])

    def sentences(self) -> tuple[str, ...]:
        """The decision, then each metric, then what would settle it."""
        rows = self.table.to_dict("records")
        first = self._headline(rows)
        metrics = map(self._on_metric, rows)
        unseen = (*filter(None, map(self._on_broken, rows)), *self._on_failures())
        return (first, *metrics, *unseen, *self._on_missing(), *self._to_settle(rows))

    def _headline(self, rows: list[dict[Any, Any]]) -> str:
        found = {kind: [row["metric"] for row in rows if row["decision"] == kind] for kind in EXIT_CODES}
        where = self._where
        if self.decision == NOT_WORSE:
            passed = joined(found[NOT_WORSE])
            return f"{self.subject} is not worse than {self.old} by the margin or more {where}: {passed}."
        if self.decision == WORSE:
            return f"{self.subject} is worse than {self.old} by more than the margin {where}: {joined(found[WORSE])}."
        why = joined(found[CANNOT_SAY]) if found[CANNOT_SAY] else "scores are missing"
        return f"Cannot say whether {self.new} is worse than {self.old} {where}: {why}."

    def _on_metric(self, row: Mapping[Any, Any]) -> str:
        if row["reason"]:
            return f"{row['metric']}: {row['decision']}; {row['reason']}."
        gain, low, high, margin = (format_number(row[key]) for key in ("difference", "ci_low", "ci_high", "margin"))
        text = f"{row['metric']}: difference {gain} (bounds {low} and {high}), margin {margin}:"
        loss = p_text(row["p_any_loss"]) if below(row["p_any_loss"], self.alpha) else ""
        if row["decision"] == NOT_WORSE:
            less = f", though significantly worse by less than that ({loss})" if loss else ""
            return f"{text} not worse by the margin or more ({p_text(row['p_not_worse'])}){less}."
        if row["decision"] == WORSE:
            return f"{text} worse by more than the margin ({p_text(row['p_worse'])})."
        if row["doubt"]:
            return f"{text} {row['doubt']} decide, so no test excludes a loss of more than the margin."
        if below(row["p_not_worse"], self.alpha):
            return f"{text} not worse in the mean ({p_text(row['p_not_worse'])}), and too many tasks may be broken."
        if loss:
            return f"{text} significantly worse ({loss}), and whether by more than the margin is open."
        return f"{text} a loss of more than the margin is neither shown nor excluded."

    def _on_broken(self, row: Mapping[Any, Any]) -> str:
        """How many tasks lost much, and how many may: where a version passes, or where it was asked for."""
        asked = self.max_broken
        if np.isnan(row["broken_high"]) or (asked is None and row["decision"] != NOT_WORSE):
            return ""
        k, n, unit = int(row["n_broken"]), int(row["n"]), row["unit"]
        units, loss, high = plural(unit), format_number(row["broken_loss"]), percent(row["broken_high"])
        lost = "lost" if unit == "task" else "had a task that lost"
        seen = f"{row['metric']}: {k or 'none'} of {n:,} {units} {lost} more than {loss} (means of runs);"
        may = f"up to {high} of {units} like these may ({percent(1.0 - self.alpha)})"
        if asked is None:
            adds = ", and so many such losses add up to the margin" if k == 0 else ""
            return f"{seen} {may}{adds}."
        if not below(asked, row["broken_high"]):
            return f"{seen} {may}, at most {percent(asked)} was asked for."
        total = tasks_for(asked, k, self.alpha)
        return (
            f"{seen} {may}, more than the {percent(asked)} that was asked for. It takes {total:,} {units} without "
            f"{'another' if k else 'such a'} loss: {total - n:,} more."
        )

    def _on_failures(self) -> tuple[str, ...]:
        """How often runs may fail, beside a version that passes."""
        if self.decision != NOT_WORSE or not self.n_runs:
            return ()
        k, n = self.n_failed or 0, self.n_runs
        may = f"up to {percent(share_at_most(k, n, self.alpha))} may ({percent(1.0 - self.alpha)})"
        if self.n_failed is None:
            return (f"If none of the {n:,} runs of {self.new} failed, and runs fail independently, {may}.",)
        return (f"{k or 'None'} of the {n:,} runs of {self.new} failed; {may}, if runs fail independently.",)

    def _on_missing(self) -> tuple[str, ...]:
        if not self.missing:
            return ()
        allowed = advice("value", name="allow", value="missing")
        alone = set(self.table["decision"]) == {NOT_WORSE}  # nothing else is open, so a decision without them is one
        step = f" Run them{f', or decide without them: {allowed}' if alone else ''}."
        step = step if self.decision == CANNOT_SAY else ""
        return (f"No scores of {self.new} where {self.old} has some: {joined(self.missing)}.{step}",)

    def _to_settle(self, rows: list[dict[Any, Any]]) -> tuple[str, ...]:
        """How many further tasks or runs, if the versions are equal."""
        open_means = [row for row in rows if row["decision"] == CANNOT_SAY and np.isfinite(row["p_not_worse"])]
        unsettled = [row for row in open_means if not below(row["p_not_worse"], self.alpha)]
        if self.decision != CANNOT_SAY or not unsettled:
            return ()
        units = joined(dict.fromkeys(plural(row["unit"]) for row in unsettled))
        hopeless = [row["metric"] for row in unsettled if np.isnan(row["n_needed"])]
        if hopeless:
            return (f"Further {units} alone would not settle it with this margin: {joined(hopeless)}.",)
        more = max(int(row["n_needed"] - row["n"]) for row in unsettled)
        power = f"power {percent(self.power)}"
        if more <= 0:
            return (f"So many {units} let equal versions pass with {power}: there may be a loss, and more would tell.",)
        further = f"1 further {unsettled[0]['unit']}" if more == 1 else f"{more:,} further {units}"
        each = " of each version on each task" if self.population == THESE else ""
        return (f"To settle it: {further}{each}, if the versions are equal and scores vary as here ({power}).",)
