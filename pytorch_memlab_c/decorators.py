"""`profile` and `profile_every` under their public path."""

from .line_profiler.decorators import clear_global_line_profiler as clear_global_line_profiler
from .line_profiler.decorators import print_stats as print_stats
from .line_profiler.decorators import profile as profile
from .line_profiler.decorators import profile_every as profile_every
