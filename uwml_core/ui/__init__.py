"""What the pages are built from; the only part of the package that imports streamlit."""

from uwml_core.report.numbers import queries_note
from uwml_core.ui.assets import ICON, plotly_route
from uwml_core.ui.balance_controls import BALANCE_CONTROLS, balance_controls
from uwml_core.ui.bundle_card import bundle_card, import_card
from uwml_core.ui.card import card
from uwml_core.ui.child_card import train_with_these
from uwml_core.ui.compare_cards import (
    ablation_card,
    chosen_methods,
    configuration_card,
    difference_card,
    difference_table,
    methods_line,
    progress_card,
)
from uwml_core.ui.compare_choice import against_choice, compare_choice
from uwml_core.ui.compare_empty import choose_runs, empty_comparison, nothing_to_compare, unknown_runs
from uwml_core.ui.compare_link import compare_link
from uwml_core.ui.compare_live import follow_runs
from uwml_core.ui.compare_read import comparison
from uwml_core.ui.compare_wins import wins_card
from uwml_core.ui.controls import weighting_controls, weighting_names
from uwml_core.ui.diagnosis_cards import diagnosis, finding_card, findings_download, quiet_rules
from uwml_core.ui.empty import empty_folder, missing_gaps, missing_table
from uwml_core.ui.epochs import epoch_choice, progress_of
from uwml_core.ui.frame import draw_frame
from uwml_core.ui.gap_card import gap_card
from uwml_core.ui.hard_controls import sheet_controls
from uwml_core.ui.hard_questions import findings, question_choice
from uwml_core.ui.hard_read import catalogue, item_neighbors, item_pairs, pictured
from uwml_core.ui.hard_sheet import sheet
from uwml_core.ui.item_history import candidates_card, item_card
from uwml_core.ui.kept import kept, kept_of
from uwml_core.ui.later import await_later
from uwml_core.ui.launch import demo_button
from uwml_core.ui.layout_choice import layout_choice
from uwml_core.ui.lesson import lesson, lesson_sources
from uwml_core.ui.links import run_links
from uwml_core.ui.live import follow, follow_folder
from uwml_core.ui.map_card import map_card
from uwml_core.ui.map_controls import colored_points, map_controls
from uwml_core.ui.map_read import (
    gap_headline,
    gap_measures,
    gaps_at_hand,
    map_statements,
    measure_rest,
    moments_of,
    snapshot,
)
from uwml_core.ui.map_reading import Reading, map_reading
from uwml_core.ui.map_told import map_points, map_quality
from uwml_core.ui.notes_card import notes_card, page_notes, step_notes
from uwml_core.ui.numbers import balance_table, training_numbers, what_if_table
from uwml_core.ui.page import begin_folder_page, begin_page, current_theme
from uwml_core.ui.permalink_card import permalink_card
from uwml_core.ui.player import moment_player, play_interval
from uwml_core.ui.point_card import chosen_item
from uwml_core.ui.read import (
    balance,
    balance_steps,
    controller_validity,
    evals,
    events,
    histogram,
    lag,
    loss_in_use,
    overview,
    steps,
    weights_validity,
    what_if,
)
from uwml_core.ui.recipes import recipe_card
from uwml_core.ui.report_card import report_card
from uwml_core.ui.runs_list import runs_list
from uwml_core.ui.server_end import end_children
from uwml_core.ui.sheet_clicks import follow_clicks
from uwml_core.ui.step_zoom import StepZoom, step_series, step_zoom
from uwml_core.ui.text import guide, headline, note, notes
from uwml_core.ui.training_strip import draw_training

__all__ = [
    "BALANCE_CONTROLS",
    "ICON",
    "Reading",
    "StepZoom",
    "ablation_card",
    "against_choice",
    "await_later",
    "balance",
    "balance_controls",
    "balance_steps",
    "balance_table",
    "begin_folder_page",
    "begin_page",
    "bundle_card",
    "candidates_card",
    "card",
    "catalogue",
    "choose_runs",
    "chosen_item",
    "chosen_methods",
    "compare_choice",
    "compare_link",
    "colored_points",
    "comparison",
    "configuration_card",
    "controller_validity",
    "current_theme",
    "demo_button",
    "diagnosis",
    "difference_card",
    "difference_table",
    "draw_frame",
    "draw_training",
    "empty_comparison",
    "empty_folder",
    "end_children",
    "epoch_choice",
    "evals",
    "events",
    "finding_card",
    "findings",
    "findings_download",
    "follow",
    "follow_clicks",
    "follow_folder",
    "follow_runs",
    "gap_card",
    "gap_headline",
    "gap_measures",
    "gaps_at_hand",
    "guide",
    "headline",
    "histogram",
    "import_card",
    "item_card",
    "item_neighbors",
    "item_pairs",
    "kept",
    "kept_of",
    "lag",
    "layout_choice",
    "lesson",
    "lesson_sources",
    "loss_in_use",
    "map_card",
    "map_controls",
    "map_points",
    "map_quality",
    "map_reading",
    "map_statements",
    "measure_rest",
    "methods_line",
    "missing_gaps",
    "missing_table",
    "moment_player",
    "moments_of",
    "note",
    "notes",
    "notes_card",
    "nothing_to_compare",
    "overview",
    "page_notes",
    "permalink_card",
    "pictured",
    "play_interval",
    "plotly_route",
    "progress_card",
    "progress_of",
    "queries_note",
    "question_choice",
    "quiet_rules",
    "recipe_card",
    "report_card",
    "run_links",
    "runs_list",
    "sheet",
    "sheet_controls",
    "snapshot",
    "step_notes",
    "step_series",
    "step_zoom",
    "steps",
    "train_with_these",
    "training_numbers",
    "unknown_runs",
    "weighting_controls",
    "weighting_names",
    "weights_validity",
    "what_if",
    "what_if_table",
    "wins_card",
]
