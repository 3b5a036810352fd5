package org.millrace.agent;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Limit on the threads of this process that spin or yield while they have no work. Further threads sleep until they are
 * woken. The limit is the number of usable cores, divided by the number of this host's processes that run ranks of a
 * group. The affinity mask and the quota of the control group determine the usable cores. If this process has ranks of
 * several groups, the group with the most processes counts. The limit is at least 1. Callable from any thread.
 */
public final class PollingThreads {

    /** Limit of this process. */
    public static final PollingThreads OF_PROCESS = new PollingThreads(Runtime.getRuntime().availableProcessors());

    private final int cores;
    private final AtomicInteger count = new AtomicInteger();
    /** Number of this host's processes that share the cores, for each open group. */
    private final List<Integer> sharers = new ArrayList<>();
    private volatile int limit;

    PollingThreads(int cores) {
        this.cores = cores;
        this.limit = cores;
    }

    /**
     * Adds a group with ranks of this process.
     *
     * @param processes number of processes of this host that run ranks of the group, this one included
     * @return registration, which removes the group when it is closed
     */
    public Sharing share(int processes) {
        change(() -> sharers.add(processes));
        return () -> change(() -> sharers.remove((Integer) processes));
    }

    /** Registration of a group with ranks of this process. Its close removes the group. */
    @FunctionalInterface
    public interface Sharing extends AutoCloseable {
        @Override
        void close();
    }

    private synchronized void change(Runnable step) {
        step.run();
        limit = Math.max(1, cores / (sharers.isEmpty() ? 1 : Collections.max(sharers)));
    }

    /** Counts the calling thread as a polling thread. Returns false if the limit is reached. */
    boolean tryAdd() {
        int now = count.get();
        while (now < limit) {
            if (count.compareAndSet(now, now + 1)) {
                return true;
            }
            now = count.get();
        }
        return false;
    }

    void remove() {
        count.decrementAndGet();
    }

    /** {@return the number of threads that poll now} */
    int count() {
        return count.get();
    }

    /** {@return the number of threads that may poll} */
    int limit() {
        return limit;
    }
}
