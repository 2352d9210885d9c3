// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.uncaught;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.function.BiConsumer;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.Appender;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.config.Property;

/**
 * Finds uncaught errors of our code in the JVM of a test: those that reach the JVM's default
 * handler, and those that end in {@code OwnThreads} or {@code Cleanups}, which log them.
 */
public final class UncaughtErrors {
    private static final String SHIM = "org.apache.spark.sql.ckpt.";
    private static final String ENGINE = "io.github.sparkckpt.engine.";
    private static final String OUR_THREADS = "spark-ckpt";
    private static final List<String> LOGGERS = List.of(SHIM + "common.OwnThreads", ENGINE + "Cleanups");
    private static boolean watches = false;

    /** Log4j holds it weakly: without this, a collection before Spark's first line would lose the appender. */
    private static LoggerContext context;

    private UncaughtErrors() {}

    /**
     * Tells each error from now on, with the name of its thread. Only the first call counts. An earlier default handler
     * of the JVM, such as that of Spark's executors, follows.
     */
    public static synchronized void watch(BiConsumer<String, Throwable> receiver) {
        if (!watches) {
            watches = true;
            BiConsumer<String, Throwable> filter = (thread, error) -> {
                if (isOurs(thread, error)) {
                    receiver.accept(thread, error);
                }
            };
            Thread.UncaughtExceptionHandler next = Thread.getDefaultUncaughtExceptionHandler();
            Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
                filter.accept(thread.getName(), error);
                if (next != null) {
                    next.uncaughtException(thread, error);
                } else {
                    System.err.println("Exception in thread " + textOf(thread.getName(), error));
                }
            });
            listen(receiver);
        }
    }

    /** The name of the thread, and the error with its stack trace. */
    public static String textOf(String thread, Throwable error) {
        StringWriter text = new StringWriter();
        error.printStackTrace(new PrintWriter(text, true));
        return '"' + thread + "\" " + text;
    }

    private static void listen(BiConsumer<String, Throwable> receiver) {
        context = (LoggerContext) LogManager.getContext(false);
        String name = UncaughtErrors.class.getName();
        AbstractAppender appender = new AbstractAppender(name, null, null, true, Property.EMPTY_ARRAY) {
            @Override
            public void append(LogEvent event) {
                String message = event.getMessage().getFormattedMessage();
                receiver.accept(event.getThreadName(), new AssertionError(message, event.getThrown()));
            }
        };
        appender.start();
        attach(context, appender);
        // Spark sets the configuration with the first line that it logs.
        context.addPropertyChangeListener(event -> {
            if (LoggerContext.PROPERTY_CONFIG.equals(event.getPropertyName())) {
                attach(context, appender);
            }
        });
    }

    private static void attach(LoggerContext context, Appender appender) {
        Configuration configuration = context.getConfiguration();
        for (String logger : LOGGERS) {
            if (!configuration.getLoggers().containsKey(logger)) {
                LoggerConfig config = new LoggerConfig(logger, Level.ERROR, true);
                config.addAppender(appender, Level.ERROR, null);
                configuration.addLogger(logger, config);
                context.updateLoggers();
            }
        }
    }

    private static boolean isOurs(String thread, Throwable error) {
        boolean ours = thread.startsWith(OUR_THREADS);
        for (Throwable cause = error; cause != null && !ours; cause = cause.getCause()) {
            for (StackTraceElement frame : cause.getStackTrace()) {
                String name = frame.getClassName();
                ours |= name.startsWith(SHIM) || name.startsWith(ENGINE);
            }
        }
        return ours;
    }
}
