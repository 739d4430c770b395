"""Readers of real formats and the sample sets."""
