"""One file per question that a benchmark study asks."""
