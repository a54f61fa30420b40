"""Reference values of the (noisy) quadratic distribution: integrals of 30 digits by mpmath, and opda's answers.

    pip install opda==0.8.0 mpmath==1.4.1
    python opda_parametric.py > opda_parametric.json

Each probability is integrated on its own, so ``cdf + sf - 1`` tells the error of the quadrature; it is checked.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version

import mpmath as mp
import numpy as np
import opda.parametric
import scipy

mp.mp.dps = 30
SHAPES = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 50.0)
CASES = 90


def normal_density(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def normal_below(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def panels(z, s):
    """Ends of panels within which every integrand is tame: doubling from the nearest end, or one per half sd."""
    ends = {mp.mpf(j) / 20 for j in range(21)}
    steps = [mp.mpf(2) ** j for j in range(-8, 8)]
    if z < 0:
        ends |= {step * s * s / (s - z) for step in steps}
    elif z > 1:
        ends |= {1 - step * s * s / (s + z - 1) for step in steps}
    ends |= {z + s * mp.mpf(j) / 2 for j in range(-30, 31)}
    ends |= {s * mp.mpf(j) / 2 for j in range(31)} | {1 - s * mp.mpf(j) / 2 for j in range(31)}
    return sorted(end for end in ends if 0 <= end <= 1)


def standard(z, s, c):
    """Density, cdf and sf of X + s N with P(X <= x) = x^(c/2), as logarithms."""
    z, s, h = mp.mpf(z), mp.mpf(s), mp.mpf(c) / 2
    root = 4 if h < 0.5 else 2  # x = t^root is smooth enough at zero
    ends = [mp.root(end, root) for end in panels(z, s)]

    def integral(f):
        return mp.quad(lambda t: f(t**root) * root * t ** (root - 1), ends)

    density = integral(lambda x: h * x ** (h - 1) * normal_density((z - x) / s) / s)
    below = normal_below((z - 1) / s) + integral(lambda x: x**h * normal_density((z - x) / s) / s)
    above = integral(lambda x: h * x ** (h - 1) * normal_below((x - z) / s))
    if abs(below + above - 1) > mp.mpf(10) ** -17:
        raise ArithmeticError(f"z={z}, s={s}, c={c}: cdf + sf - 1 = {below + above - 1}")
    return [float(mp.log(value)) for value in (density, below, above)]


def cases():
    rng = np.random.default_rng(0)
    for i in range(CASES):
        c, s = float(SHAPES[i % len(SHAPES)]), float(10 ** rng.uniform(-5, 2.5))
        where = (rng.uniform(0, 1), -s * rng.uniform(0, 30), 1 + s * rng.uniform(0, 30), s * rng.uniform(-3, 12))
        z = float(where[rng.integers(4)])
        log_pdf, log_cdf, log_sf = standard(z, s, c)
        yield {"z": z, "s": s, "c": c, "log_pdf": log_pdf, "log_cdf": log_cdf, "log_sf": log_sf}


def expected_smallest(k, s, c):
    """E of the smallest of k draws of X + s N: the outer integral runs over sf^k by mpmath too (16 digits)."""
    s, h = mp.mpf(s), mp.mpf(c) / 2
    ends = [mp.mpf(j) / 8 for j in range(9)]

    def above(z):
        return mp.quad(lambda t: 2 * h * t ** (2 * h - 1) * normal_below((t * t - z) / s), ends)

    with mp.workdps(16):
        low, high = -9 * s, 1 + 9 * s
        cuts = sorted({low, high, mp.mpf(0), *(s * j for j in range(-8, 9)), *(mp.mpf(j) / 8 for j in range(1, 9))})
        return float(low + mp.quad(lambda z: above(z) ** k, cuts))


def opda_answers():
    """Values, curves and fits of opda."""
    rows, y = [], np.array([-0.3, 0.0, 0.1, 0.5, 0.9, 1.0, 1.2])
    q, k = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999]), np.array([0.5, 1.0, 3.0, 10.0, 100.0, 1000.0])
    for c in (1, 2, 3, 5, 10):
        for convex in (True, False):
            for o in (0.0, 0.01, 0.1, 1.0):
                if o:
                    law = opda.parametric.NoisyQuadraticDistribution(0.0, 1.0, c, o, convex=convex)
                else:
                    law = opda.parametric.QuadraticDistribution(0.0, 1.0, c, convex=convex)
                rows.append(
                    {
                        "c": c, "o": o, "convex": convex, "mean": float(law.mean), "variance": float(law.variance),
                        "y": y.tolist(), "cdf": law.cdf(y).tolist(),
                        "pdf": [v if np.isfinite(v) else "Inf" for v in law.pdf(y).tolist()],
                        "q": q.tolist(), "ppf": law.ppf(q).tolist(), "k": k.tolist(),
                        "median_min": law.quantile_tuning_curve(k, minimize=True).tolist(),
                        "median_max": law.quantile_tuning_curve(k, minimize=False).tolist(),
                        "mean_min": law.average_tuning_curve(k, minimize=True).tolist(),
                        "mean_max": law.average_tuning_curve(k, minimize=False).tolist(),
                    }
                )  # fmt: skip
    return rows


def opda_witness():
    """Who is right where opda and lmemtest differ: the distribution function at some of the points above."""
    rows = []
    for c in (1, 3, 10):
        for o in (0.01, 0.1, 1.0):
            for y in (0.0, 0.1, 0.5, 0.9):
                law = opda.parametric.NoisyQuadraticDistribution(0.0, 1.0, c, o, convex=True)
                exact = [float(np.exp(value)) for value in standard(y, o, c)]
                rows.append(
                    {"c": c, "o": o, "y": y, "pdf": exact[0], "cdf": exact[1], "sf": exact[2],
                     "opda_pdf": float(law.pdf(y)), "opda_cdf": float(law.cdf(y))}
                )  # fmt: skip
    return rows


def opda_fits():
    rng, rows = np.random.default_rng(1), []
    for c, o, n, convex in ((1, 0.0, 48, True), (3, 0.0, 48, False), (2, 0.05, 48, True), (4, 0.1, 200, False)):
        x = rng.random(n) ** (2.0 / c)
        y = (x if convex else 1.0 - x) + o * rng.standard_normal(n)
        y = y.round(6)
        limits = [-np.inf, float(np.quantile(y, 0.7).round(3)) + 5e-7] if convex else None
        for use in (None, limits) if limits else (None,):
            kind = opda.parametric.NoisyQuadraticDistribution if o else opda.parametric.QuadraticDistribution
            found = kind.fit(
                y, limits=use or (-np.inf, np.inf), constraints={"convex": convex}, generator=np.random.default_rng(0)
            )
            rows.append(
                {
                    "y": y.tolist(), "upper": use[1] if use else None, "noisy": bool(o), "convex": convex,
                    "a": float(found.a), "b": float(found.b), "c": int(found.c), "o": float(getattr(found, "o", 0.0)),
                }
            )  # fmt: skip
    return rows


def main():
    warnings.simplefilter("ignore")
    out = {
        "versions": {"python": sys.version.split()[0], "opda": version("opda"), "mpmath": mp.__version__,
                     "numpy": np.__version__, "scipy": scipy.__version__},
        "integrals": list(cases()),
        "expected_smallest": [
            {"k": k, "s": s, "c": c, "value": expected_smallest(k, s, c)}
            for k, s, c in ((10, 0.25, 1), (0.5, 0.25, 3), (100, 0.5, 5), (3, 0.125, 2))
        ],
        "opda": opda_answers(),
        "opda_witness": opda_witness(),
        "opda_fits": opda_fits(),
    }  # fmt: skip
    json.dump(out, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
