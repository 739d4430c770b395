"""Tidy frame to Plotly figure; no files, no aggregation."""
