"""The weighted loss as a module: checks, schedule, direction controller, diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from uwml_core.losses import checks
from uwml_core.losses.arguments import batch_of, sound
from uwml_core.losses.diagnostics import StepDiagnostics
from uwml_core.losses.distributed import OneProcess, check_claims, processes
from uwml_core.losses.fused import fusible
from uwml_core.losses.logits import Logits, Number, bias_of, learnable_logits, scale_of
from uwml_core.losses.measure import Batch, Measure
from uwml_core.losses.report import (
    StepReading,
    StepTensors,
    flat_logs,
    read_step,
    step_diagnostics,
    whole_loss,
)
from uwml_core.losses.schedule import Stage, depends_on_progress, stage_at, warn_of_unknown_progress
from uwml_core.losses.state import LossState
from uwml_core.losses.weigh import combine, direction_factors
from uwml_core.weighting import UWMLConfig


class UWMLLoss(nn.Module):
    """Universal weighting metric learning: pair, direction and stage weights on a contrastive loss.

    The weight of anchor i in direction d is w_d r_i: r_i from the difficulty curve at the anchor's margin
    (its steepness follows the stage of the training), w_d from the controller that favours the weaker
    direction. No gradient flows through a weight. With ``curve="uniform"`` and ``direction_mode="off"``
    this is symmetric InfoNCE, CLIP's loss.

    ``base="triplet"`` with ``over_negatives="sum"`` and ``base="sigmoid"`` weigh pairs (i, j) instead, by
    their own margins; the positive of ``sigmoid`` carries no weight, and normalization does not apply.
    ``base="wei2020_max"`` and ``"wei2020_calibrated"`` have weights of their own and sum the directions.
    ``sigmoid`` learns its scale (10) and bias (-10) unless both are given with the call.

    Each forward in training mode is one step and advances schedule, controller and memory after it; in
    ``eval()`` nothing advances. With ``accumulate_batches`` = k each k-th does: for trainers that call the
    loss k times per optimizer step with the same batch, other rows of it in the graph each time.
    ``memory_batches`` earlier batches are further negatives, without gradient.

    Where ``torch.distributed`` runs, the processes of its default group share a batch while training: each
    calls the loss with its slice, meets the candidates of all, and has the weights that one process with the
    whole batch has. All return that loss; the mean over processes of their gradients, which
    ``DistributedDataParallel`` takes, is its gradient. The loss's own parameters get it without averaging. In
    ``eval()`` nothing is gathered, so that one process may evaluate alone.

    ``torch.compile`` leaves a call alone: a compiled training step has a graph before it and one behind it.
    The pure ``weighted_loss`` compiles as one graph.

    Args:
        config: a ``UWMLConfig``, a mapping of its fields, or None for the defaults.
        validate: False skips the checks on values (finite, non-zero rows, some negative), not those on
            shapes.
        detach_weights: False lets gradient flow through the weights; for the benchmark of that choice.
        distributed: False keeps processes apart, each with the loss of its own batch.
        **overrides: fields of ``UWMLConfig`` that replace those of ``config``.

    Attributes:
        last: ``StepDiagnostics`` of the latest forward, None before the first.

    Raises:
        ValueError: for a field that is unknown or out of range, and for fields that exclude each other:

            - a ``wei2020`` base with a curve, direction weights, a margin scale or combination ``add``;
            - ``learnable_temperature`` with ``temperature_end``, and either of them with a base that has no
              temperature or learns its own scale;
            - ``over_negatives="sum"`` with another base than ``triplet``.

        A call raises it, in all processes alike, for batches of unequal size or dtype in several processes,
        with or without a memory queue, and for labels that only some of them have.

    Example:
        >>> loss = UWMLLoss(total_steps=100, temperature=0.1)
        >>> image, text = torch.eye(4), torch.eye(4)
        >>> value = loss(image, text, labels=torch.arange(4))
        >>> loss.last.gap.tolist()
        [1.0, 1.0]
    """

    last: StepDiagnostics | None

    def __init__(
        self,
        config: UWMLConfig | Mapping[str, Any] | None = None,
        *,
        validate: bool = True,
        detach_weights: bool = True,
        distributed: bool = True,
        **overrides: Any,
    ) -> None:
        super().__init__()
        self.config = UWMLConfig.from_dict({**_fields(config), **overrides})
        self.validate, self.detach_weights, self.distributed = validate, detach_weights, distributed
        self.last = None
        self._state, self._warned = LossState(self.config), False
        self._fused = detach_weights and fusible(self.config)
        self.logit_scale, self.logit_bias = learnable_logits(self.config)

    @property
    def directions(self) -> tuple[str, str]:
        """Names of the two directions, in the order of every axis of length 2."""
        return self.config.directions

    @property
    def step(self) -> int:
        """Optimizer steps done so far."""
        return self._state.step

    @property
    def last_logs(self) -> dict[str, float]:
        """The latest step's scalars under the column names of the ``steps`` table; {} before the first."""
        return {} if self.last is None else flat_logs(self.last)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(
        self,
        image_features: torch.Tensor,
        text_features: torch.Tensor,
        logit_scale: torch.Tensor | float | None = None,
        logit_bias: torch.Tensor | float | None = None,
        output_dict: bool = False,
        *,
        labels: Any = None,
        item_ids: Any = None,
        progress: float | None = None,
        whole_step: bool = False,
        **ignored: Any,
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        """Loss of one batch, or of this process's slice of one; ``last`` then tells what happened in it.

        Args:
            image_features: ``[batch, dim]`` floating, finite, no zero rows; need not be normalised.
            text_features: the same shape and dtype; row k is the partner of row k.
            logit_scale: 1 / temperature, already exponentiated; replaces the configured temperature and
                stays in the graph.
            logit_bias: added to every logit; only ``sigmoid`` sees it, but it stays in the graph.
            output_dict: return ``{"contrastive_loss": loss}``.
            labels: ``[batch]`` whole numbers; equal ones are never negatives of each other. None numbers
                the pairs by a running counter.
            item_ids: ``[batch]`` ids of the pairs, which other processes and the memory queue keep with them.
            progress: t in [0, 1] for this call, in place of steps done / ``total_steps``.
            whole_step: this call is an optimizer step of its own, whatever ``accumulate_batches`` says.
            **ignored: other arguments that trainers pass to a loss.

        Returns:
            The loss, a float32 scalar (float64 for float64 features), or the dict.

        Raises:
            ValueError: naming the argument, the first five offending rows and what is expected.
        """
        state, peers = self._state, processes(sharing=self.distributed and self.training)

        def checked() -> tuple[Batch, float | None]:
            batch = batch_of(image_features, text_features, labels, item_ids, state=state, rank=peers.rank)
            checks.check_logit("logit_scale", logit_scale)
            checks.check_logit("logit_bias", logit_bias)
            return batch, checks.check_progress(progress)

        (batch, at), claims = peers.share(checked, lambda made: made[0].claim(self._call(made[1])))
        check_claims(claims)
        stage = self._stage(at)
        if not (logit_scale is None or isinstance(logit_scale, torch.Tensor)):
            stage = stage._replace(temperature=1.0 / float(logit_scale))
        measure = Measure(self.config, state.memory, peers, self._fused, self.detach_weights)
        with torch.autocast(image_features.device.type, enabled=False):
            logits = self._logits(logit_scale, logit_bias, stage, batch.image, peers)
            step = measure.step(batch, claims, logits, stage.steepness)
            reading = read_step(step)
            if self.validate and not reading.sound:
                batch, _ = peers.share(partial(sound, batch, reading), _nothing)
                step = measure.step(batch, claims, logits, stage.steepness)
                reading = read_step(step)
                self._refuse_without_negatives(step, reading)
            direction_weight = self._advance(reading, step, whole_step=whole_step)
            if self.config.combination == "add":
                step = measure.weighed(step, stage.steepness, direction_weight)
                reading = read_step(step)
            part = combine(step.weighted.losses, direction_factors(self.config, direction_weight))
            loss = peers.returned(part, whole_loss(reading, self.config, direction_weight))
            loss = _kept_in_graph(loss, logits.scale, logit_bias, self.logit_scale, self.logit_bias)
        self.last = step_diagnostics(
            step,
            reading,
            stage,
            self.config,
            direction_weight=direction_weight,
            gap_window=state.controller.window_means(),
        )
        return {"contrastive_loss": loss} if output_dict else loss

    def reset_memory(self) -> None:
        """Forget the batches in the memory queue."""
        self._state.memory.clear()

    def get_extra_state(self) -> dict[str, Any]:
        """Step, label counter, controller and memory, as ``torch.load(weights_only=True)`` takes them."""
        return self._state.state_dict()

    def set_extra_state(self, state: Any) -> None:
        """Continue from a ``get_extra_state``, bit for bit."""
        self._state.load_state_dict(state)

    def _call(self, progress: float | None) -> dict[str, Any]:
        """What processes that share a batch must agree on beside it."""
        own = {"validate": self.validate, "detach_weights": self.detach_weights}
        return {"progress": progress} | self._state.counters() | own | self.config.to_dict()

    def _stage(self, progress: float | None) -> Stage:
        if progress is None and self.config.total_steps is not None:
            progress = min(self._state.step / self.config.total_steps, 1.0)
        if progress is None and not self._warned and depends_on_progress(self.config):
            self._warned = True
            warn_of_unknown_progress()
        return stage_at(progress, self.config)

    def _logits(
        self,
        scale: Number | None,
        bias: Number | None,
        stage: Stage,
        like: torch.Tensor,
        peers: OneProcess,
    ) -> Logits:
        own_scale = scale_of(scale, self.logit_scale, stage.temperature, like, training=self.training)
        own_bias = bias_of(bias, self.logit_bias, like) if self.config.base == "sigmoid" else 0.0
        # given numbers belong to a model whose trainer averages their gradients, the loss's own to no one
        return Logits(
            peers.shared(own_scale) if scale is None else own_scale,
            peers.shared(own_bias) if bias is None else own_bias,
        )

    def _refuse_without_negatives(self, step: StepTensors, reading: StepReading) -> None:
        if reading.no_negative_count.min() == step.batch_size:
            labels = step.candidate_labels[: step.batch_size].tolist()
            checks.refuse_without_negatives(labels, self.config.false_negative_margin)

    def _advance(self, reading: StepReading, step: StepTensors, *, whole_step: bool) -> tuple[float, float]:
        state = self._state
        if not self.training:
            return state.weights()
        weights = state.call(reading.gap, whole_step=whole_step)
        if state.step_complete:
            state.step += 1
            state.next_label += step.batch_size if step.distinct else 0
            if self.config.memory_batches and step.whole is not None and reading.sound:
                state.memory.push(step.whole)
        return weights


def _fields(config: Any) -> Mapping[str, Any]:
    if isinstance(config, UWMLConfig):
        return config.to_dict()
    if config is None or isinstance(config, Mapping):
        return config or {}
    raise ValueError(
        f"config={config!r} is a {type(config).__name__}; expected a UWMLConfig, a mapping or None"
    )


def _nothing(_: Batch) -> None:
    return None


def _kept_in_graph(loss: torch.Tensor, *inputs: Any) -> torch.Tensor:
    # A hinge does not see the scale, a softmax not the bias: their gradient is 0, not missing.
    for value in inputs:
        if isinstance(value, torch.Tensor) and value.requires_grad:
            # an empty slice adds 0 whatever the value, NaN included
            loss = loss + value.reshape(-1)[:0].sum().to(loss)
    return loss
