"""The same pairs decided in several ways: on another scale, for another population, with failures counted otherwise."""
