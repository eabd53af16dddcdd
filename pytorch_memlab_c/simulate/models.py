"""The cards that can be simulated, and what each reports of itself."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class GpuModel:
    """What a simulated device reports of itself. Sizes are in bytes, `bus_width` in bits."""

    name: str
    total_memory: int
    capability: tuple[int, int]
    sm_count: int
    l2_size: int
    bus_width: int

    @property
    def threads_per_sm(self) -> int:
        """Resident threads of a multiprocessor (CUDA C Programming Guide, compute capabilities)."""
        if self.capability == (7, 5):
            return 1024
        return 2048 if self.capability in _DATA_CENTRE_CAPABILITIES else 1536

    @property
    def shared_per_sm(self) -> int:
        """Shared memory of a multiprocessor, from the same table."""
        return _SHARED_PER_SM.get(self.capability, 100) << 10

    @property
    def shared_per_block_optin(self) -> int:
        """Shared memory a block can ask for; from capability 8.0 on the system keeps 1 KiB of it."""
        return self.shared_per_sm - (1024 if self.capability >= (8, 0) else 0)


_DATA_CENTRE_CAPABILITIES = {(5, 0), (5, 2), (6, 0), (6, 1), (7, 0), (8, 0), (9, 0), (10, 0), (10, 3)}
_SHARED_PER_SM = {(7, 0): 96, (7, 5): 64, (8, 0): 164, (8, 7): 164, (9, 0): 228, (10, 0): 228, (10, 3): 228}


def _card(name: str, gib: float, capability: tuple[int, int], sms: int, l2_mib: int, bus: int) -> GpuModel:
    return GpuModel(f"Simulated NVIDIA {name}", int(gib * 1024) * MIB, capability, sms, l2_mib * MIB, bus)


# Memory: what PyTorch reports as the total capacity of such a card in its out-of-memory message. It is less than
# the size on the box; drivers differ by some 0.1 GiB.
PRESETS: dict[str, GpuModel] = {
    "t4-16gb": _card("T4", 14.74, (7, 5), 40, 4, 256),
    "v100-32gb": _card("V100-SXM2-32GB", 31.73, (7, 0), 80, 6, 4096),
    "a10g-24gb": _card("A10G", 22.06, (8, 6), 80, 6, 384),
    "l4-24gb": _card("L4", 22.03, (8, 9), 58, 48, 192),
    "rtx3090-24gb": _card("GeForce RTX 3090", 23.55, (8, 6), 82, 6, 384),
    "rtx4090-24gb": _card("GeForce RTX 4090", 23.64, (8, 9), 128, 72, 384),
    "rtx5090-32gb": _card("GeForce RTX 5090", 31.36, (12, 0), 170, 96, 512),
    "a100-40gb": _card("A100-SXM4-40GB", 39.49, (8, 0), 108, 40, 5120),
    "a100-80gb": _card("A100-SXM4-80GB", 79.25, (8, 0), 108, 40, 5120),
    "h100-80gb": _card("H100 80GB HBM3", 79.11, (9, 0), 132, 50, 5120),
    "h200-141gb": _card("H200", 139.80, (9, 0), 132, 60, 6144),
    "b200-180gb": _card("B200", 178.35, (10, 0), 148, 126, 8192),
}


def presets() -> dict[str, GpuModel]:
    """The names that `enable` takes, and the card of each."""
    return dict(PRESETS)
