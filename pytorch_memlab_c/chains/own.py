"""What this package holds while a report is made: no chain may lead through it."""

from __future__ import annotations

import gc
from typing import Any

from ..tensors.census import Census

_CONTAINERS = (list, dict, tuple, set, Census)


def containers_of(*values: Any) -> list[Any]:
    """These, and the containers in them, however deep. What else they hold is the program's."""
    found: dict[int, Any] = {id(value): value for value in values}
    level = list(values)
    while level:
        inner = [one for one in gc.get_referents(*level) if issubclass(type(one), _CONTAINERS) and id(one) not in found]
        level = list({id(one): one for one in inner}.values())
        found.update((id(one), one) for one in level)
    return list(found.values())


def of_census(census: Census) -> list[Any]:
    """The containers of a census, and the lists of tensors that share a storage."""
    shared = [storage.tensors for storage in census.storages.values()]
    return [*containers_of(census), *shared]
