"""Evolution: a changed query continues from the state of the earlier one."""

from __future__ import annotations

from spark_ckpt.evolution.choices import Choices
from spark_ckpt.evolution.errors import EvolutionRefusedError, EvolutionValueError, QueryPlanError
from spark_ckpt.evolution.evolving import evolve
from spark_ckpt.evolution.result import Evolution, EvolvedSource, EvolvedStore

__all__ = [
    "Choices",
    "Evolution",
    "EvolutionRefusedError",
    "EvolutionValueError",
    "EvolvedSource",
    "EvolvedStore",
    "QueryPlanError",
    "evolve",
]
