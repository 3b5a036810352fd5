package org.millrace.net.ucx;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * A network's workers: one for each thread that polls connections, up to a limit. Above that limit threads share
 * workers. A connection stays with the worker of the thread that first polled it. Callable from any thread.
 */
final class UcxWorkers {

    /** Maximum number of workers. Each may hold queues of every card of the machine. */
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

    /**
     * Returns the worker of the calling thread, and counts another connection. If that worker accepts none, the thread
     * gets another worker.
     */
    public synchronized UcxWorker ofThisThread() {
        if (closed) {
            throw new IllegalStateException("the UCX network was closed");
        }
        UcxWorker mine = byThread.get(Thread.currentThread());
        if (mine == null || !mine.isFit()) {
            mine = another();
            byThread.put(Thread.currentThread(), mine);
        }
        mine.use(1);
        return mine;
    }

    /** Destroys workers that accept no connection and have none. The caller must not hold a worker's turn. */
    public synchronized void endUnused() {
        workers.removeIf(one -> !one.isFit() && one.destroyIfUnused());
    }

    private UcxWorker another() {
        endUnused();
        List<UcxWorker> fit = workers.stream().filter(UcxWorker::isFit).toList();
        if (fit.size() < MOST) {
            workers.add(new UcxWorker(context));
            return workers.getLast();
        }
        return fit.get(next++ % MOST);
    }

    /** Destroys all workers. No connection may use them afterwards. */
    public synchronized void close() {
        closed = true;
        workers.forEach(UcxWorker::destroy);
        workers.clear();
        byThread.clear();
    }
}
