"""The magic `%mlkeepers`: what keeps tensors alive."""

from __future__ import annotations

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand

from pytorch_memlab_c.chains import keepers
from pytorch_memlab_c.mem_reporter import MemReporter

from .scope import scope_of, user_frame

_ROWS = 10


@magics_class
class MlkeepersMagics(Magics):
    """The magic `%mlkeepers`."""

    @no_var_expand
    @line_magic
    def mlkeepers(self, line: str) -> None:
        """Show what keeps tensors alive: the chains of objects that hold them, from variables on.

        Examples::

            %mlkeepers
            %mlkeepers model.cache["k"]

        Alone it shows the largest tensors of each device, and what keeps the largest storages alive. Those in one list
        or dict are one row. With an expression whose value is a tensor it shows all chains that hold it, the shortest
        first. After a cell that failed, it names the variables that `sys.last_value` keeps, and results in `Out`; each
        with what frees it.
        """
        if not line.strip():
            MemReporter().report(max_rows=_ROWS, holders=True)
            return
        for found in _keepers_of(self._value(line.strip())):
            print(found)

    def _value(self, expression: str) -> object:
        try:
            code = compile(expression, "<%mlkeepers>", "eval")
            return scope_of(self.shell, user_frame(self.shell)).run(code)
        except Exception as error:
            raise UsageError(f"%mlkeepers {expression}: {type(error).__name__}: {error}") from None


def _keepers_of(value: object) -> list[str]:
    try:
        return keepers(value)
    except TypeError as error:
        raise UsageError(f"%mlkeepers needs a tensor: {error}") from None
