"""Real Flink's State Processor API as the judge of an export: a program with the printed key and declarations.

Only what `spark-ckpt export` has printed tells the program how to read the savepoint.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from spark_ckpt.flink.export.export_savepoint import FlinkExport
from spark_ckpt.flink.export.model import StateKind
from tests.support.flink_restore import HEAP, OLDEST, OPEN_PACKAGES, class_path

SECONDS = 900
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
PLACE = ("key_group", "partition_id")
"""Columns of `read_state` that are no part of a row in Flink."""
TIMERS = (StateKind.EVENT_TIMER.name, StateKind.PROCESSING_TIMER.name)

PROGRAM = """
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.*;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.StateBackendLoader;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.state.api.*;
import org.apache.flink.state.api.functions.KeyedStateReaderFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.data.*;
import org.apache.flink.table.runtime.typeutils.*;
import org.apache.flink.table.types.logical.*;
import org.apache.flink.types.Row;
import org.apache.flink.util.*;

public final class Exported {
    static final ObjectMapper JSON = new ObjectMapper();

    @SuppressWarnings({"unchecked", "rawtypes"})
    static TypeInformation<Object> key() {
        return (TypeInformation) %(key)s;
    }

    static StateDescriptor<?, ?>[] states() {
        return new StateDescriptor<?, ?>[] {%(states)s};
    }

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("state.backend.type", arguments[2]);
        configuration.setString("rest.port", "0");
        configuration.setString("rest.bind-port", "0");
        configuration.setString("taskmanager.memory.managed.size", "64mb");
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(2, configuration);
        ClassLoader loader = Exported.class.getClassLoader();
        SavepointReader reader = SavepointReader.read(
                environment,
                Path.of(arguments[0]).toUri().toString(),
                StateBackendLoader.loadStateBackendFromConfig(configuration, loader, null));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        try (CloseableIterator<String> rows =
                reader.readKeyedState(
                                OperatorIdentifier.forUid(arguments[1]), new Reader(), key(), Types.STRING)
                        .executeAndCollect()) {
            rows.forEachRemaining(out::println);
        }
        out.flush();
        System.exit(0);
    }

    static Object plain(Object value, TypeSerializer<?> serializer) throws Exception {
        if (value instanceof RowData) {
            // The serializer alone knows the types of the columns.
            Field field = RowDataSerializer.class.getDeclaredField("types");
            field.setAccessible(true);
            LogicalType[] types = (LogicalType[]) field.get(serializer);
            List<Object> columns = new ArrayList<>();
            for (int at = 0; at < types.length; at++) {
                Object column = RowData.createFieldGetter(types[at], at).getFieldOrNull((RowData) value);
                columns.add(plain(column, null));
            }
            return columns;
        }
        if (value instanceof Row) {
            List<Object> columns = new ArrayList<>();
            for (int at = 0; at < ((Row) value).getArity(); at++) {
                columns.add(plain(((Row) value).getField(at), null));
            }
            return columns;
        }
        if (value instanceof TimestampData) {
            TimestampData at = (TimestampData) value;
            return at.getMillisecond() * 1000 + at.getNanoOfMillisecond() / 1000;
        }
        if (value instanceof Instant) {
            return ChronoUnit.MICROS.between(Instant.EPOCH, (Instant) value);
        }
        if (value == null || value instanceof Boolean || value instanceof Number || value instanceof String) {
            return value;
        }
        if (value instanceof StringData) {
            return value.toString();
        }
        throw new IllegalArgumentException(value.getClass().toString());
    }

    static final class Reader extends KeyedStateReaderFunction<Object, String> {
        private transient StateDescriptor<?, ?>[] descriptors;
        private transient State[] states;
        private transient TypeSerializer<?> keys;

        /** What Flink 1.20 calls. */
        public void open(Configuration configuration) {
            register();
        }

        /** What Flink 2.x calls. */
        public void open(OpenContext context) {
            register();
        }

        private void register() {
            RuntimeContext context = getRuntimeContext();
            keys = key().createSerializer(new SerializerConfigImpl());
            descriptors = states();
            states = new State[descriptors.length];
            for (int at = 0; at < states.length; at++) {
                StateDescriptor<?, ?> each = descriptors[at];
                states[at] =
                        each instanceof ValueStateDescriptor
                                ? context.getState((ValueStateDescriptor<?>) each)
                                : each instanceof ListStateDescriptor
                                        ? context.getListState((ListStateDescriptor<?>) each)
                                        : context.getMapState((MapStateDescriptor<?, ?>) each);
            }
        }

        @Override
        public void readKey(Object key, Context context, Collector<String> out) throws Exception {
            Object named = plain(key, keys);
            for (int at = 0; at < states.length; at++) {
                String name = descriptors[at].getName();
                if (states[at] instanceof ValueState) {
                    Object value = ((ValueState<?>) states[at]).value();
                    if (value != null) {
                        print(out, name, named, plain(value, descriptors[at].getSerializer()));
                    }
                } else if (states[at] instanceof ListState) {
                    TypeSerializer<?> element = ((ListStateDescriptor<?>) descriptors[at]).getElementSerializer();
                    Iterable<?> elements = ((ListState<?>) states[at]).get();
                    if (elements != null) {
                        for (Object each : elements) {
                            print(out, name, named, plain(each, element));
                        }
                    }
                } else {
                    MapStateDescriptor<?, ?> map = (MapStateDescriptor<?, ?>) descriptors[at];
                    for (Map.Entry<?, ?> entry : ((MapState<?, ?>) states[at]).entries()) {
                        Object mapKey = plain(entry.getKey(), map.getKeySerializer());
                        print(out, name, named, mapKey, plain(entry.getValue(), map.getValueSerializer()));
                    }
                }
            }
        }

        private static void print(Collector<String> out, Object... parts) throws Exception {
            out.collect(JSON.writeValueAsString(parts));
        }
    }
}
"""


def rows_in_flink(
    exported: FlinkExport, folder: Path, line: str = OLDEST, backend: str = "rocksdb"
) -> list[tuple[Any, ...]]:
    """Rows of all keyed states, as real Flink reads them: name, key, key of a map if it is one, and value.

    Args:
        exported: a finished export whose operator has a uid.
        folder: new folder for the program.
        line: line of Flink.
        backend: state backend of Flink.
    """
    assert exported.uid is not None
    folder.mkdir()
    source = folder / "Exported.java"
    states = ",\n".join(state.java for state in exported.states if state.kind not in TIMERS)
    source.write_text(PROGRAM % {"key": exported.key, "states": states}, encoding="utf-8")
    classes = class_path(line)
    # Compiled beforehand: tasks of Flink do not find classes that only the launcher of a source file knows.
    _run("javac", "-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", classes, "-d", str(folder), str(source))
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPEN_PACKAGES]
    options = [HEAP, "-XX:+UseSerialGC", *opens, "-cp", f"{folder}:{classes}"]
    printed = _run("java", *options, "Exported", exported.target, exported.uid, backend)
    return [_hashable(json.loads(row)) for row in printed.splitlines()]


def as_flink_prints(state: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row of `read_state`, in the form of `rows_in_flink`."""
    return (state, *(_plain(each) for name, each in row.items() if name not in PLACE))


def _run(*command: str) -> str:
    run = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=SECONDS)
    assert run.returncode == 0, run.stderr
    return run.stdout


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """Times as microseconds, and rows as tuples of their columns, without the kind of row."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        since = moment - EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if isinstance(value, dict):
        if set(value) == {"seconds", "nanos"}:
            return value["seconds"] * 1_000_000 + value["nanos"] // 1000
        return tuple(_plain(each) for each in [*value.values()][1:])
    return value
