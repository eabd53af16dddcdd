"""What autograd kept for backward, as plain values: by line and device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .device_names import slot_name
from .snapshot_types import SavedCode, SavedLine

#: The note of records where it should have been counted.
SAVED_UNSEEN = "what autograd saves cannot be seen with this build of PyTorch, or on this platform"


class Saved(NamedTuple):
    """One line on one device, in bytes of the allocator's blocks; each storage counts once, for the first line.

    ``activations``: the highest sum of those that were saved by the line and still lived: a model's layers that share
    it are in it together, training steps one after the other are not. ``run_max``: the most of one run of the line;
    ``total``: the sum over all runs. ``parameters`` and ``inputs`` (there before the outermost profiled call) are kept
    anyway. ``backward``: as ``activations``, saved while backward ran, by recomputation in a checkpoint. ``hooks``:
    given to saved-tensor hooks of the program (checkpoint, save_on_cpu) instead of being kept, in one outermost call.
    """

    activations: int
    run_max: int
    total: int
    parameters: int
    inputs: int
    backward: int
    hooks: int


SavedLines = Mapping[int, Mapping[str, Saved]]


def by_code(snapshot: Iterable[SavedCode]) -> dict[int, dict[int, dict[str, Saved]]]:
    """The figures by ``id(code)``, line and device."""
    found: dict[int, dict[int, dict[str, Saved]]] = {}
    for saved in snapshot:
        for line in saved.lines:
            found.setdefault(id(saved.code), {}).setdefault(line.line, {})[slot_name(line.slot)] = _figures(line)
    return found


def _figures(line: SavedLine) -> Saved:
    return Saved(
        activations=line.activation_bytes,
        run_max=line.run_max_bytes,
        total=line.total_bytes,
        parameters=line.parameter_bytes,
        inputs=line.input_bytes,
        backward=line.backward_bytes,
        hooks=line.hook_bytes,
    )
