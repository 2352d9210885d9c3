// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.flinkcheck.restore;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;

/** States of the jobs: {@code sum}, {@code list} and {@code map}. */
final class States {

    private final ValueState<Long> sum;
    private final ListState<Long> list;
    private final MapState<String, Long> map;

    States(RuntimeContext context) {
        sum = context.getState(new ValueStateDescriptor<>("sum", Types.LONG));
        list = context.getListState(new ListStateDescriptor<>("list", Types.LONG));
        map = context.getMapState(new MapStateDescriptor<>("map", Types.STRING, Types.LONG));
    }

    /** Counts the key once more. */
    void count() throws Exception {
        sum.update((sum.value() == null ? 0 : sum.value()) + 1);
        list.add(-1L);
        map.put("counted", 1L);
    }

    Long sum() throws Exception {
        return sum.value();
    }

    List<Long> list() throws Exception {
        List<Long> found = new ArrayList<>();
        Iterable<Long> elements = list.get();
        if (elements != null) {
            elements.forEach(found::add);
        }
        return found;
    }

    Map<String, Long> map() throws Exception {
        Map<String, Long> found = new TreeMap<>();
        for (Map.Entry<String, Long> entry : map.entries()) {
            found.put(entry.getKey(), entry.getValue());
        }
        return found;
    }
}
