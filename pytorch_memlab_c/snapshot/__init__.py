"""PyTorch's memory snapshots by line: what a job left behind (`torch.cuda.memory._dump_snapshot`), read and replayed."""

from .errors import SnapshotError
from .snapshot import Snapshot

__all__ = ["Snapshot", "SnapshotError"]
