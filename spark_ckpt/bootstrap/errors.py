"""Errors of bootstraps."""

from __future__ import annotations

from spark_ckpt.errors import RefusedError


class BootstrapRefusedError(RefusedError):
    """The state of a new query cannot be written as requested."""

    refusal = "the state cannot be written"
