// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.StateBackendLoader;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;

/** Environments of the jobs, as a request describes them. */
final class Environment {

    private Environment() {}

    /** Environment with the backend and parallelism of a request, which restores its savepoint. */
    static StreamExecutionEnvironment restoring(JsonNode request) {
        Configuration configuration = configuration(request);
        // The name of the first one is that of 1.20, of the second one that of 2.x.
        configuration.setString("execution.savepoint.path", savepoint(request));
        configuration.setString("execution.state-recovery.path", savepoint(request));
        return environment(request, configuration);
    }

    /** Environment with the backend and parallelism of a request. */
    static StreamExecutionEnvironment empty(JsonNode request) {
        return environment(request, configuration(request));
    }

    static String savepoint(JsonNode request) {
        return Path.of(request.get("savepoint").asText()).toUri().toString();
    }

    static StateBackend backend(JsonNode request) throws Exception {
        return StateBackendLoader.loadStateBackendFromConfig(
                configuration(request), Environment.class.getClassLoader(), null);
    }

    private static StreamExecutionEnvironment environment(JsonNode request, Configuration configuration) {
        int parallelism = request.path("parallelism").asInt(1);
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, configuration);
        environment.configure(configuration, Environment.class.getClassLoader());
        environment.setParallelism(parallelism);
        if (request.has("maxParallelism")) {
            environment.setMaxParallelism(request.get("maxParallelism").asInt());
        }
        return environment;
    }

    private static Configuration configuration(JsonNode request) {
        Configuration configuration = new Configuration();
        configuration.setString("rest.port", "0");
        configuration.setString("rest.bind-port", "0");
        configuration.setString("restart-strategy.type", "none");
        configuration.setString("state.backend.type", request.get("backend").asText());
        configuration.setString("taskmanager.memory.managed.size", "64mb");
        // A machine may stall for longer than Flink waits for an answer.
        configuration.setString("pekko.ask.timeout", "10 min");
        configuration.setString("heartbeat.timeout", "10 min");
        if (request.path("ignoreOthers").asBoolean()) {
            configuration.setString("execution.savepoint.ignore-unclaimed-state", "true");
            configuration.setString("execution.state-recovery.ignore-unclaimed-state", "true");
        }
        return configuration;
    }

    static List<String> all(CloseableIterator<?> iterator) throws Exception {
        List<String> found = new ArrayList<>();
        try (iterator) {
            iterator.forEachRemaining(each -> found.add(each.toString()));
        }
        return found;
    }
}
