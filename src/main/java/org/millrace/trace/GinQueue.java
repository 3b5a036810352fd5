package org.millrace.trace;

import java.util.ArrayList;
import java.util.List;
import org.millrace.trace.TracedGin.Queue;

/**
 * Queue of GIN with the requests of a rank's kernels to another rank, and the number of completed requests.
 *
 * @param from rank with the kernels that make the requests
 */
record GinQueue(TracedRank from, TracedRank to, int context, Queue queue) {

    /**
     * Returns the queues of a communicator. The list is empty if the hash is 0, because this hash does not distinguish
     * the contexts of several communicators.
     */
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

    /**
     * Returns the number of descriptors that were taken from the queue but are not complete. The difference is right
     * although both counters wrap.
     */
    long underWay() {
        return queue.taken() - queue.completed() & 0xffff_ffffL;
    }

    @Override
    public String toString() {
        return "GIN, context " + context + ": " + underWay() + (underWay() == 1 ? " descriptor is" : " descriptors are")
                + " not completed, the first is number " + queue.completed();
    }
}
