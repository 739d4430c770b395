"""Runs that differ in nothing but the seed are one method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from uwml_core.analysis.compare.settings import SEED, identity, settings_of
from uwml_core.analysis.loss_settings import loss_config
from uwml_core.i18n import ngettext
from uwml_core.runlog.reader import Run

_SEPARATORS = " -_/.,:;=#(["


@dataclass(frozen=True, kw_only=True)
class Member:
    """A run that takes part in a comparison.

    Attributes:
        run_id, name: of the run.
        seed: None where it was not logged.
        settings: as ``settings_of`` gives them; empty where no configuration was logged.
        fingerprint: of the data; None where it was not logged.
        directions: names of both.
    """

    run_id: str
    name: str
    seed: int | None
    settings: Mapping[str, Any] = field(repr=False)
    fingerprint: str | None = None
    directions: tuple[str, str] = ("i2t", "t2i")


@dataclass(frozen=True, kw_only=True)
class Method:
    """Runs of one configuration and its name."""

    name: str
    members: tuple[Member, ...]

    @property
    def settings(self) -> Mapping[str, Any]:
        """What all members share, and the first one's seed."""
        return self.members[0].settings

    @property
    def seeds(self) -> list[int]:
        """Seeds that were logged, ascending, each once."""
        return sorted({member.seed for member in self.members if member.seed is not None})


def member_of(run: Run) -> Member:
    """A run as it takes part in a comparison."""
    settings = settings_of(run.config)
    seed = run.info.get("seed", settings.get(SEED))
    fingerprint = run.info.get("data_fingerprint")
    return Member(
        run_id=run.run_id,
        name=run.name,
        seed=seed if isinstance(seed, int) else None,
        settings=settings,
        fingerprint=fingerprint if isinstance(fingerprint, str) and fingerprint else None,
        directions=run.directions,
    )


def methods_of(members: Sequence[Member]) -> list[Method]:
    """Group runs by method, in the order of their first runs, each under a name of its own.

    Runs on other data are another group. A run without a seed or without settings is one of its own, and
    so is a finished model: what it was trained with is not known.
    """
    groups: dict[object, list[Member]] = {}
    for member in members:
        groups.setdefault(_key(member), []).append(member)
    names = [_common_name([member.name for member in group]) for group in groups.values()]
    return [
        Method(
            name=name if names.count(name) == 1 else f"{name} ({group[0].run_id})",
            members=tuple(group),
        )
        for name, group in zip(names, groups.values(), strict=True)
    ]


def _key(member: Member) -> object:
    is_finished = any(name.startswith("finished_model") for name in member.settings)
    if not member.settings or member.seed is None or is_finished:
        return member.run_id
    return identity(member.settings), member.fingerprint, member.directions


def _common_name(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    shared = _shared_start(names).rstrip(_SEPARATORS + "0123456789")
    shared = shared.removesuffix("seed").removesuffix("s").rstrip(_SEPARATORS)
    return shared if len(shared) > 2 else names[0]


def _shared_start(names: Sequence[str]) -> str:
    shortest = min(names, key=len)
    for place, letters in enumerate(zip(*names, strict=False)):
        if len(set(letters)) > 1:
            return shortest[:place]
    return shortest


def seeds_text(method: Method) -> str:
    """How many seeds a method has, or runs where that is another number.

    Example:
        >>> seeds_text(Method(name="a", members=(Member(run_id="a", name="a", seed=0, settings={}),)))
        '1 seed'
    """
    n, runs = len(method.seeds), len(method.members)
    if n != runs:
        return ngettext("{n} run", "{n} runs", runs).format(n=runs)
    return ngettext("{n} seed", "{n} seeds", n).format(n=n)


def plain_first(members: Sequence[Member], like: Member | None = None) -> Member:
    """The run that others are naturally held against: an unweighted loss, of the same base at best.

    Args:
        members: at least one, oldest last.
        like: whose base loss the baseline should have.
    """
    wanted = None if like is None else like.settings.get("loss.base")

    def distance(member: Member) -> tuple[bool, bool]:
        return not _is_plain(member), member.settings.get("loss.base") != wanted

    return min(reversed(members), key=distance)


def _is_plain(member: Member) -> bool:
    loss = loss_config({name[5:]: v for name, v in member.settings.items() if name.startswith("loss.")})
    return loss is not None and loss.curve == "uniform" and loss.direction_mode == "off"
