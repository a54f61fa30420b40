"""Planning a study: what a number of benchmarks and seeds would find."""
