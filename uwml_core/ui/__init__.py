"""What the pages are built from; the only part of the package that imports streamlit."""

from uwml_core.ui.assets import ICON, publish_plotly_js
from uwml_core.ui.card import card
from uwml_core.ui.controls import weighting_controls
from uwml_core.ui.empty import empty_folder
from uwml_core.ui.epochs import epoch_choice, progress_of
from uwml_core.ui.frame import draw_frame
from uwml_core.ui.launch import demo_button
from uwml_core.ui.links import run_links
from uwml_core.ui.live import follow, follow_folder
from uwml_core.ui.numbers import queries_note, training_numbers, what_if_table
from uwml_core.ui.page import begin_folder_page, begin_page, current_theme
from uwml_core.ui.read import evals, events, histogram, loss_in_use, overview, pairs, steps
from uwml_core.ui.recipes import recipe_card
from uwml_core.ui.runs_list import runs_list
from uwml_core.ui.text import guide, headline, note, notes

__all__ = [
    "ICON",
    "begin_folder_page",
    "begin_page",
    "card",
    "current_theme",
    "demo_button",
    "draw_frame",
    "empty_folder",
    "epoch_choice",
    "evals",
    "events",
    "follow",
    "follow_folder",
    "guide",
    "headline",
    "histogram",
    "loss_in_use",
    "note",
    "notes",
    "overview",
    "pairs",
    "progress_of",
    "publish_plotly_js",
    "queries_note",
    "recipe_card",
    "run_links",
    "runs_list",
    "steps",
    "training_numbers",
    "weighting_controls",
    "what_if_table",
]
