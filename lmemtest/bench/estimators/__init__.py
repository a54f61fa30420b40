"""Estimators of the mean score of a learning pipeline, their quality, and splits of the data for them."""
