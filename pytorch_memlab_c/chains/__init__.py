"""`keepers`: the chains of Python objects that hold a tensor, from variables and modules on."""

from .keepers import keepers as keepers
