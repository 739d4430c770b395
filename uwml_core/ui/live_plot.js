// One Plotly chart per mounted element; new figures go through Plotly.react.
let library
function loadPlotly() {
  if (window.Plotly) return Promise.resolve(window.Plotly)
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = new URL("app/static/plotly.min.js", new URL(".", document.baseURI)).href
    script.onload = () => resolve(window.Plotly)
    script.onerror = () => { library = undefined; reject(new Error(script.src)) }
    document.head.appendChild(script)
  })
  return library
}

function applyTheme(layout, host) {
  const style = getComputedStyle(host)
  const text = style.getPropertyValue("--st-text-color").trim()
  const family = style.getPropertyValue("--st-font").trim()
  layout.paper_bgcolor = "rgba(0,0,0,0)"
  layout.plot_bgcolor = "rgba(0,0,0,0)"
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: text + "80", activecolor: text, ...layout.modebar }
  layout.font = { ...(text && { color: text }), ...(family && { family }), ...layout.font }
}

const CONFIG = {
  responsive: true, displaylogo: false, showTips: false,
  modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
}
// Where points can be selected, how to do so must be seen without a pointer over the chart.
const SELECTING = {
  ...CONFIG, displayModeBar: true,
  modeBarButtons: [["lasso2d", "select2d"], ["zoom2d", "pan2d", "resetScale2d"], ["toImage"]],
}

// A chart over steps goes back to all of them, and with it the others of the page.
function configOf(Plotly, host, data) {
  if (data.overlay) return SELECTING
  if (data.steps === null) return CONFIG
  const whole = { name: "whole", title: data.whole, icon: Plotly.Icons.home, click: () => showWhole(host) }
  return { ...CONFIG, doubleClick: false, modeBarButtons: [["zoom2d", "pan2d", whole, "toImage"]] }
}

// Numbers of a trace, as they are or packed as float32.
function numbers(values) {
  if (values?.bdata === undefined) return values
  const bytes = Uint8Array.from(atob(values.bdata), char => char.charCodeAt(0))
  return values.dtype === "f4" ? new Float32Array(bytes.buffer) : undefined
}

function glides(before, after) {
  if (after.meta !== "glide" || before?.name !== after.name) return null
  const [x, y] = [numbers(before?.x), numbers(before?.y)]
  const [toX, toY] = [numbers(after.x), numbers(after.y)]
  if (!x || !toX || x.length !== toX.length) return null
  if (x.every((value, i) => value === toX[i] && y[i] === toY[i])) return null
  const mix = (from, to, share) => from.map((value, i) => value + (to[i] - value) * share)
  return share => ({ ...after, x: mix(x, toX, share), y: mix(y, toY, share) })
}

// Move points from where they are to where they will be; lines between them wait until they have arrived.
async function glide(Plotly, host, figure, data) {
  if (!data.glide_ms || window.matchMedia("(prefers-reduced-motion: reduce)").matches) return
  const moves = figure.data.map((trace, i) => glides(host.uwmlTraces?.[i], trace))
  if (!moves.some(Boolean)) return
  const start = performance.now()
  for (;;) {
    const share = (performance.now() - start) / data.glide_ms
    if (share >= 1 || host.uwmlLatest !== data) return
    const eased = share * share * (3 - 2 * share)
    const traces = figure.data.map((trace, i) => moves[i]?.(eased) ?? { ...trace, visible: trace.mode !== "lines" })
    await Plotly.react(host, steppedBack(host, traces), figure.layout, host.uwmlConfig)
    await new Promise(requestAnimationFrame)
  }
}

