"""State of a stopped query as a table that can be written: edit, erasure, and the proof that keys are gone."""

from __future__ import annotations

from spark_ckpt.edit.absence import Absence, Trace, verify_absent
from spark_ckpt.edit.editing import StateEdit, edit_state
from spark_ckpt.edit.erasing import Erasure, erase_state
from spark_ckpt.edit.errors import EditRefusedError, EditRowError

__all__ = [
    "Absence",
    "EditRefusedError",
    "EditRowError",
    "Erasure",
    "StateEdit",
    "Trace",
    "edit_state",
    "erase_state",
    "verify_absent",
]
