"""Ratings of models from votes on pairs of them."""
