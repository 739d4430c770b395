"""UWML Lens: universal weighting metric learning, its run log and its views."""
