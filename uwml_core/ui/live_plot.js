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

async function draw(host, data) {
  host.style.height = data.height + "px"
  host.setAttribute("role", "img")
  host.setAttribute("aria-label", data.title)
  const problem = host.querySelector(".uwml-plot-problem")
  try {
    const Plotly = await loadPlotly()
    if (host.uwmlLatest !== data) return
    const figure = JSON.parse(data.figure)
    applyTheme(figure.layout, host)
    problem?.remove()
    await Plotly.react(host, figure.data, figure.layout, CONFIG)
  } catch (error) {
    if (!problem) throw error
    problem.textContent = data.problem
    problem.hidden = false
  }
}

export default function ({ data, parentElement }) {
  const host = parentElement.querySelector(".uwml-plot")
  if (host.uwmlLatest?.figure === data.figure && host.uwmlLatest?.height === data.height) return
  host.uwmlLatest = data
  // One after the other: a second react while the first still draws loses the zoom.
  host.uwmlQueue = (host.uwmlQueue ?? Promise.resolve()).then(() => draw(host, data))
}
