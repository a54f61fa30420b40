"""Which model: recommended by the design, composed by hand, or chosen by the data."""
