"""What a visitor of each page waits for and moves, for ``benchmarks.app``."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.browser import Visit

TIMEOUT_MS = 300_000.0
HEADING = "h1.uw-page"
SLIDER = ".st-key-{name} input[type=range]"
# Counts the script's runs that have ended by the messages that say so: hash, metadata, script_finished (not
# the one for a run that gave way to the next). What the page shows of its state may skip a run that is short.
COUNT_RUNS = """window.uwmlRuns = 0
window.WebSocket = class extends window.WebSocket {
  constructor(...given) {
    super(...given)
    this.addEventListener("message", ({ data }) => {
      const bytes = new Uint8Array(data)
      let at = 0
      for (const field of [0x0a, 0x12]) if (bytes[at] === field) at += 2 + bytes[at + 1]
      if (bytes[at] === 0x30 && at + 2 === bytes.length && bytes[at + 1] !== 2) window.uwmlRuns += 1
    })
  }
}"""
RAN = "before => window.uwmlRuns > before"
FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# A chart counts as soon as it is drawn; anything else as soon as it is there.
SHOWN = """selector => [...document.querySelectorAll(selector)].some(
  found => !found.classList.contains("uwml-plot") || found._fullLayout?.xaxis
)"""
CHART = ".uwml-plot"


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What a visitor does, again and again.

    Attributes:
        name: what the table calls it.
        target: selector of the control; of a drag the key of a chart.
        how: ``click`` it, ``drag`` across it, ``press`` the arrow key to its right, ``back`` to its left,
            ``choose`` another of its options, or ``type`` a text and take it away again.
        text: what is typed.
    """

    name: str
    target: str
    how: str = "click"
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class PageSpec:
    """A page, what answers its question there, and what is moved.

    Attributes:
        path: its address.
        first: selector of the first thing that shows an answer.
        moves: what is moved.
        query: more of its address.
    """

    path: str
    first: str
    moves: tuple[Moved, ...] = ()
    query: str = ""


def _slider(name: str, key: str = "", how: str = "press") -> Moved:
    return Moved(name=name, target=SLIDER.format(name=key or name), how=how)


TABS = ".st-key-tab button >> nth={place}"
EPOCH = Moved(name="epoch", target=".st-key-epoch input", how="choose")
# the switch in the sidebar runs the whole script again, and nothing on the page changes
AGAIN = Moved(name="drawn again", target="[data-testid=stSidebar] .st-key-live label")
PAGES: dict[str, PageSpec] = {
    "runs": PageSpec(
        path="",
        first="[data-testid=stDataFrame]",
        moves=(Moved(name="search", target=".st-key-search input", how="type", text="large"),),
    ),
    "training": PageSpec(
        path="training", first=CHART, moves=(Moved(name="zoom", target="loss", how="drag"),)
    ),
    "weight curve": PageSpec(path="weight_curve", first=CHART, moves=(_slider("center"), EPOCH)),
    "modal balance": PageSpec(path="modal_balance", first=CHART, moves=(_slider("sensitivity"),)),
    "hard negatives": PageSpec(
        path="hard_negatives",
        first=".uw-sheet",
        moves=(
            *(
                Moved(name=name, target=TABS.format(place=place))
                for place, name in ((1, "persistent"), (3, "wrong pairs"), (0, "hardest"))
            ),
            EPOCH,
        ),
    ),
    "embedding map": PageSpec(
        path="embedding_map", first=CHART, moves=(_slider("snapshot", "moment-en-0", "back"),)
    ),
    "compare": PageSpec(path="compare", first=CHART, query="&runs=large&runs=sample-uwml"),
    "diagnosis": PageSpec(path="diagnosis", first="[class*=st-key-card-]"),
    "learn": PageSpec(path="learn", first=CHART, moves=(_slider("temperature", "learn_temperature"),)),
    "share": PageSpec(
        path="share",
        first=".st-key-card-report",
        moves=(Moved(name="pictures", target=".st-key-report_pictures label"),),
    ),
}


def shown(seen: Visit, spec: PageSpec) -> None:
    """Wait until the first answer is on the screen."""
    seen.page.wait_for_function(SHOWN, arg=spec.first, timeout=TIMEOUT_MS)


def drawn(seen: Visit) -> None:
    """Wait until the page is drawn in full."""
    seen.page.wait_for_selector(HEADING, timeout=TIMEOUT_MS)
    seen.settle(timeout_ms=TIMEOUT_MS)


def move(seen: Visit, moved: Moved, number: int) -> None:
    """Move a control for the ``number``-th time and wait until the page is drawn again."""
    before = seen.page.evaluate("window.uwmlRuns")
    if moved.how == "drag":
        seen.zoom(moved.target)
    else:
        _touch(seen, moved, number)
    seen.page.wait_for_function(RAN, arg=before, timeout=TIMEOUT_MS)
    seen.page.evaluate(FRAMES)
    drawn(seen)


def _touch(seen: Visit, moved: Moved, number: int) -> None:
    control = seen.page.locator(moved.target).first
    if moved.how in ("press", "back"):
        control.press("ArrowRight" if moved.how == "press" else "ArrowLeft")
    elif moved.how == "type":
        control.fill("" if number % 2 else moved.text)
        control.press("Enter")
    else:
        control.click()
    if moved.how == "choose":
        # behind the newest and all of them
        seen.page.get_by_role("option").nth(2 + number % 4).click()
