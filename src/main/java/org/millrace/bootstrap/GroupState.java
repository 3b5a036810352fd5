package org.millrace.bootstrap;

import java.net.ProtocolException;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MismatchException;
import org.millrace.OperationInterruptedException;
import org.millrace.PeerLostException;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.PeerMessage;
import org.millrace.trace.JoinTrace;

/**
 * State of the group of ranks, as this rank knows it. The control thread writes the reports of other ranks into this
 * state. Callers of {@link ControlPlane} wait in this object for the reports.
 *
 * <p>
 * One lock guards all fields except the failure. The failure is a volatile field, because callers poll
 * {@link #failure()}. Threads write this field under the lock.
 */
final class GroupState {

    /** Maximum number of unread messages from all ranks; correct ranks send fewer. */
    private static final int MAX_MESSAGES = 1 << 16;

    private record Address(int from, long tag) {
    }

    private final RankIdentity self;
    /** Trace that shows the absent ranks, or the ranks that a collective call waits for. */
    private volatile JoinTrace trace;
    private final @Nullable RankIdentity[] present;
    private final boolean[] left;
    private final GroupCalls collectives;
    /**
     * Messages that have arrived and were not yet requested. They are stored, because a peer's message about a
     * connection may arrive before this rank needs the connection.
     */
    private final Map<Address, byte[]> messages = new HashMap<>();
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    private volatile @Nullable RemoteFailure failure;
    private volatile Runnable onEvent = () -> {};
    /** This rank's contribution to the collective call that waits for other ranks; null if no call waits. */
    private @Nullable Contribution called;
    private @Nullable RemoteFailure ownFailure;
    private @Nullable String refusal;
    private boolean closed;
    /**
     * Whether the group continues without ranks that are lost, as during a {@link Recovery}. A message then replaces an
     * unread message with the same tag, because a rank may repeat its request.
     */
    private boolean survivesLosses;

    GroupState(RankIdentity self, int size) {
        this(self, size, JoinTrace.NONE);
    }

    GroupState(RankIdentity self, int size, JoinTrace trace) {
        this.self = self;
        this.trace = trace;
        this.present = new RankIdentity[size];
        this.left = new boolean[size];
        this.collectives = new GroupCalls(size);
        if (self.rank() == 0) {
            // Rank 0 is present from the start. It then reports the presence of each rank to all ranks.
            present[0] = self;
        }
        traceAbsent();
    }

    RankIdentity self() {
        return self;
    }

    int size() {
        return present.length;
    }

    /** Returns the first failure that another rank reported; null if none. */
    @Nullable
    RemoteFailure failure() {
        return failure;
    }

    /**
     * Sets the listener and calls it once. Each later message or failure calls the listener again, so that the listener
     * misses no event.
     */
    void onEvent(Runnable listener) {
        onEvent = listener;
        listener.run();
    }

    // Methods for the control thread, which reports events.

    void present(RankIdentity identity) throws ProtocolException {
        update(identity.rank(), () -> {
            present[identity.rank()] = identity;
            traceAbsent();
        });
    }

    private void traceAbsent() {
        traceMissing(absent());
    }

    private void traceMissing(IntStream missing) {
        trace.missing(missing.collect(BitSet::new, BitSet::set, BitSet::or));
    }

    /**
     * Sets the trace of this rank's set-up. At first the trace shows this rank as missing, because the other ranks'
     * calls wait for this rank's next collective call.
     */
    void trace(JoinTrace setUp) {
        trace = setUp;
        setUp.activity("sets up its communicator");
        traceMissing(IntStream.of(self.rank()));
    }

    void contributed(Contribution part) throws ProtocolException {
        update(part.rank(), () -> {
            collectives.add(part);
            if (called != null) {
                traceMissing(collectives.missing(called.sequence()));
            }
        });
    }

    void arrived(PeerMessage message) throws ProtocolException {
        update(message.from(), () -> keep(message));
        onEvent.run();
    }

    private void keep(PeerMessage message) throws ProtocolException {
        String what = "sent a message of rank " + message.from() + " with ";
        if (message.data().length > ControlPlane.MAX_MESSAGE_BYTES) {
            throw new ProtocolException(
                    what + message.data().length + " bytes; the limit is " + ControlPlane.MAX_MESSAGE_BYTES);
        }
        boolean full = messages.size() == MAX_MESSAGES;
        Address address = new Address(message.from(), message.tag());
        if (full || !survivesLosses && messages.containsKey(address)) {
            throw new ProtocolException(what + "tag " + Long.toHexString(message.tag())
                    + (full ? " while " + MAX_MESSAGES + " others wait to be read"
                            : " again, before the first was read"));
        }
        messages.put(address, message.data());
    }

    void departed(int rank) throws ProtocolException {
        update(rank, () -> left[rank] = true);
        if (survivesLosses) {
            onEvent.run();
        }
    }

    void failed(RemoteFailure told) {
        boolean isLoss = survivesLosses && told.rank() >= 0 && told.rank() < size() && told.rank() != self.rank();
        update(() -> {
            if (isLoss) {
                left[told.rank()] = true;
            } else {
                failure = failure == null ? told : failure;
            }
        });
        onEvent.run();
    }

