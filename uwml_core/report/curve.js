// The pair weight of uwml_core.weighting and the preview of uwml_core.analysis.pooled, for a file that no
// Python stands behind. A table of ready weights could not follow five continuous parameters; so this is a
// mirror, which a test holds against the Python functions to 1e-12 over a grid.
const uwmlCurve = {
  FLOOR: 1e-6,

  weight(margin, { curve, center, hard_floor }, steepness) {
    if (Number.isNaN(margin)) return 0
    const z = steepness * (margin - center), tail = Math.exp(-Math.abs(z))
    const bell = 4 * tail / (1 + tail) ** 2
    const shapes = {
      uniform: 1,
      bell: z < 0 ? hard_floor + (1 - hard_floor) * bell : bell,
      hard: (z > 0 ? tail : 1) / (1 + tail),
    }
    return Math.max(shapes[curve], uwmlCurve.FLOOR)
  },

  steepness(progress, start, end) {
    return start + (end - start) * (1 - Math.cos(Math.PI * (progress ?? 1))) / 2
  },

  // bins: [{margin, n, weight, weight_sq, gradient_share, band}], margins in units of the curve
  relative(bins, parameters, steepness) {
    const weights = bins.map(bin => uwmlCurve.weight(bin.margin, parameters, steepness))
    const total = bins.reduce((sum, bin) => sum + bin.n, 0)
    const mean = bins.reduce((sum, bin, i) => sum + bin.n * weights[i], 0) / total
    return weights.map(weight => Math.min(weight / mean, parameters.max_weight))
  },

  // tried and inUse: relative weights of the bins, whose ratio moves the logged ones
  measures(bins, tried, inUse, bands) {
    const sum = value => bins.reduce((total, bin, i) => total + value(bin, tried[i] / inUse[i]), 0)
    const held = sum((bin, ratio) => bin.gradient_share * ratio)
    return {
      ess_share: sum((bin, ratio) => bin.weight * ratio) ** 2 / sum((bin, ratio) => bin.weight_sq * ratio ** 2) / sum(bin => bin.n),
      ...Object.fromEntries(bands.map((name, band) =>
        [name, sum((bin, ratio) => (bin.band === band ? bin.gradient_share * ratio : 0)) / held])),
    }
  },
}
