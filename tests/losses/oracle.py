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


def hn_nce(row, i, negatives, settings):
    """The negatives weighted by e^(beta s / tau), weights of mean 1; alpha of the positive beside them."""
    tau, alpha, beta = settings["temperature"], settings["hn_alpha"], settings["hn_beta"]
    if settings["base"] == "dcl":
        alpha = beta = 0.0
    shift = max(row[j] for j in negatives)
    of_weights = [math.exp(beta * (row[j] - shift) / tau) for j in negatives]
    weights = [len(negatives) * w / sum(of_weights) for w in of_weights]
    odds = log_sum([math.log(w) + (row[j] - row[i]) / tau for w, j in zip(weights, negatives, strict=True)])
    loss = odds if alpha == 0 else log_sum([math.log(alpha), odds])
    # derivative of the log of the weighted sum by each logit; the positive's is the opposite of all of it
    raised = [w * math.exp((row[j] - shift) / tau) for w, j in zip(weights, negatives, strict=True)]
    slopes = [
        (1 + beta) * r / sum(raised) - beta * w / sum(of_weights)
        for r, w in zip(raised, of_weights, strict=True)
    ]
    part = 1.0 if alpha == 0 else sigmoid(odds - math.log(alpha))
    return loss, part * (1 + sum(abs(slope) for slope in slopes))


def hinge(row, i, negatives, settings):
    loss = max(0.0, settings["triplet_margin"] - row[i] + max(row[j] for j in negatives))
    return loss, 2.0 if loss > 0 else 0.0


def wei2020(row, i, negatives, settings):
    """As released: the informative negatives first, then the hardest of them, each part clamped at 0."""
    positive = row[i]
    informative = [row[j] for j in negatives if row[j] + settings["triplet_margin"] > positive]
    if positive >= 1 - 1e-5 or not informative:
        return 0.0, 0.0
    negative = max(informative)
    attraction = 0.2 * positive**2 - 0.7 * positive + 0.5
    repulsion = 0.9 * negative**2 - 0.4 * negative + 0.03
    mass = abs(0.4 * positive - 0.7) * (attraction > 0) + abs(1.8 * negative - 0.4) * (repulsion > 0)
    return max(0.0, attraction) + max(0.0, repulsion), mass


def zone(row, i, negatives, settings):
    """Where the hardest informative negative lies: "dead", "wrong" or ""."""
    informative = [row[j] for j in negatives if row[j] + settings["triplet_margin"] > row[i]]
    if row[i] >= 1 - 1e-5 or not informative:
        return ""
    negative = max(informative)
    # the roots of 0.9 s^2 - 0.4 s + 0.03
    low, high = ((0.4 - sign * math.sqrt(0.16 - 0.108)) / 1.8 for sign in (1, -1))
    return "dead" if low < negative < high else "wrong" if negative < low else ""


def median(values):
    ordered, n = sorted(values), len(values)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def split_negatives(rows, excluded, settings):
    """Negatives of every anchor, and the pairs (i, j) that are left out as false."""
    f = settings["false_negative_margin"]
    candidates = [[j for j in range(len(row)) if not excluded[i][j]] for i, row in enumerate(rows)]
    false = [
        (i, j)
        for i, mine in enumerate(candidates)
        for j in mine
        if f is not None and rows[i][j] > rows[i][i] + f
    ]
    return [[j for j in mine if (i, j) not in false] for i, mine in enumerate(candidates)], false


def calibration(matrices, excluded, settings):
    """Offset and slope of S' = 0.6 + 0.2 (S - med s-) / max(med s+ - med s-, 0.05)."""
    hardest = []
    for rows, mask in zip(matrices, excluded, strict=True):
        for row, mine in zip(rows, split_negatives(rows, mask, settings)[0], strict=True):
            hardest += [max(row[j] for j in mine)] if mine else []
    of_positives = median([matrices[0][i][i] for i in range(len(matrices[0]))])
    slope = 0.2 / max(of_positives - median(hardest), 0.05)
    return 0.6 - slope * median(hardest), slope


ANCHOR_LOSSES = {
    "infonce": infonce,
    "triplet": hinge,
    "dcl": hn_nce,
    "hn_nce": hn_nce,
    "wei2020_max": wei2020,
    "wei2020_calibrated": wei2020,
}


