"""The part of the logger that takes a foreign loss's similarities."""

from __future__ import annotations

from typing import Any

from uwml_core.runlog.similarities import SimilarityStep


class SimilarityLog:
    """Logs steps of a loop whose loss is not one of ours.

    Attributes:
        directions: names of both directions.
    """

    directions: tuple[str, str]

    def log_similarities(
        self, sim: Any, *, item_ids: Any, labels: Any = None, captions: Any = None, **named: Any
    ) -> None:
        """Log one optimizer step from the similarities of its batch: margins, gaps, hardest negatives.

        What only a loss of ours could tell (pair loss, weights, gradient shares) is null in the log. The
        similarities are copied, and looked at in the writer thread.

        Args:
            sim: cosine similarities ``[batch, batch]``, NumPy array or tensor: row i the item of pair i in
                the first modality, column j that of pair j in the second.
            item_ids: whole numbers ``[batch]``, rows of the data set.
            labels: whole numbers ``[batch]``; pairs of equal label are never negatives of each other.
                The item ids where None.
            captions: caption index within the item ``[batch]``, or None.
            **named: as for ``log_step``: step, epoch, phase, learning_rate, ..., and further numbers, such
                as the ``loss`` of your own and the ``temperature``.

        Raises:
            ValueError: if ``sim`` is no square matrix of finite floats, or lengths or the order of steps do
                not fit. Numbers on an accelerator are looked at later, and the next call warns of them.
        """
        name, alike = ("item_ids", item_ids) if labels is None else ("labels", labels)
        last = SimilarityStep(sim, alike, self.directions, name)
        self.log_step(last, item_ids=item_ids, captions=captions, **named)

    def log_step(self, last: Any, *, item_ids: Any, **named: Any) -> None:
        """Log one optimizer step."""
        raise NotImplementedError
