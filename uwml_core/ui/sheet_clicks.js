// Opens an item within the session instead of loading the page anew; other clicks stay plain links.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.ownerDocument
  const listen = event => {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    const link = event.target.closest?.(data.links)
    const item = link && new URL(link.href).searchParams.get("item")
    if (!item) return
    event.preventDefault()
    setTriggerValue("item", item)
  }
  root.addEventListener("click", listen)
  return () => root.removeEventListener("click", listen)
}
