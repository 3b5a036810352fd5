package org.millrace.net.ucx.frames;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.PeerClosedException;
import org.millrace.net.connection.LastWords;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.shm.file.ProcessIdentity;
import org.millrace.net.shm.file.SharedMemory;
import org.millrace.net.ucx.library.UcxRegion;
import org.millrace.net.ucx.worker.UcxWorker;
import org.millrace.net.ucx.worker.UcxWorkers;

/**
 * The sending end of a connection over UCX. {@link #offer} notes a frame, with a copy of its header and of a short
 * payload; {@link #progress} gives what was noted to UCX. A frame is complete when UCX has read its payload: for a long
 * one that is when the receiver has it.
 */
public final class UcxSender implements FrameSender {

    private static final int WINDOW = UcxFormat.WINDOW;
    private static final int MASK = WINDOW - 1;
    private static final int CREDITS = UcxFormat.CREDITS;
    /** How long a connection that was closed stays for its peer. */
    private static final long LINGER_NANOS = 10_000_000_000L;

    private final End end;

    /** A sender whose hello goes over a connection that was made, to be closed with this. */
    public UcxSender(OpenResources network, String name, FrameSender found, Network finder, UcxWorkers workers) {
        end = new End(network, name, found, finder, workers);
        network.opened(end, this::close);
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        end.checkOpen();
        return end.offer(header, region, offset);
    }

    @Override
    public int progress() {
        end.checkOpen();
        int work = end.lookAtPeer();
        end.checkPeer();
        if (end.hasFailed() || !end.tryEnter()) {
            return work;
        }
        try {
            return work + end.advance();
        } finally {
            end.worker().leave();
        }
    }

    @Override
    public long framesCompleted() {
        return end.completed;
    }

    @Override
    public void close() {
        end.close(end::sayGoodbye);
    }

    @Override
    public void abort() {
        end.close(end.found::abort);
    }

    @Override
    public String peer() {
        return end.peer();
    }

    @Override
    public void blame(String lostPeer) {
        end.blame(lostPeer);
    }

    @Override
    public String toString() {
        return end.toString();
    }

    /** What lives on for a while after the sender is closed. */
    private static final class End extends UcxEnd implements UcxWorker.Lingering {

        private final FrameSender found;
        private final Network finder;
        private final long answersTag = newTag();
        private long framesTag;

        private final long slots = arena.allocate((long) WINDOW * UcxFormat.SLOT_BYTES, 64).address();
        private final long credits = arena.allocate(CREDITS * UcxFormat.CREDIT_BYTES, Long.BYTES).address();
        /** By slot: a payload that is a message of its own, and its parameters. */
        private final long[] payloads = new long[WINDOW];
        private final long[] lengths = new long[WINDOW];
        private final long[] params = new long[WINDOW];
        private final long[] headerRequests = new long[WINDOW];
        private final long[] payloadRequests = new long[WINDOW];
        private final long[] creditRequests = new long[CREDITS];
        private int nextCredit;

        private @Nullable MemorySegment answer;
        private long answerRequest;
        /** The hello's payload while it is under way. */
        private @Nullable MemoryRegion hello;

        private long offered;
        private long posted;
        private long completed;
        /** What the receiver said that it has accepted. */
        private long accepted;
        private @Nullable ConnectionException foundEnd;
        private long foundEndAt;
        private boolean saidGoodbye;
        private long overAt;

        End(OpenResources network, String name, FrameSender found, Network finder, UcxWorkers workers) {
            super(network, name, found.peer(), workers);
            this.found = found;
            this.finder = finder;
        }

        boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
            long bytes = UcxFormat.checkedLength(header);
            UcxRegion memory = bytes == 0 ? null : (UcxRegion) NativeRegion.check(region, network(), offset, bytes);
            if (offered - completed == UcxFormat.IN_FLIGHT || offered - accepted == WINDOW) {
                return false;
            }
            int slot = (int) offered & MASK;
            long at = slots + (long) slot * UcxFormat.SLOT_BYTES;
            UcxFormat.encode(header, at);
            lengths[slot] = bytes;
            if (memory != null) {
                long payload = memory.view().address() + offset;
                if (bytes <= UcxFormat.INLINE_BYTES) {
                    MemorySegment.copy(NativeRegion.ALL_MEMORY, payload, NativeRegion.ALL_MEMORY,
                            at + UcxFormat.HEADER_BYTES, bytes);
                } else {
                    payloads[slot] = payload;
                    params[slot] = memory.sendParam();
                }
            }
            offered++;
            return true;
        }

