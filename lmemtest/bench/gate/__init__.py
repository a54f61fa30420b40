"""Is a new version worse than the old one? Non-inferiority over tasks, on one metric or several."""
