"""Encoders with weights that others trained, by name; kept frozen, their features computed once."""
