// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import org.apache.flink.runtime.checkpoint.Checkpoints;

/**
 * Loads metadata files of version 2 and writes them again, both with the classes of the last release that wrote them.
 *
 * <p>The paths are the lines of standard input. For each one line goes to standard output: what Flink wrote, in base64,
 * or nothing if it cannot load or write the file; then standard error tells why.
 */
public final class FlinkRewrite {

    private FlinkRewrite() {}

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> paths = lines.lines().filter(line -> !line.isEmpty()).toList();
        for (String path : paths) {
            System.out.println(Base64.getEncoder().encodeToString(rewritten(path)));
        }
    }

    private static byte[] rewritten(String path) throws IOException {
        ByteArrayInputStream content = new ByteArrayInputStream(Files.readAllBytes(Path.of(path)));
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        try {
            Checkpoints.storeCheckpointMetadata(
                    Checkpoints.loadCheckpointMetadata(
                            new DataInputStream(content), FlinkRewrite.class.getClassLoader()),
                    written);
        } catch (Exception refused) {
            System.err.println(path + ": " + refused);
            return new byte[0];
        }
        return written.toByteArray();
    }
}
