"""The weighted loss as its specification prints it: nested loops over explicit pairs, float64.

Slow and obvious on purpose, section by section, and nothing in it is shared with the package. Where the page
says that there is no number, there is None. ``p`` holds the parameters under their names.

For derivatives a similarity, a scale or a bias may be an array: its values at many displaced inputs. Only
base losses see such arrays; weights, masks and choices are then those ``held`` from the step in place.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

FIRST, SECOND = 0, 1
OWN_WEIGHTS = ("wei2020_max", "wei2020_calibrated")


def cosine(a, b):
    def length(row):
        return np.sqrt(sum(x * x for x in row))

    return sum(x * y for x, y in zip(a, b, strict=True)) / (length(a) * length(b))


def mean(values):
    return sum(values) / len(values) if values else None


# ---- 1 Margin


def negatives_of(i, row, same, p):
    """N(i), and the suspected false negatives that were left out of it."""
    others = [j for j in range(len(row)) if not same[j]]
    f = p["false_negative_margin"]
    false = [j for j in others if f is not None and row[j] > row[i] + f]
    return [j for j in others if j not in false], false


def statistic(values, p):
    ordered = sorted(values)
    if p["negative_statistic"] == "hardest":
        return ordered[-1]
    if p["negative_statistic"] == "topk_mean":
        return mean(ordered[-p["topk"] :])
    if p["negative_statistic"] == "mean":
        return mean(ordered)
    place = p["quantile"] * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def margin_scale(rows, negatives):
    variances = []
    for row, mine in zip(rows, negatives, strict=True):
        if len(mine) >= 2:
            middle = mean([row[j] for j in mine])
            variances.append(mean([(row[j] - middle) ** 2 for j in mine]))
    return max(1e-3, np.sqrt(mean(variances))) if variances else 1.0


# ---- 2 Pair weight


def sigmoid(z):
    return 1 / (1 + np.exp(-z)) if z >= 0 else np.exp(z) / (1 + np.exp(z))


def pair_weight(margin, kappa, p):
    if margin is None:
        return 0.0
    z = kappa * (margin - p["center"])
    if p["curve"] == "uniform":
        weight = 1.0
    elif p["curve"] == "hard":
        weight = sigmoid(-z)
    else:
        weight = 4 * sigmoid(z) * sigmoid(-z)
        if margin < p["center"]:
            weight = p["hard_floor"] + (1 - p["hard_floor"]) * weight
    return max(weight, 1e-6)


# ---- 3 Stage


def stage(t, p):
    """Kappa, phi and temperature; those of the end where t is unknown."""
    t = 1.0 if t is None else t
    start, end = p["steepness_start"], p["steepness_end"]
    kappa = start + (end - start) * (1 - np.cos(np.pi * t)) / 2
    cool, warm = p["temperature_end"], p["temperature"]
    tau = warm if cool is None else warm + (cool - warm) * t
    return SimpleNamespace(kappa=kappa, phi=kappa / max(start, end) if max(start, end) else 1.0, tau=tau)


# ---- 4 Relative weight, clamp, normalization


def relative_weights(weights, p):
    """Relative weights before the clamp and after it; a weight of 0 is none."""
    valid = [w for w in weights if w > 0]
    before = [w / mean(valid) if w > 0 else 0.0 for w in weights]
    return before, [min(r, p["max_weight"]) for r in before]


def normalized(relative, losses, p):
    n = sum(r > 0 for r in relative)
    total = sum(r * loss for r, loss in zip(relative, losses, strict=True))
    if n == 0:
        return 0.0
    squares = sum(r * r for r in relative)
    below = {"l2": np.sqrt(n * squares), "sum": sum(relative), "rss": np.sqrt(squares), "none": n}
    return total / below[p["normalization"]]


def effective_sample_size(relative):
    return sum(relative) ** 2 / sum(r * r for r in relative) if any(relative) else 0.0


# ---- 5 Direction weight


def direction_weights(gaps, p):
    """Weights for the last of a list of steps, from the gaps (first, second) of all of them."""
    if p["direction_mode"] != "adaptive":
        first = p["direction_fixed"] if p["direction_mode"] == "fixed" else 0.5
        return first, 1 - first
    weights, seen = [0.5, 0.5], []
    for gap in gaps:
        if None in gap:
            continue
        seen.append(gap)
        if len(seen) % p["update_every"] == 0:
            odds = [np.exp(-of_window / p["sensitivity"]) for of_window in window_means(seen, p)]
            for d in (FIRST, SECOND):
                moved = p["smoothing"] * weights[d] + (1 - p["smoothing"]) * odds[d] / sum(odds)
                weights[d] = min(max(moved, p["min_weight"]), 1 - p["min_weight"])
            weights = [w / sum(weights) for w in weights]
    return tuple(weights)


def window_means(gaps, p):
    kept = [gap for gap in gaps if None not in gap][-p["window"] :]
    return [mean([gap[d] for gap in kept]) for d in (FIRST, SECOND)]


# ---- 6 Combination


def combined(weights, of_direction, phi, p):
    if p["combination"] == "multiply":
        return weights
    return [(w + of_direction + phi) / 3 if w > 0 else 0.0 for w in weights]


def factors(of_direction, p):
    """What the loss of each direction is multiplied by."""
    if p["base"] in OWN_WEIGHTS:
        return 1.0, 1.0
    return (0.5, 0.5) if p["combination"] == "add" else of_direction


# ---- 7 Base losses: of the anchor i with its negatives N and the one k of them that the loss chose


def log_sum(values):
    top = np.maximum.reduce(values)
    return top + np.log(sum(np.exp(value - top) for value in values))


def softplus(z):
    return np.logaddexp(0.0, z)


def infonce(row, i, N, k, p):
    return softplus(log_sum([row[j] * p["scale"] for j in N]) - row[i] * p["scale"])


def hn_nce(row, i, N, k, p):
    """log(alpha + sum_j v_j e^((s_j - s+) / tau)), v_j = n e^(beta s_j / tau) / sum_k e^(beta s_k / tau)."""
    alpha, beta = (0.0, 0.0) if p["base"] == "dcl" else (p["hn_alpha"], p["hn_beta"])
    all_tilts = log_sum([beta * row[j] * p["scale"] for j in N])
    tilted = [
        np.log(len(N)) + beta * row[j] * p["scale"] - all_tilts + (row[j] - row[i]) * p["scale"] for j in N
    ]
    return log_sum(tilted) if alpha == 0 else np.logaddexp(np.log(alpha), log_sum(tilted))


def hinge(row, i, j, p):
    return np.maximum(0.0, p["triplet_margin"] - row[i] + row[j])


def attraction(s, p):
    return sum(a * s**power for power, a in enumerate(p["positive_polynomial"]))


def repulsion(s, p):
    return sum(b * s**power for power, b in enumerate(p["negative_polynomial"]))


def wei2020(row, i, N, k, p):
    return np.maximum(0.0, attraction(row[i], p)) + np.maximum(0.0, repulsion(row[k], p))


BASES = {
    "infonce": infonce,
    "dcl": hn_nce,
    "hn_nce": hn_nce,
    "triplet": lambda row, i, N, k, p: hinge(row, i, k, p),
    "wei2020_max": wei2020,
    "wei2020_calibrated": wei2020,
}


def chosen(row, i, N, p):
    """The negative that the loss takes; None where the loss leaves the anchor out."""
    if p["base"] not in OWN_WEIGHTS:
        return max(N, key=lambda j: row[j]) if N else None
    # calibrated, a pair at both medians is on the edge, and counts as below it
    slack = 64 * 2.0**-52 if p["base"] == "wei2020_calibrated" else 0.0
    informative = [j for j in N if row[j] + p["triplet_margin"] > row[i] + slack]
    if row[i] >= 1 - 1e-5 or not informative:
        return None
    return max(informative, key=lambda j: row[j])


def pair_loss(row, i, j, p):
    return hinge(row, i, j, p) if p["base"] == "triplet" else softplus(p["scale"] * row[j] + p["bias"])


def positive_loss(row, i, p):
    return softplus(-(p["scale"] * row[i] + p["bias"])) if p["base"] == "sigmoid" else 0.0


def weighs_pairs(p):
    return p["base"] == "sigmoid" or p["over_negatives"] == "sum"


def median(values):
    ordered = sorted(values)
    return mean([ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]])


def calibration(sides, p):
    """Offset and slope of S' = 0.6 + 0.2 (S - med s-) / max(med s+ - med s-, 0.05)."""
    if p["base"] != "wei2020_calibrated":
        return 0.0, 1.0
    hardest = [max(row[j] for j in N) for s in sides for row, N in zip(s.rows, s.negatives, strict=True) if N]
    positives = [row[i] for i, row in enumerate(sides[FIRST].rows)]
    slope = 0.2 / max(median(positives) - median(hardest), 0.05)
    return 0.6 - slope * median(hardest), slope


