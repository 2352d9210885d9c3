// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.uncaught;

import org.apache.spark.api.java.function.VoidFunction;

/** Starts a thread that throws, in the JVM that calls it. */
public final class ThrowingThread implements VoidFunction<Object> {
    private final String text;

    public ThrowingThread(String text) {
        this.text = text;
    }

    @Override
    public void call(Object ignored) {
        Runnable action = () -> {
            throw new IllegalStateException(text);
        };
        new Thread(action, "spark-ckpt-throwing").start();
    }
}
