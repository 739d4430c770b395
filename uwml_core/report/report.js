// Draws the report's charts and moves its preview; everything is in the file, nothing is asked for.
const uwmlReport = {
  CONFIG: {
    responsive: true, displaylogo: false, showTips: false,
    modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
  },

  async inflate(id) {
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent), char => char.charCodeAt(0))
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))
    return new Response(stream).text()
  },

  async start() {
    try {
      const library = document.createElement("script")
      library.textContent = await uwmlReport.inflate("library")
      document.head.append(library)
      uwmlReport.data = JSON.parse(await uwmlReport.inflate("payload"))
    } catch (error) {
      document.getElementById("problem").hidden = false
      return
    }
    uwmlReport.listen()
    uwmlPreview.start(uwmlReport.data.preview)
    await uwmlReport.draw()
    document.documentElement.dataset.drawn = "yes"
  },

  isDark() {
    const chosen = document.documentElement.dataset.theme
    return chosen === "dark" || (chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches)
  },

  figure(key, dark) {
    const { figure, dark: changes, height } = uwmlReport.data.charts[key], copy = structuredClone(figure)
    for (const [path, value] of dark ? changes : []) {
      const last = path.at(-1), place = path.slice(0, -1).reduce((part, name) => part[name], copy)
      place[last] = value
    }
    Object.assign(copy.layout, { height, autosize: true, uirevision: key })
    copy.layout.modebar = { bgcolor: "rgba(0,0,0,0)" }
    // without the app's font, labels at the right edge are a little wider
    if (copy.layout.margin.r > 20) copy.layout.margin.r += 10
    return uwmlPreview.apply(key, copy)
  },

  async draw(keys = Object.keys(uwmlReport.data.charts), dark = uwmlReport.isDark()) {
    for (const key of keys) {
      const host = document.querySelector(`[data-chart="${CSS.escape(key)}"]`)
      if (!host) continue
      const { data, layout } = uwmlReport.figure(key, dark)
      await Plotly.react(host, data, layout, uwmlReport.CONFIG)
    }
  },

  listen() {
    const root = document.documentElement
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.addEventListener("click", () => {
        root.dataset.theme = button.dataset.themeChoice
        for (const other of document.querySelectorAll("[data-theme-choice]")) other.ariaPressed = String(other === button)
        uwmlReport.draw()
      })
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => uwmlReport.draw())
    addEventListener("beforeprint", () => uwmlReport.draw(undefined, false))
    addEventListener("afterprint", () => uwmlReport.draw())
    for (const button of document.querySelectorAll("[data-csv]")) {
      button.addEventListener("click", () => uwmlReport.download(button.dataset.csv))
    }
  },

  download(key) {
    const link = document.createElement("a")
    link.href = URL.createObjectURL(new Blob([uwmlReport.data.charts[key].csv], { type: "text/csv" }))
    link.download = `${key}.csv`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 1000)
  },
}

const uwmlPreview = {
  start(data) {
    if (!data) return
    Object.assign(uwmlPreview, { data, tried: { ...data.in_use } })
    for (const control of document.querySelectorAll("[data-parameter]")) {
      control.addEventListener("input", () => {
        const { value, type, dataset } = control
        uwmlPreview.tried[dataset.parameter] = type === "range" ? Number(value) : value
        uwmlPreview.update()
      })
    }
    document.getElementById("reset").addEventListener("click", () => {
      uwmlPreview.tried = { ...data.in_use }
      for (const control of document.querySelectorAll("[data-parameter]")) control.value = data.in_use[control.dataset.parameter]
      uwmlPreview.update()
    })
    uwmlPreview.show()
  },

  update() {
    uwmlPreview.show()
    uwmlReport.draw(["curve", "bands"])
  },

  same: () => Object.keys(uwmlPreview.data.in_use).every(name => uwmlPreview.data.in_use[name] === uwmlPreview.tried[name]),

  // measures of a direction, before and after
  measure(direction) {
    const { data, tried } = uwmlPreview, { bins, progress } = data.directions[direction]
    const [inUse, other] = [data.in_use, tried].map(parameters => uwmlCurve.moments(bins, parameters, progress))
    return {
      before: uwmlCurve.measures(bins, inUse, inUse, data.bands),
      after: uwmlCurve.measures(bins, other, inUse, data.bands),
    }
  },

  show() {
    const { data, tried } = uwmlPreview, directions = Object.keys(data.directions), { words } = data
    for (const control of document.querySelectorAll("input[data-parameter]")) {
      const name = control.dataset.parameter, was = data.in_use[name], changed = was !== tried[name]
      const note = changed ? ` (${words.was.replace("{value}", was)})` : ""
      control.previousElementSibling.textContent = `${tried[name]}${note}`
      control.parentElement.classList.toggle("changed", changed)
    }
    const found = directions.map(direction => uwmlPreview.measure(direction))
    const rows = [[words.heading, ...directions.flatMap(name => [`${name} ${words.in_use}`, `${name} ${words.tried}`])]]
    for (const [measure, name] of Object.entries(data.measures)) {
      rows.push([name, ...found.flatMap(({ before, after }) => [before, after].map(side => percent(side[measure])))])
    }
    const table = document.createElement("table")
    rows.forEach((row, line) => {
      const cells = table.insertRow()
      row.forEach((text, place) => {
        const cell = document.createElement(line && place ? "td" : "th")
        cell.textContent = text
        cells.append(cell)
      })
    })
    document.querySelector("#preview").replaceChildren(table)
  },

  apply(key, figure) {
    if (uwmlPreview.data && key === "curve") uwmlPreview.drawCurve(figure)
    if (uwmlPreview.data && key === "bands") uwmlPreview.drawBands(figure)
    return figure
  },

  drawCurve({ data: traces, layout }) {
    const { data, tried, words = data.words } = uwmlPreview, curves = traces.filter(trace => trace.yaxis === "y2")
    const heights = [data.in_use, tried].map((parameters, place) => {
      const steepness = uwmlCurve.steepness(data.progress, parameters.steepness_start, parameters.steepness_end)
      const name = words[place && !uwmlPreview.same() ? "tried" : "in_use"]
      curves[place].x = data.grid
      curves[place].y = data.grid.map(margin => uwmlCurve.weight(margin / data.unit, parameters, steepness))
      curves[place].name = words.curve.replace("{name}", name).replace("{steepness}", steepness.toFixed(1))
      return curves[place].y
    })
    curves[0].visible = !uwmlPreview.same()
    const center = tried.center * data.unit, flat = heights[1].every(height => height === heights[1][0])
    for (const mark of [...layout.shapes, ...layout.annotations].filter(({ yref }) => yref === "y2")) {
      Object.assign(mark, { visible: !flat }, mark.type === "line" ? { x0: center, x1: center } : { x: center })
      if (mark.text !== undefined) mark.text = words.center.replace("{center}", center.toFixed(2))
    }
  },

  drawBands({ data: traces }) {
    const { data } = uwmlPreview, found = Object.keys(data.directions).map(direction => uwmlPreview.measure(direction))
    traces.forEach((trace, band) => {
      trace.x = found.flatMap(({ before, after }) => [before, after].map(side => 100 * side[data.bands[band]]))
      trace.text = trace.x.map(share => (share >= 8 ? `${share.toFixed(0)} %` : ""))
      trace.hovertemplate = `<b>%{y}</b> ${trace.name} %{x:.1f} %<extra></extra>`
    })
  },
}

function percent(share) {
  return Number.isFinite(share) ? (100 * share).toFixed(1) : "–"
}

uwmlReport.start()
