package org.millrace.net.ucx.frames;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.connection.LastWords;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.shm.file.ProcessIdentity;
import org.millrace.net.shm.file.SharedMemory;
import org.millrace.net.ucx.library.UcxRegion;
import org.millrace.net.ucx.worker.UcxWorkers;

/**
 * The receiving end of a connection over UCX. Buffers wait for headers, one for each frame that may be under way; a
 * long payload is received straight to its destination.
 */
public final class UcxReceiver implements FrameReceiver {

    private static final int WINDOW = UcxFormat.WINDOW;
    private static final int MASK = WINDOW - 1;
    private static final int CREDITS = UcxFormat.CREDITS;
    /** Polls that found nothing between two looks at the connection that tells of the peer's end; a power of two. */
    private static final int LOOK_INTERVAL = 64;
    /** How long frames may be under way after the sender's goodbye, which takes another way. */
    private static final long LATE_NANOS = 5_000_000_000L;

    private final End end;
    private final FrameHeader header = new FrameHeader();
    /** The header was shown, and its payload has no destination yet. */
    private boolean headerShown;
    private int idlePolls;

    /** A receiver that is told over a connection that was made, to be closed with this, where its sender is. */
    public UcxReceiver(OpenResources network, String name, FrameReceiver found, Network finder, UcxWorkers workers) {
        end = new End(network, name, found, finder, workers);
        network.opened(end, this::close);
    }

    @Override
    public @Nullable FrameHeader poll() {
        end.checkOpen();
        if (headerShown) {
            return header;
        }
        if (end.takesRest()) {
            headerShown = end.restArrived(header);
            return headerShown ? header : null;
        }
        if (end.shown - end.completed < WINDOW && end.tryEnter()) {
            try {
                end.advance();
                headerShown = end.arrived(header);
            } finally {
                end.worker().leave();
            }
            if (headerShown) {
                return header;
            }
        }
        lookNowAndThen();
        return null;
    }

    /** After a call that found nothing: what came before a failure counts. */
    private void lookNowAndThen() {
        if (end.hasFailed() || (++idlePolls & LOOK_INTERVAL - 1) == 0 || end.endpoint() == 0) {
            end.lookAtPeer();
        }
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        end.checkAccept(headerShown);
        if (end.takesRest()) {
            end.acceptRest(header.payloadBytes(), region, offset);
            headerShown = false;
            return;
        }
        end.accept(header.payloadBytes(), region, offset);
        headerShown = false;
        if (end.tryEnter()) {
            try {
                end.post();
                end.complete();
            } finally {
                end.worker().leave();
            }
        }
    }

    @Override
    public int progress() {
        end.checkOpen();
        if (end.takesRest()) {
            return end.progressRest();
        }
        if (!end.tryEnter()) {
            return 0;
        }
        int work;
        try {
            work = end.advance();
        } finally {
            end.worker().leave();
        }
        if (work == 0) {
            lookNowAndThen();
        }
        return work;
    }

    @Override
    public long framesCompleted() {
        return end.completed + end.restCompleted();
    }

    @Override
    public boolean storesWholeWords(long bytes) {
        return bytes <= UcxFormat.INLINE_BYTES; // which this thread copies, whole words at a time
    }

    @Override
    public void close() {
        end.close(end::sayGoodbye);
    }

    @Override
    public String peer() {
        return end.peer();
    }

    @Override
    public void blame(String lostPeer) {
        end.blame(lostPeer);
        end.found.blame(lostPeer);
    }

    @Override
    public String toString() {
        return end.toString();
    }

    /** The connection's state. */
    private static final class End extends UcxEnd {

        private final FrameReceiver found;
        private final Network finder;
        private final long framesTag = newTag();
        private long answersTag;

