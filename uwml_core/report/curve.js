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

  // relative weights at moments of an epoch: their mean and that of their squares
  moments(bins, parameters, progress) {
    const { steepness_start: start, steepness_end: end } = parameters
    const all = progress.map(moment => uwmlCurve.relative(bins, parameters, uwmlCurve.steepness(moment, start, end)))
    const mean = power => bins.map((_bin, i) => all.reduce((sum, weights) => sum + weights[i] ** power, 0) / all.length)
    return [mean(1), mean(2)]
  },

  // tried and inUse: moments of the bins, whose ratios move what was logged
  measures(bins, tried, inUse, bands) {
    const moved = (power, i) => (inUse[power - 1][i] > 0 ? tried[power - 1][i] / inUse[power - 1][i] : 1)
    const sum = (value, power = 1) => bins.reduce((total, bin, i) => total + value(bin, moved(power, i)), 0)
    const held = sum((bin, ratio) => bin.gradient_share * ratio)
    return {
      ess_share: sum((bin, ratio) => bin.weight * ratio) ** 2 / sum((bin, ratio) => bin.weight_sq * ratio, 2) / sum(bin => bin.n),
      ...Object.fromEntries(bands.map((name, band) =>
        [name, sum((bin, ratio) => (bin.band === band ? bin.gradient_share * ratio : 0)) / held])),
    }
  },
}
