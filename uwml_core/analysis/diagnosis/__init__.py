"""What is wrong with a run, and what to try: rules over the run's tables, each a pure function."""
