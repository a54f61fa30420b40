"""How often a run of one algorithm is better than one of another, whether that matters, and what it takes to know."""
