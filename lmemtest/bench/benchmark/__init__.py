"""What differs between benchmarks, and what explains it."""
