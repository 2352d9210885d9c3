"""Queries that choose their number of partitions by themselves: what a batch shows, what follows, and the request."""

from __future__ import annotations

from spark_ckpt.elasticity.decisions import ElasticDecision, Outcome
from spark_ckpt.elasticity.observation import Observation
from spark_ckpt.elasticity.policy import BusyPolicy, Decision, Policy
from spark_ckpt.elasticity.running import Elastic, elastic

__all__ = [
    "BusyPolicy",
    "Decision",
    "Elastic",
    "ElasticDecision",
    "Observation",
    "Outcome",
    "Policy",
    "elastic",
]
