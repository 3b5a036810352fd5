package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.engine.Attendance.Meeting;
import org.millrace.engine.Registrations.UserRegions;
import org.millrace.proxy.spi.OperationSignature;
import org.millrace.proxy.spi.ProxyOp;

/** Operation of a plan. The proxies see each run of a planned operation as a separate operation. */
sealed interface PlannedOperation {

    /** Announces the next run to the proxies. Returns the run's identity, for messages. */
    default Meeting announce(Announcer announcer) {
        return switch (this) {
            case PlannedCollective collective -> announcer.announce(collective);
            case PlannedTransfer transfer -> announcer.announce(transfer);
        };
    }

    /**
     * Part of an operation that one connection transfers.
     *
     * @param part operation to announce. Its number is 0; each run announces a copy with the number of the run
     */
    record Share(Connector<?> connector, ProxyOp part) {
    }

    /** Operation, as the program requested it. */
    sealed interface Request {

        /**
         * Returns whether another request is the same operation, with operands in the same memory. The plan of one of
         * the two requests can then serve both.
         */
        boolean isLike(Request other);

        /**
         * Returns whether two operands are the same memory. The memory's scopes are compared, too, because new memory
         * may have the address of memory of a closed arena.
         */
        private static boolean isSame(@Nullable MemorySegment one, @Nullable MemorySegment other) {
            return one == other || one != null && other != null && one.address() == other.address()
                    && one.byteSize() == other.byteSize() && one.scope().equals(other.scope());
        }
    }

    /**
     * Collective, as the program requested it.
     *
     * @param send    send buffer; null if this rank does not read it
     * @param receive receive buffer; null if this rank does not write it
     * @param root    root of the operation; this rank if the operation has no root
     */
    record Collective(Operation operation, long count, DataType type, ReduceOp op, @Nullable MemorySegment send,
            @Nullable MemorySegment receive, int root) implements Request {

        long bytes() {
            return count * type.bytes();
        }

        @Override
        public boolean isLike(Request request) {
            return request instanceof Collective other && operation == other.operation && count == other.count
                    && type == other.type && root == other.root && op.equals(other.op)
                    && Request.isSame(send, other.send) && Request.isSame(receive, other.receive);
        }
    }

    /** Collective of a plan. */
    final class PlannedCollective implements PlannedOperation {

        private final Collective asked;
        private final int function;
        private final CollectiveWork work;
        private final long signature;
        private final UserRegions regions;
        private @Nullable List<Share> shares;

        /** @param signature properties that must be equal on all ranks */
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
         * Returns the operation's shares, one for each connection. Later runs use the shares of the first run.
         *
         * @param find function that computes the shares in the first run; called by one thread at a time
         */
        List<Share> shares(Function<PlannedCollective, List<Share>> find) {
            if (shares == null) {
                shares = find.apply(this);
            }
            return shares;
        }

        @Override
        public String toString() {
            return OperationSignature.describe(signature, asked.count);
        }
    }

    /**
     * Transfers of one work item of a plan: a send, a receive or both. A missing transfer is null.
     *
     * @param shares shares of the connections; the first run adds them
     */
    record PlannedTransfer(PointToPointWork work, @Nullable SendOrReceive send, @Nullable SendOrReceive receive,
            List<Share> shares) implements PlannedOperation {

        PlannedTransfer(PointToPointWork work, @Nullable SendOrReceive send, @Nullable SendOrReceive receive) {
            this(work, send, receive, new ArrayList<>(1));
        }

        @Override
        public String toString() {
            return send == null ? receive.toString() : receive == null ? send.toString() : send + " and " + receive;
        }
    }

    /**
     * Send or receive, as the program requested it. If the operation uses its memory in place, {@code regions} are the
     * regions of this memory.
     *
     * @param read whether the memory is registered so that a peer's device can read it
     */
    record SendOrReceive(boolean sends, MemorySegment buffer, long count, DataType type, int peer, UserRegions regions,
            boolean read) implements Request {

        @Override
        public boolean isLike(Request request) {
            return request instanceof SendOrReceive other && sends == other.sends && count == other.count
                    && type == other.type && peer == other.peer && read == other.read
                    && (regions == other.regions || regions.equals(other.regions))
                    && Request.isSame(buffer, other.buffer);
        }

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
