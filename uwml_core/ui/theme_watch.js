// Tells the browser the page's language, and the script that the colour scheme has changed: its charts carry
// their colours with them.
export default function ({ data, setTriggerValue }) {
  document.documentElement.lang = data.language
  const app = document.querySelector('[data-testid="stApp"]')
  let seen = getComputedStyle(app).colorScheme
  const observer = new MutationObserver(() => {
    const now = getComputedStyle(app).colorScheme
    if (now !== seen) setTriggerValue("scheme", (seen = now))
  })
  observer.observe(app, { attributes: true, attributeFilter: ["class", "style"] })
  return () => observer.disconnect()
}
