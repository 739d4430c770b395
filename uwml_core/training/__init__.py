"""Training backend."""