        private final long slots = arena.allocate((long) WINDOW * UcxFormat.SLOT_BYTES, 64).address();
        private final long credits = arena.allocate(CREDITS * UcxFormat.CREDIT_BYTES, Long.BYTES).address();
        /** By slot: where a payload goes that is a message of its own, how long it is, and its parameters. */
        private final long[] destinations = new long[WINDOW];
        private final long[] lengths = new long[WINDOW];
        private final long[] params = new long[WINDOW];
        private final long[] headerRequests = new long[WINDOW];
        private final long[] payloadRequests = new long[WINDOW];
        private final long[] creditRequests = new long[CREDITS];

        /** The hello: what of it is still coming. */
        private final FrameHeader hello = new FrameHeader();
        private @Nullable MemoryRegion peersAddress;

        private long shown;
        private long accepted;
        /** Of those that were accepted: what UCX knows of. */
        private long posted;
        private long completed;
        private long credited;
        private int nextCredit;
        private long answerRequest;

        /** How many frames there were when the sender said goodbye; -1 before. */
        private long last = -1;
        private long saidLastAt;
        private boolean lostPeerFollows;
        private @Nullable String lostPeer;
        /** How many frames follow it, as it was said before the two ends had UCX between them. */
        private long rest;
        private long restAccepted;
        private long restBegins;
        private @Nullable MemoryRegion all;

        End(OpenResources network, String name, FrameReceiver found, Network finder, UcxWorkers workers) {
            super(network, name, found.peer(), workers);
            this.found = found;
            this.finder = finder;
        }

        /** Does what can be done without waiting. With the turn. */
        int advance() {
            int work = drive(worker());
            if (endpoint() == 0) {
                return work + answer();
            }
            return work + post() + complete();
        }

        /** Answers the sender's hello when it is here. */
        private int answer() {
            MemoryRegion address = peersAddress;
            if (address == null || found.framesCompleted() == 0) {
                return 0;
            }
            for (int slot = 0; slot < WINDOW; slot++) {
                awaitHeader(slot);
            }
            connect(address.segment(), hello.word(2), hello.word(3), hello.word(4), hello.word(5));
            answersTag = hello.word(1) & UcxFormat.TAG_MASK;
            byte[] mine = worker().address();
            MemorySegment answer = arena.allocate(UcxFormat.READY_BYTES + mine.length, Long.BYTES);
            UcxFormat.word(answer.address(), UcxFormat.READY);
            UcxFormat.word(answer.address() + 8, framesTag);
            UcxFormat.word(answer.address() + 16, SharedMemory.thisHost());
            UcxFormat.word(answer.address() + 24, flags());
            UcxFormat.word(answer.address() + 32, ProcessIdentity.CURRENT.pid());
            UcxFormat.word(answer.address() + 40, ProcessIdentity.CURRENT.startTicks());
            MemorySegment.copy(MemorySegment.ofArray(mine), 0, answer, UcxFormat.READY_BYTES, mine.length);
            answerRequest = begun(ucp_h.ucp_tag_send_nbx(endpoint(), answer.address(), answer.byteSize(),
                    answersTag | UcxFormat.TAG_READY, plainSend));
            return 1;
        }

        private void awaitHeader(int slot) {
            headerRequests[slot] = receive(slots + (long) slot * UcxFormat.SLOT_BYTES, UcxFormat.SLOT_BYTES,
                    framesTag | UcxFormat.TAG_HEADER, plainReceive);
        }

        /** Whether the next header has come. With the turn. */
        boolean arrived(FrameHeader header) {
            int slot = (int) shown & MASK;
            long request = headerRequests[slot];
            long bytes = received(request);
            if (bytes == UNDER_WAY) {
                return false;
            }
            headerRequests[slot] = 0;
            if (bytes == FAILED) {
                return false;
            }
            if (!UcxFormat.decode(slots + (long) slot * UcxFormat.SLOT_BYTES, bytes, header)) {
                throw notProtocol("a header of " + bytes + " bytes makes no sense");
            }
            shown++;
            return true;
        }