        /** Looks whether the peer has gone. */
        int lookAtPeer() {
            if (foundEnd != null) {
                return 0;
            }
            try {
                return found.progress();
            } catch (ConnectionException e) {
                if (!(e instanceof PeerClosedException) || completed == posted) {
                    throw ended(e, howFar());
                }
                // It may have received all before it went: that comes another way.
                foundEnd = e;
                foundEndAt = System.nanoTime();
                return 0;
            }
        }

        /** Throws if the peer has gone, and all is known of what it has received. */
        void checkPeer() {
            ConnectionException why = foundEnd;
            if (why != null && (completed == posted || System.nanoTime() - foundEndAt > FLUSH_NANOS)) {
                throw ended(why, howFar());
            }
        }

        /** Does what can be done without waiting. With the turn. */
        int advance() {
            int work = drive(worker());
            if (endpoint() == 0) {
                return work + (answer == null ? sayHello() : readAnswer());
            }
            work += readCredits();
            work += post();
            return work + complete();
        }

        private int sayHello() {
            byte[] address = worker().address();
            MemorySegment from = arena.allocate(address.length);
            MemorySegment.copy(MemorySegment.ofArray(address), 0, from, 0, address.length);
            hello = finder.register(from);
            answer = arena.allocate(UcxFormat.READY_BYTES + UcxFormat.MAX_ADDRESS_BYTES, Long.BYTES);
            answerRequest =
                    receive(answer.address(), answer.byteSize(), answersTag | UcxFormat.TAG_READY, plainReceive);
            FrameHeader header = new FrameHeader();
            header.payloadBytes(address.length);
            header.word(0, UcxFormat.HELLO);
            header.word(1, answersTag);
            header.word(2, SharedMemory.thisHost());
            header.word(3, flags());
            header.word(4, ProcessIdentity.CURRENT.pid());
            header.word(5, ProcessIdentity.CURRENT.startTicks());
            if (!found.offer(header, hello, 0)) {
                throw new IllegalStateException(this + ": a new connection takes no frame");
            }
            return 1;
        }

        private int readAnswer() {
            long bytes = received(answerRequest);
            if (bytes == UNDER_WAY) {
                return 0;
            }
            answerRequest = 0;
            if (bytes == FAILED) {
                return 0;
            }
            if (bytes <= UcxFormat.READY_BYTES) {
                throw notProtocol("an answer of " + bytes + " bytes");
            }
            long at = answer.address();
            UcxFormat.check(toString(), UcxFormat.READY, UcxFormat.word(at));
            framesTag = UcxFormat.word(at + 8) & UcxFormat.TAG_MASK;
            for (int i = 0; i < CREDITS; i++) {
                awaitCredit(i);
            }
            connect(at(at + UcxFormat.READY_BYTES, bytes - UcxFormat.READY_BYTES), UcxFormat.word(at + 16),
                    UcxFormat.word(at + 24), UcxFormat.word(at + 32), UcxFormat.word(at + 40));
            return 1;
        }

        private void awaitCredit(int cell) {
            creditRequests[cell] = receive(credits + (long) cell * UcxFormat.CREDIT_BYTES, UcxFormat.CREDIT_BYTES,
                    answersTag | UcxFormat.TAG_CREDIT, plainReceive);
        }

        private int readCredits() {
            int read = 0;
            while (received(creditRequests[nextCredit]) == UcxFormat.CREDIT_BYTES) {
                long says = UcxFormat.word(credits + (long) nextCredit * UcxFormat.CREDIT_BYTES);
                if (says < accepted || says > posted) {
                    throw notProtocol("it says that " + says + " frames were accepted, of " + posted);
                }
                accepted = says;
                awaitCredit(nextCredit);
                nextCredit = (nextCredit + 1) % CREDITS;
                read++;
            }
            return read;
        }

        private int post() {
            int before = (int) posted;
            while (posted < offered && foundEnd == null) {
                int slot = (int) posted & MASK;
                long at = slots + (long) slot * UcxFormat.SLOT_BYTES;
                long bytes = lengths[slot];
                boolean inline = bytes <= UcxFormat.INLINE_BYTES;
                headerRequests[slot] = begun(ucp_h.ucp_tag_send_nbx(endpoint(), at,
                        UcxFormat.HEADER_BYTES + (inline ? bytes : 0), framesTag | UcxFormat.TAG_HEADER, plainSend));
                payloadRequests[slot] = inline ? 0
                        : begun(ucp_h.ucp_tag_send_nbx(endpoint(), payloads[slot], bytes,
                                framesTag | UcxFormat.TAG_PAYLOAD, params[slot]));
                posted++;
            }
            return (int) posted - before;
        }

