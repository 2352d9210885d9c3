// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/**
 * Reads and restores savepoints with real Flink.
 *
 * <p>Each line of standard input is a JSON object: {@code do}, which is {@code read} ({@link ReadState}), {@code
 * restore} ({@link RestoreJob}), {@code deduplicate} ({@link DeduplicateJob}), {@code source} ({@link SourceJob}) or
 * {@code sql} ({@link SqlJob}), {@code savepoint}, {@code backend} and what these classes take. For each, one line goes
 * to standard output: {@code rows}, or {@code exception} with the stack trace.
 */
public final class RestoreCheck {

    private static final ObjectMapper JSON = new ObjectMapper();

    private RestoreCheck() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            out.println(JSON.writeValueAsString(run(JSON.readTree(line))));
            out.flush();
        }
        // Threads of RocksDB or of a mini cluster may still run.
        System.exit(0);
    }

    private static Map<String, Object> run(JsonNode request) {
        Map<String, Object> line = new LinkedHashMap<>();
        try {
            line.put("rows", rows(request));
        } catch (Throwable failed) {
            StringWriter trace = new StringWriter();
            failed.printStackTrace(new PrintWriter(trace, true));
            line.put("exception", trace.toString());
        }
        return line;
    }

    private static List<String> rows(JsonNode request) throws Exception {
        switch (request.get("do").asText()) {
            case "deduplicate":
                return DeduplicateJob.run(request);
            case "read":
                return ReadState.run(request);
            case "restore":
                return RestoreJob.run(request);
            case "source":
                return SourceJob.run(request);
            case "sql":
                return SqlJob.run(request);
            default:
                throw new IllegalArgumentException(request.toString());
        }
    }
}