        void accept(long bytes, @Nullable MemoryRegion region, long offset) {
            int slot = (int) accepted & MASK;
            UcxRegion memory = bytes == 0 ? null : (UcxRegion) NativeRegion.check(region, network(), offset, bytes);
            lengths[slot] = bytes;
            if (memory != null) {
                long destination = memory.view().address() + offset;
                if (bytes <= UcxFormat.INLINE_BYTES) {
                    MemorySegment.copy(NativeRegion.ALL_MEMORY,
                            slots + (long) slot * UcxFormat.SLOT_BYTES + UcxFormat.HEADER_BYTES,
                            NativeRegion.ALL_MEMORY, destination, bytes);
                } else {
                    destinations[slot] = destination;
                    params[slot] = memory.receiveParam();
                }
            }
            accepted++;
        }

        /** Tells UCX of what was accepted, and the sender now and then. With the turn. */
        int post() {
            int before = (int) posted;
            while (posted < accepted) {
                int slot = (int) posted & MASK;
                payloadRequests[slot] = lengths[slot] <= UcxFormat.INLINE_BYTES ? 0
                        : receive(destinations[slot], lengths[slot], framesTag | UcxFormat.TAG_PAYLOAD, params[slot]);
                awaitHeader(slot);
                posted++;
            }
            if (posted - credited >= UcxFormat.CREDIT_INTERVAL) {
                credit();
            }
            return (int) posted - before;
        }

        private void credit() {
            creditRequests[nextCredit] = sent(creditRequests[nextCredit]);
            if (creditRequests[nextCredit] != 0) {
                return;
            }
            long at = credits + (long) nextCredit * UcxFormat.CREDIT_BYTES;
            UcxFormat.word(at, posted);
            creditRequests[nextCredit] = begun(ucp_h.ucp_tag_send_nbx(endpoint(), at, UcxFormat.CREDIT_BYTES,
                    answersTag | UcxFormat.TAG_CREDIT, plainSend));
            credited = posted;
            nextCredit = (nextCredit + 1) % CREDITS;
        }

        int complete() {
            int before = (int) completed;
            while (completed < posted) {
                int slot = (int) completed & MASK;
                long request = payloadRequests[slot];
                if (request != 0) {
                    long bytes = received(request);
                    if (bytes == UNDER_WAY) {
                        break;
                    }
                    payloadRequests[slot] = bytes == FAILED ? FAILED : 0;
                    if (bytes == FAILED) {
                        break;
                    }
                    if (bytes != lengths[slot]) {
                        throw notProtocol(
                                "a payload of " + bytes + " bytes came where " + lengths[slot] + " were announced");
                    }
                }
                completed++;
            }
            return (int) completed - before;
        }

        // The peer's end

        /** Looks at what the peer says on the connection over which it was found. */
        void lookAtPeer() {
            try {
                int ignored = found.progress();
                FrameHeader said = rest > 0 && !lostPeerFollows ? null : found.poll();
                while (said != null) {
                    hear(said);
                    said = rest > 0 && !lostPeerFollows ? null : found.poll();
                }
            } catch (ConnectionException e) {
                if (last < 0) {
                    throw ended(e, howFar());
                }
            }
            if (last >= 0 && !lostPeerFollows) {
                if (completed == last && shown == last && restCompleted() == rest) {
                    throw closedByPeer(howFar(), lostPeer);
                }
                if (System.nanoTime() - saidLastAt > LATE_NANOS) {
                    throw lost("the peer said goodbye after " + last + " frames, and they do not come", null, howFar());
                }
            }
        }

        private void hear(FrameHeader said) {
            if (lostPeerFollows) {
                lostPeerFollows = false;
                lostPeer = LastWords.name(said.word(0), said.word(1), said.word(2), said.word(3), said.word(4),
                        said.word(5));
                found.accept(null, 0);
                restBegins++;
                return;
            }
            if (peersAddress == null && said.word(0) != UcxFormat.GOODBYE) {
                UcxFormat.check(toString(), UcxFormat.HELLO, said.word(0));
                if (said.payloadBytes() < 1 || said.payloadBytes() > UcxFormat.MAX_ADDRESS_BYTES) {
                    throw notProtocol("a worker's address of " + said.payloadBytes() + " bytes");
                }
                hello.set(said);
                MemoryRegion address = finder.register(arena.allocate(said.payloadBytes(), Long.BYTES));
                peersAddress = address;
                found.accept(address, 0);
                return;
            }
            UcxFormat.check(toString(), UcxFormat.GOODBYE, said.word(0));
            if (said.payloadBytes() != 0) {
                throw notProtocol("a goodbye of " + said.payloadBytes() + " bytes");
            }
            last = said.word(1);
            lostPeerFollows = said.word(2) != 0;
            rest = Math.clamp(said.word(3), 0, UcxFormat.IN_FLIGHT);
            saidLastAt = System.nanoTime();
            found.accept(null, 0);
            restBegins = peersAddress == null ? 1 : 2;
        }

