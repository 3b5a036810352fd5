package org.millrace.engine.plan;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.PointToPointWork;
import org.millrace.engine.connect.UserRegions;
import org.millrace.proxy.OperationSignature;

/** An operation of a plan. Each run of it is an operation of its own to the proxies. */
public sealed interface PlannedOperation {

    /**
     * Tells the proxies of the next run.
     *
     * @return what it is, for messages
     */
    Object announce(Announcer announcer);

    /**
     * A collective of a plan.
     *
     * @param function  number of its device function
     * @param signature what the ranks must agree on
     * @param count     elements, as the program said
     * @param send      null where it is not looked at
     * @param receive   null where it is not looked at
     * @param regions   memory that it uses in place
     */
    record PlannedCollective(int function, CollectiveWork work, long signature, long count,
            @Nullable MemorySegment send, @Nullable MemorySegment receive,
            UserRegions regions) implements PlannedOperation {

        @Override
        public Object announce(Announcer announcer) {
            return announcer.announce(this);
        }

        @Override
        public String toString() {
            return OperationSignature.describe(signature, count);
        }
    }

    /**
     * The transfers of one item of a plan: a send, a receive or both.
     *
     * @param send    null for none
     * @param receive null for none
     */
    record PlannedTransfer(PointToPointWork work, SendOrReceive send,
            SendOrReceive receive) implements PlannedOperation {

        @Override
        public Object announce(Announcer announcer) {
            announcer.announce(this);
            return this;
        }

        @Override
        public String toString() {
            return send == null ? receive.toString() : receive == null ? send.toString() : send + " and " + receive;
        }
    }
}
