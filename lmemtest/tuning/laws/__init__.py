"""Laws of scores with known curves: the quadratic and the noisy quadratic distribution, and kernel densities."""
