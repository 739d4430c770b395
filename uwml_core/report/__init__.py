"""One self-contained HTML file of a run: the figures of the pages, offline."""
