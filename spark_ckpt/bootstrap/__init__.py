"""Bootstrap: a new query begins with state that is written from rows (docs/start-from-history.md).

written = write_state(totals, "/checkpoints/totals", totals_of_history)
"""

from __future__ import annotations

from spark_ckpt.bootstrap.errors import BootstrapRefusedError
from spark_ckpt.bootstrap.result import WrittenRows, WrittenState
from spark_ckpt.bootstrap.writing import write_state

__all__ = ["BootstrapRefusedError", "WrittenRows", "WrittenState", "write_state"]
