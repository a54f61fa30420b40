"""An evaluation in words: who leads by either question, where the answers differ, and what could be found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.evaluation.evaluation_result import Evaluation
from lmemtest.bench.evaluation.failed import on_failures
from lmemtest.bench.evaluation.questions import ITEMS, LIKE, SUFFIX, THESE
from lmemtest.bench.evaluation.tables import best_first
from lmemtest.core.options import ADJUSTMENT_NAMES, DDF_NAMES, ERROR_NAMES
from lmemtest.core.rounding import written
from lmemtest.core.words import counted, format_number, joined, percent, plural

if TYPE_CHECKING:
    from lmemtest.lmm.means.decisions import Decisions

_OF_CLUSTERS = (("design_effect", ".2f"), ("n_effective", ",.0f"))
MOST_PAIRS = 45  # of ten models: more are not read in a summary


def with_words(evaluation: Evaluation, lacking: Mapping[str, Sequence[str]], read: Mapping[str, Any]) -> Evaluation:
    """The evaluation with what is printed and said of it.

    `lacking` are models with tasks that they did not answer; `read` is what the table and the arguments say.
    """
    pairs, how = evaluation.pairs, ADJUSTMENT_NAMES[evaluation.these.adjust]
    level = percent(1.0 - evaluation.alpha)
    many = f"p-values with {how} adjustment for {len(pairs):,} pairs, {level} intervals for all."
    intervals = f"{level} intervals." if len(pairs) == 1 else many
    said = {**evaluation.values, **_of_populations(evaluation, read), "intervals": intervals}
    evaluation = replace(evaluation, values=said)
    facts = [*(f"_{suffix}: {text}" for suffix, text in evaluation.samples.items()), intervals]
    numbers = (evaluation.effect, "ci_low", "ci_high", "p_value")
    printed = best_first(pairs, evaluation.models["model"])[
        ["left", "right", *(f"{name}_{suffix}" for suffix in evaluation.samples for name in numbers)]
    ]
    if len(pairs) > MOST_PAIRS:
        printed = evaluation.models.drop(columns=["n_tasks"])
        groups = "letters shared by models that cannot be distinguished"
        groups = groups if evaluation.lettered else "the ranks that the tests leave possible, simultaneously for all"
        facts.append(
            f"The pairs are in to_frame(); here are the models with intervals that are not simultaneous, and {groups}."
        )
    findings = (
        *_leads(evaluation, lacking),
        *(_odds_ratios(evaluation) if evaluation.scale == "odds" else ()),
        *_pairs(evaluation),
        *_groups(evaluation, lacking),
        *_of_judges(evaluation),
        *_of_clusters(evaluation),
        *_noise(evaluation),
        *_smallest(evaluation),
        *on_failures(evaluation.failures, evaluation.sensitivity),
    )
    return replace(evaluation, printed=printed, facts=tuple(facts), findings=findings)


def _of_populations(evaluation: Evaluation, read: Mapping[str, Any]) -> dict[str, Any]:
    """`noun`: what mean scores are called; by the suffix of columns `populations` (which tasks) and `samples`."""
    maximize, odds, one = evaluation.direction == "maximize", evaluation.scale == "odds", evaluation.n_tasks == 1
    noun = "accuracy" if maximize and not read["graded"] else "mean score"
    if odds:
        noun = f"{'accuracy' if maximize else 'share of ones'} at the mean log odds"
    drawn = "items" if read["cluster"] is None else f"{plural(str(read['cluster']))} of items"
    ends = "" if evaluation.ends == (0.0, 1.0) else " (from {:g} to {:g})".format(*evaluation.ends)
    where = f"{'over' if odds or noun == 'mean score' else 'as the mean over'} these tasks"
    where, judges = "on this task" if one else where, " and judges" * read["judges_are_sample"]
    populations = {"these": "this task" if one else "these tasks"}
    samples = {
        "these": f"{noun}{ends} {where}; {drawn}{judges} are the sample. Separate standard errors for each pair"
        f"{' (delta method)' * odds}, Satterthwaite degrees of freedom."
    }
    if evaluation.like is not None and evaluation.fit is not None:
        means = evaluation.like.estimates
        errors = f"{ERROR_NAMES[means.errors].capitalize()} standard errors, {DDF_NAMES[means.ddf]}"
        families = [plural(str(read["family"]))] if "family" in evaluation.design else []
        populations["like"] = f"tasks of {families[0]} like these" if families else "tasks like these"
        units = [*families, "tasks", *["judges"] * read["judges_are_sample"], "items"]
        over = ["epochs"] * ("epoch" in evaluation.design and not odds and evaluation.method == "linear")
        over += [f"blocks of {read['per_row']:.0f} items"] * (read["per_row"] > 1.0)
        rows = f", of means over {joined(over)}" if over else ""
        samples["like"] = (
            f"{joined(units)} are the sample: {evaluation.fit.formula}{rows}"
            f"{', binomial (logit), probabilities averaged over random effects' * (evaluation.method == 'binomial')}"
            f"{', odds of k right of n items (k + 1/2) / (n - k + 1/2)' * odds}. {errors} degrees of freedom."
        )
    if evaluation.items is not None:
        populations["items"] = "these items"
        samples["items"] = f"{noun} {where}, on exactly these items; runs{judges} are the sample."
    return {"noun": noun, "populations": populations, "samples": samples}


def _questions(evaluation: Evaluation) -> Iterator[tuple[str, str, Decisions]]:
    """Suffix, beginning of a sentence and decisions of the questions that are answered."""
    n = evaluation.n_tasks
    yield "these", "On this task" if n == 1 else f"On these {counted(n, 'task')}", evaluation.decisions(THESE)
    if evaluation.like is not None:
        yield "like", f"For {evaluation.populations['like']}", evaluation.decisions(LIKE)
    if evaluation.items is not None:
        yield "items", "On exactly these items, over further runs,", evaluation.decisions(ITEMS)


def _leads(evaluation: Evaluation, lacking: Mapping[str, Sequence[str]]) -> Iterator[str]:
    most = "highest" if evaluation.direction == "maximize" else "lowest"
    told: tuple[str, str] | None = None  # of the question before
    for suffix, where, decisions in _questions(evaluation):
        rows = evaluation.models.set_index("model")
        means = rows[f"accuracy_{suffix}"]
        order = [name for name in (decisions.levels if suffix == "like" else rows.index) if not math.isnan(means[name])]
        if not order:
            continue
        name = order[0]
        row = rows.loc[name]
        first = [other for other in order if abs(means[other] - means[name]) <= 1e-9]
        ends = f"{written(row[f'ci_low_{suffix}'], '.3f')} to {written(row[f'ci_high_{suffix}'], '.3f')}"
        known = "" if math.isnan(row[f"ci_low_{suffix}"]) else f" ({percent(1.0 - evaluation.alpha)} interval {ends})"
        lead = f"the {most} {evaluation.noun}, {written(row[f'accuracy_{suffix}'], '.3f')}"
        if len(first) > 1:
            yield f"{where} {joined(first)} have {lead}{known}."
            continue
        significant = decisions.significant.loc[name]
        better = [other for other in order[1:] if significant[other]]
        others = [other for other in order[1:] if other not in better]
        if evaluation.pairs[f"p_value_{suffix}"].isna().all():
            than = "nothing is tested"
        elif not better:
            than = f"it is not shown to be better than {'any other model' if len(others) > 1 else others[0]}"
        elif others:
            rest = f"not shown to be better than {joined(others)}"
            than = f"it is significantly better than {joined(better)}, but {rest}"
        else:
            which = {1: better[0], 2: "both others"}.get(len(better), "all others")
            than = f"it is significantly better than {which}"
        if told == (name, than):
            yield f"{where} the same holds: {written(row[f'accuracy_{suffix}'], '.3f')}{known}."
        else:
            yield f"{where} {name} has {lead}{known}; {than}."
        told = (name, than)
    if lacking:
        each = [f"{name} (no answers on {joined(tasks, most=3)})" for name, tasks in lacking.items()]
        yield f"Not compared on these tasks: {joined(each, most=8)}."
    if evaluation.like is None:
        yield evaluation.these_alone


def _odds_ratios(evaluation: Evaluation) -> Iterator[str]:
    """Of the model that leads against each of the others, the first five."""
    level, what = percent(1.0 - evaluation.alpha), "a right answer" if evaluation.direction == "maximize" else "a one"
    for suffix, where, decisions in _questions(evaluation):
        columns = [f"{name}_{suffix}" for name in ("odds_ratio", "ci_low", "ci_high")]
        pairs = evaluation.pairs.dropna(subset=columns).set_index(["left", "right"])[columns]
        turned = (1.0 / pairs[[columns[0], columns[2], columns[1]]]).set_axis(columns, axis=1).swaplevel()
        first, *others = decisions.levels
        of = {**turned.T.to_dict("list"), **pairs.T.to_dict("list")}
        against = [(name, *(format_number(x, 3) for x in of[first, name])) for name in others if (first, name) in of]
        texts = [f"{ratio} times those of {name} ({low} to {high})" for name, ratio, low, high in against]
        if texts:
            yield f"{where} the odds of {what} of {first} are {joined(texts, most=5)}; {level} intervals."


def _pairs(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.like is None:
        return
    here, there = (evaluation.pairs[f"differ_{suffix}"] for suffix in (SUFFIX[THESE], SUFFIX[LIKE]))
    tested_here, tested_there = (int(differ.notna().sum()) for differ in (here, there))
    if tested_here and len(here) > 1:
        of = "" if tested_there == tested_here else f" of {tested_there:,}"
        yield (
            f"Pairs of models that differ significantly: {int(here.sum()):,} of {tested_here:,} on these tasks, "
            f"{int(there.sum()):,}{of} for {evaluation.populations['like']}."
        )
    names = np.array([f"{a} and {b}" for a, b in zip(evaluation.pairs["left"], evaluation.pairs["right"], strict=True)])
    for which, text in ((here & ~there, f"on these tasks but not for {evaluation.populations['like']}"),
                        (there & ~here, f"for {evaluation.populations['like']} but not on these tasks")):  # fmt: skip
        chosen = names[which.fillna(False).to_numpy(dtype=bool)]
        if len(chosen):
            more = f"; and {len(chosen) - 5:,} more pairs" if len(chosen) > 5 else ""
            yield f"A difference is shown {text}: {'; '.join(chosen[:5])}{more}."


def _groups(evaluation: Evaluation, lacking: Mapping[str, Sequence[str]]) -> Iterator[str]:
    if len(evaluation.models) == 2:  # said of the one that leads
        return
    for suffix, where, decisions in _questions(evaluation):
        outside = {} if suffix == "like" else lacking
        compared = [tuple(name for name in group if name not in outside) for group in decisions.groups]
        groups = [group for group in compared if len(group) > 1]
        if not groups or evaluation.pairs[f"differ_{suffix}"].isna().all():
            continue
        kept = groups[:3] if len(groups) <= 3 else groups[:1]
        said = "; nor among ".join(joined(group, most=8) for group in kept)
        left = len(groups) - len(kept)
        more = f"; nor within {left} groups more" if left else ""
        kept_in = [name for name in decisions.levels if name not in outside]
        undecided = decisions.undecided.loc[kept_in, kept_in].to_numpy()
        untested = " (pairs without a test included)" * bool(undecided.any())
        yield f"{where} no difference is shown among {said}{more}{untested}."


def _of_judges(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.judges.empty or evaluation.judges["judge"].nunique() < 2:
        return
    best = {}
    for judge, part in evaluation.judges.groupby("judge", sort=False):
        values = part["accuracy"]
        at = int(values.argmax() if evaluation.direction == "maximize" else values.argmin())
        best[judge] = str(part["model"].iloc[at])
    first = evaluation.models["model"].iloc[0]
    same = sum(name == first for name in best.values())
    yield (
        f"Judges score {percent(evaluation.disagreement)} of the answers differently; {first} comes first by {same} of "
        f"{counted(len(best), 'judge')}."
    )


def _of_clusters(evaluation: Evaluation) -> Iterator[str]:
    for row in evaluation.clusters.to_dict("records"):
        if math.isnan(row["design_effect"]):
            continue
        effect, as_many = (written(row[key], form) for key, form in _OF_CLUSTERS)
        which = "" if len(evaluation.pairs) == 1 else " (the median over the pairs)"
        yield (
            f"{row['n_items']:,} items in {row['n_clusters']:,} {plural(row['cluster'])}: the variance of a "
            f"difference on {evaluation.populations['these']} is {effect} times that of independent items{which}, so "
            f"they tell as much as {as_many} of these."
        )


def _noise(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.noise.empty:
        return
    sd, usual = (evaluation.noise[name].to_numpy(dtype=float) for name in ("sd_difference", "largest_usual"))
    at = int(np.nanargmax(sd))
    if sd[at] == 0.0:
        yield "Repeated attempts were scored alike throughout: runs of one model show no noise."
        return
    yield (
        f"Two identical runs of one model (one epoch each) differ in {evaluation.noun} with a standard deviation of "
        f"{points(sd[at])} at most ({evaluation.noise['model'].iloc[at]}); 95 % of such differences are below "
        f"{points(usual[at])}."
    )


def _smallest(evaluation: Evaluation) -> Iterator[str]:
    smallest = evaluation.detectable.set_index("question")["smallest"].dropna()
    words = {THESE: f"on {evaluation.populations['these']}", LIKE: f"for {evaluation.populations.get('like')}",
             ITEMS: "on exactly these items"}  # fmt: skip
    which = " (the middle pair, adjusted for all pairs)" * (len(evaluation.pairs) > 1)
    if evaluation.scale == "odds":
        ratios = [f"{format_number(float(size), 3)} {words[str(question)]}" for question, size in smallest.items()]
        if ratios:
            yield (
                f"With {percent(evaluation.power)} power such an evaluation finds an odds ratio of "
                f"{' and of '.join(ratios)}{which}."
            )
        return
    largest = evaluation.ends[1] - evaluation.ends[0]
    within = [f"{points(size)} {words[str(question)]}" for question, size in smallest.items() if size <= largest]
    beyond = [words[str(question)] for question, size in smallest.items() if size > largest]
    if within:
        also = f"; {joined(beyond)} not even one of {largest:g}" if beyond else ""
        yield (
            f"With {percent(evaluation.power)} power such an evaluation finds a difference of {' and of '.join(within)}"
            f"{which}{also}."
        )
    elif beyond:
        yield (
            f"With {percent(evaluation.power)} power such an evaluation finds no difference {joined(beyond)}, not even "
            f"one of {largest:g}{which}."
        )


def points(x: float) -> str:
    """A difference of accuracies.

    >>> points(0.0312), points(0.00042)
    ('0.031', '0.0004')
    """
    return written(float(x), ".3f") if abs(x) >= 0.0005 else written(float(x), ".1g")
