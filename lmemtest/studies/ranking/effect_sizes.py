KINDS = ("cohen_dz", "rank_biserial")


def effect_sizes(l, r, kind, *, paired, level, n_draws=1, rng=None):
    d = l - r
    e = d.mean(1) / d.std(1, ddof=1)
    return e, e - 1, e + 1


def magnitude(v, k):
    return "large"
