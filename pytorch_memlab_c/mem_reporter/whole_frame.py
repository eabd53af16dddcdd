"""A DataFrame that is shown whole: pandas cuts columns to the width of a terminal. It imports pandas."""

from __future__ import annotations

import pandas


class WholeFrame(pandas.DataFrame):
    """As a DataFrame, with all rows and columns when printed or shown; what is made from it is a plain one."""

    def __repr__(self) -> str:
        return str(self.to_string(max_colwidth=None))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        with pandas.option_context("display.max_colwidth", None):
            return str(self.to_html())
