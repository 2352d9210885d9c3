// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.uncaught;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Writes each error of {@link UncaughtErrors} in the driver and the executors of an application into a file of its own,
 * in the existing folder that {@code spark.test.uncaught} names.
 */
public final class UncaughtPlugin implements SparkPlugin {
    private static final String FOLDER = "spark.test.uncaught";

    @Override
    public DriverPlugin driverPlugin() {
        return new DriverPlugin() {
            @Override
            public Map<String, String> init(SparkContext context, PluginContext plugin) {
                watch(plugin);
                return Map.of();
            }
        };
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new ExecutorPlugin() {
            @Override
            public void init(PluginContext plugin, Map<String, String> extra) {
                watch(plugin);
            }
        };
    }

    private static void watch(PluginContext plugin) {
        Path folder = Path.of(plugin.conf().get(FOLDER));
        String of = "executor " + plugin.executorID() + ", process " + ProcessHandle.current().pid() + ", thread ";
        UncaughtErrors.watch((thread, error) -> write(folder, of + UncaughtErrors.textOf(thread, error)));
    }

    /** The file appears whole. */
    private static void write(Path folder, String text) {
        try {
            String name = UUID.randomUUID().toString();
            Path part = Files.writeString(folder.resolve(name + ".part"), text);
            Files.move(part, folder.resolve(name + ".txt"));
        } catch (IOException e) {
            e.printStackTrace();
        }
    }
}
