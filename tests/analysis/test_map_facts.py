"""What a layout says of itself under the map."""

from __future__ import annotations

from uwml_core.analysis.map_facts import layout_sentences
from uwml_core.runlog.projection_facts import ProjectionFacts, SnapshotFacts


def one(outcome: str, **more: float) -> SnapshotFacts:
    return SnapshotFacts(step=9, epoch=0, outcome=outcome, points=8, **more)  # type: ignore[arg-type]


def test_noise_floor_sample_and_motion_are_said() -> None:
    facts = ProjectionFacts(
        noise_floor=0.0123, items=200, items_of=5_000, stratified_by="group",
        snapshots=(one("moved", data_motion=0.25, map_motion=0.031),),
    )  # fmt: skip
    noise, sample, motion = layout_sentences(facts, 9)
    assert noise == "Noise floor: what hardly moved in the data moves by 1.2 % of the map's radius"
    assert sample == "A sample of 200 of 5,000 items by group, the same in every snapshot"
    assert "25.0 % of the way to its neighbors in the data, 3.1 % of the map's radius" in motion
    assert layout_sentences(facts, 10) == [noise, sample]


def test_what_became_of_the_snapshot_is_said_where_it_is_not_like_any_other() -> None:
    for outcome, word in (("new", "a new start"), ("few", "Fewer than five"), ("still", "none did here")):
        (told,) = layout_sentences(ProjectionFacts(snapshots=(one(outcome),)), 9)
        assert word in told
    assert layout_sentences(ProjectionFacts(snapshots=(one("moved"),)), 9) == []


def test_layout_that_does_not_say_is_said() -> None:
    assert "not measured" in layout_sentences(None, 9)[0]
