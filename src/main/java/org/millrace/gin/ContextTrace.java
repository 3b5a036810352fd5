package org.millrace.gin;

import org.jspecify.annotations.Nullable;
import org.millrace.trace.GinFields.Kind;
import org.millrace.trace.GinTrace;
import org.millrace.trace.ProcessTrace;

/** Writes down what is served of a context, which is looked at from another thread now and then. */
record ContextTrace(GinContext context, ProcessTrace process, GinTrace trace) implements Runnable {

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
