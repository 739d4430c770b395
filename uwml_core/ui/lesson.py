"""The walk through the method: one thing to move, its picture, and one sentence to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.ui import lesson_steps as steps
from uwml_core.ui.card import card
from uwml_core.ui.choice import adopt, publish
from uwml_core.ui.lesson_steps import Shown
from uwml_core.ui.text import element, headline, notes

_KEY = "step"
_HEIGHT = 380


@dataclass(frozen=True)
class Step:
    """One step: what it is called, what to read before, what to keep, and what draws its control."""

    title: str
    text: str
    keep: str
    show: Callable[[Theme], Shown]


def lesson_steps() -> tuple[Step, ...]:
    """All steps in their order, in the visitor's language."""
    return (*_of_pairs(), *_of_the_curve(), *_of_directions(), *_of_the_loss())


def _of_pairs() -> tuple[Step, ...]:
    return (
        Step(
            _("Easy negatives drown the gradient"),
            _(
                "One anchor, one hard negative at cosine 0.30 and many easy ones around 0.05. The softmax "
                "hands out the gradient. Change the temperature and see who gets it."
            ),
            _("With many negatives, the easy ones together outweigh the one that could teach something."),
            steps.drowning,
        ),
        Step(
            _("The margin says how hard a pair is"),
            _(
                "Margin: similarity to the right partner minus similarity to the nearest wrong one. These "
                "are the margins that a small run logged. Move through its epochs."
            ),
            _("Below 0 the model is wrong; far above 0 there is nothing left to learn."),
            steps.margins,
        ),
    )


def _of_the_curve() -> tuple[Step, ...]:
    return (
        Step(
            _("A bell picks the pairs that count"),
            _(
                "The weight of a pair is a bell over its margin, with its peak at the center. Move the "
                "center over the margins."
            ),
            _("Most weight goes to pairs that are neither hopeless nor learned already."),
            steps.bell,
        ),
        Step(
            _("A floor for pairs that are wrong"),
            _(
                "Left of the center the bell does not fall to 0 but to a floor. Lower it where pairs may be "
                "wrong, raise it where hard pairs are right."
            ),
            _("The floor decides whether a badly wrong pair is a lesson or noise."),
            steps.floor,
        ),
        Step(
            _("The bell sharpens"),
            _("Early, all margins are alike, and the bell is wide. Move through training: it narrows."),
            _("A cosine schedule turns from learning everything to finishing what is nearly right."),
            steps.sharpening,
        ),
    )


def _of_directions() -> tuple[Step, ...]:
    return (
        Step(
            _("The lagging direction gets more"),
            _(
                "Image to text and text to image have mean margins of their own. The smaller one lags, and a "
                "softmax gives it more weight. Change how sensitive it is."
            ),
            _("Sensitivity is the lag, in cosines, that makes one weight e times the other."),
            steps.directions,
        ),
        Step(
            _("A window keeps it calm"),
            _(
                "Single batches are noisy. The controller looks at the mean over a window of steps: here on "
                "the logged gaps of a run, replayed. Shorten the window."
            ),
            _("A short window follows noise; 200 steps follow the model."),
            steps.window,
        ),
    )


def _of_the_loss() -> tuple[Step, ...]:
    return (
        Step(
            _("Multiply, don't add"),
            _(
                "Pair, direction and stage can be multiplied or averaged. Four pairs, at the end of "
                "training. Move the lagging direction's weight."
            ),
            _("Multiplied, an easy pair stays light whatever its direction; added, direction lifts it."),
            steps.combining,
        ),
        Step(
            _("Why weights are detached"),
            _(
                "If the gradient ran through the weight, the model could lower its loss by pushing a pair to "
                "where it counts less. Below 0 a margin is pushed down. Raise the temperature."
            ),
            _("A weight says how much to listen, not where to go: no gradient flows through it."),
            steps.detaching,
        ),
    )


def lesson(theme: Theme) -> None:
    """Draw the chosen step, its number in the address."""
    every = lesson_steps()
    numbers = [str(number) for number in range(1, len(every) + 1)]
    adopt(_KEY, numbers, numbers[0])
    number = int(publish(_KEY, numbers[0]))
    step = every[number - 1]
    headline(_("{number} of {count}: {title}").format(number=number, count=len(every), title=step.title))
    left, right = st.columns([5, 3], gap="small")
    with right, st.container(border=True, key="card-lesson"):
        st.html(element("p", step.text, "uw-guide"))
        shown = step.show(theme)
        st.html(element("p", step.keep, "uw-keep"))
        _buttons(number, len(every))
        notes(shown.source)
    with left:
        card(
            step.title,
            shown.figure,
            shown.frame,
            *shown.captions,
            key=f"lesson-{number}",
            height=_HEIGHT,
        )
    if number == len(every):
        _own_run()


def _buttons(number: int, count: int) -> None:
    back, forward = st.columns(2, gap="small")
    back.button(
        _("Back"),
        key="lesson-back",
        icon=":material/arrow_back:",
        on_click=_go,
        args=(number - 1,),
        disabled=number == 1,
        width="stretch",
    )
    forward.button(
        _("Next"),
        key="lesson-next",
        icon=":material/arrow_forward:",
        on_click=_go,
        args=(number + 1,),
        disabled=number == count,
        type="primary",
        width="stretch",
    )


def _go(number: int) -> None:
    st.session_state[_KEY] = str(number)


def _own_run() -> None:
    with st.container(border=True, key="card-own-run"):
        st.html(element("h2", _("Now your own run"), "uw-title"))
        st.html(
            element(
                "p",
                _("Log it with one line in your loop, or train the demo; then try these sliders on it."),
                "uw-guide",
            )
        )
        st.code(
            'with RunLogger("logs") as log:\n    log.log_step(loss_fn.last, item_ids=item_ids, epoch=epoch)',
            language="python",
        )
        row = st.container(horizontal=True)
        pages = (
            ("pages/watch/runs.py", _("Runs")),
            ("pages/explain/weight_curve.py", _("Weight curve")),
            ("pages/explain/modal_balance.py", _("Modal balance")),
            ("pages/decide/diagnosis.py", _("Diagnosis")),
        )
        for path, name in pages:
            row.page_link(path, label=name, icon=":material/arrow_forward:")


def lesson_sources() -> None:
    """List where the method and its parts come from."""
    sources = (
        "J. Wei et al., Universal Weighting Metric Learning for Cross-Modal Matching, CVPR 2020",
        "A. van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018",
        "A. Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML 2021",
        "F. Faghri et al., VSE++: Improving Visual-Semantic Embeddings with Hard Negatives, BMVC 2018",
    )
    with st.expander(_("Sources"), icon=":material/menu_book:"):
        st.html("".join(element("p", source, "uw-guide") for source in sources))
