"""A model and its loss as functions of parameters."""