# ---- 8 Negatives beyond the batch


def directions(image, text, labels, queue, p):
    """Similarities of both directions and who shares a label; the queue is a list of earlier batches."""
    sides = []
    for d, (anchors, others, name) in enumerate(((image, text, "text"), (text, image, "image"))):
        known = list(zip(others, labels, strict=True))
        for old in queue if d == FIRST or p["memory_modalities"] == "both" else []:
            known += zip(getattr(old, name), old.labels, strict=True)
        sides.append(
            SimpleNamespace(
                rows=[[cosine(a, b) for b, _ in known] for a in anchors],
                same=[[mine == other for _, other in known] for mine in labels],
            )
        )
    return sides


# ---- A step


def weigh(side, stage, of_direction, p):
    """Adds to a direction what its weights are: nothing of it carries a gradient."""
    split = [negatives_of(i, row, side.same[i], p) for i, row in enumerate(side.rows)]
    side.negatives, side.false = ([part[which] for part in split] for which in (0, 1))
    side.n = sum(bool(N) for N in side.negatives)
    side.scale = margin_scale(side.rows, side.negatives) if p["margin_scale"] == "negative_std" else 1.0
    each = list(zip(range(len(side.rows)), side.rows, side.negatives, strict=True))
    side.hardest = [max(N, key=lambda j, row=row: row[j]) if N else None for _, row, N in each]
    side.statistic = [statistic([row[j] for j in N], p) if N else None for _, row, N in each]
    side.margin = [row[i] - s if N else None for (i, row, N), s in zip(each, side.statistic, strict=True)]
    side.gap = mean([row[i] - max(row[j] for j in N) for i, row, N in each if N])
    side.pairs = [(i, j) for i, _, N in each for j in N] if weighs_pairs(p) else []

    def curve(margins):
        scaled = [None if m is None else m / side.scale for m in margins]
        weights = [pair_weight(m, stage.kappa, p) for m in scaled]
        return weights, *relative_weights(combined(weights, of_direction, stage.phi, p), p)

    side.pair_weight, side.before_clamp, side.relative = curve(side.margin)
    if weighs_pairs(p):
        _, side.before_clamp, side.relative = curve(
            [side.rows[i][i] - side.rows[i][j] for i, j in side.pairs]
        )


