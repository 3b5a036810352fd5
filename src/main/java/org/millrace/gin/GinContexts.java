package org.millrace.gin;

import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.GinFields.Kind;
import org.millrace.trace.ProcessTrace.GinTrace;
import org.millrace.trace.ProcessTrace;

/**
 * The contexts of one rank of a communicator, indexed by number. Also publishes this rank's progress: for each peer,
 * the number of the peer's frames that are settled.
 */
final class GinContexts {

    private final long communicator;
    private final int rank;
    private final int ranks;
    /** Traces by context. A context without a trace has no entry. */
    private final Map<GinContext, ContextTrace> traces = new IdentityHashMap<>();
    /** Contexts by number. A change replaces the whole array, so that the agent reads it without a lock. */
    private volatile @Nullable GinContext[] all = {};
    /** Memories that contain the published numbers of settled frames. Agent's thread only. */
    private SignalMemory[] shared = {};

    /**
     * Creates an empty set of contexts.
     *
     * @param communicator number of the communicator, the same on all ranks; 0 if not known
     * @param rank         this rank
     * @param ranks        number of ranks of the communicator
     */
    public GinContexts(long communicator, int rank, int ranks) {
        this.communicator = communicator;
        this.rank = rank;
        this.ranks = ranks;
    }

    /** Returns the contexts by number, with null for unused numbers. A change creates a new array. */
    public @Nullable GinContext[] all() {
        return all;
    }

    /**
     * Returns the first number of the lowest range that contains only free context numbers.
     *
     * @param count length of the range: number of contexts that the caller will add
     */
    public int free(int count) {
        @Nullable
        GinContext[] now = all;
        int first = 0;
        for (int number = 0; number < now.length && number < first + count; number++) {
            if (now[number] != null) {
                first = number + 1;
            }
        }
        return first;
    }

    /**
     * Adds a context.
     *
     * @throws IllegalArgumentException if the context's number is in use, or if the context's number of peers is not
     *                                  the communicator's number of ranks
     */
    public synchronized void add(GinContext context) {
        @Nullable
        GinContext[] copy = Arrays.copyOf(all, Math.max(all.length, context.number() + 1));
        if (copy[context.number()] != null || context.peers() != ranks) {
            throw new IllegalArgumentException("context " + context.number() + " of " + context.peers()
                    + " peers: the number is in use, or the communicator has " + ranks + " ranks");
        }
        copy[context.number()] = context;
        all = copy;
        ContextTrace trace = ContextTrace.begin(communicator, rank, context);
        if (trace != null) {
            traces.put(context, trace);
        }
    }

    public synchronized void remove(GinContext context) {
        ContextTrace trace = traces.remove(context);
        if (trace != null) {
            trace.end();
        }
        @Nullable
        GinContext[] copy = all.clone();
        if (context.number() < copy.length && copy[context.number()] == context) {
            copy[context.number()] = null;
            all = copy;
        }
    }

    public GinServed served() {
        GinServed sum = GinServed.NONE;
        for (GinContext context : all) {
            sum = context == null ? sum : sum.plus(context.served());
        }
        return sum;
    }

    /**
     * Adds a memory for the numbers of settled frames. Later calls of {@link #publishSettled} also write to this
     * memory. Agent's thread only.
     */
    public void share(SignalMemory memory) {
        shared = Arrays.copyOf(shared, shared.length + 1);
        shared[shared.length - 1] = memory;
    }

    /**
     * Publishes to a peer the number of the peer's frames that are settled. Agent's thread only.
     *
     * @param frames number of the peer's frames that this rank has settled
     */
    public void publishSettled(int peer, long frames) {
        for (SignalMemory memory : shared) {
            memory.settled(peer, frames);
        }
    }

    /**
     * Periodic update of one context's trace: the number of served descriptors, and the state of each queue. The
     * trace's own thread executes it.
     */
    private record ContextTrace(GinContext context, ProcessTrace process, GinTrace trace) implements Runnable {

        /** Begins to trace a context of a communicator's rank. Returns null if this process has no trace. */
        static @Nullable ContextTrace begin(long communicator, int rank, GinContext context) {
            ProcessTrace process = ProcessTrace.current();
            GinTrace trace = process == null ? null
                    : process.gin(communicator, rank, context.peers(), context.number(), context.queue(0).size(),
                            "rank " + rank + ", context " + context.number());
            if (process == null || trace == null) {
                return null;
            }
            ContextTrace begun = new ContextTrace(context, process, trace);
            process.watch(begun);
            return begun;
        }

        @Override
        public void run() {
            GinServed served = context.served();
            trace.served(Kind.PUT, served.puts());
            trace.served(Kind.VALUE, served.values());
            trace.served(Kind.SIGNAL, served.signals());
            trace.served(Kind.GET, served.gets());
            trace.served(Kind.FLUSH, served.flushes());
            trace.served(Kind.SIGNALLED, served.signalled());
            trace.served(Kind.REACHED, served.reached());
            for (int peer = 0; peer < context.peers(); peer++) {
                PeerQueue queue = context.queue(peer);
                trace.queue(peer, queue.taken(), queue.completed());
            }
        }

        void end() {
            process.unwatch(this);
            run();
            trace.close();
        }
    }
}
