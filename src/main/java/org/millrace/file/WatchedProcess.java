package org.millrace.file;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/**
 * Process of a peer. All connections to the process share one object. {@code /proc} is read at most twice a second for
 * any number of connections, because each read costs more than a hundred microseconds. Callable from any thread.
 */
public final class WatchedProcess implements AutoCloseable {

    private static final long INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(500);
    /** All watched processes. The key is the text of the identity. */
    private static final Map<String, WatchedProcess> WATCHED = new ConcurrentHashMap<>();

    private final ProcessIdentity identity;
    private final BooleanSupplier reader;
    private final LongSupplier nanoClock;
    private final AtomicLong lastRead;
    private volatile boolean dead;
    /** Number of connections that share this object. Guarded by the object's entry in {@link #WATCHED}. */
    private int users;

    /** @param reader function that reads {@code /proc} and returns whether the process is certainly dead */
    WatchedProcess(ProcessIdentity identity, BooleanSupplier reader, LongSupplier nanoClock) {
        this.identity = identity;
        this.reader = reader;
        this.nanoClock = nanoClock;
        this.lastRead = new AtomicLong(nanoClock.getAsLong());
    }

    /** Returns the object for a process. The caller closes it once. */
    public static WatchedProcess of(ProcessIdentity identity) {
        return WATCHED.compute(identity.text(), (text, known) -> {
            WatchedProcess process =
                    known == null ? new WatchedProcess(identity, identity::isProvablyDead, System::nanoTime) : known;
            process.users++;
            return process;
        });
    }

    public ProcessIdentity identity() {
        return identity;
    }

    /**
     * Returns whether the process is certainly dead, according to the latest read of {@code /proc}, which may be half a
     * second old.
     */
    public boolean isProvablyDead() {
        long last = lastRead.get();
        long now = nanoClock.getAsLong();
        if (!dead && now - last >= INTERVAL_NANOS && lastRead.compareAndSet(last, now)) {
            if (reader.getAsBoolean()) {
                dead = true;
            }
        }
        return dead;
    }

    @Override
    public void close() {
        WATCHED.computeIfPresent(identity.text(), (text, known) -> --known.users == 0 ? null : known);
    }
}