        @Override
        String howFar() {
            return "after " + completed + " whole frames and " + (shown - completed) + " begun";
        }

        // Frames that come over the connection by which the peer was found

        /** Whether the next frame is one of them. */
        boolean takesRest() {
            return rest > 0 && !lostPeerFollows && completed == last && restCompleted() < rest;
        }

        boolean restArrived(FrameHeader header) {
            try {
                FrameHeader next = restAccepted == rest ? null : found.poll();
                if (next != null) {
                    header.set(next);
                }
                return next != null;
            } catch (ConnectionException e) {
                throw ended(e, howFar());
            }
        }

        void acceptRest(long bytes, @Nullable MemoryRegion region, long offset) {
            if (bytes == 0) {
                found.accept(null, 0);
            } else {
                long destination = NativeRegion.check(region, network(), offset, bytes).view().address() + offset;
                if (all == null) {
                    all = finder.allMemory();
                }
                found.accept(all, destination);
            }
            restAccepted++;
        }

        int progressRest() {
            try {
                return found.progress();
            } catch (ConnectionException e) {
                throw ended(e, howFar());
            }
        }

        long restCompleted() {
            return rest == 0 ? 0 : found.framesCompleted() - restBegins;
        }

        // This side's end

        /** The connection over which the peer was found says it. */
        void sayGoodbye() {
            if (endpoint() != 0) {
                worker().enter();
                try {
                    if (worker().runs()) {
                        flush(); // that the last payloads are here
                    }
                } finally {
                    worker().leave();
                }
            }
            found.close();
        }

        @Override
        boolean isIdle() {
            boolean idle = true;
            for (int slot = 0; slot < WINDOW; slot++) {
                headerRequests[slot] = left(headerRequests[slot]);
                payloadRequests[slot] = left(payloadRequests[slot]);
                idle &= headerRequests[slot] == 0 && payloadRequests[slot] == 0;
            }
            for (int cell = 0; cell < CREDITS; cell++) {
                creditRequests[cell] = left(creditRequests[cell]);
                idle &= creditRequests[cell] == 0;
            }
            answerRequest = left(answerRequest);
            return idle && answerRequest == 0;
        }

        @Override
        protected void release() {
            found.close();
            if (!hasWorker()) {
                arena.close();
                return;
            }
            worker().enter();
            try {
                end();
            } finally {
                worker().leave();
            }
        }

        private void end() {
            if (all != null) {
                all.close();
            }
            if (!worker().runs()) {
                return; // what UCX has stays: nothing may be asked of it
            }
            for (int slot = 0; slot < WINDOW; slot++) {
                cancel(headerRequests[slot]);
                cancel(payloadRequests[slot]);
            }
            boolean letGo = drain(FLUSH_NANOS);
            // A sender's memory is its own again when its messages have been answered, if only by a refusal.
            int ignored = worker().drive();
            discard(framesTag | UcxFormat.TAG_HEADER);
            discard(framesTag | UcxFormat.TAG_PAYLOAD);
            flush();
            disconnect();
            if (letGo || drain(CLOSE_NANOS)) {
                if (peersAddress != null) {
                    peersAddress.close();
                }
                arena.close();
            } else if (!peerHasEnded()) {
                worker().stop(this + " was closed while UCX received into memory that is freed next, and the peer did "
                        + "not let go of it in time: all that this thread has over UCX is ended");
            }
        }
    }
}
