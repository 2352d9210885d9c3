"""State as a table that can be written: edit, erasure, the proof that keys are gone, and the history of keys."""

from __future__ import annotations

from spark_ckpt.edit.absence import Absence, Trace, verify_absent
from spark_ckpt.edit.editing import StateEdit, edit_state
from spark_ckpt.edit.erasing import Erasure, erase_state
from spark_ckpt.edit.errors import EditRefusedError, EditRowError
from spark_ckpt.edit.key_history import FamilyHistory, KeyHistory, RowChange, history_of

__all__ = [
    "Absence",
    "EditRefusedError",
    "EditRowError",
    "Erasure",
    "FamilyHistory",
    "KeyHistory",
    "RowChange",
    "StateEdit",
    "Trace",
    "edit_state",
    "erase_state",
    "history_of",
    "verify_absent",
]
