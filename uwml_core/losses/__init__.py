"""Weighted cross-modal losses in PyTorch."""
