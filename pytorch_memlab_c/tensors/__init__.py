"""Live tensors: finding them, and reading their storages and autograd graphs."""
