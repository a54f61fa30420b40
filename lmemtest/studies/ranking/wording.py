"""What a ranking says: its sentences, and the paragraph for a paper."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._options import ADJUSTMENT_NAMES
from lmemtest._rounding import written
from lmemtest.studies.ranking.asked import TEST_NAMES
from lmemtest.words import counted, format_number, joined, p_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmemtest.studies.ranking.ranking import Ranking

MOST_PAIRS = 12  # in a paragraph; more are in a table
SYMBOLS = {
    "cohen_d": "d",
    "hedges_g": "g",
    "cohen_dz": "d_z",
    "cliff_delta": "Cliff's delta",
    "akinshin_gamma": "gamma",
    "rank_biserial": "rank-biserial r",
    "standardised": "d",
}


def ranking_sentences(ranking: Ranking) -> tuple[str, ...]:
    """Who is ahead, who is better than whom, which pairs are practically equivalent, and what stays open."""
    beaten, equal, open_pairs = _sorted_out(ranking)
    found = [_headline(ranking, beaten)]
    practically = "practically" if ranking.method == "bayesian" else "significantly"
    found += [f"{name} is {practically} better than {joined(worse, len(worse))}." for name, worse in beaten.items()]
    if equal:
        found.append(f"Practically equivalent: {_pairs(equal)}.")
    if open_pairs:
        what = "Undecided" if ranking.method == "bayesian" else "Not significantly different"
        found.append(f"{what}: {_pairs(open_pairs)}.")
    return tuple(found)


def _sorted_out(
    ranking: Ranking,
) -> tuple[dict[str, list[str]], list[tuple[str, str]], list[tuple[str, str]]]:
    """Whom each algorithm is better than; pairs that are equivalent; pairs that were tested and not decided."""
    beaten: dict[str, list[str]] = {}
    equal, undecided = [], []
    for row in ranking.pairs.to_dict("records"):
        left, right, decision = row["left"], row["right"], row["decision"]
        if decision == f"{left} better":
            beaten.setdefault(left, []).append(right)
        elif decision == f"{right} better":
            beaten.setdefault(right, []).append(left)
        elif decision == "practically equivalent":
            equal.append((left, right))
        elif decision != "no test":
            undecided.append((left, right))
    return beaten, equal, undecided


def _headline(ranking: Ranking, beaten: Mapping[str, list[str]]) -> str:
    first, *others = ranking.levels
    if ranking.control is not None:
        against = [name for name, worse in beaten.items() if ranking.control in worse]
        worse = beaten.get(ranking.control, [])
        parts = [f"better than {ranking.control}: {joined(against, len(against))}"] if against else []
        parts += [f"worse: {joined(worse, len(worse))}"] if worse else []
        return (
            f"Shown to be {'; '.join(parts)}." if parts else f"No algorithm is shown to differ from {ranking.control}."
        )
    worse = beaten.get(first, [])
    ahead = f"{first} ranks first"
    if not beaten:
        return f"{ahead}, but no difference between any two of the {len(others) + 1} algorithms is shown."
    if len(worse) == len(others):
        return f"{ahead}, ahead of {'the other one' if len(others) == 1 else f'all {len(others)} others'}."
    near = [name for name in others if name not in worse]
    return f"{ahead}; it is not shown to be better than {joined(near)}."


def _pairs(pairs: list[tuple[str, str]]) -> str:
    shown = [f"{left} and {right}" for left, right in pairs[:MOST_PAIRS]]
    rest = f"; and {len(pairs) - MOST_PAIRS} other pairs" if len(pairs) > MOST_PAIRS else ""
    return "; ".join(shown) + rest


# ---------------------------------------------------------------------- a paragraph for a paper


def ranking_paragraph(ranking: Ranking) -> str:
    """What was compared, on which sample, how, and what was found."""
    end = "lower" if ranking.direction == "minimize" else "higher"
    parts = [
        f"We compared {counted(len(ranking.levels), 'algorithm')} on {ranking.blocks.said()} by {ranking.score} "
        f"({end} is better)."
    ]
    parts.append(_how(ranking))
    if ranking.omnibus is not None:
        verdict = "significant" if ranking.omnibus.significant else "not significant"
        parts.append(f"The omnibus test ({ranking.omnibus.name}) was {verdict}: {ranking.omnibus.text}.")
    parts += _found(ranking)
    version = importlib.import_module("lmemtest").__version__
    parts.append(f"Computed with lmemtest {version}.")
    return " ".join(parts)


def _how(ranking: Ranking) -> str:
    name = TEST_NAMES[ranking.test]
    if ranking.method == "bayesian":
        return (
            f"Pairs were compared with the {name}; {ranking.asked.rope_text(ranking.score)}, and a pair is decided "
            f"where a posterior probability is above {1.0 - ranking.alpha:g}."
        )
    adjust = ADJUSTMENT_NAMES.get(ranking.separation.adjust, ranking.separation.adjust)
    if ranking.method == "lmem":
        model = next(note for note in ranking.notes if note.startswith("Model: ")).removeprefix("Model: ")
        how = f"Marginal means come from the linear mixed model {model} (REML, Satterthwaite degrees of freedom)"
    else:
        runs = int(ranking.blocks.n_runs.max())
        each = f"Each {ranking.blocks.unit} counts once" + (", with the mean of its runs" if runs > 1 else "")
        how = f"{each}. Pairs were compared by {name}"
    family = "all pairs" if ranking.control is None else f"the comparisons with {ranking.control}"
    controls = "" if ranking.separation.adjust in ("none", "fdr") else ", family-wise"
    return f"{how}; {adjust} adjustment for {family}, alpha = {ranking.alpha:g}{controls}."


def _found(ranking: Ranking) -> list[str]:
    table = ranking.pairs[ranking.pairs["decision"] != "no test"].to_dict("records")
    decided = [
        row for row in table if row["decision"].endswith(" better") or row["decision"] == "practically equivalent"
    ]
    said = [_pair_text(ranking, row) for row in decided[:MOST_PAIRS]]
    found = [f"{'; '.join(said)}."] if said else []
    if len(decided) > MOST_PAIRS:
        found.append(f"Of {len(decided) - MOST_PAIRS} further decided pairs the table has the numbers.")
    rest = len(table) - len(decided)
    if rest == len(table):
        found.append("No pair was decided." if rest > 1 else "The pair was not decided.")
    elif rest:
        which = "the other pair" if rest == 1 else f"the other {rest} pairs"
        found.append(f"For {which} no difference was shown, which does not show that they are equal.")
    return found


def _pair_text(ranking: Ranking, row: Mapping[str, Any]) -> str:
    left, right, decision = row["left"], row["right"], row["decision"]
    wins = f"better on {row['wins']} of {row['wins'] + row['ties'] + row['losses']} {ranking.blocks.unit}s"
    if decision == "practically equivalent":
        return f"{left} and {right} are practically equivalent (P = {written(row['p_equal'], '.3f')})"
    turned = decision == f"{right} better"
    first, second = (right, left) if turned else (left, right)
    if turned:
        wins = f"better on {row['losses']} of {row['wins'] + row['ties'] + row['losses']} {ranking.blocks.unit}s"
    if "p_left" in row:
        chance = written(max(row["p_left"], row["p_right"]), ".3f")
        return f"{first} is practically better than {second} (P = {chance}, {wins})"
    numbers = [f"difference {format_number(row['estimate'])}"]
    if np.isfinite(row["ci_low"]) and np.isfinite(row["ci_high"]):
        level = f"{100.0 * (1.0 - ranking.alpha):g} % CI"
        numbers.append(f"{level} {format_number(row['ci_low'])} to {format_number(row['ci_high'])}")
    if np.isfinite(row["df"]):
        numbers.append(f"t({written(row['df'], '.4g')}) = {format_number(row['statistic'], 3)}")
    numbers.append(p_text(row["p_value"]))
    if np.isfinite(row["effect_size"]):
        numbers.append(f"{SYMBOLS[ranking.effect]} = {written(row['effect_size'], '.2f')}")
    return f"{first} was better than {second} ({', '.join(numbers)}, {wins})"
