"""The pairs of a study, decided in several ways: which decisions stay, and which depend on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below
from lmemtest.core.table import Format
from lmemtest.core.verdicts import Verdict, ahead_or_behind
from lmemtest.core.words import counted, format_p, joined, p_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Codes
    from lmemtest.lmm.means.comparisons import Comparisons


__all__ = ["NOBODY", "Variant", "Variants", "advantages", "side_by_side"]

NOBODY = "-"  # neither of two is significantly better
_TIED = 1e-7  # of the standard error: rounding
_MOST = 8  # names in a list


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to decide: what it is, and what it says of all pairs."""

    name: str
    phrase: str  # "by mean loss"
    meaning: str
    pairs: pd.DataFrame  # left, right, advantage (positive where left is better), p_value
    means: pd.DataFrame  # algorithm, place, mean, se

    @classmethod
    def of(
        cls, compared: Comparisons, *, name: str, phrase: str, meaning: str, direction: str, alpha: float
    ) -> Variant:
        """From all pairs of marginal means."""
        table, means = compared.to_frame(), compared.estimates
        order = compared.decisions(alpha=alpha, direction=direction).levels
        of_level = dict(zip(means.labels(), zip(means.estimate, means.se, strict=True), strict=True))
        rows = [(level, place, *of_level[level]) for place, level in enumerate(order, start=1)]
        return cls(
            name=name,
            phrase=phrase,
            meaning=meaning,
            pairs=table[["left", "right", "p_value"]].assign(advantage=advantages(table, direction)),
            means=pd.DataFrame(rows, columns=["algorithm", "place", "mean", "se"]),
        )


