"""Where the variation of the scores comes from, and what a ranking is worth."""
