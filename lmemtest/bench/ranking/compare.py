"""Several rankings of the same runs side by side: where they agree, where not, and what the scores look like there.

Beside them stands what many published diagrams do: ranking every row as if it were a benchmark of its own. It is shown
with its rate of false alarms, measured by exchanging the algorithms on whole benchmarks, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lmemtest.bench.ranking.asked import TEST_NAMES, TESTS
from lmemtest.bench.ranking.classical import ranked
from lmemtest.bench.ranking.methods import outcomes
from lmemtest.core.proportions import clopper_pearson
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import below, tie_order
from lmemtest.core.verdicts import Verdict, ahead_or_behind, pair_words
from lmemtest.core.words import MISSING, counted, joined, percent
from lmemtest.lmm.distributions.studentized_range import ptukey, qtukey

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.ranking.ranking import Ranking
    from lmemtest.core.arrays import Array, Codes


BY_MEANS = ("lmem", "moderated", "tukey", "t", "hierarchical")
EXCHANGES = 2000
_EXCHANGED = 10_000_000  # ranks of all exchanges together: beyond, sums over many blocks are taken for normal
_AT_ONCE = 1_000_000  # of them in memory
_NORMAL = 200  # blocks from which the share is within 0.1 % of that of normal sums
MOST_SAID = 10  # disagreements in sentences; all are in the table


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAsBlocks:
    """Nemenyi's test with every row as a block, and how often it finds a difference where there is none.

    Attributes
    ----------
    n_rows, n_blocks : int
        Rows that were ranked, and blocks that they belong to.
    n_significant : int
        Pairs that differ by it.
    false_alarms, of_blocks : (float, float, float)
        Share of exchanged tables in which any pair differs, with its 95 % interval: with rows, and with blocks, as the
        sample. Of many blocks the share is that of normal sums, and its interval a point.
    alpha : float
    """

    n_rows: int
    n_blocks: int
    n_significant: int
    false_alarms: tuple[float, float, float]
    of_blocks: tuple[float, float, float]
    alpha: float


@result
class SideBySide(Result):
    """Decisions of several tests about the same pairs.

    Attributes
    ----------
    tests : tuple of str
        Names of the tests.
    blocks : Blocks
        The scores that were compared, the algorithms best first by the first test.
    verdicts : dict of str to numpy.ndarray of int8, (k, k)
        The `lmemtest.core.verdicts.Verdict` of every test, in the order of the algorithms of `blocks`.
    rows_as_blocks : RowsAsBlocks or None
        The trap, measured; None where every row is a block, or fewer than two blocks
        have all algorithms.
    notes : tuple of str
    """

    parts: ClassVar[Mapping[str, str]] = {"pairs": "table"}

    tests: tuple[str, ...]
    blocks: Blocks
    verdicts: Mapping[str, Codes]
    rows_as_blocks: RowsAsBlocks | None
    notes: tuple[str, ...] = ()

    @property
    def codes(self) -> Codes:
        """The verdicts on the pairs, the first of the two compared with the second, ``(tests, pairs)``."""
        pairs = np.triu_indices(len(self.blocks.algorithms), 1)
        return np.array([self.verdicts[name][pairs] for name in self.tests])

    @property
    def agree(self) -> NDArray[np.bool_]:
        """Pairs of which all tests say that the same one is better, or that none is."""
        for_whom = np.where(ahead_or_behind(self.codes), self.codes, 0)
        return np.asarray((for_whom == for_whom[0]).all(axis=0))

    @property
    def table(self) -> pd.DataFrame:
        """One row per pair: ``left``, ``right``, the decision of every test, ``agree``."""
        left, right = self._names()
        neither = {name: "undecided" if name in TESTS["bayesian"] else "not significant" for name in self.tests}
        words = {name: pair_words(codes, left, right, neither=neither[name]) for name, codes in self._coded()}
        return self._frame(words).assign(agree=self.agree)

    def _coded(self) -> Iterator[tuple[str, Codes]]:
        return zip(self.tests, self.codes, strict=True)

    def _names(self) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        names = np.array(self.blocks.algorithms, dtype=object)
        left, right = np.triu_indices(len(names), 1)
        return names[left], names[right]

    def _frame(self, columns: Mapping[str, Any]) -> pd.DataFrame:
        import pandas as pd

        left, right = self._names()
        return pd.DataFrame({"left": left, "right": right, **columns})

    @property
    def title(self) -> str:
        """What was ranked."""
        return f"Pairs by {counted(len(self.tests), 'test')}, ranked by {self.blocks.score}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the columns are."""
        said = "; ".join(f"{name}: {TEST_NAMES[name]}" for name in self.tests)
        return ("Cells name the better one; a dash: no difference is shown.", f"{said}.")

    def shown(self) -> pd.DataFrame:
        """Who is better by each test: a name, or a dash where no difference is shown."""
        left, right = self._names()
        words = {Verdict.EQUIVALENT: "equivalent", Verdict.NOT_TESTED: "no test"}
        return self._frame(
            {
                name: [
                    words.get(Verdict(code), MISSING) if abs(code) != 1 else first if code == Verdict.BETTER else second
                    for code, first, second in zip(codes, left, right, strict=True)
                ]
                for name, codes in self._coded()
            }
        )

    def sentences(self) -> tuple[str, ...]:
        """How far the tests agree, each pair on which they do not with its facts, and the trap."""
        table = self.table
        odd = table[~table["agree"]]
        total = len(table)
        found = [f"The {counted(len(self.tests), 'test')} {self._agree(total - len(odd), total)}."]
        found += [self._on(row) for row in odd.head(MOST_SAID).to_dict("records")]
        return (*found, *self.trap())

    @staticmethod
    def _agree(agreed: int, total: int) -> str:
        if total == 1:
            return "agree on the pair" if agreed else "do not agree on the pair"
        return f"agree on {'all' if agreed == total else f'{agreed} of'} {total} pairs"

    def _on(self, row: Mapping[Any, Any]) -> str:
        """A pair on which tests disagree: who says what, and the facts that part means from ranks."""
        left, right = row["left"], row["right"]
        said: dict[str, list[str]] = {}
        for name in self.tests:
            said.setdefault(row[name], []).append(name)
        verdicts = "; ".join(f"{decision} by {joined(names, len(names))}" for decision, names in said.items())
        return f"{left} and {right}: {verdicts}. {facts_of_pair(self.blocks, left, right)}"

    def trap(self) -> tuple[str, ...]:
        """What rows that count as blocks would say, and how often they would say it of nothing."""
        found = self.rows_as_blocks
        if found is None:
            return ()
        unit, units, total = self.blocks.unit, self.blocks.units, len(self.agree)
        return (
            f"If each of the {found.n_rows:,} rows counted as a {unit} of its own, Nemenyi's test would call "
            f"{found.n_significant} of {total} pairs different. That test finds a difference in "
            f"{percent(found.false_alarms[0])} of tables in which the algorithms of whole {units} were exchanged at "
            f"random, at a nominal {percent(found.alpha)}; with the {found.n_blocks} {units} as the sample it is "
            f"{percent(found.of_blocks[0])}.",
        )


