"""PyTorch's memory snapshots by line: what `torch.cuda.memory._dump_snapshot` wrote, read and replayed."""

from .errors import SnapshotError
from .snapshot import Snapshot

__all__ = ["Snapshot", "SnapshotError"]