    /**
     * Lets the group continue without lost ranks; {@link #isGone} returns true for them. Called before any other use.
     */
    GroupState survivingLosses() {
        survivesLosses = true;
        return this;
    }

    /** Returns whether a rank is lost or has left, or this rank can no longer exchange messages with any rank. */
    boolean isGone(int rank) {
        return locked(() -> left[rank] || failure != null || ownFailure != null || closed);
    }

    /**
     * Records the refusal of a client that is not part of the group. If the group cannot be formed, the error message
     * contains the latest refusal, because that client may be the missing rank.
     */
    void refused(String what) {
        update(() -> refusal = what);
    }

    /** Change of this state that a message about a rank causes. */
    private interface Change {
        void make() throws ProtocolException;
    }

    private void update(int rank, Change change) throws ProtocolException {
        if (rank < 0 || rank >= size()) {
            throw new ProtocolException("names rank " + rank + " in a group of " + size() + " ranks");
        }
        lock.lock();
        try {
            change.make();
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private <T extends @Nullable Object> T locked(Supplier<T> action) {
        lock.lock();
        try {
            return action.get();
        } finally {
            lock.unlock();
        }
    }

    private void update(Runnable change) {
        locked(() -> {
            change.run();
            changed.signalAll();
            return null;
        });
    }

    // Methods for actions of this rank.

    /**
     * Records the failure of this rank. Returns false if this rank has failed before, or has left. Leaving is not a
     * failure, although it ends this rank's own calls.
     */
    boolean poison(RemoteFailure own) {
        return locked(() -> {
            boolean first = ownFailure == null && !closed;
            ownFailure = first ? own : ownFailure;
            changed.signalAll();
            return first;
        });
    }

    void close() {
        update(() -> closed = true);
    }

    /** Removes and returns the message of a rank with a tag; null if the message has not arrived. */
    byte @Nullable [] take(int from, long tag) {
        return locked(() -> messages.remove(new Address(from, tag)));
    }

    // The following methods concern the ranks that have joined, and the ranks that are absent.

    JoinTrace trace() {
        return trace;
    }

    /** Returns the rank's identity; null if the rank has not arrived. */
    @Nullable
    RankIdentity identity(int rank) {
        return locked(() -> present[rank]);
    }

    boolean isComplete() {
        return locked(() -> absent().findAny().isEmpty());
    }

    private IntStream absent() {
        return IntStream.range(0, size()).filter(rank -> present[rank] == null);
    }

    // Methods that wait.

    /** Waits until all ranks have arrived. */
    void awaitComplete(Deadline deadline, String where) {
        String what = "rank " + self.rank() + " of " + size() + " cannot join the group at " + where;
        lock.lock();
        try {
            while (absent().findAny().isPresent()) {
                stopIfFailed(what);
                stopIfDeparted(absent(), what);
                if (deadline.expired()) {
                    boolean isAbsent = present[self.rank()] == null;
                    String missing = isAbsent ? present[0] + " has not admitted it"
                            : list("has not joined", "have not joined", absent());
                    throw new DeadlineException(
                            what + ": " + missing + " within " + deadline
                                    + (refusal != null ? "; refused meanwhile: " + refusal
                                            : deadline.setting().isEmpty()
                                                    ? "; start every rank with the same rendezvous, or allow more time"
                                                            + " (MILLRACE_CONNECT_DEADLINE)"
                                                    : "; allow more time"),
                            self.rank(), isAbsent ? 0 : absent().findFirst().getAsInt(), null, null);
                }
                await(deadline, what);
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes part in the next collective call with a copy of {@code data}. Returns the contribution, which the caller
     * sends to the other ranks.
     */
    Contribution contribute(Call collective, byte[] data) {
        lock.lock();
        try {
            long sequence = collectives.next(self.rank());
            stopIfFailed(name(collective, sequence));
            Contribution own = new Contribution(self.rank(), sequence, collective, data.clone());
            collectives.add(own);
            return own;
        } catch (ProtocolException e) {
            throw new IllegalStateException("another thread of rank " + self.rank() + " is in a collective call", e);
        } finally {
            lock.unlock();
        }
    }

    /** Waits until all ranks have contributed to the same call. Returns the data of the ranks, by rank. */
    byte[][] awaitParts(Contribution own, Deadline deadline) {
        long sequence = own.sequence();
        String what = name(own.collective(), sequence);
        lock.lock();
        try {
            called = own;
            traceMissing(collectives.missing(sequence));
            while (collectives.missing(sequence).findAny().isPresent()) {
                stopIfFailed(what);
                stopIfDeparted(collectives.missing(sequence), what);
                if (deadline.expired()) {
                    throw new DeadlineException(
                            what + ": " + list("has not called it", "have not called it", collectives.missing(sequence))
                                    + " within " + deadline,
                            self.rank(), collectives.missing(sequence).findFirst().getAsInt(), own.collective().call,
                            null);
                }
                await(deadline, what);
            }
            Contribution[] parts = collectives.take(sequence);
            byte[][] result = new byte[parts.length][];
            for (Contribution part : parts) {
                if (part.collective() != own.collective()) {
                    throw new MismatchException(
                            what + ": " + present[part.rank()] + " called " + part.collective().call
                                    + " instead; all ranks make the same calls in the same order",
                            self.rank(), part.rank(), own.collective().call, null);
                }
                result[part.rank()] = part.data();
            }
            // The result contains a copy of this rank's data. The caller may change the copy, while the control thread
            // may still have to send the original.
            result[self.rank()] = own.data().clone();
            return result;
        } finally {
            called = null;
            traceMissing(IntStream.of(self.rank()));
            lock.unlock();
        }
    }

    /** Waits until a condition has a result, and returns the result; null if the deadline passes first. */
    <T> @Nullable T await(Supplier<@Nullable T> condition, Deadline deadline) {
        lock.lock();
        try {
            while (true) {
                T result = condition.get();
                if (result != null || deadline.expired()) {
                    return result;
                }
                await(deadline, "rank " + self.rank());
            }
        } finally {
            lock.unlock();
        }
    }

    private String name(Call collective, long sequence) {
        return collective.call + " (collective call " + sequence + ") of rank " + self.rank();
    }

    private void await(Deadline deadline, String what) {
        try {
            changed.await(deadline.remainingNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new OperationInterruptedException(what + ": interrupted while waiting for the other ranks",
                    self.rank(), null, null);
        }
    }

    /** Throws if this rank cannot continue, because a rank has failed or this rank has left. */
    private void stopIfFailed(String what) {
        RemoteFailure trouble = failure == null ? ownFailure : failure;
        if (trouble != null) {
            throw trouble.exception(self.rank(),
                    what + ": " + RemoteFailure.withoutRank(self.rank(), trouble.message()));
        }
        if (closed) {
            throw new AbortedException(what + ": this rank has left the group", self.rank(),
                    CommunicatorException.NO_RANK, null, null);
        }
    }

    /**
     * Throws if an awaited rank has left. Also throws if rank 0 has left, because no message of any rank can then
     * arrive.
     */
    private void stopIfDeparted(IntStream awaited, String what) {
        int[] gone = left[0] ? new int[] {0} : awaited.filter(rank -> left[rank]).toArray();
        if (gone.length > 0) {
            throw new PeerLostException(
                    what + ": " + list("has left the group", "have left the group", IntStream.of(gone)), self.rank(),
                    gone[0], null, null);
        }
    }

    private String list(String one, String several, IntStream ranks) {
        String[] names = ranks.mapToObj(rank -> present[rank] == null ? "rank " + rank : present[rank].toString())
                .toArray(String[]::new);
        return String.join(", ", names) + ' ' + (names.length == 1 ? one : several);
    }

    /**
     * Data that ranks have contributed to the collective calls in flight. At most two calls are in flight. A rank
     * begins the next call only when all ranks have contributed to the previous call. This rank takes the result of a
     * call before it begins the next call. Room for the data of two calls is therefore enough, and a rank that
     * contributes to a third call violates the protocol.
     *
     * <p>
     * Not safe for several threads. The lock of {@link GroupState} guards it.
     */
    static final class GroupCalls {

        private static final int IN_FLIGHT = 2;

        private final Contribution[][] slots;
        private final long[] nextSequence;

        GroupCalls(int size) {
            this.slots = new Contribution[IN_FLIGHT][size];
            this.nextSequence = new long[size];
        }

        long next(int rank) {
            return nextSequence[rank];
        }

        void add(Contribution part) throws ProtocolException {
            Contribution[] slot = slot(part.sequence());
            if (part.sequence() != nextSequence[part.rank()] || slot[part.rank()] != null) {
                throw new ProtocolException("sent the part of rank " + part.rank() + " for collective call "
                        + part.sequence() + " while its part for call " + nextSequence[part.rank()]
                        + " is the next, once all ranks have made the call before");
            }
            if (part.data().length > MessageCodec.MAX_DATA) {
                throw new ProtocolException("sent a part of rank " + part.rank() + " with " + part.data().length
                        + " bytes; the limit is " + MessageCodec.MAX_DATA);
            }
            slot[part.rank()] = part;
            nextSequence[part.rank()]++;
        }

        /** Returns the ranks that have not yet contributed to the call. */
        IntStream missing(long sequence) {
            Contribution[] slot = slot(sequence);
            return IntStream.range(0, slot.length).filter(rank -> slot[rank] == null);
        }

        /**
         * Returns the data of a complete call, by rank. Clears the call's slot, so that a later call can use the slot.
         */
        Contribution[] take(long sequence) {
            Contribution[] parts = slot(sequence).clone();
            Arrays.fill(slot(sequence), null);
            return parts;
        }

        private Contribution[] slot(long sequence) {
            return slots[(int) (sequence & (IN_FLIGHT - 1))];
        }
    }
}
