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
COLLAPSED_SPREAD, PLATEAU_TOLERANCE, RECENT_STEPS = 0.05, 0.1, 20
# The default curve leaves 0.5 to 0.9 of the batch; below a fifth the clamp of 2 no longer helps.
ESS_LIMIT, ESS_CERTAIN = 0.2, 0.05
# The controller's least weight is 0.1.
NO_WEIGHT = 0.02
# Healthy directions differ by up to 0.05.
LAG_LIMIT, LAG_CERTAIN = 0.1, 0.3
# A fall of mean recall by this share of its best is beyond the noise of a few hundred queries.
FEWEST_EVALUATIONS, RECALL_FALL = 4, 0.15
# Recall falls without overfitting, too; then the training anchors are not right either.
TRAIN_ACCURACY = 0.8
MEMORISED_SHARE = 0.3
# Where most anchors lie in a zone without a useful gradient, the loss does not act.
DEAD_LIMIT = 0.5
# The usual limit is 100.
PINNED_SCALE, SCALE_FALL = 99.0, 0.3
# CLIP ends at 0.01 with 32,768 pairs in the batch.
SMALL_TEMPERATURE = 0.0099
# At a temperature of 0.07 the hardest negative of 63 holds a third and more.
EASY_LIMIT = 0.9
# Chance for an anchor to meet its own caption under another label in a batch.
SHARED_LIMIT, SHARED_CERTAIN = 0.02, 0.2
FEWEST_ENCOUNTERS = 3
# Healthy runs that have learned show 0.9 to 1.5, a fifth of wrong pairs 2.2 to 3; without learning nothing is
# told.
LEARNED_MARGIN, LOPSIDED_LIMIT, LOPSIDED_CERTAIN = 0.05, 1.9, 3.0
# The same under a bell without floor, which leaves hard pairs alone: 1.7 to 2.3, and 3.6 to 5.9.
LOPSIDED_UNDER_BELL = (2.8, 4.0)
# Half precision rounds a cosine of 1 up by less.
COSINE_LIMIT = 1.01
# Of float32 similarities none tie by chance.
TIED_LIMIT, TIED_CERTAIN = 0.005, 0.1
# Equal labels in a batch cost a few negatives.
BATCH_SHARE, NO_NEGATIVE_LIMIT = 0.75, 0.01
# What does not move at all has exactly 1. Where only the statistics of batch norm settle, as without a
# learning rate, the median is 0.99 and more; encoders that learn stay below 0.9.
STILL, MOVING = 0.99999, 0.98
QUEUE_SIMILARITY = 0.5
# Other programs on the machine double the time of a step now and then.
SLOWER_LIMIT, SLOWER_CERTAIN = 2.5, 5.0
TELEMETRY_LIMIT, TELEMETRY_CERTAIN = 0.1, 0.5
# Three times chance is still nothing learned.
CHANCE_FACTOR = 3.0
# One step in twenty above the median by this factor: healthy runs show 2.
UNSTABLE_LIMIT, UNSTABLE_CERTAIN = 5.0, 20.0
# The gradient of a healthy run falls to a tenth; with it falls the loss.
VANISHED, STUCK_LOSS = 0.04, 0.4
# A part of the run, or so many steps: warm-up of the learning rate is rarely longer, and healthy embeddings
# have moved apart by then.
BEGINNING, FIRST_STEPS = 0.05, 200
