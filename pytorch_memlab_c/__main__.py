"""`python -m pytorch_memlab_c`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
