// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkbench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.Metric;
import org.apache.flink.metrics.MetricConfig;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.reporter.MetricReporter;
import org.apache.flink.metrics.reporter.MetricReporterFactory;
import org.apache.flink.metrics.reporter.Scheduled;

/** Collects the duration and the size of each completed checkpoint from Flink's own metrics of the running job. */
public final class CheckpointFigures implements MetricReporter, Scheduled {

    /** Makes the reporter; Flink finds it as a service. */
    public static final class Factory implements MetricReporterFactory {
        @Override
        public MetricReporter createMetricReporter(Properties properties) {
            return new CheckpointFigures();
        }
    }

    private static final Map<String, Gauge<?>> GAUGES = new ConcurrentHashMap<>();
    private static final List<long[]> FOUND = new ArrayList<>();
    private static long lastId = -1;

    /** Forgets all checkpoints. */
    static synchronized void clear() {
        FOUND.clear();
        lastId = -1;
    }

    /** Duration in milliseconds, written bytes and bytes of the whole state of each checkpoint since {@link #clear}. */
    static synchronized List<long[]> found() {
        return new ArrayList<>(FOUND);
    }

    @Override
    public void report() {
        synchronized (CheckpointFigures.class) {
            long id = value("lastCompletedCheckpointId");
            if (id > 0 && id != lastId) {
                lastId = id;
                FOUND.add(new long[] {
                    value("lastCheckpointDuration"), value("lastCheckpointSize"), value("lastCheckpointFullSize")
                });
            }
        }
    }

    private static long value(String name) {
        Gauge<?> gauge = GAUGES.get(name);
        return gauge == null ? -1 : ((Number) gauge.getValue()).longValue();
    }

    @Override
    public void notifyOfAddedMetric(Metric metric, String name, MetricGroup group) {
        if (metric instanceof Gauge && name.startsWith("last") && name.contains("Checkpoint")) {
            GAUGES.put(name, (Gauge<?>) metric);
        }
    }

    @Override
    public void notifyOfRemovedMetric(Metric metric, String name, MetricGroup group) {
        GAUGES.remove(name, metric);
    }

    @Override
    public void open(MetricConfig config) {}

    @Override
    public void close() {}
}