        private int complete() {
            int before = (int) completed;
            while (completed < posted) {
                int slot = (int) completed & MASK;
                headerRequests[slot] = sent(headerRequests[slot]);
                payloadRequests[slot] = sent(payloadRequests[slot]);
                if (headerRequests[slot] != 0 || payloadRequests[slot] != 0) {
                    break;
                }
                completed++;
            }
            return (int) completed - before;
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
        String howFar() {
            return "after " + completed + " whole frames were sent and " + (offered - completed) + " begun";
        }

        // Its end

        /**
         * Sends what needs no waiting, and tells the peer how much that was. A peer that has not answered the hello yet
         * gets the frames over the connection by which it was found.
         */
        void sayGoodbye() {
            try {
                if (endpoint() != 0) {
                    sendRest();
                }
                long rest = endpoint() == 0 ? offered : 0;
                FrameHeader header = new FrameHeader();
                header.word(0, UcxFormat.GOODBYE);
                header.word(1, completed);
                header.word(2, blamed() == null ? 0 : 1);
                header.word(3, rest);
                tell(header, null, 0);
                if (blamed() != null) {
                    for (int word = 0; word < LastWords.COUNT; word++) {
                        header.word(word, LastWords.word(blamed(), word));
                    }
                    tell(header, null, 0);
                }
                try (MemoryRegion all = rest == 0 ? null : finder.allMemory()) {
                    for (int frame = 0; frame < rest; frame++) {
                        long at = slots + (long) frame * UcxFormat.SLOT_BYTES;
                        UcxFormat.decode(at, header);
                        tell(header, lengths[frame] == 0 ? null : all,
                                lengths[frame] <= UcxFormat.INLINE_BYTES ? at + UcxFormat.HEADER_BYTES
                                        : payloads[frame]);
                    }
                }
                completed += rest;
                saidGoodbye = true;
            } catch (ConnectionException gone) {
                // The peer is gone before us; the owner did not want to know of it any more.
            }
        }

        /** Sends a frame over the connection by which the peer was found, if that needs no waiting. */
        private void tell(FrameHeader header, @Nullable MemoryRegion memory, long address) {
            long before = found.framesCompleted();
            if (found.offer(header, memory, address)) {
                while (found.progress() > 0 && found.framesCompleted() == before) {
                    // as much as it takes
                }
            }
        }

        private void sendRest() {
            worker().enter();
            try {
                long start = System.nanoTime();
                while (completed < offered && System.nanoTime() - start < FLUSH_NANOS) {
                    found.progress();
                    int ignored = worker().drive();
                    advance();
                }
                if (completed > 0) {
                    flush();
                }
            } finally {
                worker().leave();
            }
        }

        /** The peer may still be receiving: what it needs stays, but nothing that is the owner's. */
        @Override
        protected void release() {
            if (!hasWorker()) {
                found.close();
                arena.close();
                return;
            }
            worker().enter();
            try {
                if (saidGoodbye && completed == offered && endpoint() != 0 && worker().runs()) {
                    overAt = System.nanoTime() + LINGER_NANOS;
                    worker().keep(this);
                } else {
                    end();
                }
            } finally {
                worker().leave();
            }
        }

        @Override
        public boolean isOver() {
            try {
                found.progress();
                return System.nanoTime() - overAt > 0;
            } catch (ConnectionException gone) {
                return true;
            }
        }

        @Override
        public void end() {
            if (!worker().runs()) {
                found.close();
                return; // what UCX has stays: nothing may be asked of it
            }
            for (int cell = 0; cell < CREDITS; cell++) {
                cancel(creditRequests[cell]);
            }
            cancel(answerRequest);
            disconnect();
            found.close();
            if (drain(CLOSE_NANOS)) {
                discard(answersTag | UcxFormat.TAG_CREDIT);
                discard(answersTag | UcxFormat.TAG_READY);
                if (hello != null) {
                    hello.close();
                }
                arena.close();
            } else if (!peerHasEnded()) {
                worker().stop(this + " was closed while UCX sent from memory that is freed next, and the peer did not "
                        + "let go of it in time: all that this thread has over UCX is ended");
            }
        }
    }
}
