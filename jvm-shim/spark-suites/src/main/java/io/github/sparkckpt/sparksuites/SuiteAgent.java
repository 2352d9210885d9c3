// SPDX-License-Identifier: Apache-2.0
package io.github.sparkckpt.sparksuites;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.lang.instrument.Instrumentation;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

/**
 * Lets Spark's published suites run with another state-store provider, and fast. It changes three classes while they
 * are loaded; nothing on disk is replaced.
 *
 * <ul>
 *   <li>{@code StateStoreProvider.create}: where a suite asks for RocksDB's provider by name, the provider under test
 *       is made. The setting, the offset log and Spark's checks by name still hold RocksDB's.
 *   <li>The provider under test: each one that is built is counted.
 *   <li>Hadoop's {@code Shell}: see {@link LocalCommands}.
 * </ul>
 *
 * <p>System properties: {@code suites.provider} is the class under test; {@code suites.localCommands} turns the last
 * change on.
 */
public final class SuiteAgent {
    private SuiteAgent() {}

    public static void premain(String arguments, Instrumentation instrumentation) {
        AgentBuilder agent = new AgentBuilder.Default()
                .disableClassFormatChanges()
                .type(named(Providers.UNDER_TEST))
                .transform((builder, type, loader, module, domain) ->
                        builder.visit(Advice.to(Built.class).on(isConstructor())))
                .type(named("org.apache.spark.sql.execution.streaming.state.StateStoreProvider$"))
                .transform((builder, type, loader, module, domain) -> builder.visit(
                        Advice.to(Create.class).on(named("create").and(takesArguments(String.class)))));
        if (Boolean.getBoolean("suites.localCommands")) {
            agent = agent.type(named("org.apache.hadoop.util.Shell"))
                    .transform((builder, type, loader, module, domain) -> builder.visit(
                            Advice.to(Command.class).on(named("execCommand").and(takesArguments(String[].class)))));
        }
        agent.installOn(instrumentation);
    }

    static final class Create {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) String className) {
            className = Providers.inPlaceOf(className);
        }
    }

    static final class Built {
        @Advice.OnMethodExit
        static void exit() {
            Providers.countOne();
        }
    }

    static final class Command {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static String enter(@Advice.Argument(0) String[] command) {
            return LocalCommands.run(command);
        }

        @Advice.OnMethodExit
        static void exit(@Advice.Enter String output, @Advice.Return(readOnly = false) String returned) {
            if (output != null) {
                returned = output;
            }
        }
    }
}