@result
class Rankings(SideBySide):
    """Rankings of the same runs by several methods.

    Attributes
    ----------
    rankings : dict of str to Ranking
        By the name of the test; notes say which could not be made.
    tests : tuple of str
        These names.
    blocks : Blocks
        The scores that were ranked, the algorithms in the order of the first.
    places : pandas.DataFrame
        One row per algorithm, its place by every test.
    rows_as_blocks : RowsAsBlocks or None
        The trap, measured; None where every row is a block, or fewer than two blocks
        have all algorithms.
    notes : tuple of str
    """

    parts: ClassVar[Mapping[str, str]] = {"pairs": "table", "places": "places"}
    figure: ClassVar[str | None] = "rankings_plot"

    rankings: Mapping[str, Ranking]
    places: pd.DataFrame

    def contents(self) -> dict[str, Any]:
        """Sentences and tables, and the pairs of every ranking."""
        return {**super().contents(), "rankings": {name: ranking.pairs for name, ranking in self.rankings.items()}}

    def __getitem__(self, test: str) -> Ranking:
        return self.rankings[test]


def compared(rankings: Mapping[str, Ranking], rng: np.random.Generator) -> Rankings:
    """The tables of several rankings, in the order of the first."""
    import pandas as pd

    first = next(iter(rankings.values()))
    places = pd.DataFrame({"algorithm": first.levels})
    for name, found in rankings.items():
        places[name] = [found.levels.index(level) + 1 for level in first.levels]
    return Rankings(
        rankings=dict(rankings),
        tests=tuple(rankings),
        blocks=first.blocks,
        verdicts={name: found.decisions.among(first.levels) for name, found in rankings.items()},
        places=places,
        rows_as_blocks=rows_as_blocks(first.blocks, first.alpha, rng),
    )


