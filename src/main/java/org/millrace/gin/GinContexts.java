package org.millrace.gin;

import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.GinFields.Kind;
import org.millrace.trace.ProcessTrace.GinTrace;
import org.millrace.trace.ProcessTrace;

/**
 * The contexts of one rank of a communicator by number, and the memory that shows peers the progress of their frames.
 */
final class GinContexts {

    private final long communicator;
    private final int rank;
    private final int ranks;
    /** Traces of the contexts that are traced. */
    private final Map<GinContext, ContextTrace> traces = new IdentityHashMap<>();
    /** Contexts by number. The array is replaced as a whole, so that the agent reads it without a lock. */
    private volatile @Nullable GinContext[] all = {};
    /** Shared memories. Used and changed only by the agent's thread. */
    private SignalMemory[] shared = {};

    /**
     * Creates an empty set of contexts.
     *
     * @param communicator number that the communicator's ranks have in common; 0 if not known
     * @param rank         rank in the communicator
     * @param ranks        number of ranks of the communicator
     */
    public GinContexts(long communicator, int rank, int ranks) {
        this.communicator = communicator;
        this.rank = rank;
        this.ranks = ranks;
    }

    /** Returns the contexts by number, with null for unused numbers. Each change replaces the array. */
    public @Nullable GinContext[] all() {
        return all;
    }

    /** Returns the lowest number at which {@code count} consecutive numbers are free. */
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

    /** Adds a context with a free number. */
    public synchronized void add(GinContext context) {
        @Nullable
        GinContext[] copy = Arrays.copyOf(all, Math.max(all.length, context.number() + 1));
        if (copy[context.number()] != null || context.peers() != ranks) {
            throw new IllegalArgumentException("context " + context.number() + " of " + context.peers()
                    + " peers: the number is in use, or the communicator of " + ranks + " ranks is another");
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
     * Adds a memory for the number of carried-out frames, which is published there from the next update on. Agent's
     * thread only.
     */
    public void share(SignalMemory memory) {
        shared = Arrays.copyOf(shared, shared.length + 1);
        shared[shared.length - 1] = memory;
    }

    /** Publishes to a peer the number of its frames that were carried out here. Agent's thread only. */
    public void publishSettled(int peer, long frames) {
        for (SignalMemory memory : shared) {
            memory.settled(peer, frames);
        }
    }

    /**
     * Writes to a trace the numbers of served descriptors of a context. Another thread reads the context periodically.
     */
    private record ContextTrace(GinContext context, ProcessTrace process, GinTrace trace) implements Runnable {

        /** Begins to trace a context of a communicator's rank; returns null if nothing is traced. */
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
