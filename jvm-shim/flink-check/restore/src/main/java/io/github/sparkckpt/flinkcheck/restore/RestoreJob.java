// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.TimeDomain;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * Job that restores the operator {@code uid} and counts each of the {@code keys}, of type {@code key}, once more: for
 * each a JSON array of {@code "counted"}, key, sum, list and map; for each timer that fires, of {@code "EVENT_TIME"} or
 * {@code "PROCESSING_TIME"}, key and timestamp. The last key comes once {@code due} timers of processing time have
 * fired: Flink drops the others at the end of the input.
 */
final class RestoreJob {

    /** Only a job that loses timers waits so long; its answer then lacks them. */
    private static final long MOST_MINUTES = 5;

    /** Timers of processing time that are still to fire, by run. All tasks run in this JVM. */
    private static final Map<String, CountDownLatch> DUE = new ConcurrentHashMap<>();

    private RestoreJob() {}

    static List<String> run(JsonNode request) throws Exception {
        String kind = request.get("key").asText();
        String uid = request.get("uid").asText();
        List<String> keys = new ArrayList<>();
        request.get("keys").forEach(key -> keys.add(key.toString()));
        String run = UUID.randomUUID().toString();
        DUE.put(run, new CountDownLatch(request.path("due").asInt()));
        return Environment.all(
                Environment.restoring(request)
                        .fromCollection(keys, Types.STRING)
                        .uid("source")
                        .map(new Last(keys.get(keys.size() - 1), run))
                        .setParallelism(1)
                        .uid("last")
                        .keyBy(new KeyOf(kind), keyType(kind))
                        .process(new Count(run))
                        .returns(Types.STRING)
                        .uid(uid)
                        .executeAndCollect());
    }

    @SuppressWarnings("unchecked")
    private static TypeInformation<Object> keyType(String kind) {
        return (TypeInformation<Object>) Keys.typeOf(kind);
    }

    static final class Last implements MapFunction<String, String> {

        private final String last;
        private final String run;

        Last(String last, String run) {
            this.last = last;
            this.run = run;
        }

        @Override
        public String map(String key) throws InterruptedException {
            if (key.equals(last)) {
                DUE.get(run).await(MOST_MINUTES, TimeUnit.MINUTES);
            }
            return key;
        }
    }

    static final class KeyOf implements KeySelector<String, Object> {

        private final String kind;

        KeyOf(String kind) {
            this.kind = kind;
        }

        @Override
        public Object getKey(String json) throws Exception {
            return Keys.read(kind, json);
        }
    }

    static final class Count extends KeyedProcessFunction<Object, String, String> {

        private final String run;
        private transient States states;

        Count(String run) {
            this.run = run;
        }

        @Override
        public void open(OpenContext context) {
            states = new States(getRuntimeContext());
        }

        @Override
        public void processElement(String json, Context context, Collector<String> out) throws Exception {
            states.count();
            Object key = Keys.plain(context.getCurrentKey());
            out.collect(Keys.json("counted", key, states.sum(), states.list(), states.map()));
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<String> out) throws Exception {
            out.collect(Keys.json(context.timeDomain().name(), Keys.plain(context.getCurrentKey()), timestamp));
            if (context.timeDomain() == TimeDomain.PROCESSING_TIME) {
                DUE.get(run).countDown();
            }
        }
    }
}
