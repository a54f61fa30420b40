"""Looking while runs come in: stop, go on, or extend honestly."""
