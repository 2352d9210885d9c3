// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.sparksuites;

import java.util.concurrent.atomic.AtomicLong;

/** The provider under test, and how many of it were built. */
public final class Providers {
    static final String UNDER_TEST = System.getProperty("suites.provider");

    private static final String ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider";
    private static final AtomicLong BUILT = new AtomicLong();

    private Providers() {}

    /** The class to make where this one is asked for. */
    public static String inPlaceOf(String className) {
        return ROCKSDB.equals(className) ? UNDER_TEST : className;
    }

    public static void countOne() {
        BUILT.incrementAndGet();
    }

    public static long built() {
        return BUILT.get();
    }
}
