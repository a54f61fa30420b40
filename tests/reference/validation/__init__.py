"""The parts of validation_table.py."""