def pair_terms(rows, negatives, settings):
    """Loss and slope of every pair (i, j), and of the positives by themselves."""
    pairs, positives = {}, {}
    for i, mine in enumerate(negatives):
        for j in mine:
            if settings["base"] == "triplet":
                loss = max(0.0, settings["triplet_margin"] - rows[i][i] + rows[i][j])
                pairs[i, j] = (loss, 1.0 if loss > 0 else 0.0)
            else:
                z = settings["t"] * rows[i][j] + settings["b"]
                pairs[i, j] = (log_one_plus_exp(z), sigmoid(z))
        positives[i] = (0.0, 0.0)
        if settings["base"] == "sigmoid" and mine:
            z = settings["t"] * rows[i][i] + settings["b"]
            positives[i] = (log_one_plus_exp(-z), sigmoid(-z))
    return pairs, positives


def weigh_pairs(rows, negatives, settings, scale, direction_weight, frozen):
    """Weights per pair; what the anchors then show."""
    pairs, positives = pair_terms(rows, negatives, settings)
    weights = [curve_weight((rows[i][i] - rows[i][j]) / scale, settings) for i, j in pairs]
    values, unclamped = weigh(weights, settings, direction_weight)
    relative = dict(zip(pairs, values, strict=True))
    if frozen is not None:
        relative = frozen["relative"]
    n = sum(bool(mine) for mine in negatives)
    losses, equal, mass = [], [], []
    for i, mine in enumerate(negatives):
        losses.append(positives[i][0] + sum(relative[i, j] * pairs[i, j][0] for j in mine))
        equal.append(positives[i][0] + sum(pairs[i, j][0] for j in mine))
        mass.append(positives[i][1] + sum(relative[i, j] * pairs[i, j][1] for j in mine))
    total, squares = sum(relative.values()), sum(r * r for r in relative.values())
    none = [0.0 if not mine else NAN for mine in negatives]
    return {
        "pair_losses": losses,
        "weight": [a / b if b else nothing for a, b, nothing in zip(losses, equal, none, strict=True)],
        "relative": relative,
        "loss": sum(losses) / n if n else 0.0,
        "ess": total * total / squares if squares else 0.0,
        "clamped_share": clamped_share(unclamped, settings),
        "gradient_share": [m / sum(mass) if sum(mass) > 0 else NAN for m in mass],
    }


def share(values):
    """Mean of the values, NaN of none."""
    values = list(values)
    return sum(values) / len(values) if values else NAN


def weigh(weights, settings, direction_weight):
    """Relative weights of a list in which 0 means: has no weight; clamped, and before."""
    if settings["combination"] == "add":
        largest = max(settings["steepness_start"], settings["steepness_end"])
        phi = settings["steepness"] / largest if largest > 0 else 1.0
        weights = [(w + direction_weight + phi) / 3 if w > 0 else 0.0 for w in weights]
    if not any(weights):
        return weights, weights
    mean = sum(weights) / sum(w > 0 for w in weights)
    return [min(w / mean, settings["max_weight"]) for w in weights], [w / mean for w in weights]


def clamped_share(unclamped, settings):
    """Least and most that it may be: a weight that equals the clamp up to rounding counts either way."""
    valid = [r for r in unclamped if r > 0]
    return [share(r >= settings["max_weight"] + slack for r in valid) for slack in (1e-12, -1e-12)]


def negatives_left(image, text, labels, settings):
    """Whether each candidate is a negative of each anchor, first direction, then second."""
    rows = cosines(image, text)
    f = settings["false_negative_margin"]
    return [
        [
            labels[i] != labels[j] and (f is None or matrix[i][j] <= matrix[i][i] + f)
            for j in range(len(labels))
        ]
        for matrix in (rows, [list(column) for column in zip(*rows, strict=True)])
        for i in range(len(matrix))
    ]


