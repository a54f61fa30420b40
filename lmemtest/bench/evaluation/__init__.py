"""Evaluations of models by items of tasks, with scores of 0 and 1 or between them."""