def losses(rows, held, affine, p):
    """Loss of every anchor of a direction, and of the direction."""
    offset, slope = affine
    rows = [[offset + slope * s for s in row] for row in rows]
    if weighs_pairs(p):
        anchors = [positive_loss(row, i, p) if held.negatives[i] else 0.0 for i, row in enumerate(rows)]
        for (i, j), r in zip(held.pairs, held.relative, strict=True):
            anchors[i] = anchors[i] + r * pair_loss(rows[i], i, j, p)
        return anchors, sum(anchors) / held.n if held.n else 0.0
    anchors = [
        0.0 if k is None else BASES[p["base"]](row, i, held.negatives[i], k, p)
        for i, (row, k) in enumerate(zip(rows, held.chosen, strict=True))
    ]
    if p["base"] in OWN_WEIGHTS:
        return anchors, sum(anchors) / len(rows)
    return anchors, normalized(held.relative, anchors, p)


def step(image, text, labels, p, *, t=None, queue=(), gaps=()):
    """One step; None where no anchor has a negative. ``gaps`` are those of the steps before."""
    sides, at = directions(image, text, labels, queue, p), stage(t, p)
    for side in sides:
        weigh(side, at, 0.5, p)
    if not any(side.n for side in sides):
        return None
    gaps = [*gaps, tuple(side.gap for side in sides)]
    weights = direction_weights(gaps, p)
    p = {"scale": 1 / at.tau, "bias": 0.0} | p
    affine = calibration(sides, p)
    for side, of_direction in zip(sides, weights, strict=True):
        weigh(side, at, of_direction, p)
        mapped = [[affine[0] + affine[1] * s for s in row] for row in side.rows]
        side.chosen = [chosen(row, i, side.negatives[i], p) for i, row in enumerate(mapped)]
        side.mapped = mapped
        side.anchor_loss, side.loss = losses(side.rows, side, affine, p)
    total = sum(f * side.loss for f, side in zip(factors(weights, p), sides, strict=True))
    return SimpleNamespace(
        loss=total, sides=sides, weights=weights, stage=at, gaps=gaps, affine=affine, p=p, queue=queue
    )
