"""Local training: the only place that knows of lanes, batches and devices."""
