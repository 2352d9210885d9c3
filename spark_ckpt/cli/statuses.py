"""Exit statuses that a script can tell apart. 0 is success, and 2 wrong usage, as click has it."""

from __future__ import annotations

FAILED = 1
"""A command could not do what it was asked."""

DAMAGED = 3
"""The command has done what it was asked, and found damage."""

IN_USE = 4
"""A driver may be running the query: stop it, or say `--force`."""

REFUSED = 5
"""What was asked cannot be done here; the message says why. Nothing was changed."""
