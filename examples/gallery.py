"""Every figure of lmemtest, drawn from the bundled runs.

    python gallery.py [folder] [--width column|page]

Writes one png per figure and gallery.html, which shows them with what each is made of, into the folder (default: out).
`lmemtest.plots.gallery()` lists the same figures without drawing them.
"""

import argparse
import functools
import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

import lmemtest as lt
from lmemtest.plots import detached_figures

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Figures of lmemtest</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 1rem/1.4 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }}
nav {{ columns: 11rem; font-size: .8rem }} nav a {{ display: block }} a {{ color: #0072B2 }}
h2 {{ font-size: 1.1rem; margin: 3rem 0 0; overflow-wrap: anywhere }} p {{ margin: .3rem 0 1rem }}
img {{ max-width: 100%; height: auto; display: block }}
</style>
</head>
<body><h1>Figures of lmemtest</h1>
<nav>{names}</nav>
{figures}
</body></html>
"""


@functools.cache
def every() -> lt.Runs:
    """Four optimisers, whose scores are ranks within benchmark and budget."""
    runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "HB+prior", "RS", "TPE"], prior="bad")
    return runs.normalize("rank")


@functools.cache
def runs() -> lt.Runs:
    """The same at their last budget."""
    return every().filter(budget=every().frame[every().budget].max())


@functools.cache
def both_priors() -> lt.Runs:
    """Two optimisers with good and bad priors, at three budgets."""
    table = lt.datasets.load_hpo_runs()
    budgets = sorted(table.frame[table.budget].unique())
    kept = [budgets[0], budgets[len(budgets) // 2], budgets[-1]]
    return table.filter(algorithm=["HB+prior", "TPE+prior"], budget=kept).normalize("rank")


@functools.cache
def failing() -> lt.Runs:
    """Runs some of which failed."""
    table = runs().to_frame()
    failed = (table[runs().seed] == table[runs().seed].min()) & (table[runs().algorithm] == "RS")
    return lt.Runs(table.assign(failed=failed), **{**runs().roles(), "failed": "failed"})


@functools.cache
def fit() -> Any:
    """The recommended model."""
    return lt.fit_lmm(lt.recommend(runs()).formula, runs())


@functools.cache
def smaller() -> Any:
    """A model with few variances."""
    return lt.fit_lmm("loss_rank ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)", runs())


@functools.cache
def means() -> Any:
    return fit().emmeans(runs().algorithm)


@functools.cache
def pairs() -> Any:
    return means().pairs()


@functools.cache
def over_budgets() -> Any:
    return lt.anytime(every(), rng=1)


@functools.cache
def ranking() -> Any:
    return lt.rank(runs())


@functools.cache
def board() -> Any:
    return lt.leaderboard(runs(), rng=1)


@functools.cache
def searched(algorithm: str) -> Any:
    """Scores of one algorithm on one benchmark, as those of a random search."""
    table = runs().filter(algorithm=algorithm).to_frame()
    return table[runs().score].to_numpy()[:40]


@functools.cache
def curve(algorithm: str) -> Any:
    return lt.tuning.curve(searched(algorithm), direction="minimize")


@functools.cache
def parametric() -> Any:
    return lt.tuning.fit(searched("RS"), direction="minimize")


@functools.cache
def answers() -> pd.DataFrame:
    """Runs as answers to items: was the score among the better half?"""
    table = runs().to_frame()
    right = (table[runs().score] < table[runs().score].median()).astype(int)
    columns = {"model": runs().algorithm, "task": runs().benchmark, "item": runs().seed}
    return pd.DataFrame({name: table[column] for name, column in columns.items()} | {"right": right})


def projection() -> Any:
    """Tasks and runs as sources of the differences of algorithms, and what more of them would buy."""
    table = runs().to_frame().rename(columns={runs().benchmark: "task", runs().seed: "run", runs().algorithm: "tool"})
    return lt.variance_sources(table, score=runs().score, sources=["task", "run"], model="tool").project()


@functools.cache
def at_looks() -> Any:
    runs = lt.datasets.load_hpo_runs().filter(budget=12, prior="bad")
    found, names = None, runs.levels("benchmark")
    for n in (8, 12, 16):
        found = lt.monitor(runs.filter(benchmark=names[:n]), maximum=20, looks=4, earlier=found)
    return found


@functools.cache
def votes() -> Any:
    """The best of two runs as a vote on each benchmark and seed."""
    wide = runs().to_frame().pivot_table(runs().score, [runs().benchmark, runs().seed], runs().algorithm)
    rows = [
        (left, right, "a" if row[left] < row[right] else "b" if row[left] > row[right] else "tie", str(seed))
        for (_, seed), row in wide.iterrows()
        for i, left in enumerate(wide.columns)
        for right in wide.columns[i + 1 :]
    ]
    table = pd.DataFrame(rows, columns=["model_a", "model_b", "winner", "voter"])
    return lt.rate_votes(table, position=False)


@functools.cache
def diagnosis() -> Any:
    return fit().diagnose()


@functools.cache
def metafeature() -> Any:
    return lt.metafeature_effect(both_priors(), ("HB+prior", "TPE+prior"), both_priors().metafeatures[0], rng=1)


def attempts() -> Any:
    seeds = answers().rename(columns={"item": "epoch"}).assign(item="run")
    return lt.repeated_attempts(seeds, model="model", task="task", item="item", epoch="epoch", score="right")


def power() -> Any:
    components = lt.VarianceComponents(interaction_sd=0.1, residual_sd=0.2)
    return lt.power(components, effect=0.1, n_benchmarks=[4, 8, 12], n_seeds=5, n_algorithms=3, n_draws=200, rng=1)


def trainings() -> Any:
    costs = {"training": 1.0}
    parts = {"tuning": 0.4, "data": 0.9, "seed": 0.3}
    return lt.plan(
        parts, budget=200, trials=20, stages=tuple(parts), costs=costs, at_most={"data": 9}, current={"seed": 3}
    )


def calls() -> dict[str, Callable[[], Any]]:
    """What each figure is drawn of."""
    aggregate = functools.cache(lambda: lt.aggregate_scores(runs(), n_draws=200, rng=1))
    return {
        "cd_diagram": lambda: pairs().decisions(),
        "cd_diagrams": lambda: {"model": pairs().decisions(), "ranks": ranking()},
        "horizons_plot": lambda: over_budgets().at(),
        "emmeans_plot": means,
        "forest_plot": pairs,
        "pairs_plot": pairs,
        "pairs_matrix_plot": pairs,
        "comparison_matrix_plot": pairs,
        "p_value_plot": pairs,
        "ranking_plot": ranking,
        "rankings_plot": lambda: lt.rank(runs(), "all"),
        "leaderboard_plot": board,
        "win_rate_plot": board,
        "posterior_maps_plot": lambda: lt.rank(runs(), "bayesian", rng=1),
        "outperforming_plot": lambda: lt.outperforming(runs(), rng=1),
        "aggregate_scores_plot": aggregate,
        "improvement_plot": lambda: aggregate().improvement(),
        "performance_profile_plot": lambda: aggregate().profiles(),
        "benchmark_effects_plot": lambda: lt.benchmark_effects(runs(), rng=1),
        "benchmark_clusters_plot": lambda: lt.benchmark_clusters(runs(), n_draws=20, rng=1),
        "benchmark_information_plot": lambda: lt.benchmark_information(runs()),
        "metafeature_effect_plot": metafeature,
        "anytime_plot": over_budgets,
        "anytime_differences_plot": over_budgets,
        "cd_ribbon": over_budgets,
        "relative_ranks_plot": lambda: over_budgets().ranks(),
        "budget_effect_plot": lambda: lt.budget_effect(every()),
        "score_distributions_plot": lambda: lt.score_distributions(runs()),
        "seed_effect_plot": lambda: lt.seed_effect(runs(), rng=1),
        "failure_rates_plot": lambda: lt.failure_rates(failing(), rng=1),
        "audit_plot": lambda: lt.audit(runs(), n_draws=20, unit="benchmark", rng=1),
        "variance_sources_plot": lambda: lt.variance_sources(runs()),
        "projection_plot": projection,
        "ranking_reliability_plot": lambda: lt.ranking_reliability(runs()),
        "power_plot": power,
        "plan_plot": trainings,
        "random_effects_plot": lambda: smaller().random_effects("benchmark"),
        "profile_plot": lambda: smaller().profile(),
        "selection_plot": lambda: lt.select_model(runs(), method="best", depth=2, candidates=["(1 | benchmark:seed)"]),
        "diagnosis_plot": diagnosis,
        "qq_plot": diagnosis,
        "residuals_plot": diagnosis,
        "scale_plot": diagnosis,
        "influence_plot": lambda: fit().influence(runs().benchmark),
        "evaluation_plot": lambda: lt.evaluate(answers(), model="model", item="item", task="task", score="right"),
        "repeated_attempts_plot": attempts,
        "votes_plot": votes,
        "looks_plot": at_looks,
        "tuning_curve_plot": lambda: {"RS": curve("RS"), "TPE": curve("TPE")},
        "tuning_band_plot": lambda: lt.tuning.band(n_scores=20),
        "tuning_curves_plot": lambda: lt.tuning.curves(
            runs().to_frame(), by=runs().algorithm, score=runs().score, direction="minimize"
        ),
        "tuning_expected_best_plot": lambda: lt.tuning.expected_best(searched("RS"), direction="minimize"),
        "tuning_compare_plot": lambda: lt.tuning.compare(
            searched("RS"), searched("TPE"), direction="minimize", n_draws=0, rng=1
        ),
        "tuning_best_of_plot": lambda: lt.tuning.best_of(searched("RS"), searched("TPE"), direction="minimize"),
        "tuning_plan_plot": lambda: lt.tuning.plan(n_scores=range(5, 60, 5)),
        "tuning_fit_plot": lambda: parametric().curve(range(1, 21)),
    }


def draw(name: str, **options: Any) -> Axes:
    """One figure, with options of all figures such as `width` and `labels`."""
    return getattr(lt.plots, name)(calls()[name](), **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out"), help="for the figures (default: out)")
    parser.add_argument("--width", choices=["column", "page"], help="of all figures (default: that of their content)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    listed = lt.plots.gallery().figures.set_index("figure")
    parts = []
    with detached_figures():
        for name in calls():
            draw(name, width=arguments.width).figure.savefig(arguments.folder / f"{name}.png", dpi=150)
            words, source = (html.escape(listed.loc[name, column]) for column in ("draws", "of"))
            parts.append(
                f'<h2 id="{name}">{name}</h2>\n<p>{words} Of: {source}.</p>\n'
                f'<a href="{name}.png"><img src="{name}.png" alt="{words}" loading="lazy"></a>'
            )
    page = PAGE.format(names="\n".join(f'<a href="#{name}">{name}</a>' for name in calls()), figures="\n".join(parts))
    (arguments.folder / "gallery.html").write_text(page, encoding="utf-8")
    print(f"{len(parts)} figures in {arguments.folder / 'gallery.html'}.")


if __name__ == "__main__":
    main()
