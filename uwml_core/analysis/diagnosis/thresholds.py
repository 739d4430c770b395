"""Every threshold of the rules, with its reason.

They were set on the runs of ``benchmarks/diagnosis.py`` with seeds 100 and above; its table reports others.
"""

# 400 steps of 128 pairs in two directions; a tenth of a second to read.
RECENT_PAIR_ROWS = 100_000
# Rules on a trend want at least so many steps: shorter runs say nothing about it.
FEWEST_TREND_STEPS = 40
# Total variation of a direction weight per 100 steps: the default controller stays below 0.5.
JITTER_LIMIT, JITTER_CERTAIN = 1.0, 5.0
# Similarities of a healthy model spread by 0.1 and more, positives and hardest negatives together.
COLLAPSED_SPREAD = 0.02
