"""The method step by step, each on numbers that the maths of the loss gives at once."""
