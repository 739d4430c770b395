"""Statistics: frames in, tidy frames out; no plotting, one module per question."""
