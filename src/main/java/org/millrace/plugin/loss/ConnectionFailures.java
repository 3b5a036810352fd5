package org.millrace.plugin.loss;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.millrace.MillraceException;

/**
 * Reports lost connections to a Java program. libnccl cannot report them, because it does not poll connections that
 * were taken over. Without a report, the kernels would wait forever.
 *
 * <p>
 * A listener receives the reports of all connections of this process, in all communicators.
 */
public final class ConnectionFailures {

    private static final List<Consumer<MillraceException>> LISTENERS = new CopyOnWriteArrayList<>();

    /**
     * Whether a listener was ever registered. If so, the program is written in Java and learns of losses by exceptions.
     * The present number of listeners does not matter, because a program may have no listener between two
     * communicators.
     */
    private static volatile boolean listenedTo;

    private ConnectionFailures() {}

    /**
     * @param listener receives an exception that names the connection, the cause and the last observed state of the
     *                 connection. A proxy thread calls the listener, so the listener must not block
     */
    public static void listen(Consumer<MillraceException> listener) {
        listenedTo = true;
        LISTENERS.add(listener);
    }

    public static void forget(Consumer<MillraceException> listener) {
        LISTENERS.remove(listener);
    }

    static boolean isListenedTo() {
        return listenedTo;
    }

    public static void report(MillraceException failure) {
        LISTENERS.forEach(listener -> listener.accept(failure));
    }
}
