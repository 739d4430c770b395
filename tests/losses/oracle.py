"""The weighted loss as the specification prints it: plain Python floats, nested loops, no library.

Slow and obvious on purpose. Nothing here is shared with the package.
"""

from __future__ import annotations

import math

NAN = math.nan


def cosines(image, text):
    def length(row):
        return math.sqrt(sum(x * x for x in row))

    return [
        [sum(x * y for x, y in zip(a, b, strict=True)) / (length(a) * length(b)) for b in text] for a in image
    ]


def sigmoid(z):
    return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def log_sum(values):
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def log_one_plus_exp(z):
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def curve_weight(margin, settings):
    if math.isnan(margin):
        return 0.0
    center, h = settings["center"], settings["hard_floor"]
    z = settings["steepness"] * (margin - center)
    if settings["curve"] == "uniform":
        weight = 1.0
    elif settings["curve"] == "hard":
        weight = sigmoid(-z)
    else:
        weight = 4 * sigmoid(z) * sigmoid(-z)
        if margin < center:
            weight = h + (1 - h) * weight
    return max(weight, 1e-6)


def statistic(values, settings):
    """What of the negatives' similarities the margin is taken to."""
    ordered = sorted(values)
    kind = settings["negative_statistic"]
    if kind == "hardest":
        return ordered[-1]
    if kind == "mean":
        return sum(ordered) / len(ordered)
    if kind == "topk_mean":
        best = ordered[-settings["topk"] :]
        return sum(best) / len(best)
    place = settings["quantile"] * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def margin_scale(rows, negatives):
    variances = []
    for row, mine in zip(rows, negatives, strict=True):
        if len(mine) >= 2:
            mean = sum(row[j] for j in mine) / len(mine)
            variances.append(sum((row[j] - mean) ** 2 for j in mine) / len(mine))
    return max(1e-3, math.sqrt(sum(variances) / len(variances))) if variances else 1.0


def infonce(row, i, negatives, settings):
    tau = settings["temperature"]
    odds = log_sum([row[j] / tau for j in negatives]) - row[i] / tau
    return log_one_plus_exp(odds), 2 * sigmoid(odds)


def hinge(row, i, negatives, settings):
    loss = max(0.0, settings["triplet_margin"] - row[i] + max(row[j] for j in negatives))
    return loss, 2.0 if loss > 0 else 0.0


ANCHOR_LOSSES = {"infonce": infonce, "triplet": hinge}


def share(values):
    """Mean of the values, NaN of none."""
    values = list(values)
    return sum(values) / len(values) if values else NAN


def weigh(weights, settings, direction_weight):
    """Relative weights after the clamp, of a list in which 0 means: has no weight."""
    if settings["combination"] == "add":
        largest = max(settings["steepness_start"], settings["steepness_end"])
        phi = settings["steepness"] / largest if largest > 0 else 1.0
        weights = [(w + direction_weight + phi) / 3 if w > 0 else 0.0 for w in weights]
    if not any(weights):
        return weights
    mean = sum(weights) / sum(w > 0 for w in weights)
    return [min(w / mean, settings["max_weight"]) for w in weights]


def negatives_left(image, text, labels, settings):
    """Whether each candidate is a negative of each anchor, first direction, then second."""
    rows = cosines(image, text)
    f = settings["false_negative_margin"]
    return [
        [
            labels[i] != labels[j] and (f is None or matrix[i][j] <= matrix[i][i] + f)
            for j in range(len(matrix))
        ]
        for matrix in (rows, [list(column) for column in zip(*rows, strict=True)])
        for i in range(len(matrix))
    ]


