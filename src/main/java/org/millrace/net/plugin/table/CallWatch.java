package org.millrace.net.plugin.table;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/**
 * Which of a plugin's functions a thread is in, if any. NCCL asks that none of them blocks; one that does stops its
 * thread and all connections of it, and nothing here can end it: but it is named.
 *
 * <p>
 * The thread that calls stores two plain words a call; {@link Watcher}, a thread of its own that looks twice a second,
 * reads them as they come: a word that is somewhat old serves it as well.
 */
public final class CallWatch {

    private static final Logger LOG = LogManager.getLogger(CallWatch.class);
    private static final VarHandle CALLS;
    private static final NetFunction[] FUNCTIONS = NetFunction.values();
    private static final int SHIFT = 8;

    static {
        try {
            CALLS = MethodHandles.lookup().findVarHandle(CallWatch.class, "calls", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final String connection;
    private final long limitNanos;
    /** How many calls were made, and in the low bits the function that is in one, plus 1; 0 there between calls. */
    private long calls;

    // The watcher's own.
    private long seen;
    private long since;
    private boolean named;

    private CallWatch(String connection, Duration limit) {
        this.connection = connection;
        this.limitNanos = limit.toNanos();
    }

    /** Watches the calls of one connection, which are made by one thread at a time. */
    public static CallWatch of(String connection, Duration limit) {
        CallWatch watch = new CallWatch(connection, limit);
        Watcher.WATCHED.add(new WeakReference<>(watch));
        return watch;
    }

    void enter(NetFunction function) {
        CALLS.setOpaque(this, (calls >> SHIFT) + 1 << SHIFT | function.ordinal() + 1);
    }

    void leave() {
        CALLS.setOpaque(this, calls >> SHIFT << SHIFT);
    }

    private void look(long now) {
        long current = (long) CALLS.getOpaque(this);
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

    /** Looks at all connections that there are, and at what plugins log, as long as the process lives. */
    private static final class Watcher {

        static final List<WeakReference<CallWatch>> WATCHED = new CopyOnWriteArrayList<>();

        private static final long INTERVAL_MILLIS = 500;

        static {
            Thread.ofPlatform().daemon().name("millrace-plugin-watch").start(Watcher::run);
        }

        private Watcher() {}

        private static void run() {
            while (true) {
                try {
                    Thread.sleep(INTERVAL_MILLIS);
                } catch (InterruptedException nobodyDoes) {
                    return;
                }
                long now = System.nanoTime();
                PluginLog.pass();
                WATCHED.removeIf(reference -> reference.get() == null);
                for (WeakReference<CallWatch> reference : WATCHED) {
                    CallWatch watch = reference.get();
                    if (watch != null) {
                        watch.look(now);
                    }
                }
            }
        }
    }
}
