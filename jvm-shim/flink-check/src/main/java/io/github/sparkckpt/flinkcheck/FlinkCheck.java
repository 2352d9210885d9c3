// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.checkpoint.metadata.MetadataSerializers;
import org.apache.flink.runtime.checkpoint.metadata.MetadataV3Serializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.json.JsonWriteFeature;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.json.JsonMapper;

/**
 * Loads metadata files with Flink's own loader, says what Flink reads in them, and lets Flink write them again.
 *
 * <p>The paths are the lines of standard input. For each path one line of JSON goes to standard output: {@code path},
 * and either {@code metadata} (see {@link MetadataReport}) with {@code bytesConsumed}, or {@code exception} and {@code
 * message} of what Flink throws. With the argument {@code --write} there is also {@code written}: the bytes, in base64,
 * that Flink's serializer of the file's version makes of what it has loaded (of version 3, where it is a file of
 * version 2, which this release does not write). The exit status is 0 in all cases. A file with relative paths in it
 * must be called {@code _metadata}: that is how Flink finds the directory they count from.
 */
public final class FlinkCheck {

    /** Lone surrogates are in names, but cannot be in UTF-8. */
    private static final ObjectMapper JSON = JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

    private FlinkCheck() {}

    public static void main(String[] arguments) throws IOException {
        boolean write = List.of(arguments).contains("--write");
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String path : linesOfStandardInput()) {
            out.println(JSON.writeValueAsString(check(path, write)));
        }
        out.flush();
    }

    private static List<String> linesOfStandardInput() {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        return lines.lines().filter(line -> !line.isEmpty()).toList();
    }

    private static Map<String, Object> check(String path, boolean write) throws IOException {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("path", path);
        byte[] content = Files.readAllBytes(Path.of(path));
        ByteArrayInputStream bytes = new ByteArrayInputStream(content);
        CheckpointMetadata metadata;
        try {
            metadata =
                    Checkpoints.loadCheckpointMetadata(
                            new DataInputStream(bytes),
                            FlinkCheck.class.getClassLoader(),
                            Path.of(path).toAbsolutePath().getParent().toUri().toString());
        } catch (Throwable refused) {
            // Errors as well: a corrupt count makes Flink allocate what it says. That, too, is an answer.
            line.put("exception", refused.getClass().getName());
            line.put("message", refused.getMessage());
            return line;
        }
        line.put("bytesConsumed", content.length - bytes.available());
        line.put("metadata", MetadataReport.of(metadata));
        if (write) {
            line.put("written", written(metadata, ByteBuffer.wrap(content).getInt(Integer.BYTES)));
        }
        return line;
    }

    private static byte[] written(CheckpointMetadata metadata, int version) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Checkpoints.storeCheckpointMetadata(
                metadata,
                new DataOutputStream(bytes),
                MetadataSerializers.getSerializer(Math.max(version, MetadataV3Serializer.VERSION)));
        return bytes.toByteArray();
    }
}
