package org.millrace.engine.plan;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The transfers of a group in the order in which all ranks run them: in round {@code r} of an epoch each rank sends to
 * the rank that is {@code r} further on, and receives from the one that is {@code r} before it. So whatever ranks cut
 * into kernels at different places, none waits for what another has not come to.
 */
final class TransferSchedule {

    /** Takes an item; null for a half that is not there. */
    interface Sink {
        void add(int round, @Nullable SendOrReceive send, @Nullable SendOrReceive receive);
    }

    private final int rank;
    /** By peer. */
    private final List<Queue<SendOrReceive>> sends;
    /** By peer. */
    private final List<Queue<SendOrReceive>> receives;
    private int waiting;

    TransferSchedule(int rank, int ranks) {
        this.rank = rank;
        this.sends = queues(ranks);
        this.receives = queues(ranks);
    }

    private static List<Queue<SendOrReceive>> queues(int ranks) {
        return Stream.<Queue<SendOrReceive>>generate(ArrayDeque::new).limit(ranks).toList();
    }

    void add(SendOrReceive transfer) {
        (transfer.sends() ? sends : receives).get(transfer.peer()).add(transfer);
        waiting++;
    }

    /** Hands all of them out. */
    void drain(Sink sink) {
        int ranks = sends.size();
        for (int round = 0; waiting > 0; round = (round + 1) % ranks) {
            SendOrReceive send = poll(sends.get((rank + round) % ranks));
            SendOrReceive receive = poll(receives.get((rank - round + ranks) % ranks));
            if (send != null || receive != null) {
                sink.add(round, send, receive);
            }
        }
    }

    private SendOrReceive poll(Queue<SendOrReceive> queue) {
        SendOrReceive transfer = queue.poll();
        waiting -= transfer == null ? 0 : 1;
        return transfer;
    }

    void clear() {
        drain((_, _, _) -> {});
    }
}
