"""All layouts of a run one after the other: what is kept of them, and what goes on from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uwml_core.projection.layout import Laid, next_layout, noise_floor, taken_up
from uwml_core.projection.parameters import ProjectionParameters
from uwml_core.projection.pca import joint_axes, moments, place
from uwml_core.projection.sample import sampled
from uwml_core.runlog.projection_facts import ProjectionFacts, SnapshotFacts, read_facts
from uwml_core.runlog.projections import PlacedSnapshot, placed_snapshots, read_projection
from uwml_core.runlog.reader import Run
from uwml_core.runlog.snapshots import Snapshot, read_snapshot


class Layouts:
    """Layouts of a run's snapshots, collected one by one.

    Args:
        run: the run.
        parameters: how it is laid out.
    """

    def __init__(self, run: Run, parameters: ProjectionParameters) -> None:
        self._run, self._parameters = run, parameters
        self.placed: list[PlacedSnapshot] = []
        self._facts: list[SnapshotFacts] = []
        self._last: Laid | None = None
        self._items_of = 0
        self._groups: Mapping[int, str] | None = None

    def go_on_from(self, path: Path) -> bool:
        """Take over a layout of the run's beginning; False where its file cannot be used."""
        frame, facts = read_projection(path), read_facts(path)
        if frame is None or facts is None:
            return False
        placed = placed_snapshots(frame)
        by_step = {one.step: one for one in placed}
        last = next((f for f in reversed(facts.snapshots) if f.goes_on), None)
        if last is not None:
            laid = self._laid_again(by_step[last.step], last)
            if laid is None:
                return False
            self._last = laid
        self.placed, self._facts = placed, list(facts.snapshots)
        return True

    def _laid_again(self, placed: PlacedSnapshot, facts: SnapshotFacts) -> Laid | None:
        snapshot = read_snapshot(self._run, placed.step)
        if snapshot is None:
            return None
        snapshot = self._thinned(snapshot, placed.item_ids)
        same = np.array_equal(snapshot.item_ids, placed.item_ids)
        return taken_up(placed, snapshot, facts, self._parameters) if same else None

    def add(self, steps: Sequence[int]) -> Iterator[int]:
        """Lay out the snapshots of these steps that are not there yet; yields how many are there then."""
        done = {fact.step for fact in self._facts}
        yield from (
            self._by_pca(steps)
            if self._parameters.method == "pca"
            else self._by_umap([step for step in steps if step not in done])
        )

    def _by_umap(self, steps: Sequence[int]) -> Iterator[int]:
        for step in steps:
            snapshot = read_snapshot(self._run, step)
            if snapshot is not None:
                chosen = np.empty(0, np.int64) if self._last is None else self._last.placed.item_ids
                laid = next_layout(self._thinned(snapshot, chosen), self._last, self._parameters)
                self._keep(laid.placed, laid.facts)
                self._last = laid if laid.goes_on else self._last
            yield len(self._facts)

    def _by_pca(self, steps: Sequence[int]) -> Iterator[int]:
        found = (read_snapshot(self._run, step) for step in steps)
        axes = joint_axes(moments(snapshot.vectors) for snapshot in found if snapshot is not None)
        for step in steps:
            snapshot = read_snapshot(self._run, step)
            if snapshot is not None:
                fits = axes is not None and snapshot.vectors.shape[1] == len(axes.mean)
                outcome = "empty" if not len(snapshot.vectors) else "axes" if fits else "other_size"
                facts = SnapshotFacts(
                    step=step,
                    epoch=snapshot.epoch,
                    outcome=outcome,
                    points=len(snapshot.item_ids) if fits else 0,
                    left_out=snapshot.left_out,
                    dimension=snapshot.vectors.shape[1],
                )
                self._keep(place(snapshot, axes) if axes is not None and fits else None, facts)
            yield len(self._facts)

    def _keep(self, placed: PlacedSnapshot | None, facts: SnapshotFacts) -> None:
        if placed is not None and len(placed.item_ids):
            self.placed.append(placed)
        self._facts.append(facts)

    def _thinned(self, snapshot: Snapshot, chosen: NDArray[np.int64]) -> Snapshot:
        self._items_of = len(np.unique(snapshot.item_ids))
        if self._items_of <= self._parameters.items:
            return snapshot
        return sampled(snapshot, self._parameters.items, self._strata(), chosen, self._parameters.seed)

    def _strata(self) -> Mapping[int, str]:
        if self._groups is None:
            items = self._run.items(columns=("item_id", "group"))
            known = None if items is None else items.dropna(subset="group")
            self._groups = {} if known is None else dict(zip(known["item_id"], known["group"], strict=True))
        return self._groups

    def facts(self) -> ProjectionFacts:
        """What is known of the layouts so far; measures the noise, which takes as long as a snapshot."""
        thinned = self._items_of > self._parameters.items and self._last is not None
        return ProjectionFacts(
            noise_floor=None if self._last is None else noise_floor(self._last, self._parameters),
            items=self._parameters.items if thinned else None,
            items_of=self._items_of,
            stratified_by="" if not thinned else "group" if self._strata() else "split",
            snapshots=tuple(self._facts),
        )
