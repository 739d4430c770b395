"""Export a run as a bundle, and import what somebody else has exported."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import streamlit as st

from uwml_core.i18n import _
from uwml_core.runlog.bundle import BundleChoice, bundle_size, write_bundle
from uwml_core.runlog.bundle_checks import BundleRefused
from uwml_core.runlog.bundle_import import import_bundle
from uwml_core.runlog.location import is_remote, shown_place
from uwml_core.runlog.reader import Run
from uwml_core.ui.frame import choose_run, is_choosing
from uwml_core.ui.read import look_again
from uwml_core.ui.report_card import size_text
from uwml_core.ui.settings import logs_root, read_only
from uwml_core.ui.text import note, section

# What the server holds in memory for a download; beyond that the command line writes straight to disk.
MOST_BYTES = 500 * 2**20
_UPLOAD, _SAID = "bundle_upload", "_import_said"


def bundle_card(run: Run) -> None:
    """Draw what a bundle may hold, how large it gets, and its download."""
    with st.container(border=True, key="card-bundle", gap="small"):
        section(_("Run bundle"))
        note(_("One zip of the run's own files that another app imports: every page works on it as here."))
        wanted = _choice()
        try:
            size = bundle_size(run, wanted)
        except (ValueError, OSError) as error:
            note(_("This run cannot be bundled."))
            note(str(error))
            return
        if size > MOST_BYTES:
            text = _("{size}, too much for a download from a page; write it on the machine of the app:")
            note(text.format(size=size_text(size)))
            st.code(_command(run, wanted), language="bash")
            return
        st.download_button(
            _("Download the bundle, {size}").format(size=size_text(size)), lambda: _bundle(run, wanted),
            file_name=f"{run.run_id}.zip", mime="application/zip", key="download-bundle",
            icon=":material/download:", on_click="ignore",
        )  # fmt: skip


def _choice() -> BundleChoice:
    row = st.container(horizontal=True)
    names = {"pictures": _("Pictures"), "embeddings": _("Embeddings"), "pairs": _("Raw pairs")}
    meaning = {
        "pictures": _("Thumbnails and paths of the items"),
        "embeddings": _("The snapshots that the embedding map shows"),
        "pairs": _("Every logged pair; without them the histograms stay"),
    }
    chosen = {
        name: row.toggle(label, True, key=f"bundle_{name}", bind="query-params", help=meaning[name])
        for name, label in names.items()
    }
    return BundleChoice(**chosen)


def _command(run: Run, wanted: BundleChoice) -> str:
    left_out = [f"--no-{name}" for name in ("pictures", "embeddings", "pairs") if not getattr(wanted, name)]
    place = shown_place(logs_root()).rstrip("/")
    return " ".join(["uwml bundle", f"{place}/{run.run_id}", *left_out])


def _bundle(run: Run, wanted: BundleChoice) -> bytes:
    with tempfile.TemporaryDirectory(prefix="uwml-bundle-") as folder:
        return write_bundle(run, Path(folder) / "bundle.zip", wanted).read_bytes()


def import_card() -> None:
    """Draw the upload of a bundle; nothing where the app may not write."""
    root = logs_root()
    if read_only() or is_remote(root):
        return
    if is_choosing():
        # only a run of the whole script draws the picker
        st.rerun(scope="app")
    with st.container(border=True, key="card-import", gap="small"):
        section(_("Import a bundle"))
        note(
            _(
                "It is checked before anything of it becomes a run: names, sizes, hashes, columns. Nothing "
                "in it is executed, and no run is replaced."
            )
        )
        _name_upload()
        st.file_uploader(
            _("Bundle of a run, .zip"),
            type="zip",
            key=_UPLOAD,
            on_change=_import,
            label_visibility="collapsed",
        )
        kind, text = st.session_state.get(_SAID, ("", ""))
        if kind == "refused":
            st.error(_("The bundle was not imported."), icon=":material/error:")
            note(text)
        elif kind == "imported":
            st.success(_("Imported; it is the chosen run now."), icon=":material/check:")
            note(text)


def _name_upload() -> None:
    most = _("zip, up to {size} MB").format(size=st.get_option("server.maxUploadSize"))
    rules = f"--uw-choose: {json.dumps(_('Choose a file'), ensure_ascii=False)};"
    rules += f" --uw-most: {json.dumps(most, ensure_ascii=False)};"
    st.html(f"<style>.st-key-card-import {{ {rules} }}</style>")


def _import() -> None:
    upload = st.session_state.get(_UPLOAD)
    st.session_state.pop(_SAID, None)
    if upload is None:
        return
    try:
        folder = import_bundle(upload, logs_root())
    except (BundleRefused, OSError) as error:
        st.session_state[_SAID] = ("refused", str(error))
        return
    st.session_state[_SAID] = ("imported", folder.name)
    look_again()
    choose_run(folder.name)
