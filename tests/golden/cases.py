"""The package's own numbers on the cases of tests/reference: one function per file of reference values.

Each yields pairs of a name and a value (a result, a table, arrays); what the reference itself says is not used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import suite

import lmemtest as lt
from lmemtest.compat.significance_analysis import horizon_pairs

Found = Iterator[tuple[str, Any]]
METHODS = ("ML", "REML")
DDF = ("satterthwaite", "kenward-roger")


def load(name: str) -> Any:
    return suite.module("tests/conftest.py")._load_reference(name)


def table(name: str) -> pd.DataFrame:
    return suite.module("tests/conftest.py")._load_input(name).copy()


@cache
def fitted(name: str, formula: str, reml: bool = True, weights: str | None = None) -> Any:
    return lt.fit_lmm(formula, table(name), reml=reml, weights=weights)


def fits() -> Found:
    for i, want in enumerate(load("fits")["fits"]):
        for method in METHODS:
            fit = fitted(want["data"], want["formula"], method == "REML", want["weights"])
            yield f"{i} {method}", fit
            for group in dict.fromkeys(term.group for term in fit.design.random):
                yield f"{i} {method} modes of {group}", fit.conditional_modes(group)


def emm() -> Found:
    for i, model in enumerate(load("emm")["models"]):
        fit = fitted(model["data"], model["formula"], True, model["weights"])
        for ddf in DDF:
            yield f"{i} {ddf} coefficients", fit.to_frame(ddf=ddf)
            yield f"{i} {ddf} anova", fit.anova(ddf=ddf)
        for (g, grid), ddf in itertools.product(enumerate(model["grids"]), (*DDF, "asymptotic")):
            numeric = fit.design.numeric
            averaged = {n: [numeric[n]] for n in grid["specs"] if n in numeric and n not in grid["at"]}
            em = fit.emmeans(
                grid["specs"],
                by=grid["by"] or None,
                at={**grid["at"], **averaged},
                weights=grid["weights"],
                ddf=ddf,
            )
            yield f"{i} {ddf} grid {g}", em
            for adjust in grid[ddf.replace("-", "_")].get("pairs") or {}:
                yield f"{i} {ddf} grid {g} pairs {adjust}", em.pairs(adjust=adjust)


def contrasts() -> Found:
    for i, grid in enumerate(load("contrasts")["grids"]):
        em = fitted(grid["data"], grid["formula"]).emmeans(grid["specs"], by=grid["by"])
        for family, by_adjust in grid["families"].items():
            for adjust in by_adjust:
                yield f"{i} {family} {adjust}", em.contrast(family, adjust=adjust)


def trends() -> Found:
    for (i, want), ddf in itertools.product(enumerate(load("contrasts")["trends"]), DDF):
        at = want["at"] or {}
        fit = fitted(want["data"], want["formula"])
        yield f"{i} {ddf}", fit.emtrends([want["specs"], *at], var=want["var"], at=at, ddf=ddf)


def anova() -> Found:
    stored = load("anova")
    for i, model in enumerate(stored["models"]):
        fit = fitted(model["data"], model["formula"], True, model["weights"])
        for kind, ddf in itertools.product((1, 2, 3), DDF):
            yield f"{i} type {kind} {ddf}", fit.anova(ddf=ddf, type=kind)
    for (i, model), method in itertools.product(enumerate(stored["random"]), METHODS):
        yield f"random {i} {method}", fitted(model["data"], model["formula"], method == "REML").ranova("chi2")


def formulas() -> Found:
    for (i, case), method in itertools.product(enumerate(load("formulas")["fits"]), METHODS):
        fit, rows = fitted(case["data"], case["formula"], method == "REML"), table(case["data"]).head(20)
        yield f"{i} {method}", fit
        yield f"{i} {method} predictions", [fit.predict(rows), fit.predict(rows, random=False)]
        if "means" in case[method]:
            yield f"{i} {method} means", fit.emmeans("treatment" if "treatment" in case["formula"] else "algorithm")


def kenward_roger() -> Found:
    stored = load("kenward_roger")
    for i, model in enumerate([*stored["models"], stored["weighted"]]):
        fit = fitted(model["data"], model["formula"], True, "w" if model is stored["weighted"] else None)
        yield f"{i}", fit.to_frame(ddf="kenward-roger")
        L = np.eye(len(fit.params))[fit.params.notna().to_numpy()]
        yield f"{i} covariance", fit.cov(L, "kenward-roger")
    for (i, model), ddf in itertools.product(enumerate(stored["joint_tests"]), DDF):
        yield f"joint {i} {ddf}", fitted(model["data"], model["formula"]).joint_tests(by=model["by"], ddf=ddf)


def lrt() -> Found:
    for (i, row), method in itertools.product(enumerate(load("lrt")["tests"]), METHODS):
        if row.get(method):
            models = [fitted(row["data"], row[x], method == "REML", row["weights"]) for x in ("null", "alternative")]
            for reference in ("chi2", "mixture") if row["mixture"] else ("chi2",):
                yield f"{i} {method} {reference}", lt.glrt(*models, reference=reference)


def ptukey() -> Found:
    from lmemtest.lmm.distributions import studentized_range

    rows = [pd.DataFrame(load("ptukey")[part]).astype(float) for part in ("probabilities", "quantiles")]
    p, q = rows
    for upper in (False, True):
        yield f"probabilities, upper {upper}", studentized_range.ptukey(p["q"], p["k"], p["df"], upper=upper)
    yield "quantiles", studentized_range.qtukey(q["p"], q["k"], q["df"])


def simultaneous() -> Found:
    from lmemtest.lmm.distributions.largest_t import largest_t

    for family, alternative in itertools.product(load("simultaneous")["families"], ("two-sided", "greater")):
        joint = largest_t(np.array(family["correlation"]), alternative=alternative, rng=5)
        rows = [(r["c"], r["df"]) for r in family["probabilities"] if r["alternative"] == alternative]
        yield f"{family['name']} {alternative}", [float(joint.sf(c, df)) for c, df in rows]
    layout = suite.module("test_control.py")
    for i, (em, _) in enumerate(layout.rows_of(load, fitted)):
        yield f"{i} pairs", em.pairs(adjust="mvt", rng=1)
        yield f"{i} control", em.against(em.labels()[0], rng=1)
    means_of = suite.module("tests/lmm/conftest.py").means_of
    means_of = getattr(means_of, "__wrapped__", means_of)()
    for i, case in enumerate(load("simultaneous")["best"]):
        mean, variance = (np.array([row[name] for row in case["table"]], dtype=float) for name in ("mean", "variance"))
        em = means_of(mean, np.diag(variance), float(case["df"]))
        yield f"best {i}", em.best(alpha=case["alpha"], rng=1)


def dispersion() -> Found:
    for (i, want), method in itertools.product(enumerate(load("dispersion")["fits"]), METHODS):
        fit = lt.fit_lmm(want["formula"], table(want["data"]), reml=method == "REML", dispersion=want["dispersion"])
        yield f"{i} {method}", fit


def diagonal() -> Found:
    for (i, case), method in itertools.product(enumerate(load("diagonal")["fits"]), METHODS):
        fit = fitted(case["data"], case["formula"], method == "REML")
        yield f"{i} {method}", fit
        for ddf in DDF if method == "REML" else ():
            yield f"{i} pairs {ddf}", fit.emmeans("algorithm", ddf=ddf).pairs()


def random_effects() -> Found:
    for i, want in enumerate(load("random_effects")["fits"]):
        fit = fitted(want["data"], want["formula"], True, want["weights"])
        for group in want["groups"]:
            for interval in ("pointwise", "simultaneous"):
                yield (
                    f"{i} {group['group']} {interval}",
                    fit.random_effects(group["group"], simultaneous=interval == "simultaneous", rng=1),
                )


def cluster_robust() -> Found:
    for i, want in enumerate(load("cluster_robust")["fits"]):
        rows = table(want["data"])
        fit = lt.fit_lmm(want["formula"], rows, weights=want.get("weights"), dispersion=want.get("dispersion"))
        for kind in ("CR0", "CR1", "CR2"):
            robust = fit.cluster_robust(want["cluster"], kind=kind)
            yield f"{i} {kind}", robust
            yield f"{i} {kind} covariance", robust.cov_params()
        known = np.flatnonzero(robust.to_frame()["se"].notna())[1:4]
        if len(known) > 1:
            yield f"{i} F", robust.f_test(np.eye(len(fit.params))[known])


def moderation() -> Found:
    from lmemtest.lmm.means.empirical_bayes import fit_scaled_f, squeeze

    for i, case in enumerate(load("moderation")["cases"]):
        x, df = np.array(case["x"]), np.array(case["df"])
        s0, d0 = fit_scaled_f(x, df)
        yield f"{i}", [*map(float, (s0, d0)), *map(np.asarray, squeeze(x, df, s0, d0))]


def power() -> Found:
    stored, options = load("power"), {"method": "closed_form", "progress": False}
    for i, want in enumerate(stored["designs"]):
        plan = lt.VarianceComponents(interaction_sd=0.0, residual_sd=want["sd"] / np.sqrt(2.0))
        found = lt.power(plan, effect=want["delta"], n_benchmarks=want["n"], n_seeds=1, alpha=want["alpha"], **options)
        yield f"design {i}", found
    plan = lt.VarianceComponents(interaction_sd=0, residual_sd=np.sqrt(0.5))
    for i, want in enumerate(stored["needed"]):
        found = lt.power(plan, effect=want["delta"], n_benchmarks=5, n_seeds=1, **options)
        yield f"needed {i}", found.needed(want["power"])
    plan = lt.VarianceComponents(interaction_sd=0.5, residual_sd=np.sqrt(0.5))
    for i, want in enumerate(stored["detectable"]):
        found = lt.power(plan, effect=0.01, n_benchmarks=want["n"], n_seeds=2, **options)
        yield f"detectable {i}", found.detectable(want["power"])


def profile() -> Found:
    for i, want in enumerate(load("profile")["models"]):
        yield f"{i}", fitted(want["data"], want["formula"], False, want["weights"]).profile(progress=False)


def influence() -> Found:
    for i, want in enumerate(load("influence")["models"]):
        fit = fitted(want["data"], want["formula"], want["reml"], want["weights"])
        yield f"{i}", fit.influence(want["group"], specs=want["specs"] or (), progress=False)


def diagnostics() -> Found:
    from lmemtest.lmm.diagnostics import collinearity, explained_variance

    for (i, model), method in itertools.product(enumerate(load("diagnostics")["models"]), METHODS):
        fit = fitted(model["data"], model["formula"], method == "REML")
        yield f"{i} {method} shares", explained_variance(fit)
        if model[method]["vif"] is not None:
            yield f"{i} {method} collinearity", collinearity(fit)
        yield f"{i} {method} diagnosis", fit.diagnose(influence=False, n_draws=99, rng=1)


def horizons() -> Found:
    rows = itertools.product(
        [f"b{i}" for i in range(1, 9)], ["BO", "HB", "RS"], [f"s{i}" for i in range(1, 5)], [1, 2, 4]
    )
    frame = pd.DataFrame(list(rows), columns=["task", "algorithm", "seed", "budget"])
    runs = lt.Runs(
        frame.assign(loss=np.ravel(load("horizons")["scores"])),
        score="loss",
        direction="minimize",
        algorithm="algorithm",
        benchmark="task",
        seed="seed",
        budget="budget",
    )
    for budgets, effect in (([2], "averaged"), ([(1, 4)], "averaged"), ([(1, 4)], "fixed"), ([(1, 4)], "random")):
        for adjust in ("tukey", "holm"):
            yield (
                f"{budgets} {effect} {adjust}",
                lt.anytime(runs).at(budgets, windows=effect, adjust=adjust),
            )
    yield "changes", lt.anytime(runs).at([1, 4], adjust="tukey", vcov="model")
    yield "the paper's model", lt.anytime(runs).at([(1, 4)])
    yield "the paper's model beside it", horizon_pairs(runs, [(1, 4)])


def selection() -> Found:
    roles = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed", "metafeatures": ["prior"]}
    for name in ("bench_prior", "bench_prior_unbalanced"):
        runs = lt.Runs(table(name), score="y", direction="minimize", **roles)
        for criterion in ("bic", "aic"):
            yield f"{name} {criterion}", lt.select_model(runs, criterion=criterion, rng=1)


def generated() -> Found:
    frames = dict(iter(table("generated").groupby("id", sort=False)))
    for model, method in itertools.product(load("generated")["models"], METHODS):
        fit = lt.fit_lmm(model["formula"], frames[model["id"]].drop(columns="id"), reml=method == "REML")
        values = {"llf": fit.llf, "theta": fit.theta, "scale": fit.scale, "params": fit.params, "bse": fit.bse}
        yield f"{model['id']} {method}", values


def tuning_laws() -> Found:
    stored = load("opda_parametric")
    for i, want in enumerate(stored["opda"]):
        c, o, convex = want["c"], want["o"], want["convex"]
        if o:
            law = lt.tuning.NoisyQuadraticDistribution(0.0, 1.0, c, o, convex)
        else:
            law = lt.tuning.QuadraticDistribution(0.0, 1.0, c, convex)
        found = {"quantiles": law.ppf(want["q"])}
        if "y" in want:
            found |= {"cdf": law.cdf(want["y"]), "pdf": law.pdf(want["y"])}
        for direction in ("minimize", "maximize"):
            found[f"median {direction}"] = law.quantile_curve(want["k"], direction=direction)
            found[f"mean {direction}"] = law.mean_curve(want["k"], direction=direction)
        yield f"law {i}", found
    for i, want in enumerate(stored["opda_witness"]):
        law = lt.tuning.NoisyQuadraticDistribution(0.0, 1.0, want["c"], want["o"], True)
        yield f"witness {i}", float(law.cdf(want["y"]))
    for i, want in enumerate(stored["expected_smallest"]):
        law = lt.tuning.NoisyQuadraticDistribution(0.0, 1.0, want["c"], want["s"], True)
        yield f"smallest {i}", float(law.mean_curve(want["k"]))


def tuning_fits() -> Found:
    for i, want in enumerate(load("opda_parametric")["opda_fits"]):
        law = "noisy_quadratic" if want["noisy"] else "quadratic"
        if want["upper"] is None:
            direction = "minimize" if want["convex"] else "maximize"
            yield f"{i}", lt.tuning.fit(np.array(want["y"]), direction=direction, law=law)


def tuning_bands() -> Found:
    from lmemtest.tuning.order_statistics import BANDS, critical_value, intervals

    for n, band, level in itertools.product((1, 2, 5, 13, 48, 140), BANDS, (0.05, 0.8, 0.99)):
        value = critical_value(n, band=band, level=level)
        yield f"{n} {band} {level}", [value, *map(np.asarray, intervals(n, band, value))]
    scores = np.random.default_rng(5).normal(size=60).round(3)
    for direction in ("minimize", "maximize"):
        yield f"curve {direction}", lt.tuning.curve(scores, direction=direction)
        for estimator in ("u", "v", "w"):
            yield (
                f"best {direction} {estimator}",
                lt.tuning.expected_best(scores, direction=direction, estimator=estimator),
            )


def compat() -> Found:
    from lmemtest.compat import significance_analysis as sa

    stored = load("significance_analysis")
    tables = {name: pd.DataFrame(columns) for name, columns in stored["tables"].items()}
    for name, want in stored["models"].items():
        made = sa.model(want["formula"], tables[want["table"]].copy(), **want["options"])
        yield f"{name} numbers", [float(made.logLike), float(made.AIC), float(made.BIC)]
        for part in ("coefs", "ranef_var", "fixef", "ranef", "fits", "residuals"):
            yield f"{name} {part}", getattr(made, part, None)
        yield f"{name} anova", made.anova()
        if want["class"] == "Lmer" and "algorithm" in want["formula"].split("(")[0]:
            yield f"{name} post_hoc", list(made.post_hoc("algorithm"))
    for entry in stored["glrt"]:
        both = [stored["models"][name] for name in entry["models"]]
        models = [sa.model(m["formula"], tables[m["table"]].copy(), **m["options"]) for m in both]
        try:
            yield f"glrt {entry['models']}", dict(sa.glrt(*models))
        except Exception as error:
            yield f"glrt {entry['models']}", {"(error)": type(error).__name__}
    for name in ("real", "null"):
        frame = tables[name]
        yield f"{name} seeds", sa.seed_dependency_check(frame.copy())
        yield f"{name} benchmarks", list(sa.benchmark_information_check(frame.copy()))
        yield f"{name} budgets", list(sa.fidelity_check(frame.copy()))
        names = list(dict.fromkeys(frame["algorithm"]))[:2]
        yield f"{name} metafeature", sa.metafeature_analysis(frame.copy(), names, "prior")
    yield "autorank", sa.convert_to_autorank(tables["seeded"].copy())


CASES: dict[str, Callable[[], Found]] = {
    case.__name__: case
    for case in (
        compat,
        generated,
        influence,
        simultaneous,
        fits,
        emm,
        profile,
        tuning_laws,
        tuning_fits,
        tuning_bands,
        anova,
        lrt,
        diagnostics,
        kenward_roger,
        formulas,
        contrasts,
        trends,
        cluster_robust,
        random_effects,
        dispersion,
        diagonal,
        selection,
        horizons,
        power,
        ptukey,
        moderation,
    )
}
