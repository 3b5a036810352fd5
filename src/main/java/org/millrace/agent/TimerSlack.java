package org.millrace.agent;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * How late Linux may wake a thread that sleeps for a time: 50 us unless it is told otherwise, so that it can wake
 * several at once.
 */
final class TimerSlack {

    private static final int PR_SET_TIMERSLACK = 29;
    private static final long LEAST_NANOS = 1;

    private TimerSlack() {}

    /** The calling thread is woken in time from now on, where the system is Linux; elsewhere nothing changes. */
    @SuppressWarnings("restricted") // the C library
    static void least() {
        if (!System.getProperty("os.name").equals("Linux")) {
            return;
        }
        Linker linker = Linker.nativeLinker();
        MethodHandle prctl = linker.downcallHandle(linker.defaultLookup().find("prctl").orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG),
                Linker.Option.firstVariadicArg(1));
        try {
            int ignored = (int) prctl.invokeExact(PR_SET_TIMERSLACK, LEAST_NANOS); // a refusal leaves it as it was
        } catch (Throwable e) {
            throw new IllegalStateException("cannot call prctl", e);
        }
    }
}
