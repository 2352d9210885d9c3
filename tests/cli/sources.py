"""Sources of a query with offsets of every kind."""

from __future__ import annotations

from spark_ckpt.checkpoint.batch import Source

TABLE = "14b0b1c5-33e9-4e26-bc73-3b99d855a26f"


def delta_offset(version: int) -> str:
    """Offset of a Delta source at the end of a version of its table."""
    return (
        f'{{"sourceVersion":1,"reservoirId":"{TABLE}","reservoirVersion":{version},"index":-1,'
        '"isStartingVersion":false}'
    )


BEFORE = (
    Source("0", '{"orders":{"0":17,"1":40,"2":5},"returns":{"0":0}}'),
    Source("1", delta_offset(3)),
    Source("2", '{"logOffset":3}'),
    Source("3", '{"offset":20,"timestamp":1000}'),
    Source("4", '{"0":5}'),
    Source("5", "17"),
    Source("6", '{"at":[1,2]}'),
    Source("7", None),
)
"""Sources of the first checkpoint; the last one has no offset yet."""

AFTER = (
    Source("0", '{"orders":{"0":29,"1":40,"2":6,"3":0}}'),
    Source("1", delta_offset(5)),
    Source("2", '{"logOffset":4}'),
    Source("3", '{"offset":30,"timestamp":2000}'),
    Source("4", '{"0":6}'),
    Source("5", "18"),
    Source("6", '{"at":[1,3]}'),
    Source("7", None),
)
"""Sources of the second checkpoint: a topic less, a partition more, and one partition as before."""
