package org.millrace.trace;

import java.util.ArrayList;
import java.util.List;
import org.millrace.trace.TracedGin.Queue;

/**
 * What kernels of a rank have asked for of another rank by GIN, and how much of it is done.
 *
 * @param from the rank whose kernels ask
 */
record GinQueue(TracedRank from, TracedRank to, int context, Queue queue) {

    /** Of a communicator: where nobody tells which it is, contexts of several look alike, and there are none here. */
    static List<GinQueue> of(long hash, List<TracedRank> members) {
        List<GinQueue> all = new ArrayList<>();
        for (TracedRank from : members) {
            for (TracedGin context : hash == 0 ? List.<TracedGin>of() : from.process().gin()) {
                if (context.communicator() != hash || context.rank() != from.rank()
                        || context.state() == TracedState.CLOSED) {
                    continue;
                }
                for (Queue queue : context.queues()) {
                    members.stream()
                            .filter(to -> to.rank() == queue.peer())
                            .findFirst()
                            .ifPresent(to -> all.add(new GinQueue(from, to, context.context(), queue)));
                }
            }
        }
        return all;
    }

    /** Descriptors that were taken from the queue and are not done: both counters wrap. */
    long underWay() {
        return queue.taken() - queue.completed() & 0xffff_ffffL;
    }

    @Override
    public String toString() {
        return "GIN, context " + context + ": " + underWay() + (underWay() == 1 ? " descriptor is" : " descriptors are")
                + " not completed, the first is number " + queue.completed();
    }
}
