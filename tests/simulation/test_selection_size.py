"""What choosing terms does to error rates: where nothing is to be found, and in the test that follows."""

from __future__ import annotations

from harness import about, at_most, differs, rate_of
from study import make_scores, runs_of_scores

from lmemtest.bench.modelling.builder import ModelBuilder
from lmemtest.bench.modelling.select_model import select_model


def study(rng, *, k=3, b=12, n=4, pair=0.0, level=0.0):
    """Algorithms and a metafeature without a general effect.

    `pair` is the sd of advantages between benchmarks, `level` that of what the metafeature does to them.
    """
    counts = {"algorithm": k, "benchmark": b, "prior": 2, "seed": n}
    sds = {"benchmark": 1.0, "benchmark:algorithm": pair} | ({"benchmark:prior": level} if level else {})
    return runs_of_scores(make_scores(rng, counts, sds), " ".join(counts), prior=["p0", "p1"])


def rejects(fit, vcov="model"):
    return differs(fit.emmeans("algorithm").pairs(vcov=vcov))


def test_a_metafeature_without_effect_is_rarely_added():
    """One candidate at alpha; several at alpha together with Holm's adjustment, at more without it."""

    def add(rng):
        start = ModelBuilder(study(rng, pair=0.5)).random("benchmark", "benchmark:algorithm")
        one = bool(start.select(candidates=["C(prior)"]).chosen)
        first = start.select(candidates=["prior", "seed"], max_steps=1)
        tried = first.to_frame()["p_raw"].dropna()
        assert len(tried) == 5  # prior, with the algorithm too, its instances, seeds on all benchmarks and on each
        return one, bool(first.chosen), (tried <= 0.05).any()

    one, holm, raw = rate_of(add, 300, 1)
    print(f"added: one candidate {one:.3f}, Holm {holm:.3f}, unadjusted {raw:.3f}")
    assert about(one, 300)
    assert at_most(holm, 300)
    assert raw > 1.5 * max(holm, 1 / 300)


def test_a_metafeature_that_acts_differently_on_few_benchmarks_enters_too_often():
    """What the notes of `select_model` say about chi-squared tests of fixed effects that vary between benchmarks."""
    shares = {}
    for b in (5, 20):

        def add(rng, b=b):
            runs = study(rng, b=b, n=3, pair=0.5, level=0.7)
            start = ModelBuilder(runs).random("benchmark", "benchmark:algorithm", "benchmark:prior")
            return bool(start.select(candidates=["C(prior)"]).chosen)

        shares[b] = rate_of(add, 200, lambda i, b=b: [b, i])
    print(f"added at 5 %: {shares}")
    assert not at_most(shares[5], 200, p=0.01)
    assert shares[20] < 0.1


def test_p_values_of_a_chosen_model_are_too_small_and_those_of_the_other_half_are_not():
    """Advantages that the choice misses are missing from its error, not from that of the benchmarks held out."""
    options = {"criterion": "bic", "candidates": ["benchmark", "prior"]}

    def choose(rng):
        runs = study(rng, pair=0.4)
        chosen = select_model(runs, **options).fit()
        honest = rejects(select_model(runs, **options, validate="half", rng=rng).holdout.fit)
        return (
            rejects(chosen),
            rejects(chosen, "moderated"),
            honest,
            rejects(ModelBuilder(runs).random("benchmark", "benchmark:algorithm").fit()),
        )

    naive, moderated, honest, designed = rate_of(choose, 250, 2)
    print(
        f"rejects: naive {naive:.3f}, moderated {moderated:.3f}, other half {honest:.3f}, by the design {designed:.3f}"
    )
    assert not at_most(naive, 250, p=0.01)
    assert at_most(moderated, 250)  # its errors are those of the benchmarks, whatever the model
    assert at_most(honest, 250)
    assert at_most(designed, 250)
