"""The statements in Java that an export prints compile, and give the serializers that the savepoint has."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.flink.export.export_type import ExportType
from spark_ckpt.flink.export.planned_state import list_state, map_state, value_state
from spark_ckpt.flink.export.struct_types import KeyForm, ValueForm, key_type, value_type
from spark_ckpt.flink.streams import Serializer
from spark_ckpt.flink.streams.types.base import write_snapshot
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.spark_files.types import Struct, struct_of
from tests.flink.export.spark_json import array_of, map_of, struct
from tests.support.flink_restore import HEAP, NEWEST, OLDEST, OPEN_PACKAGES, class_path

SECONDS = 600
FLAT = (
    *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp"),
    *("timestamp_ntz", "decimal(9,2)", "decimal(38,10)", "interval day to second", "interval year to month"),
    "time(6)",
)
NESTED: tuple[Any, ...] = (array_of("date"), map_of("string", array_of("long")), struct(a="long", b=struct(c="date")))

PROGRAM = """
import java.io.ByteArrayOutputStream;
import java.util.HexFormat;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataOutputViewStreamWrapper;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.*;

public final class Printed {
    public static void main(String[] arguments) throws Exception {
        TypeInformation<?>[] types = {%s};
        for (TypeInformation<?> type : types) {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            TypeSerializerSnapshot.writeVersionedSnapshot(
                    new DataOutputViewStreamWrapper(bytes),
                    type.createSerializer(new SerializerConfigImpl()).snapshotConfiguration());
            System.out.println(HexFormat.of().formatHex(bytes.toByteArray()));
        }
        StateDescriptor<?, ?>[] states = {%s};
        for (StateDescriptor<?, ?> state : states) {
            System.out.println(state.getType() + " " + state.getName());
        }
    }
}
"""


def flink_types() -> list[ExportType]:
    """A type for each type of Spark, in each form."""
    columns = {f"f{number}": kind for number, kind in enumerate(FLAT)}
    flat, deep = struct_of(struct(**columns)), struct_of(struct(**columns, n=struct(a=NESTED[0], b=NESTED[1])))
    singles: list[Struct] = [struct_of(struct(one=kind)) for kind in (*FLAT, *NESTED)]
    hashed = struct_of(struct(**{name: kind for name, kind in columns.items() if kind != "binary"}))
    return [
        *(value_type(each, ValueForm.PLAIN) for each in singles),
        *(value_type(flat, form) for form in ValueForm),
        value_type(deep, ValueForm.ROW),
        key_type(hashed, KeyForm.TUPLE),
        key_type(hashed, KeyForm.ROW_DATA),
        key_type(struct_of(struct(a="string")), KeyForm.STRING),
        key_type(struct_of(struct(a="short")), KeyForm.LONG),
        key_type(struct_of(struct(a="byte")), KeyForm.INT),
        key_type(struct_of(struct()), KeyForm.ROW_DATA),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("line", [OLDEST, pytest.param(NEWEST, marks=pytest.mark.flink)])
def test_printed_java_gives_our_serializers(line: str, tmp_path: Path) -> None:
    types = flink_types()
    long, text = types[FLAT.index("long")], types[FLAT.index("string")]
    states = [value_state('a "name" ä', text)[1], list_state("list", long)[1], map_state("map", text, long)[1]]
    *snapshots, value, listed, mapped = printed(line, tmp_path, [each.java for each in types], states)
    different = [
        each.java for each, found in zip(types, snapshots, strict=True) if found != snapshot_of(each.serializer).hex()
    ]
    assert not different
    assert (value, listed, mapped) == ('VALUE a "name" ä', "LIST list", "MAP map")


def snapshot_of(serializer: Serializer) -> bytes:
    out = DataOutput()
    write_snapshot(serializer, out)
    return out.getvalue()


def printed(line: str, folder: Path, types: Sequence[str], states: Sequence[str]) -> list[str]:
    """Output of the program with these expressions."""
    source = folder / "Printed.java"
    source.write_text(PROGRAM % (",\n".join(types), ",\n".join(states)), encoding="utf-8")
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPEN_PACKAGES]
    options = [HEAP, "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", *opens, "-cp", class_path(line)]
    run = subprocess.run(["java", *options, str(source)], capture_output=True, encoding="utf-8", timeout=SECONDS)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()
