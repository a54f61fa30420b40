"""The influence of the levels of a group in words, and how serious it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._rounding import written
from lmemtest.words import format_number, format_p, listed

if TYPE_CHECKING:
    import pandas as pd

Severity = Literal["fine", "look", "act"]

SURPRISING = 0.05  # a level stands out where chance moves the results as much in fewer tables
CLEAR = 2.0  # times alpha: a p-value of 0.04 that becomes 0.06 says less about a level than about the threshold
LOUD = 0.5  # a level that holds more than this share of the residual variance is loud
_NAMED = 3  # levels or comparisons that a sentence names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Story:
    """The result in words, and how serious it is."""

    table: pd.DataFrame
    comparisons: pd.DataFrame
    whole: pd.DataFrame
    group: str
    alpha: float
    n_rows: int
    missing_term: str = ""

    def _changing(self) -> pd.DataFrame:
        """Levels without which a verdict changes, clear changes first, then surprising ones."""
        rows = self.table[self.table["n_changed"] > 0]
        return rows.sort_values(["n_clear", "chance_p", "n_changed"], ascending=[False, True, False], kind="stable")

    def _outlying(self) -> pd.DataFrame:
        return self.table[self.table["chance_p"] < SURPRISING].sort_values("chance_p", kind="stable")

    def _loud(self) -> pd.DataFrame:
        """Levels with few of the rows and most of the residual variance."""
        few = self.table["n_rows"] < LOUD * self.n_rows
        return self.table[few & (self.table["residual_ratio"] < LOUD)].sort_values("residual_ratio", kind="stable")

    def _failed(self) -> pd.DataFrame:
        return self.table[self.table["cooks_distance"].isna()]

    def severity(self) -> Severity:
        changing, outlying = self._changing(), self._outlying()
        if len(changing) and changing.index.isin(outlying.index).any():
            return "act"
        clear = changing[changing["n_clear"] > 0]
        return "look" if self._untested() or any(map(len, (clear, outlying, self._loud(), self._failed()))) else "fine"

    def _untested(self) -> bool:
        """There are comparisons, and none of them has a test."""
        return len(self.whole) > 0 and not self.whole["p_value"].notna().any()

    def sentence(self) -> str:
        changing, outlying, loud, failed = self._changing(), self._outlying(), self._loud(), self._failed()
        both = changing[changing.index.isin(outlying.index)]
        parts = []
        if len(both):
            parts.append(self._change_of(both.iloc[0]) + self._others(changing))
            parts.append(self._stands_out(both.iloc[0]))
            parts.append(self._advice(self._name(both.iloc[0])))
        elif len(changing):
            parts.append(self._change_of(changing.iloc[0]) + self._others(changing))
            if len(outlying):
                parts.append(self._stands_out(outlying.iloc[0]))
                parts.append("The verdicts that change are close calls.")
            else:
                parts.append(self._close_calls(bool(changing["n_clear"].any())))
        elif len(outlying):
            parts.append(self._stands_out(outlying.iloc[0]))
            name = self._name(outlying.iloc[0])
            parts.append(f"No verdict depends on it, so the conclusions stand; check the runs of {name} all the same.")
        elif len(failed) < len(self.table):
            parts.append(self._calm())
        if len(outlying) and self.missing_term:
            parts.append(
                f"The model takes differences to be the same for every {self.group}: try it with {self.missing_term}."
            )
        if len(loud):
            name, fall = self._name(loud.iloc[0]), 100 * (1 - loud.iloc[0]["residual_ratio"])
            apart = in_words_of(python="dispersion=", command_line="--dispersion")
            parts.append(
                f"Without {name} the residual variance falls by {written(fall, '.0f')} %: most of the noise is "
                f"there. Give each "
                f"level a variance of its own ({apart}), or normalise the scores."
            )
        if len(failed):
            parts.append(
                f"The model cannot be fitted without {listed(failed['level'], most=_NAMED)} "
                f"({failed.iloc[0]['reason'].rstrip('.')}): it rests on "
                + ("this level." if len(failed) == 1 else "each of these.")
            )
        return " ".join(parts)

    def _name(self, row: pd.Series[Any]) -> str:
        """A level as a reader recognises it: a bare number gets the name of its group."""
        level = str(row["level"])
        return f"{self.group} {level}" if level[:1].isdigit() or level[:1] == "-" else level

    def _calm(self) -> str:
        n, m = len(self.table), int(self.whole["p_value"].notna().sum())
        if self._untested():
            return (
                f"None of the {len(self.whole)} comparisons has a test in the whole table, because the data do not "
                f"identify it, so there is no verdict that a single {self.group} could change. Compare what the design "
                "has: within levels of another factor, or without the empty cells."
            )
        if not m:
            return f"Leaving out any one of the {n} levels of {self.group} changes nothing that is tested."
        size = self.table["largest_shift"].abs()
        out = (
            f"No verdict depends on a single {self.group}: leaving out any one of the {n} levels changes none of the "
            f"{m} comparisons at {100 * self.alpha:.4g} %"
            if m > 1
            else f"The verdict does not depend on a single {self.group}: leaving out any one of the {n} levels does "
            f"not change it at {100 * self.alpha:.4g} %"
        )
        if not size.notna().any():
            return out + "."
        row = self.table.iloc[int(np.nanargmax(size.to_numpy()))]
        return (
            f"{out}; the largest shift is {format_number(abs(row['largest_shift']), 2)} standard errors "
            f"({row['shift_of']} without {self._name(row)})."
        )

    def _change_of(self, row: pd.Series[Any]) -> str:
        """How the verdicts change without one level."""
        m, count = int(row["n_compared"]), int(row["n_changed"])
        here = self.comparisons[self.comparisons["level"] == row["level"]].reset_index(drop=True)
        shown = [
            f"{comparison_label(left, right)}, p {format_p(before)} -> {format_p(now)}"
            for left, right, before, now, changes in zip(
                here["left"],
                here["right"],
                self.whole["p_value"],
                here["p_value"],
                here["verdict_changes"],
                strict=True,
            )
            if changes
        ]
        verb = "changes its verdict" if count == 1 else "change their verdict"
        return (
            f"Without {self._name(row)}, {count} of {m} comparison{'s' * (m != 1)} {verb} at {100 * self.alpha:.4g} % "
            f"({'; '.join(shown[:_NAMED])}{'; ...' * (count > _NAMED)})."
        )

    def _others(self, changing: pd.DataFrame) -> str:
        others = len(changing) - 1
        if not others:
            return ""
        return f" Verdicts also change without {others} other level{'s' * (others > 1)} of {self.group}."

    def _stands_out(self, row: pd.Series[Any]) -> str:
        """The comparison that a level moves most surprisingly."""
        here = self.comparisons[self.comparisons["level"] == row["level"]]
        most = here.iloc[int(np.nanargmin(here["chance_p"].to_numpy()))]
        moved, size = comparison_label(most["left"], most["right"]), format_number(abs(most["shift"]), 2)
        p = format_p(row["chance_p"])
        return (
            f"{self._name(row)} stands out: it moves {moved} by {size} standard errors, more than "
            f"chance explains (p {p if p.startswith('<') else '= ' + p})."
        )

    def _close_calls(self, clear: bool) -> str:
        """What to make of verdicts that change while no level stands out."""
        so = f"No {self.group} stands out more than chance explains"
        if clear:
            return (
                f"{so}, so this is a matter of too little evidence and not of one {self.group}: call these comparisons "
                "undecided, or bring more levels."
            )
        return (
            f"{so} and no p-value moves beyond {100 * CLEAR * self.alpha:.4g} %, so these are close calls: report the "
            "p-values, not the verdicts."
        )

    def _advice(self, level: str) -> str:
        return (
            f"Check the runs of {level} (failed runs, units, mixed-up names); if they are right, report the results "
            "with and without it, and draw no general conclusion from either alone."
        )


def comparison_label(left: str, right: str) -> str:
    """A difference in words; a coefficient has no right side."""
    return f"{left} - {right}" if right else left
