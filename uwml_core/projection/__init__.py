"""Laying snapshots out in two dimensions: principal components at once, UMAP in a process of its own."""

from uwml_core.projection.parameters import METHODS, METRICS, ProjectionParameters

__all__ = ["METHODS", "METRICS", "ProjectionParameters"]