async function draw(host, data) {
  host.style.height = data.height + "px"
  // no image: it holds buttons
  host.setAttribute("role", "figure")
  host.setAttribute("aria-label", data.title)
  const problem = host.querySelector(".uwml-plot-problem")
  try {
    const Plotly = await loadPlotly()
    if (host.uwmlLatest !== data) return
    host.uwmlConfig ??= configOf(Plotly, host, data)
    const figure = JSON.parse(data.figure)
    applyTheme(figure.layout, host)
    const uirevision = `${data.revision}/${host.uwmlResets ?? 0}`
    Object.assign(figure.layout, { height: data.height, autosize: true, uirevision })
    showSteps(figure.layout, host)
    keepHeights(figure.layout, host)
    if (data.overlay) figure.layout = withoutOutline(host, figure.layout)
    problem?.remove()
    await glide(Plotly, host, figure, data)
    host.uwmlTraces = figure.data.map(({ x, y, name }) => ({ x, y, name }))
    host.uwmlFigure = figure
    await Plotly.react(host, withOverlay(host), figure.layout, host.uwmlConfig)
    followWidth(Plotly, host)
    if (data.clickable) listen(host)
    if (data.steps !== null) followZoom(host)
    if (data.overlay) await followOverlay(Plotly, host, data.overlay)
  } catch (error) {
    if (!problem) throw error
    problem.textContent = data.problem
    problem.hidden = false
  }
}

// Another component may draw over the traces of this one: see map_overlay.js.
function withOverlay(host) {
  const over = window.uwmlOverlays?.[host.uwmlLatest.overlay]
  return [...steppedBack(host, host.uwmlFigure.data), ...over?.traces ?? []]
}

// The traces of the chart itself, with what the overlay says of their points.
function steppedBack(host, traces) {
  const over = window.uwmlOverlays?.[host.uwmlLatest.overlay]
  if (!over) return traces
  return traces.map((trace, i) => ({ ...trace, selectedpoints: over.selected?.[i] ?? null,
    unselected: { marker: { opacity: 0.1 } },
    marker: { ...trace.marker, opacity: over.quiet ? 0.25 : trace.marker.opacity } }))
}

// What was drawn around is what stays in front: its outline would choose other points at the next snapshot.
function withoutOutline(host, layout) {
  host.uwmlOutlines = (host.uwmlOutlines ?? 0) + 1
  return { ...layout, selections: [], selectionrevision: host.uwmlOutlines }
}

async function followOverlay(Plotly, host, name) {
  if (host.uwmlFollows) return
  host.uwmlFollows = true
  const tell = (kind, numbers) => window.dispatchEvent(new CustomEvent(`uwml-${kind}-${name}`, { detail: numbers }))
  window.addEventListener(`uwml-overlay-${name}`, () => {
    host.uwmlQueue = host.uwmlQueue.then(() =>
      Plotly.react(host, withOverlay(host), withoutOutline(host, host.layout), host.uwmlConfig))
  })
  host.on("plotly_click", event => {
    const point = event.points.find(candidate => candidate.customdata !== undefined)
    if (point) tell("clicked", Array.from(point.customdata))
  })
  host.on("plotly_selected", event => {
    // the library says so too when an outline is taken away
    if (event?.lassoPoints || event?.range) tell("selected", corners(event))
  })
  host.on("plotly_deselect", () => tell("selected", []))
  await Plotly.react(host, withOverlay(host), host.layout, host.uwmlConfig)
}

// What was drawn around, as x and y of its corners in turn.
function corners(event) {
  if (event.lassoPoints) {
    const { x, y } = event.lassoPoints
    return x.flatMap((value, i) => [value, y[i]])
  }
  const [[left, right], [bottom, top]] = [event.range.x, event.range.y]
  return [left, bottom, right, bottom, right, top, left, top]
}

// A column changes its width without the window too: the sidebar opens or closes.
function followWidth(Plotly, host) {
  if (host.uwmlObserved) return
  // the library keeps fractions of a pixel
  const isLate = () => host.clientWidth && Math.abs(host.clientWidth - host._fullLayout.width) >= 1
  const fit = () => {
    host.uwmlFits = false
    return isLate() ? Plotly.Plots.resize(host) : undefined
  }
  host.uwmlObserved = new ResizeObserver(() => {
    if (host.uwmlFits || !isLate()) return
    host.uwmlFits = true
    host.uwmlQueue = host.uwmlQueue.then(fit)
  })
  host.uwmlObserved.observe(host)
}

function listen(host) {
  if (host.uwmlListens) return
  host.uwmlListens = true
  host.on("plotly_click", event => {
    const point = event.points.find(candidate => candidate.customdata !== undefined)
    if (point) host.uwmlClicked(Array.from(point.customdata))
  })
}

