// Traces over the chart that follows this overlay, and what its visitor clicks and draws around.
function unpacked({ bdata }) {
  return Array.from(new Int32Array(Uint8Array.from(atob(bdata), char => char.charCodeAt(0)).buffer))
}

function listen(host, name, tell) {
  const heard = ["clicked", "selected"].map(kind => [`uwml-${kind}-${name}`, event => tell(kind, event.detail)])
  host.uwmlForget?.()
  heard.forEach(([kind, act]) => window.addEventListener(kind, act))
  host.uwmlForget = () => heard.forEach(([kind, act]) => window.removeEventListener(kind, act))
}

export default function ({ data, parentElement, setTriggerValue }) {
  const overlays = (window.uwmlOverlays ??= {})
  listen(parentElement, data.name, setTriggerValue)
  if (overlays[data.name]?.source !== data.source) {
    const { traces, chosen, quiet } = JSON.parse(data.source)
    overlays[data.name] = { source: data.source, traces, quiet, selected: chosen?.map(unpacked) }
    window.dispatchEvent(new CustomEvent(`uwml-overlay-${data.name}`))
  }
  return () => parentElement.uwmlForget?.()
}
