"""Plain values as text, HTML and DataFrames: no import of PyTorch or of the engine."""
