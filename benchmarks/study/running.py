"""Each configuration in a process of its own, one after the other; what is there already is skipped."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.study.configuration import Configuration
from benchmarks.study.material import material
from benchmarks.study.store import Store
from benchmarks.study.training import train


def run(store: Store, configurations: Iterable[Configuration], seeds: Sequence[int]) -> int:
    """Train what is missing.

    The material is loaded before the process divides, so that each starts with it.

    Args:
        store: where results go.
        configurations: what to train.
        seeds: of each of them.

    Returns:
        How many configurations there were to train.
    """
    trained = 0
    divided = multiprocessing.get_context("fork")
    for configuration in configurations:
        missing = store.missing(configuration, seeds)
        if not missing:
            continue
        trained += 1
        _ = material(configuration.modality, configuration.encoder).clean
        began = time.perf_counter()
        process = divided.Process(target=_train_all, args=(store, configuration, missing))
        process.start()
        process.join()
        took = time.perf_counter() - began
        state = "" if process.exitcode == 0 else f", exit code {process.exitcode}"
        print(f"{configuration.key}: {len(missing)} seeds, {took:.0f} s{state}", flush=True)
    return trained


def _train_all(store: Store, configuration: Configuration, seeds: Sequence[int]) -> None:
    told = {
        "modality": configuration.modality,
        "encoder": configuration.encoder,
        "noise": configuration.noise,
        "method": configuration.method,
        "preset": configuration.preset,
        "settings": configuration.settings_text,
        "warmup": configuration.warmup or "",
        "purpose": configuration.purpose,
        "key": configuration.key,
    }
    rows: list[dict[str, Any]] = []
    try:
        rows.extend({**told, "seed": seed, **train(configuration, seed)} for seed in seeds)
    except Exception:
        traceback.print_exc()
        raise
    finally:
        if rows:
            store.add(configuration, rows)