// Steps that the axis shows, as "first..last"; as many digits as a pixel is worth.
function showSteps(layout, { uwmlSteps: steps, uwmlExact: exact }) {
  if (!steps) return
  // not a hair beside where it was put
  const range = exact?.steps === steps ? exact.range : steps.split("..").map(Number)
  for (const name of Object.keys(layout).filter(each => each.startsWith("xaxis"))) {
    layout[name] = { ...layout[name], range: [...range], autorange: false }
  }
}

// What the visitor chose in a chart over steps goes before what its figure says of the steps shown.
function keepHeights(layout, { uwmlHeights: heights = {} }) {
  for (const [name, range] of Object.entries(heights)) {
    layout[name] = { ...layout[name], range: [...range], autorange: false }
  }
}

function chosenHeights(host, change) {
  const names = Object.keys(change).map(name => /^(yaxis\d*)\.range/.exec(name)?.[1]).filter(Boolean)
  return Object.fromEntries(names.map(name => [name, [...host._fullLayout[name].range]]))
}

function stepsOf({ range, autorange }) {
  if (autorange) return ""
  const digits = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(range[1] - range[0]))))
  return range.map(edge => edge.toFixed(digits)).join("..")
}

function followZoom(host) {
  if (host.uwmlFollowsZoom) return
  host.uwmlFollowsZoom = true
  host.on("plotly_relayout", change => {
    Object.assign(host.uwmlHeights ??= {}, chosenHeights(host, change))
    const moved = Object.keys(change).some(name => /^xaxis\d*\.(auto)?range/.test(name))
    if (!moved) return
    const axis = host._fullLayout.xaxis
    host.uwmlExact = { steps: stepsOf(axis), range: [...axis.range] }
    tellSteps(host, host.uwmlExact.steps)
  })
  host.on("plotly_doubleclick", () => showWhole(host))
}

// Zooms that the visitor has made, in whatever chart of the page; the server says of how many it has heard.
const zooms = window.uwmlZooms ??= { session: undefined, count: 0 }

function tellSteps(host, steps) {
  host.uwmlSteps = steps
  zooms.count += 1
  host.uwmlZoomed({ steps, count: zooms.count })
}

// What was drawn while a zoom was on its way to the server must not undo it.
function isLate({ zooms: [session, count] }) {
  // one that began meanwhile has heard of none
  if (session !== zooms.session) Object.assign(zooms, { session, count })
  return count < zooms.count
}

function takeSteps(host, data) {
  const same = host.uwmlLatest?.revision === data.revision
  if (data.steps !== null && isLate(data) && same) return
  if (host.uwmlSteps && !data.steps) forgetZoom(host)
  if (host.uwmlSteps !== data.steps || !same) host.uwmlHeights = {}
  host.uwmlSteps = data.steps
}

function forgetZoom(host) {
  host.uwmlResets = (host.uwmlResets ?? 0) + 1
  host.uwmlHeights = {}
}

function showWhole(host) {
  forgetZoom(host)
  tellSteps(host, "")
  enqueue(host)
}

// One after the other: a second react while the first still draws loses the zoom.
function enqueue(host) {
  const data = host.uwmlLatest
  host.uwmlQueue = (host.uwmlQueue ?? Promise.resolve()).then(() => draw(host, data))
}

// One line on how to draw, and then the figure.
function unpacked(bytes) {
  const end = bytes.indexOf("\n".charCodeAt(0)), text = new TextDecoder()
  return { ...JSON.parse(text.decode(bytes.subarray(0, end))), figure: text.decode(bytes.subarray(end + 1)) }
}

export default function ({ data: bytes, parentElement, setTriggerValue }) {
  const host = parentElement.querySelector(".uwml-plot"), data = unpacked(bytes)
  host.uwmlClicked = numbers => setTriggerValue("clicked", numbers)
  host.uwmlZoomed = zoom => setTriggerValue("zoomed", zoom)
  const { uwmlLatest: shown, uwmlSteps: steps } = host
  takeSteps(host, data)
  const same = host.uwmlSteps === steps && ["figure", "height", "revision"].every(name => shown?.[name] === data[name])
  if (same) return
  host.uwmlLatest = data
  enqueue(host)
}
