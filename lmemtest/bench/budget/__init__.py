"""What the budget does: its effect, curves over it, comparisons at budgets, ranks along it."""
