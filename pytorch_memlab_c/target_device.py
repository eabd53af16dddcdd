"""`set_target_gpu` under its public path."""

from .engine.target_device import set_target_gpu as set_target_gpu
