"""What live tensors hold: finding them, reading their storages, naming them, and the allocators' own figures beside."""
