"""How scores are distributed, and whether their scale matters."""
