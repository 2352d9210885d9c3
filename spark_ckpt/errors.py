"""The errors of spark-ckpt: one base class, and a specific class for each thing that can be wrong.

Every error names the thing that is wrong (a file, an offset, a setting) and says what to do about it. What a caller
needs in order to act stands in attributes, not only in the text.
"""

from __future__ import annotations


class SparkCkptError(Exception):
    """Base class of every error that spark-ckpt raises on purpose."""
