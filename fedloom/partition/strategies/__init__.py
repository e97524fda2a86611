"""One strategy a file, found by its name."""
