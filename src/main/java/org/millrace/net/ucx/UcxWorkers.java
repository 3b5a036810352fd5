package org.millrace.net.ucx;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * The workers of a network. Each thread that polls connections has its own worker, up to a maximum number of workers.
 * Further threads share workers. A connection uses the worker of the thread that first polled the connection. Callable
 * from any thread.
 */
final class UcxWorkers {

    /**
     * Maximum number of workers. The number is limited, because each worker may have queues on every card of the
     * machine.
     */
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
     * Returns the worker of the calling thread, and adds a connection to this worker. If new connections must not use
     * that worker, the thread gets another worker.
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

    /**
     * Destroys the workers that have no connection and that new connections must not use. The caller must not hold a
     * worker's lock.
     */
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

    /** Destroys all workers. All connections must be closed. */
    public synchronized void close() {
        closed = true;
        workers.forEach(UcxWorker::destroy);
        workers.clear();
        byThread.clear();
    }
}
