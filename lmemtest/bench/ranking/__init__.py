"""Rankings of algorithms: by the mixed model, by classical tests, by posterior probabilities, and leaderboards."""
