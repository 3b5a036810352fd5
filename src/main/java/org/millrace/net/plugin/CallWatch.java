package org.millrace.net.plugin;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.plugin.NetTable.NetFunction;

/**
 * Records the plugin's function that the calling thread is executing. NCCL requires that these functions do not block.
 * A function that blocks stops its thread and all connections that the thread serves. This process cannot end such a
 * call, but it logs the function's name.
 *
 * <p>
 * The calling thread writes one word at the beginning and at the end of each call. A separate thread, the
 * {@link Watcher}, reads the word twice a second. All accesses are opaque, because a slightly outdated word is
 * sufficient.
 */
final class CallWatch implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(CallWatch.class);
    private static final NetFunction[] FUNCTIONS = NetFunction.values();
    private static final int SHIFT = 8;

    private final String connection;
    private final long limitNanos;
    /**
     * The high bits contain the number of calls so far. The low {@value #SHIFT} bits contain the ordinal of the current
     * function plus 1, or 0 between two calls.
     */
    private final AtomicLong calls = new AtomicLong();

    // The following three fields are used by the watcher thread only.
    private long seen;
    private long since;
    private boolean named;

    private CallWatch(String connection, Duration limit) {
        this.connection = connection;
        this.limitNanos = limit.toNanos();
    }

    /**
     * Creates the watch for the calls of one connection. The calls must not overlap, but several threads may make them.
     */
    public static CallWatch of(String connection, Duration limit) {
        CallWatch watch = new CallWatch(connection, limit);
        Watcher.add(watch);
        return watch;
    }

    /** Ends the watch after the last call. */
    @Override
    public void close() {
        Watcher.remove(this);
    }

    void enter(NetFunction function) {
        calls.setOpaque((calls.getPlain() >> SHIFT) + 1 << SHIFT | function.ordinal() + 1);
    }

    void leave() {
        calls.setOpaque(calls.getPlain() >> SHIFT << SHIFT);
    }

    private void look(long now) {
        long current = calls.getOpaque();
        int function = (int) (current & (1 << SHIFT) - 1);
        if (current != seen || function == 0) {
            if (named) {
                LOG.warn("{}: that call has returned after some {} s", connection, (now - since) / 1_000_000_000);
            }
            seen = current;
            since = now;
            named = false;
        } else if (!named && now - since > limitNanos) {
            named = true;
            LOG.warn(
                    "{}: the plugin's {} has not returned for {} ms, and blocks its thread with all connections that "
                            + "it serves; NCCL asks that it does not wait",
                    connection, FUNCTIONS[function - 1], (now - since) / 1_000_000);
        }
    }

    /** The thread that checks all watches and fetches the log lines of plugins. The thread runs while watches exist. */
    private static final class Watcher {

        private static final long INTERVAL_NANOS = Duration.ofMillis(500).toNanos();
        /**
         * Open watches. Guarded by the monitor of this class. A watch that was not closed is removed after its garbage
         * collection.
         */
        private static final List<WeakReference<CallWatch>> WATCHED = new ArrayList<>();
        private static @Nullable Thread thread;

        private Watcher() {}

        static synchronized void add(CallWatch watch) {
            WATCHED.add(new WeakReference<>(watch));
            if (thread == null) {
                thread = Thread.ofPlatform().daemon().name("millrace-plugin-watch").start(Watcher::run);
            }
        }

        static synchronized void remove(CallWatch watch) {
            WATCHED.removeIf(reference -> reference.get() == null || reference.get() == watch);
            if (WATCHED.isEmpty()) {
                LockSupport.unpark(thread);
            }
        }

        /** Returns the open watches. Returns null if no watch is open; the thread must then end. */
        private static synchronized @Nullable List<WeakReference<CallWatch>> watched() {
            WATCHED.removeIf(reference -> reference.get() == null);
            if (WATCHED.isEmpty()) {
                thread = null;
                return null;
            }
            return List.copyOf(WATCHED);
        }

        private static void run() {
            for (List<WeakReference<CallWatch>> all = watched(); all != null; all = watched()) {
                PluginLog.pass();
                long now = System.nanoTime();
                for (WeakReference<CallWatch> reference : all) {
                    CallWatch watch = reference.get();
                    if (watch != null) {
                        watch.look(now);
                    }
                }
                LockSupport.parkNanos(INTERVAL_NANOS);
            }
            PluginLog.pass();
        }
    }
}
