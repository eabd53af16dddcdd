"""Plain values and what is computed from them alone: no import of PyTorch or of the engine."""
