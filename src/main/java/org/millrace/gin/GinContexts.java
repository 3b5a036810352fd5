package org.millrace.gin;

import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.GinFields.Kind;
import org.millrace.trace.ProcessTrace.GinTrace;
import org.millrace.trace.ProcessTrace;

/** The contexts of one rank of a communicator by number, and the memory in which peers see how far their frames are. */
final class GinContexts {

    private final long communicator;
    private final int rank;
    private final int ranks;
    /** Of contexts of which something is written down. */
    private final Map<GinContext, ContextTrace> traces = new IdentityHashMap<>();
    /** Replaced as a whole, so that the agent reads it without a lock. */
    private volatile @Nullable GinContext[] all = {};
    /** The agent's thread alone changes it, and uses it. */
    private SignalMemory[] shared = {};

    /**
     * None yet.
     *
     * @param communicator what its ranks have in common; 0 if not known
     * @param rank         of it
     * @param ranks        how many it has
     */
    public GinContexts(long communicator, int rank, int ranks) {
        this.communicator = communicator;
        this.rank = rank;
        this.ranks = ranks;
    }

    /** By number; null where there is none. Another array after any change. */
    public @Nullable GinContext[] all() {
        return all;
    }

    /** The lowest number from which on so many are free. */
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

    /** Adds a context, whose number must be free. */
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

    /** Says in this memory too how many frames were carried out, from the next time on. On the agent's thread. */
    public void share(SignalMemory memory) {
        shared = Arrays.copyOf(shared, shared.length + 1);
        shared[shared.length - 1] = memory;
    }

    /** Tells a peer how many of its frames were carried out here. On the agent's thread. */
    public void tellSettled(int peer, long frames) {
        for (SignalMemory memory : shared) {
            memory.settled(peer, frames);
        }
    }

    /** Writes down what is served of a context, which is looked at from another thread now and then. */
    private record ContextTrace(GinContext context, ProcessTrace process, GinTrace trace) implements Runnable {

        /** Begins to watch a context of a communicator's rank; null if nothing is written down. */
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
