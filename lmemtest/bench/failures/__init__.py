"""Failed runs: how often each algorithm fails, and what the verdict owes to what a failure counts."""
