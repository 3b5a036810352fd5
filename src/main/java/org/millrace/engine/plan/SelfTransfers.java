package org.millrace.engine.plan;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;
import org.millrace.Stream;
import org.millrace.engine.plan.PlannedOperation.SendOrReceive;

/** Sends of a rank to itself, and the receives that they wait for. */
public final class SelfTransfers {

    private record Half(SendOrReceive transfer, Stream stream) {
    }

    private final String who;
    private final Deque<Half> sends = new ArrayDeque<>();
    private final Deque<Half> receives = new ArrayDeque<>();

    public SelfTransfers(String who) {
        this.who = who;
    }

    /** The other half, if it is here already; null if it is still to come. */
    public @Nullable SendOrReceive other(SendOrReceive transfer, Stream stream) {
        Half here = (transfer.sends() ? receives : sends).poll();
        if (here == null) {
            (transfer.sends() ? sends : receives).add(new Half(transfer, stream));
            return null;
        }
        Half mine = new Half(transfer, stream);
        requireSame(transfer.sends() ? mine : here, transfer.sends() ? here : mine);
        return here.transfer;
    }

    private void requireSame(Half send, Half receive) {
        if (send.transfer.count() != receive.transfer.count() || send.transfer.type() != receive.transfer.type()
                || send.stream != receive.stream) {
            throw new IllegalArgumentException(who + "it sends itself " + send.transfer.count() + " "
                    + send.transfer.type().label() + " on " + send.stream + " and receives " + receive.transfer.count()
                    + " " + receive.transfer.type().label() + " on " + receive.stream + ": they must be the same");
        }
    }

    /** At a group's end: nobody will bring the missing halves. */
    public void requireNone() {
        if (!sends.isEmpty() || !receives.isEmpty()) {
            String left = sends.size() + " sends to itself without a receive, and " + receives.size()
                    + " receives without a send";
            sends.clear();
            receives.clear();
            throw new IllegalArgumentException(who + left + ": both belong into one group");
        }
    }
}