def direction(rows, excluded, settings, direction_weight, affine=(0.0, 1.0), frozen=None):
    """One direction: ``rows[i][j]`` is the similarity of anchor i to candidate j."""
    count = len(rows)
    negatives, false = split_negatives(rows, excluded, settings)
    scale = margin_scale(rows, negatives) if settings["margin_scale"] == "negative_std" else 1.0
    per_pair = settings["base"] == "sigmoid" or settings["over_negatives"] == "sum"
    offset, slope = affine
    mapped = [[offset + slope * value for value in row] for row in rows]
    anchors = []
    for i in range(count):
        if not negatives[i]:
            anchors.append(
                {"hard": NAN, "margin": NAN, "statistic": NAN, "index": -1, "loss": 0.0, "mass": 0.0}
            )
            continue
        hardest = max(negatives[i], key=lambda j, row=rows[i]: row[j])
        taken = statistic([rows[i][j] for j in negatives[i]], settings)
        loss = mass = 0.0
        if not per_pair:
            loss, mass = ANCHOR_LOSSES[settings["base"]](mapped[i], i, negatives[i], settings)
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
    relative, unclamped = weigh([a["pair_weight"] for a in anchors], settings, direction_weight)
    if frozen is not None and not per_pair:
        relative = frozen["weight"]
    total, squares = sum(relative), sum(r * r for r in relative)
    denominator = {
        "l2": math.sqrt(n * squares),
        "sum": total,
        "rss": math.sqrt(squares),
        "none": n,
    }[settings["normalization"]]
    loss = sum(r * a["loss"] for r, a in zip(relative, anchors, strict=True)) / (denominator or 1.0)
    if settings["base"].startswith("wei2020"):
        loss = sum(a["loss"] for a in anchors) / count
    mass = [r * a["mass"] for r, a in zip(relative, anchors, strict=True)]
    zones = [zone(mapped[i], i, negatives[i], settings) for i in range(count)]
    result = {
        "anchors": anchors,
        "weight": relative,
        "loss": loss,
        "gap": share(anchors[i]["hard"] for i in valid),
        "ess": total * total / squares if n else 0.0,
        "clamped_share": clamped_share(unclamped, settings),
        "no_negative_count": count - n,
        # a tie may fall on either side
        "accuracy": [share(anchors[i]["hard"] > slack for i in valid) for slack in (1e-12, -1e-12)],
        "gradient_share": [m / sum(mass) if sum(mass) > 0 else NAN for m in mass],
        "negatives": sum(len(mine) for mine in negatives) / count,
        "false": false,
        "margin_scale": scale,
        "dead_share": zones.count("dead") / n if n else NAN,
        "wrong_sign_share": zones.count("wrong") / n if n else NAN,
    }
    if per_pair:
        result |= weigh_pairs(rows, negatives, settings, scale, direction_weight, frozen)
        for a, value in zip(anchors, result["pair_losses"], strict=True):
            a["loss"] = value
    return result


def directions_of(image, text, labels, settings, queue):
    """Similarities and masks of both directions; a queue is a list of earlier (image, text, labels)."""
    rows = cosines(image, text)
    columns = [list(column) for column in zip(*rows, strict=True)]
    excluded = [[[a == b for b in labels] for a in labels] for _ in range(2)]
    for old_image, old_text, old_labels in queue:
        same = [[a == b for b in old_labels] for a in labels]
        for d, (anchors, others, matrix) in enumerate(((image, old_text, rows), (text, old_image, columns))):
            if d == 1 and settings["memory_modalities"] == "text":
                continue
            for i, more in enumerate(cosines(anchors, others)):
                matrix[i] += more
                excluded[d][i] += same[i]
    return (rows, columns), excluded


def step(image, text, labels, settings, direction_weight=(0.5, 0.5), frozen=None, queue=()):
    """Both directions and the loss of one step.

    ``frozen`` is an earlier result whose weights are kept, for derivatives.
    """
    (rows, columns), excluded = directions_of(image, text, labels, settings, queue)
    affine = (0.0, 1.0)
    if settings["base"] == "wei2020_calibrated":
        affine = frozen["affine"] if frozen else calibration((rows, columns), excluded, settings)
    both = [
        direction(matrix, mask, settings, weight, affine, frozen and frozen["directions"][d])
        for d, (matrix, mask, weight) in enumerate(
            zip((rows, columns), excluded, direction_weight, strict=True)
        )
    ]
    factors = (0.5, 0.5) if settings["combination"] == "add" else direction_weight
    if settings["base"].startswith("wei2020"):
        factors = (1.0, 1.0)
    loss = sum(w * d["loss"] for w, d in zip(factors, both, strict=True))
    positive = [rows[i][i] for i in range(len(rows))]
    return {"loss": loss, "directions": both, "positive": positive, "affine": affine}


def central_differences(image, text, labels, settings, direction_weight, queue=(), width=1e-5):
    """Gradient of the loss with respect to both feature matrices, the weights held fixed.

    Five points, so that the curvature of a softmax at temperature 0.01 does not show.
    """
    frozen = step(image, text, labels, settings, direction_weight, None, queue)
    gradients = []
    for features in (image, text):
        gradient = [[0.0] * len(features[0]) for _ in features]
        for i, row in enumerate(features):
            for k, kept in enumerate(row):
                total = 0.0
                for place, factor in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
                    row[k] = kept + place * width
                    sides = step(image, text, labels, settings, direction_weight, frozen, queue)
                    total += factor * sides["loss"]
                row[k] = kept
                gradient[i][k] = total / (12 * width)
        gradients.append(gradient)
    return gradients
