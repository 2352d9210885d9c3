/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at
 *
 *    http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on
 * an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */
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