@result
class Variants(Result):
    """The same pairs of algorithms, decided in several ways.

    Attributes
    ----------
    of : {"score", "failures", "population"}
        What the ways differ in.
    phrases, meanings : dict of str to str
        Each way in a sentence ("by mean loss"), and what it does.
    among : str
        All of them in a sentence: "under the policies worst and drop".
    pairs : pandas.DataFrame
        ``left`` and ``right`` of every pair.
    advantage, p_value : numpy.ndarray, (ways, pairs)
        By how much left is better, on the scale of the way; p-values adjusted for all pairs of a way. NaN where a way
        does not test a pair.
    codes : numpy.ndarray of int8, (ways, pairs)
        The `lmemtest.core.verdicts.Verdict` on left, compared with right.
    means : pandas.DataFrame
        One row per way and algorithm, best first: ``variant``, ``algorithm``, ``place``, ``mean``, ``se``.
    alpha : float
        Level of the decisions, in each way for all pairs together.
    lead : str
        What comes before the overview.
    described : tuple of str
        What is tested, and how.
    notes : tuple of str
    """

    parts: ClassVar[Mapping[str, str]] = {"table": "table", "decisions": "decisions", "means": "means"}
    formats: ClassVar[Mapping[str, Format]] = {"p_value": format_p}

    of: str
    phrases: Mapping[str, str]
    meanings: Mapping[str, str]
    among: str
    pairs: pd.DataFrame
    advantage: Array
    p_value: Array
    codes: Codes
    means: pd.DataFrame
    alpha: float
    lead: str = ""
    described: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    # ------------------------------------------------------------------ numbers

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Which way tests which pair, ``(ways, pairs)``."""
        return self.codes != Verdict.NOT_TESTED

    @property
    def comparable(self) -> NDArray[np.bool_]:
        """Pairs that two ways test."""
        return np.asarray(self.tested.sum(axis=0) > 1)

    @property
    def alike(self) -> NDArray[np.bool_]:
        """Pairs that all ways which test them decide alike."""
        low, high = (np.where(self.tested, self.codes, fill) for fill in (Verdict.ABSENT, Verdict.WORSE))
        return np.asarray((low.min(axis=0) == high.max(axis=0)) | ~self.tested.any(axis=0))

    @property
    def opposite(self) -> NDArray[np.bool_]:
        """Pairs of which two ways find opposite winners."""
        return np.asarray((self.codes == Verdict.BETTER).any(axis=0) & (self.codes == Verdict.WORSE).any(axis=0))

    @property
    def table(self) -> pd.DataFrame:
        """One row per pair: who is significantly better in each way, and whether all that test the pair agree."""
        taken = {"left", "right", "alike"}  # by other columns of the table
        words = {self.phrases[name] if name in taken else name: self._better(codes) for name, codes in self._coded()}
        return pd.concat([self.pairs, pd.DataFrame(words), pd.DataFrame({"alike": self.alike})], axis=1)

    @property
    def decisions(self) -> pd.DataFrame:
        """One row per way and pair, with its numbers."""
        rows = [
            self.pairs.assign(variant=name, advantage=gap, p_value=p, better=self._better(codes))
            for (name, codes), gap, p in zip(self._coded(), self.advantage, self.p_value, strict=True)
        ]
        table = pd.concat(rows, ignore_index=True)
        return table[["variant", "left", "right", "advantage", "p_value", "better"]]

    def changed(self) -> pd.DataFrame:
        """The rows of `table` whose decision depends on the way, opposite ones first."""
        rows = np.flatnonzero(~self.alike)
        return self.table.iloc[rows[np.argsort(~self.opposite[rows], kind="stable")]]

    def significant(self, name: str) -> int:
        """How many pairs differ significantly in one way."""
        return int(ahead_or_behind(self.codes[list(self.phrases).index(name)]).sum())

    def _coded(self) -> Iterator[tuple[str, Codes]]:
        return zip(self.phrases, self.codes, strict=True)

    def _better(self, codes: Codes) -> list[str]:
        """Who is better of each pair."""
        words = {int(Verdict.NOT_SIGNIFICANT): NOBODY, int(Verdict.NOT_TESTED): "not tested"}
        return [
            words.get(code, left if code == Verdict.BETTER else right)
            for code, left, right in zip(codes.tolist(), self.pairs["left"], self.pairs["right"], strict=True)
        ]

    # ------------------------------------------------------------------ words

    @property
    def title(self) -> str:
        return f"Decisions {self.among}"

    @property
    def facts(self) -> tuple[str, ...]:
        return (
            f"{NOBODY}: neither is significantly better at alpha = {self.alpha:.3g}, for all pairs of a column "
            "together.",
            *(f"{name}: {meaning}." for name, meaning in self.meanings.items()),
            *self.described,
        )

    def shown(self) -> pd.DataFrame:
        """The table, with yes and no."""
        return self.table.assign(alike=np.where(self.alike, "yes", "no"))

    def overview(self) -> str:
        """How many pairs are decided alike."""
        count, lead = int(self.comparable.sum()), f"{self.lead}; " if self.lead else ""
        if not count:
            return f"{lead}no pair of algorithms can be tested in two ways {self.among}.".lstrip()
        among, thin = self.among, int((self.tested.sum(axis=0) < len(self.codes)).sum())
        if thin:
            among += f" that test {'it' if count == 1 else 'them'} ({counted(thin, 'pair')} cannot be tested by all)"
        alike = int((self.alike & self.comparable).sum())
        if alike == count:
            which = f"all {count:,} pairs of algorithms are" if count > 1 else "the pair of algorithms is"
            text = f"{which} decided alike {among}."
        else:
            opposite = int(self.opposite.sum())
            more = f", and {opposite:,} in opposite directions" if opposite else ""
            which = f"{alike:,} of {counted(count, 'pair')} of algorithms {'is' if alike == 1 else 'are'}"
            text = f"{which} decided alike {among}{more}."
        return f"{lead}{text}" if lead else f"{text[:1].upper()}{text[1:]}"

    def counts(self) -> str:
        """How many pairs differ significantly in each way."""
        parts = [f"{self.significant(name):,} {phrase}" for name, phrase in self.phrases.items()]
        return f"Significant differences: {joined(parts, most=_MOST)}."

    def sentences(self) -> tuple[str, ...]:
        """How many pairs are decided alike, who has the best mean in which way, and each pair that depends on it."""
        changes = tuple(map(self.on_pair, self.changed().index))
        return (self.overview(), *([self.counts()] if changes else []), self.first(), *changes)

    def first(self) -> str:
        """Who has the best mean."""
        best = self.means[self.means["place"] == 1]
        names: dict[Any, list[str]] = {}
        for name, variant in zip(best["algorithm"], best["variant"], strict=True):
            names.setdefault(name, []).append(self.phrases[variant])
        if len(names) == 1:
            return f"{next(iter(names))} has the best mean {self.among}."
        parts = [f"{name} {joined(ways, most=_MOST)}" for name, ways in names.items()]
        return f"Who has the best mean differs: {'; '.join(parts)}."

    def on_pair(self, pair: int) -> str:
        """What each way says of a pair."""
        left, right = self.pairs.loc[pair, ["left", "right"]]
        ways: dict[int, list[str]] = {}
        for code, p, phrase in zip(self.codes[:, pair], self.p_value[:, pair], self.phrases.values(), strict=True):
            ways.setdefault(int(code), []).append(f"{phrase} ({p_text(p)})")
        heads = {
            Verdict.BETTER: f"{left} is better than {right} ",
            Verdict.WORSE: f"{right} is better than {left} ",
            Verdict.NOT_SIGNIFICANT: "no difference is found ",
        }
        return f"{'; '.join(head + joined(ways[code], most=_MOST) for code, head in heads.items() if code in ways)}."


def advantages(pairs: pd.DataFrame, direction: str) -> Array:
    """By how much left is better; rounding is a tie."""
    gap, se = (pairs[name].to_numpy(dtype=float) for name in ("estimate", "se"))
    tied = np.isfinite(se) & (np.abs(gap) <= _TIED * se)
    return np.where(tied, 0.0, -gap if direction == "minimize" else gap)


def side_by_side(variants: Sequence[Variant], *, of: str, among: str, alpha: float, **more: Any) -> Variants:
    """The pairs of the first variant, with what all others say of the same ones."""
    pairs = variants[0].pairs[["left", "right"]].reset_index(drop=True)
    gap, p = (np.full((len(variants), len(pairs)), np.nan) for _ in range(2))
    for row, variant in enumerate(variants):
        gap[row], p[row] = _as_in(pairs, variant.pairs)
    codes = np.where(below(p, alpha) & (gap != 0.0), np.sign(gap), 0.0)
    return Variants(
        of=of,
        phrases={variant.name: variant.phrase for variant in variants},
        meanings={variant.name: variant.meaning for variant in variants},
        among=among,
        pairs=pairs,
        advantage=gap,
        p_value=p,
        codes=np.where(np.isnan(p), float(Verdict.NOT_TESTED), codes).astype(np.int8),
        means=pd.concat([variant.means.assign(variant=variant.name) for variant in variants], ignore_index=True)[
            ["variant", "algorithm", "place", "mean", "se"]
        ],
        alpha=alpha,
        **more,
    )


def _as_in(pairs: pd.DataFrame, table: pd.DataFrame) -> tuple[Array, Array]:
    """Advantages and p-values in the order and orientation of other pairs."""
    numbers = {
        (left, right): (gap, p)
        for left, right, gap, p in table[["left", "right", "advantage", "p_value"]].itertuples(index=False)
    }
    nothing = (np.nan, np.nan)
    gap, p = np.empty(len(pairs)), np.empty(len(pairs))
    for i, (left, right) in enumerate(pairs.itertuples(index=False)):
        if (left, right) in numbers:
            gap[i], p[i] = numbers[left, right]
        else:
            back, p[i] = numbers.get((right, left), nothing)
            gap[i] = -back
    return gap, p
