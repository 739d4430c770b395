"""What is in a data set, counted before anything is trained on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from uwml_core.data.formats import Clips, Listing
from uwml_core.data.pictures import decode

# Names that a list of faults shows; the number of all is said beside them.
SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An item that cannot be used, and why."""

    key: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """Counts over a listing.

    Attributes:
        listing: what was read.
        split_sizes: items of each split, in the order of appearance.
        captions: smallest, middle and largest number of captions of an item, and of all together.
        without_captions: keys of the items that have none.
        empty_captions: texts left out because they were empty.
        duplicate_captions: texts that stand for more than one item.
        repeated_keys: keys that several items have.
        looked_at: pictures that were opened; 0 where the data has features.
        missing: pictures that are not there.
        broken: pictures that cannot be decoded, and rows of features that are not finite.
        short: clips with fewer frames than are taken, of which some are then repeated.
    """

    listing: Listing
    split_sizes: dict[str, int]
    captions: tuple[int, float, int, int]
    without_captions: Sequence[str]
    empty_captions: int
    duplicate_captions: int
    repeated_keys: Sequence[str]
    looked_at: int = 0
    missing: Sequence[Fault] = field(default_factory=list)
    broken: Sequence[Fault] = field(default_factory=list)
    short: Sequence[str] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether every item can be trained on."""
        return not (self.without_captions or self.missing or self.broken or self.repeated_keys)

    def lines(self) -> Iterator[str]:
        """The report, line by line."""
        low, middle, high, total = self.captions
        listing = self.listing
        yield f"{listing.name}: {listing.layout}, {len(listing)} items ({listing.modality}), {total} captions"
        yield "  splits: " + ", ".join(f"{name} {size}" for name, size in self.split_sizes.items())
        yield f"  captions per item: {low} to {high}, median {middle:g}"
        yield f"  {self.duplicate_captions} captions stand for more than one item"
        if listing.features is not None:
            yield f"  features: {listing.features.size} numbers per item"
        else:
            yield f"  pictures opened: {self.looked_at} of {len(listing)}"
        for note in listing.notes:
            yield f"  {note}"
        if self.empty_captions:
            yield f"  {self.empty_captions} captions are empty and left out"
        if isinstance(listing.frames, Clips):
            few = f"clips have fewer than {listing.frames.count} frames and repeat some"
            yield from _named(few, self.short)
        yield from _named("items have no caption", self.without_captions)
        yield from _named("keys stand for several items", self.repeated_keys)
        yield from _named("pictures are missing", [fault.key for fault in self.missing])
        yield from _named("items cannot be read", [f"{fault.key} {fault.problem}" for fault in self.broken])


def _named(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = ", ..." if len(names) > SHOWN else ""
        # a name may hold line ends
        shown = ", ".join(repr(name[:80])[1:-1] for name in names[:SHOWN])
        yield f"  {len(names)} {what}: {shown}{more}"


def inspect(listing: Listing, *, most_pictures: int | None = None) -> Inspection:
    """Count what a listing holds and open its pictures.

    Args:
        listing: from ``read_listing``.
        most_pictures: open so many pictures, evenly spread; None opens all of them.
    """
    counts = [len(captions) for captions in listing.captions]
    owners = Counter(text for captions in listing.captions for text in set(captions))
    keys = Counter(listing.keys)
    looked_at, missing, broken, short = _opened(listing, most_pictures)
    return Inspection(
        listing=listing,
        split_sizes=dict(Counter(listing.splits)),
        captions=(min(counts), median(counts), max(counts), sum(counts)) if counts else (0, 0.0, 0, 0),
        without_captions=[key for key, n in zip(listing.keys, counts, strict=True) if n == 0],
        empty_captions=listing.empty_captions,
        duplicate_captions=sum(number > 1 for number in owners.values()),
        repeated_keys=[key for key, number in keys.items() if number > 1],
        looked_at=looked_at,
        missing=missing,
        broken=broken,
        short=short,
    )


def _opened(listing: Listing, most: int | None) -> tuple[int, list[Fault], list[Fault], list[str]]:
    missing: list[Fault] = []
    broken: list[Fault] = []
    short: list[str] = []
    if listing.frames is None:
        return 0, missing, broken, short
    count = len(listing) if most is None else min(most, len(listing))
    for item in (k * len(listing) // count for k in range(count)):
        try:
            for frame in listing.frames.read(item):
                decode(frame)
            if isinstance(listing.frames, Clips) and listing.frames.length(item) < listing.frames.count:
                short.append(listing.keys[item])
        except FileNotFoundError as error:
            missing.append(Fault(key=listing.keys[item], problem=str(error)))
        except (ValueError, OSError) as error:
            broken.append(Fault(key=listing.keys[item], problem=str(error)))
    return count, missing, broken, short
