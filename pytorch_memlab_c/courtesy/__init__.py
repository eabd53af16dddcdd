"""Lending the GPU: the device memory of all live tensors goes to the host and comes back."""

from .lender import Courtesy, YieldedMemory

__all__ = ["Courtesy", "YieldedMemory"]