def direction(rows, excluded, settings, direction_weight, frozen=None):
    """One direction: ``rows[i][j]`` is the similarity of anchor i to candidate j."""
    count = len(rows)
    f = settings["false_negative_margin"]
    candidates = [[j for j in range(len(rows[0])) if not excluded[i][j]] for i in range(count)]
    false = [
        (i, j) for i in range(count) for j in candidates[i] if f is not None and rows[i][j] > rows[i][i] + f
    ]
    negatives = [[j for j in candidates[i] if (i, j) not in false] for i in range(count)]
    scale = margin_scale(rows, negatives) if settings["margin_scale"] == "negative_std" else 1.0
    anchors = []
    for i in range(count):
        if not negatives[i]:
            anchors.append(
                {"hard": NAN, "margin": NAN, "statistic": NAN, "index": -1, "loss": 0.0, "mass": 0.0}
            )
            continue
        hardest = max(negatives[i], key=lambda j, row=rows[i]: row[j])
        taken = statistic([rows[i][j] for j in negatives[i]], settings)
        loss, mass = ANCHOR_LOSSES[settings["base"]](rows[i], i, negatives[i], settings)
        anchors.append(
            {
                "hard": rows[i][i] - rows[i][hardest],
                "margin": rows[i][i] - taken,
                "statistic": taken,
                "index": hardest,
                "loss": loss,
                "mass": mass,
            }
        )
    for a in anchors:
        a["pair_weight"] = curve_weight(a["margin"] / scale, settings)
    valid = [i for i in range(count) if anchors[i]["index"] >= 0]
    n = len(valid)
    relative = weigh([a["pair_weight"] for a in anchors], settings, direction_weight)
    if frozen is not None:
        relative = frozen["weight"]
    total, squares = sum(relative), sum(r * r for r in relative)
    denominator = {
        "l2": math.sqrt(n * squares),
        "sum": total,
        "rss": math.sqrt(squares),
        "none": n,
    }[settings["normalization"]]
    loss = sum(r * a["loss"] for r, a in zip(relative, anchors, strict=True)) / (denominator or 1.0)
    mass = [r * a["mass"] for r, a in zip(relative, anchors, strict=True)]
    return {
        "anchors": anchors,
        "weight": relative,
        "loss": loss,
        "gap": share(anchors[i]["hard"] for i in valid),
        "ess": total * total / squares if n else 0.0,
        # a weight that equals the clamp up to rounding may count either way
        "clamped_least": share(relative[i] >= settings["max_weight"] for i in valid),
        "clamped_most": share(relative[i] >= settings["max_weight"] - 1e-12 for i in valid),
        "no_negative_count": count - n,
        "accuracy": share(anchors[i]["hard"] > 0 for i in valid),
        "gradient_share": [m / sum(mass) if sum(mass) > 0 else NAN for m in mass],
        "negatives": sum(len(mine) for mine in negatives) / count,
        "false": false,
        "margin_scale": scale,
    }


def step(image, text, labels, settings, direction_weight=(0.5, 0.5), frozen=None):
    """Both directions and the loss of one step.

    ``frozen`` is an earlier result whose weights are kept, for derivatives.
    """
    rows = cosines(image, text)
    columns = [list(column) for column in zip(*rows, strict=True)]
    excluded = [[a == b for b in labels] for a in labels]
    both = [
        direction(matrix, excluded, settings, weight, frozen and frozen["directions"][d])
        for d, (matrix, weight) in enumerate(zip((rows, columns), direction_weight, strict=True))
    ]
    factors = (0.5, 0.5) if settings["combination"] == "add" else direction_weight
    loss = sum(w * d["loss"] for w, d in zip(factors, both, strict=True))
    return {"loss": loss, "directions": both, "positive": [rows[i][i] for i in range(len(rows))]}


def central_differences(image, text, labels, settings, direction_weight, width=1e-5):
    """Gradient of the loss with respect to both feature matrices, the weights held fixed.

    Five points, so that the curvature of a softmax at temperature 0.01 does not show.
    """
    frozen = step(image, text, labels, settings, direction_weight)
    gradients = []
    for features in (image, text):
        gradient = [[0.0] * len(features[0]) for _ in features]
        for i, row in enumerate(features):
            for k, kept in enumerate(row):
                total = 0.0
                for place, factor in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
                    row[k] = kept + place * width
                    total += factor * step(image, text, labels, settings, direction_weight, frozen)["loss"]
                row[k] = kept
                gradient[i][k] = total / (12 * width)
        gradients.append(gradient)
    return gradients
