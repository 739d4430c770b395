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


def curve_weight(margin, curve, center, steepness, hard_floor):
    if math.isnan(margin):
        return 0.0
    z = steepness * (margin - center)
    if curve == "uniform":
        weight = 1.0
    elif curve == "hard":
        weight = sigmoid(-z)
    else:
        weight = 4 * sigmoid(z) * sigmoid(-z)
        if margin < center:
            weight = hard_floor + (1 - hard_floor) * weight
    return max(weight, 1e-6)


def anchor(row, i, negatives, settings):
    """Everything about anchor i of one direction; ``row[j]`` is its similarity to candidate j."""
    if not negatives:
        return {"margin": NAN, "negative": NAN, "index": -1, "loss": 0.0, "mass": 0.0}
    hardest = max(negatives, key=lambda j: row[j])
    margin = row[i] - row[hardest]
    if settings["base"] == "triplet":
        loss = max(0.0, settings["triplet_margin"] - margin)
        mass = 2.0 if loss > 0 else 0.0
    else:
        tau = settings["temperature"]
        shift = max(0.0, -margin / tau)
        odds = sum(math.exp((row[j] - row[i]) / tau - shift) for j in negatives)
        loss = math.log1p(odds) if shift == 0 else shift + math.log(odds + math.exp(-shift))
        mass = 2 * odds / (odds + math.exp(-shift))
    return {"margin": margin, "negative": row[hardest], "index": hardest, "loss": loss, "mass": mass}


def direction(rows, labels, settings, fixed_weights=None):
    """One direction: ``rows[i][j]`` is the similarity of anchor i to candidate j."""
    count = len(rows)
    anchors = [
        anchor(rows[i], i, [j for j in range(count) if labels[j] != labels[i]], settings)
        for i in range(count)
    ]
    for a in anchors:
        a["pair_weight"] = curve_weight(
            a["margin"],
            settings["curve"],
            settings["center"],
            settings["steepness"],
            settings["hard_floor"],
        )
    valid = [i for i in range(count) if anchors[i]["index"] >= 0]
    n = len(valid)
    mean = sum(anchors[i]["pair_weight"] for i in valid) / n
    relative = [min(a["pair_weight"] / mean, settings["max_weight"]) for a in anchors]
    if fixed_weights is not None:
        relative = fixed_weights
    total, squares = sum(relative), sum(r * r for r in relative)
    denominator = {
        "l2": math.sqrt(n * squares),
        "sum": total,
        "rss": math.sqrt(squares),
        "none": n,
    }[settings["normalization"]]
    loss = sum(r * a["loss"] for r, a in zip(relative, anchors, strict=True)) / denominator
    mass = [r * a["mass"] for r, a in zip(relative, anchors, strict=True)]
    return {
        "anchors": anchors,
        "weight": relative,
        "loss": loss,
        "gap": sum(anchors[i]["margin"] for i in valid) / n,
        "ess": total * total / squares,
        "clamped_share": sum(relative[i] >= settings["max_weight"] for i in valid) / n,
        "no_negative_count": count - n,
        "accuracy": sum(anchors[i]["margin"] > 0 for i in valid) / n,
        "gradient_share": [m / sum(mass) if sum(mass) > 0 else NAN for m in mass],
    }


def step(image, text, labels, settings, direction_weight=(0.5, 0.5), fixed_weights=(None, None)):
    """Both directions and the loss of one step."""
    rows = cosines(image, text)
    columns = [list(column) for column in zip(*rows, strict=True)]
    both = [
        direction(matrix, labels, settings, fixed)
        for matrix, fixed in zip((rows, columns), fixed_weights, strict=True)
    ]
    loss = sum(w * d["loss"] for w, d in zip(direction_weight, both, strict=True))
    return {"loss": loss, "directions": both, "positive": [rows[i][i] for i in range(len(rows))]}


def central_differences(image, text, labels, settings, direction_weight, weights, width=1e-6):
    """Gradient of the loss with respect to both feature matrices, the weights held fixed."""
    gradients = []
    for features in (image, text):
        gradient = [[0.0] * len(features[0]) for _ in features]
        for i, row in enumerate(features):
            for k, kept in enumerate(row):
                sides = []
                for sign in (1, -1):
                    row[k] = kept + sign * width
                    sides.append(step(image, text, labels, settings, direction_weight, weights)["loss"])
                row[k] = kept
                gradient[i][k] = (sides[0] - sides[1]) / (2 * width)
        gradients.append(gradient)
    return gradients
