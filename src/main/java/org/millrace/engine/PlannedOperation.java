package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.PointToPointWork;
import org.millrace.engine.Attendance.Meeting;
import org.millrace.engine.Registrations.UserRegions;
import org.millrace.proxy.OperationSignature;
import org.millrace.proxy.ProxyOp;

/** An operation of a plan. Each run of it is an operation of its own to the proxies. */
sealed interface PlannedOperation {

    /** Tells the proxies of the next run; returns what it is, for messages. */
    Meeting announce(Announcer announcer);

    /**
     * A collective, as the program asked for it.
     *
     * @param send    null where it is not looked at
     * @param receive null where it is not looked at
     * @param root    this rank, where there is none
     */
    record Collective(Operation operation, long count, DataType type, ReduceOp op, @Nullable MemorySegment send,
            @Nullable MemorySegment receive, int root) {

        long bytes() {
            return count * type.bytes();
        }

        /** Whether another one would be planned in the same way: its operands are the same memory. */
        boolean isLike(Collective other) {
            return operation == other.operation && count == other.count && type == other.type && root == other.root
                    && op.equals(other.op) && isSame(send, other.send) && isSame(receive, other.receive);
        }

        /** Memory that begins there again when an arena was closed belongs to another one. */
        private static boolean isSame(@Nullable MemorySegment one, @Nullable MemorySegment other) {
            return one == other || one != null && other != null && one.address() == other.address()
                    && one.byteSize() == other.byteSize() && one.scope().equals(other.scope());
        }
    }

    /** A collective of a plan. */
    final class PlannedCollective implements PlannedOperation {

        private final Collective asked;
        private final int function;
        private final CollectiveWork work;
        private final long signature;
        private final UserRegions regions;
        private @Nullable List<Share> shares;

        /** @param signature what the ranks must agree on */
        PlannedCollective(Collective asked, int function, CollectiveWork work, long signature, UserRegions regions) {
            this.asked = asked;
            this.function = function;
            this.work = work;
            this.signature = signature;
            this.regions = regions;
        }

        Collective asked() {
            return asked;
        }

        int function() {
            return function;
        }

        CollectiveWork work() {
            return work;
        }

        long signature() {
            return signature;
        }

        UserRegions regions() {
            return regions;
        }

        /**
         * What each connection carries of it, which is the same in each run.
         *
         * @param find finds out in the first; by one thread at a time
         */
        List<Share> shares(Function<PlannedCollective, List<Share>> find) {
            if (shares == null) {
                shares = find.apply(this);
            }
            return shares;
        }

        @Override
        public Meeting announce(Announcer announcer) {
            return announcer.announce(this);
        }

        @Override
        public String toString() {
            return OperationSignature.describe(signature, asked.count);
        }

        /**
         * What a connection carries.
         *
         * @param part of the run of number 0
         */
        record Share(Connector<?> connector, ProxyOp part) {
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
