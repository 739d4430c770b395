"""What follows from a step of the ``oracle``: derivatives with the weights held fixed, shares of them."""

from __future__ import annotations

import numpy as np

from tests.losses.oracle import (
    OWN_WEIGHTS,
    attraction,
    directions,
    factors,
    hinge,
    hn_nce,
    log_sum,
    losses,
    repulsion,
    sigmoid,
    weighs_pairs,
)


def displaced(image, text, p, width):
    """Inputs as arrays over points: four around every entry in turn, scale and bias last.

    Widths are relative to the row's length, which the loss does not see, and to the scale.
    """
    numbers = [x for row in (*image, *text) for x in row] + [p["scale"], p["bias"]]
    widths = [width * np.sqrt(sum(x * x for x in row)) for row in (*image, *text) for _ in row]
    widths += [width * p["scale"], width]
    places = np.array([-2, -1, 1, 2])
    values = np.repeat(np.array(numbers, dtype=float)[:, None], 4 * len(numbers), axis=1)
    for index, h in enumerate(widths):
        values[index, 4 * index : 4 * index + 4] += places * h
    rows = iter(values)
    moved = [[[next(rows) for _ in row] for row in features] for features in (image, text)]
    return *moved, p | {"scale": next(rows), "bias": next(rows)}, np.array(widths)


def central_differences(image, text, labels, at, width=5e-5):
    """Derivatives of the loss by every entry of image and text, by scale and by bias.

    Five points, so that the curvature of a softmax at temperature 0.01 does not show.
    """
    image_points, text_points, p, widths = displaced(image, text, at.p, width)
    sides = directions(image_points, text_points, labels, at.queue, p)
    loss = sum(
        factor * losses(side.rows, held, at.affine, p)[1]
        for factor, side, held in zip(factors(at.weights, p), sides, at.sides, strict=True)
    )
    points = np.broadcast_to(loss, (4 * len(widths),)).reshape(-1, 4)
    slopes = points @ np.array([1.0, -8.0, 8.0, -1.0]) / (12 * widths)
    size = (len(image), len(image[0]))
    first, second, logits = np.split(slopes, [size[0] * size[1], 2 * size[0] * size[1]])
    return first.reshape(size), second.reshape(size), *logits


def gradient_masses(side, p):
    """L1 norm of every anchor's row of dL_d / dS, up to a factor of the direction; by hand, not by points."""
    masses = []
    for i, (row, N) in enumerate(zip(side.mapped, side.negatives, strict=True)):
        if weighs_pairs(p):
            mine = [(r, j) for (a, j), r in zip(side.pairs, side.relative, strict=True) if a == i]
            masses.append(pair_mass(row, i, mine, p) if N else 0.0)
        else:
            masses.append(0.0 if side.chosen[i] is None else anchor_mass(row, i, N, side.chosen[i], p))
    if weighs_pairs(p):
        return masses
    return [r * mass for r, mass in zip(side.relative, masses, strict=True)]


def pair_mass(row, i, weighted, p):
    if p["base"] == "triplet":  # the positive's slope is the sum of these: a factor 2 for every anchor
        return sum(r for r, j in weighted if hinge(row, i, j, p) > 0)
    of_negatives = sum(r * sigmoid(p["scale"] * row[j] + p["bias"]) for r, j in weighted)
    return of_negatives + sigmoid(-(p["scale"] * row[i] + p["bias"]))


def anchor_mass(row, i, N, k, p):
    if p["base"] == "triplet":
        return 2.0 if hinge(row, i, k, p) > 0 else 0.0
    if p["base"] in OWN_WEIGHTS:
        pull = sum(
            power * a * row[i] ** (power - 1) for power, a in enumerate(p["positive_polynomial"]) if power
        )
        push = sum(
            power * b * row[k] ** (power - 1) for power, b in enumerate(p["negative_polynomial"]) if power
        )
        return abs(pull) * (attraction(row[i], p) > 0) + abs(push) * (repulsion(row[k], p) > 0)
    if p["base"] == "infonce":
        odds = log_sum([row[j] * p["scale"] for j in N]) - row[i] * p["scale"]
        return 2 * sigmoid(odds)
    alpha, beta = (0.0, 0.0) if p["base"] == "dcl" else (p["hn_alpha"], p["hn_beta"])
    raised, tilts = ([np.exp(b * (row[j] - row[k]) * p["scale"]) for j in N] for b in (1 + beta, beta))
    slopes = [
        (1 + beta) * a / sum(raised) - beta * b / sum(tilts) for a, b in zip(raised, tilts, strict=True)
    ]
    odds = hn_nce(row, i, N, k, p | {"hn_alpha": 0.0, "hn_beta": beta, "base": "hn_nce"})
    part = 1.0 if alpha == 0 else sigmoid(odds - np.log(alpha))
    return part * (1 + sum(abs(slope) for slope in slopes))


def zones(side, p):
    """Per anchor "dead", "wrong" or "": where the negative that a wei2020 loss took lies."""
    found = []
    for row, k in zip(side.mapped, side.chosen, strict=True):
        # the roots of 0.9 s^2 - 0.4 s + 0.03
        low, high = ((0.4 + sign * np.sqrt(0.16 - 0.108)) / 1.8 for sign in (-1, 1))
        found.append("" if k is None or row[k] > high else "dead" if row[k] > low else "wrong")
    return found


def kinks(at):
    """Numbers none of which may be near 0, or the loss or a mask would jump or bend there; cosine units."""
    p, found, slope = at.p, [], at.affine[1]
    for side in at.sides:
        for i, (row, N) in enumerate(zip(side.mapped, side.negatives, strict=True)):
            if p["base"] == "triplet":
                several = N if weighs_pairs(p) else N and [side.chosen[i]]
                found += [p["triplet_margin"] - row[i] + row[j] for j in several]
            if p["base"] in OWN_WEIGHTS:
                found += [(row[i] - (1 - 1e-5)) / slope, attraction(row[i], p) / slope]
                edges = [(row[j] + p["triplet_margin"] - row[i]) / slope for j in N]
                # a pair at both medians stays on the edge, as these move along
                found += [x for x in edges if p["base"] == "wei2020_max" or abs(x) > 1e-12]
                found += [] if side.chosen[i] is None else [repulsion(row[side.chosen[i]], p) / slope]
            if p["false_negative_margin"] is not None:
                plain = side.rows[i]
                found += [plain[j] - plain[i] - p["false_negative_margin"] for j in (*N, *side.false[i])]
    return found
