"""Tests that exchange the names of algorithms, or turn the signs of their differences."""
