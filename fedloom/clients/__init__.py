"""Who takes part, and which examples make up their batches."""
