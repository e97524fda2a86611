"""Rounds, runs, evaluation and checkpoints."""
