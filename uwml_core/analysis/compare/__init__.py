"""Did it help, is that more than noise? One module per question.

Runs whose configuration differs in nothing but the seed are one method. A difference is paired: the same
queries, resampled together, and the same seeds.
"""
