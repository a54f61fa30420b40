"""One module per question that a benchmark study asks."""
