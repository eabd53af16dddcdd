"""Lending the GPU: the device memory of all live tensors goes to the host and comes back."""

from .lender import Courtesy
from .summary import YieldedMemory

__all__ = ["Courtesy", "YieldedMemory"]
