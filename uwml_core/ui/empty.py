"""Pages with nothing to draw yet: what is missing and how to get it."""

from __future__ import annotations

import streamlit as st

from uwml_core.analysis.finished import finished_headline, has_embeddings, is_finished_model
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run
from uwml_core.ui.health import folder_notes
from uwml_core.ui.launch import demo_button
from uwml_core.ui.samples import samples_button
from uwml_core.ui.settings import shown_root
from uwml_core.ui.text import headline, note, section

_LOGGER = """from uwml_core import RunLogger, UWMLLoss

loss_function = UWMLLoss()
with RunLogger("logs", config=loss_function.config.to_dict()) as log:
    for item_ids, images, texts in batches:
        loss = loss_function(image_encoder(images), text_encoder(texts), item_ids=item_ids)
        ...
        log.log_step(loss_function.last, item_ids=item_ids)
"""

_EVALUATION = """log.log_eval(step=step, epoch=epoch, split="val",
             metrics=[("i2t", "R@1", 31.5, 1000, 0.0), ("t2i", "R@1", 30.2, 1000, 0.0)])
"""

_SNAPSHOT = """log.log_snapshot(step=step, epoch=epoch, embeddings={"image": images, "text": texts},
                 item_ids=item_ids, labels=labels, splits="val")  # unit-norm rows, the same items each time
"""

_NEIGHBORS = """from uwml_core.runlog.writer import Nearest

log.log_neighbors(step=step, epoch=epoch, item_ids=item_ids, splits="val",  # the same items each time
                  nearest={"i2t": Nearest(negative_ids, similarities, positive_similarities),
                           "t2i": ...})  # [n, 5], [n, 5] and [n]; labels of the negatives differ
"""

_EMBEDDINGS = "uwml diagnose-embeddings --images images.npy --texts texts.npy --pairs pairs.csv"

_RECIPES = {"evals": _EVALUATION, "snapshots": _SNAPSHOT, "neighbors": _NEIGHBORS}


def empty_folder() -> None:
    """Say that no run is there and how to make one; or that the folder is out of reach."""
    if folder_notes():
        return
    headline(_("No runs yet."))
    note(_("The app reads run folders from {folder}.").format(folder=shown_root()))
    demo_button()
    samples_button()
    section(_("From the terminal"))
    st.code("uwml demo", language="bash", wrap_lines=True)
    section(_("From your own training loop"))
    st.code(_LOGGER, language="python", wrap_lines=True)


def missing_table(run: Run, table: str) -> None:
    """Say that a run lacks a table and how to log it.

    Args:
        run: the chosen run.
        table: name of the table.
    """
    if run.status == "running":
        headline(_("Waiting for the first rows of {table}.").format(table=table))
        note(_("They appear here within 3 s of being written."))
        return
    if is_finished_model(run.config):
        _finished_model(run, table)
        return
    headline(_("This run has no {table} table.").format(table=table))
    if run.status == "foreign":
        note(_("The folder has no run.json of ours. Write the log with RunLogger to see this page:"))
    else:
        note(_("It ended before the table was written, or its loop does not log it. To log it:"))
    st.code(_RECIPES.get(table, _LOGGER), language="python", wrap_lines=True)


def _finished_model(run: Run, table: str) -> None:
    headline(finished_headline(run.frame("evals"), run.directions))
    if table == "snapshots" and not has_embeddings(run.config):
        note(_("The run was made from similarities, which have no place on a map. Embeddings have one:"))
        st.code(_EMBEDDINGS, language="bash", wrap_lines=True)
        return
    note(
        _(
            "The run was made from a finished model, so it has no {table} table; Hard negatives shows what "
            "it confuses. To see training, log it:"
        ).format(table=table)
    )
    st.code(_RECIPES.get(table, _LOGGER), language="python", wrap_lines=True)


def missing_gaps(run: Run) -> None:
    """Say that no step has a mean margin in both directions and how to log it.

    Args:
        run: the chosen run.
    """
    names = ", ".join(f"gap_{direction}" for direction in run.directions)
    if run.status == "running":
        headline(_("Waiting for the first mean margins ({names}).").format(names=names))
        note(_("They appear here within 3 s of being written."))
        return
    headline(_("This run has no mean margins ({names}) in its steps table.").format(names=names))
    note(_("They say how far each direction is, and the direction controller works on them. To log them:"))
    st.code(_LOGGER, language="python", wrap_lines=True)
