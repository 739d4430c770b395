import streamlit as st

from uwml_core import ui
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run

run = ui.begin_page(
    _("Embedding map"), _("Where do the two modalities lie, how do they move?"), needs=("snapshots",)
)


def body(run: Run) -> None:
    theme, told = ui.current_theme(), st.empty()
    left, right = st.container(key="map-and-item").columns([5, 3], gap="small")
    with left:
        step = ui.moment_player(ui.moments_of(run))
    snapshot = ui.snapshot(run, step)
    modalities = snapshot.named(run.modalities)
    known = ui.gaps_at_hand(run)
    with told:
        ui.headline(ui.gap_headline(run, *known))
    with left:
        ui.map_statements(run, snapshot)
    with right, st.container(border=True, key="card-controls", gap="small"):
        layout = ui.layout_choice(run, step)
        view = ui.map_controls(snapshot)
    points = ui.map_points(run, step, layout.at(step), layout.name, ranked=view.ranked)
    shown = ui.colored_points(run, snapshot, points, layout, view)
    with left:
        ui.map_card(
            run, shown, layout, view, lambda: ui.map_quality(run, step, layout.at(step), layout.name),
            modalities=modalities, theme=theme,
        )  # fmt: skip
    # only now: it takes longer than the map
    gaps, rest = ui.gap_measures(run, snapshot)
    if rest != known[1]:
        with told:
            ui.headline(ui.gap_headline(run, gaps, rest))
    with right:
        ui.map_reading(
            ui.Reading(
                run=run, snapshot=snapshot, layout=layout, shown=shown, view=view, modalities=modalities,
                theme=theme,
            )
        )  # fmt: skip
    with left, st.container(key="below-the-item"):
        ui.gap_card(run, gaps, step, modalities=modalities, theme=theme, rest=rest)
    ui.await_later()


ui.follow(run, body, every=ui.play_interval())
ui.measure_rest(run)
ui.guide(
    _("Each item is two points, one per modality. Pairs that the model has learned lie close together."),
    _("UMAP keeps neighborhoods: who is near whom. Distances between clusters and their sizes mean little."),
    _("The size of the gap on the map means nothing either; the measures below come from the embeddings."),
    _("Margin and rank are among the items of the snapshot, both splits, not among the whole data set."),
    _("Every layout starts from the one before and is turned onto it, so what moves has moved in the data."),
)
