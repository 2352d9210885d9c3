"""Rows that Spark's own writers have made, byte for byte those of our encoder."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_ckpt.spark_files.types import struct_of
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.unsafe_row_encoder import encode_rows

_VALUES = {
    "flag": "id % 2 = 0",
    "tiny": "cast(-id as byte)",
    "small": "cast(-id as short)",
    "number": "cast(id * -7 as int)",
    "big": "id * 1234567890123 - 5",
    "half": "cast(id / 2 as float)",
    "third": "id / 3",
    "day": "date_add(date'1969-12-20', cast(id as int))",
    "at": "timestamp_micros(id * 1000003 - 5)",
    "local": "cast(timestamp_micros(id * 1000003 - 5) as timestamp_ntz)",
    "text": "repeat('ä€', cast(id % 9 as int))",
    "code": "cast(repeat('x', cast(id % 17 as int)) as binary)",
    "short_decimal": "cast(id - 20.25 as decimal(9, 2))",
    "long_decimal": "cast((id - 20) * 98765432109876543210.125 as decimal(38, 5))",
    "list": "transform(sequence(1, id % 5), x -> if(x % 3 = 0, null, x * id))",
    "texts": "transform(sequence(1, id % 70), x -> repeat('y', cast(x % 11 as int)))",
    "bytes": "transform(sequence(1, id % 4), x -> cast(x as byte))",
    "decimals": "array(cast(id as decimal(38, 0)), null, cast(id as decimal(38, 0)) * 12345678901234567890)",
    "table": "map('a', id, repeat('b', cast(id as int)), null)",
    "inner": "named_struct('n', if(id % 4 = 0, null, id), 't', nullif(string(id), ''), 'd', cast(null as decimal(30)))",
    "inners": "array(named_struct('a', nullif(id, -1), 'b', nullif(array(string(id)), array(''))), null)",
}


def test_bytes_are_those_of_spark(spark: SparkSession) -> None:
    """With and without nulls in every column."""
    columns = [
        f"if(id % 11 = {number % 11}, null, {value}) as {name}" for number, (name, value) in enumerate(_VALUES.items())
    ]
    frame: Any = spark.range(0, 50, 1, 1).selectExpr(*columns)
    kind = struct_of(json.loads(frame.schema.json()))
    rows = frame._jdf.queryExecution().executedPlan().executeCollect()
    expected = [bytes(row.getBytes()) for row in rows]
    table = frame.toArrow()
    parts = [table.column(field.name).combine_chunks().cast(field.type) for field in kind.arrow]
    array = pa.StructArray.from_arrays(parts, fields=list(kind.arrow))
    encoded = encode_rows(kind, array)
    content = encoded.buffer.data.tobytes()
    found = [
        content[start : start + size]
        for start, size in zip(encoded.starts.tolist(), encoded.sizes.tolist(), strict=True)
    ]
    assert found == expected
    assert decode_rows(kind, encoded).equals(array)
