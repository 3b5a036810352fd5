package org.millrace.net.ucx;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * A network's workers: one for each thread that polls connections, up to a limit, from which on threads share. A
 * connection stays with the worker of the thread that first polled it. Safe from any thread.
 */
final class UcxWorkers {

    /** Each may hold queues of every card of the machine. */
    private static final int MOST = 16;

    private final UcxContext context;
    private final Map<Thread, UcxWorker> byThread = new WeakHashMap<>();
    private final List<UcxWorker> workers = new ArrayList<>();
    private int next;
    private boolean closed;

    public UcxWorkers(UcxContext context) {
        this.context = context;
    }

    public UcxContext context() {
        return context;
    }

    /** The worker of the calling thread. */
    public synchronized UcxWorker ofThisThread() {
        if (closed) {
            throw new IllegalStateException("the UCX network was closed");
        }
        return byThread.computeIfAbsent(Thread.currentThread(), _ -> another());
    }

    private UcxWorker another() {
        if (workers.size() < MOST) {
            workers.add(new UcxWorker(context));
            return workers.getLast();
        }
        return workers.get(next++ % MOST);
    }

    /** Ends all; no connection may use them any more. */
    public synchronized void close() {
        closed = true;
        workers.forEach(UcxWorker::destroy);
        workers.clear();
        byThread.clear();
    }
}
