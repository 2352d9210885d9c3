// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.kafka;

import java.nio.file.Path;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;

/** What the jobs have in common: they restore a savepoint, and print what they emit. */
final class Restored {

    private static final long QUIET_MILLISECONDS = 4_000;

    private Restored() {}

    /** Environment that restores a savepoint; {@code ignoreOthers} if the job lacks some of its operators. */
    static StreamExecutionEnvironment environment(String savepoint, int parallelism, boolean ignoreOthers) {
        Configuration configuration = new Configuration();
        String path = Path.of(savepoint).toUri().toString();
        configuration.setString("rest.port", "0");
        configuration.setString("rest.bind-port", "0");
        configuration.setString("restart-strategy.type", "none");
        // The name of the first one of each pair is that of 1.20, of the second one that of 2.x.
        configuration.setString("execution.savepoint.path", path);
        configuration.setString("execution.state-recovery.path", path);
        configuration.setString("execution.savepoint.ignore-unclaimed-state", String.valueOf(ignoreOthers));
        configuration.setString("execution.state-recovery.ignore-unclaimed-state", String.valueOf(ignoreOthers));
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, configuration);
        environment.configure(configuration, Restored.class.getClassLoader());
        environment.setParallelism(parallelism);
        return environment;
    }

    /** Prints what a job emits until that number has come, and any that comes within the seconds after it. */
    static void print(CloseableIterator<String> records, int number) throws InterruptedException {
        Queue<String> found = new ConcurrentLinkedQueue<>();
        Thread reading = new Thread(() -> records.forEachRemaining(found::add));
        reading.setDaemon(true);
        reading.setUncaughtExceptionHandler(
                (thread, failed) -> {
                    failed.printStackTrace();
                    Runtime.getRuntime().halt(1);
                });
        reading.start();
        while (found.size() < number) {
            Thread.sleep(50);
        }
        Thread.sleep(QUIET_MILLISECONDS);
        found.forEach(System.out::println);
        System.out.flush();
        // The job never ends.
        Runtime.getRuntime().halt(0);
    }
}
