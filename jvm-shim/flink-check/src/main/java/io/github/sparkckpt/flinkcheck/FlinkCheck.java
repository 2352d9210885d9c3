package io.github.sparkckpt.flinkcheck;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Loads metadata files with Flink's own loader and says what Flink reads in them.
 *
 * <p>The paths are the arguments, or the lines of standard input if there are none. For each path one line of JSON goes
 * to standard output: {@code path}, and either {@code metadata} (see {@link MetadataReport}) with {@code bytesConsumed},
 * or {@code exception} and {@code message} of what Flink throws. The exit status is 0 in both cases. A file with
 * relative paths in it must be called {@code _metadata}: that is how Flink finds the directory they count from.
 */
public final class FlinkCheck {

    private FlinkCheck() {}

    public static void main(String[] arguments) throws IOException {
        ObjectMapper json = new ObjectMapper();
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String path : arguments.length > 0 ? List.of(arguments) : linesOfStandardInput()) {
            out.println(json.writeValueAsString(check(path)));
        }
        out.flush();
    }

    private static List<String> linesOfStandardInput() {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        return lines.lines().filter(line -> !line.isEmpty()).toList();
    }

    private static Map<String, Object> check(String path) throws IOException {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("path", path);
        byte[] content = Files.readAllBytes(Path.of(path));
        ByteArrayInputStream bytes = new ByteArrayInputStream(content);
        try {
            CheckpointMetadata metadata =
                    Checkpoints.loadCheckpointMetadata(
                            new DataInputStream(bytes),
                            FlinkCheck.class.getClassLoader(),
                            Path.of(path).toAbsolutePath().getParent().toUri().toString());
            line.put("bytesConsumed", content.length - bytes.available());
            line.put("metadata", MetadataReport.of(metadata));
        } catch (Exception | OutOfMemoryError | StackOverflowError refused) {
            // A corrupt count makes Flink allocate what it says: that, too, is an answer.
            line.put("exception", refused.getClass().getName());
            line.put("message", refused.getMessage());
        }
        return line;
    }
}
