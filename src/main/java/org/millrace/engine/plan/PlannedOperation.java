package org.millrace.engine.plan;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.PointToPointWork;
import org.millrace.engine.connect.Attendance.Meeting;
import org.millrace.engine.connect.Registrations.UserRegions;
import org.millrace.proxy.OperationSignature;

/** An operation of a plan. Each run of it is an operation of its own to the proxies. */
public sealed interface PlannedOperation {

    /** Tells the proxies of the next run; returns what it is, for messages. */
    Meeting announce(Announcer announcer);

    /**
     * A collective of a plan; an operand is null where it is not looked at.
     *
     * @param signature what the ranks must agree on
     * @param count     elements, as the program said
     */
    record PlannedCollective(int function, CollectiveWork work, long signature, long count,
            @Nullable MemorySegment send, @Nullable MemorySegment receive,
            UserRegions regions) implements PlannedOperation {

        @Override
        public Meeting announce(Announcer announcer) {
            return announcer.announce(this);
        }

        @Override
        public String toString() {
            return OperationSignature.describe(signature, count);
        }
    }

    /** The transfers of one item of a plan: a send, a receive or both; null for the one that is not there. */
    record PlannedTransfer(PointToPointWork work, SendOrReceive send,
            SendOrReceive receive) implements PlannedOperation {

        @Override
        public Meeting announce(Announcer announcer) {
            return announcer.announce(this);
        }

        @Override
        public String toString() {
            return send == null ? receive.toString() : receive == null ? send.toString() : send + " and " + receive;
        }
    }

    /**
     * A send or a receive, as the program asked for it; with regions of its memory if that is used in place.
     *
     * @param read whether the memory is registered so that a peer's device may read there
     */
    record SendOrReceive(boolean sends, MemorySegment buffer, long count, DataType type, int peer, UserRegions regions,
            boolean read) {

        long bytes() {
            return count * type.bytes();
        }

        @Override
        public String toString() {
            return (sends ? "send of " : "receive of ") + count + ' ' + type.label()
                    + (sends ? " to rank " : " from rank ") + peer;
        }
    }
}
