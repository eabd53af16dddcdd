"""The process-wide side of the C engine: allocators, the target device, and the import of PyTorch."""
