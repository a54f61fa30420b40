"""Which sources of variation matter? Likelihood-ratio tests of one random term at a time."""

import argparse

import lmemtest as lt

BASE = "regret ~ algorithm + (1 | benchmark)"
INTERACTION = BASE + " + (1 | benchmark:algorithm)"
SEED = INTERACTION + " + (1 | benchmark:seed)"


def main() -> None:
    """Fit three nested models and test each against the one before."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()  # --help; nothing is written
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    fits = [lt.fit_lmm(formula, runs) for formula in (BASE, INTERACTION, SEED)]

    print("Does the advantage of an algorithm differ between benchmarks?")
    print(lt.glrt(fits[0], fits[1]))
    print("\nDo runs with the same seed on a benchmark have something in common?")
    print(lt.glrt(fits[1], fits[2]))

    print("\nHow large are these sources? Standard deviations:")
    print(fits[2].varcorr[["group", "sd"]].to_string(index=False))


if __name__ == "__main__":
    main()