def facts_of_pair(blocks: Blocks, left: str, right: str) -> str:
    """On how many blocks one is ahead, and how much one block weighs in the mean."""
    pair = blocks.of([left, right])
    both = pair.where(pair.complete)
    d = both.gains[:, 0] - both.gains[:, 1]
    wins = outcomes(pair)[0].astype(int)  # those of the table of pairs, in which rounding is a tie
    total = np.square(d).sum()
    text = f"{left} is ahead on {wins[0, 1]} of {len(d)} {blocks.units}, {right} on {wins[1, 0]}"
    if wins.any():
        largest = tie_order(np.abs(d), descending=True)[0]
        name, share = both.names[largest], percent(float(d[largest] ** 2 / total))
        text += (
            f"; {blocks.unit} {name} alone holds {share} of the squared differences, which weigh in a mean and not in "
            "ranks"
        )
    return f"{text}."


# ---------------------------------------------------------------------- the trap


def rows_as_blocks(blocks: Blocks, alpha: float, rng: np.random.Generator) -> RowsAsBlocks | None:
    """Rank the single runs of every instance as if each were a block; None where each block has one row."""
    whole = (blocks.n_runs == blocks.n_runs[:, :1]).all(axis=1) & (blocks.n_runs[:, 0] > 0)
    n_rows = blocks.n_runs[whole, 0]
    if blocks.complete.sum() < 2 or not whole.any() or n_rows.sum() <= len(np.unique(blocks.block[whole])):
        return None
    k = len(blocks.algorithms)
    sign = -1.0 if blocks.direction == "maximize" else 1.0
    scores = np.concatenate([sign * cell[:, :n].T for cell, n in zip(blocks.runs[whole], n_rows, strict=True)])
    owner = np.repeat(blocks.block[whole], n_rows)
    of_rows = ranked(scores)
    names, owner = np.unique(owner, return_inverse=True)
    sums = np.zeros((len(names), k))
    np.add.at(sums, owner, of_rows)
    of_blocks = ranked(-blocks.where(blocks.complete).gains)
    p = _nemenyi_p(of_rows.mean(axis=0), len(scores))
    return RowsAsBlocks(
        n_rows=len(scores),
        n_blocks=len(of_blocks),
        n_significant=int(below(p, alpha).sum()),
        false_alarms=_false_alarms(sums, len(scores), alpha, rng),
        of_blocks=_false_alarms(of_blocks, len(of_blocks), alpha, rng),
        alpha=alpha,
    )


def _nemenyi_p(means: Array, n: int) -> Array:
    k = len(means)
    i, j = np.triu_indices(k, 1)
    return ptukey(np.abs(means[i] - means[j]) / np.sqrt(k * (k + 1.0) / (12.0 * n)), k, np.inf, upper=True)


def _false_alarms(sums: Array, n: int, alpha: float, rng: np.random.Generator) -> tuple[float, float, float]:
    """Share of exchanges of the algorithms within blocks after which the range of the mean ranks is critical."""
    k = sums.shape[1]
    critical = float(qtukey(1.0 - alpha, k, np.inf)) * np.sqrt(k * (k + 1.0) / (12.0 * n))
    exchanges = EXCHANGES
    if EXCHANGES * sums.size > _EXCHANGED:
        variances = sums.var(axis=1)
        if variances.sum() ** 2 >= _NORMAL * np.square(variances).sum() > 0.0:  # as many blocks that weigh the same
            sd = np.sqrt(variances.sum() * k / (k - 1.0)) / n
            return (float(ptukey(critical / sd, k, np.inf, upper=True)),) * 3
        exchanges = max(100, _EXCHANGED // sums.size)
    count = 0
    for start in range(0, exchanges, at_once := max(1, _AT_ONCE // sums.size)):
        orders = np.argsort(rng.random((min(at_once, exchanges - start), *sums.shape)), axis=2, kind="stable")
        exchanged = np.take_along_axis(np.broadcast_to(sums, orders.shape), orders, axis=2).sum(axis=1) / n
        count += int((np.ptp(exchanged, axis=1) > critical * (1.0 + 1e-12)).sum())
    low, high = map(float, clopper_pearson(count, exchanges, 0.95))
    return count / exchanges, low, high
