"""Lending the GPU: the device memory of all live tensors is moved to the host and back."""

from .lender import Courtesy
from .summary import YieldedMemory

__all__ = ["Courtesy", "YieldedMemory"]
