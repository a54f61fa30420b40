"""Whether a table of runs, and what follows from it, can be relied on."""
