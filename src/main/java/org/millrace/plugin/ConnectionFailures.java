package org.millrace.plugin;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.millrace.MillraceException;

/**
 * Tells a Java program which connections were lost. libnccl cannot: it is not asked about connections that were taken
 * over, and its kernels wait for good.
 *
 * <p>
 * A listener hears of every connection of this process, of all communicators.
 */
public final class ConnectionFailures {

    private static final List<Consumer<MillraceException>> LISTENERS = new CopyOnWriteArrayList<>();

    /** A program that ever listened is Java, and gets its exceptions; between two communicators nobody listens. */
    private static volatile boolean listenedTo;

    private ConnectionFailures() {}

    /**
     * Adds a listener.
     *
     * @param listener gets connection, cause and what was last seen of the connection; called on a proxy's thread, so
     *                 it must return at once
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
