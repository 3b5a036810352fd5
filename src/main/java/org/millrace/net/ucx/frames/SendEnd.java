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
 * A sender's frames, and what becomes of them. It lives on for a while after the sender is closed, as the peer may still
 * be receiving.
 */
final class SendEnd extends UcxEnd implements UcxWorker.Lingering {

    private static final int MASK = UcxFormat.FRAMES - 1;
    /** How long a connection that was closed stays for its peer. */
    private static final long LINGER_NANOS = 10_000_000_000L;

    private final FrameSender found;
    private final Network finder;
    private final long answersTag = newTag();
    private long framesTag;

    /** By frame: its header, its payload, and the parameters of a message with that alone. */
    private final long headers = arena.allocate((long) UcxFormat.FRAMES * UcxFormat.HEADER_BYTES, 64).address();
    private final long[] payloads = new long[UcxFormat.FRAMES];
    private final long[] lengths = new long[UcxFormat.FRAMES];
    private final long[] params = new long[UcxFormat.FRAMES];
    private final long[] requests = new long[UcxFormat.FRAMES];

    private @Nullable MemorySegment answer;
    private long answerRequest;
    /** The hello's payload. */
    private @Nullable MemoryRegion hello;
    /** Null until the peer has answered. */
    private @Nullable OutgoingMessages messages;

    private long offered;
    private long posted;
    private long completed;

    /** The end of the connection over which the peer was found, if it is told later than all is known. */
    private @Nullable ConnectionException foundEnd;
    private long foundEndAt;
    private boolean saidGoodbye;
    private long overAt;

    SendEnd(OpenResources network, String name, FrameSender found, Network finder, UcxWorkers workers) {
        super(network, name, found.peer(), workers);
        this.found = found;
        this.finder = finder;
    }

    boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        long bytes = UcxFormat.checkedLength(header);
        UcxRegion memory = bytes == 0 ? null : (UcxRegion) NativeRegion.check(region, network(), offset, bytes);
        if (offered - completed == UcxFormat.FRAMES) {
            return false;
        }
        int frame = (int) offered & MASK;
        UcxFormat.encode(header, header(frame));
        lengths[frame] = bytes;
        if (memory != null) {
            payloads[frame] = memory.view().address() + offset;
            params[frame] = memory.sendParam();
        }
        offered++;
        return true;
    }

    private long header(int frame) {
        return headers + (long) frame * UcxFormat.HEADER_BYTES;
    }

    long completed() {
        return completed;
    }

    /** Looks whether the peer has gone. */
    int lookAtPeer() {
        ConnectionException why = foundEnd;
        if (why != null) {
            if (completed == posted || System.nanoTime() - foundEndAt > FLUSH_NANOS) {
                throw ended(why);
            }
            return 0;
        }
        try {
            return found.progress();
        } catch (ConnectionException e) {
            if (!(e instanceof PeerClosedException) || completed == posted) {
                throw ended(e);
            }
            // It may have received all before it went: that comes another way.
            foundEnd = e;
            foundEndAt = System.nanoTime();
            return 0;
        }
    }

    /** Does what can be done without waiting. With the turn. */
    int advance() {
        int work = drive(worker());
        OutgoingMessages out = messages;
        if (out == null) {
            return work + (answer == null ? sayHello() : readAnswer());
        }
        work += out.readCredits();
        work += post(out);
        return work + complete();
    }

    private int sayHello() {
        byte[] address = worker().address();
        MemorySegment from = arena.allocate(address.length);
        MemorySegment.copy(MemorySegment.ofArray(address), 0, from, 0, address.length);
        hello = finder.register(from);
        answer = arena.allocate(UcxFormat.READY_BYTES + UcxFormat.MAX_ADDRESS_BYTES, Long.BYTES);
        answerRequest = receive(answer.address(), answer.byteSize(), answersTag | UcxFormat.TAG_READY, plainReceive);
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
        long at = answer.address();
        if (bytes <= UcxFormat.READY_BYTES) {
            throw notProtocol("an answer of " + bytes + " bytes");
        }
        UcxFormat.check(toString(), UcxFormat.READY, UcxFormat.word(at));
        framesTag = UcxFormat.word(at + 8) & UcxFormat.TAG_MASK;
        long buffers = UcxFormat.word(at + 48);
        long length = UcxFormat.word(at + 56);
        if (buffers != UcxFormat.BUFFERS || length < UcxFormat.LEAST_BUFFER_BYTES
                || length > UcxFormat.MOST_BUFFER_BYTES) {
            throw notProtocol(buffers + " buffers of " + length + " bytes");
        }
        connect(at(at + UcxFormat.READY_BYTES, bytes - UcxFormat.READY_BYTES), UcxFormat.word(at + 16),
                UcxFormat.word(at + 24), UcxFormat.word(at + 32), UcxFormat.word(at + 40));
        messages = new OutgoingMessages(this, framesTag | UcxFormat.TAG_HEADER, answersTag | UcxFormat.TAG_CREDIT,
                (int) length);
        return 1;
    }

    /** Sends what was offered: headers with short payloads, as many in a message as there are, and long payloads. */
    private int post(OutgoingMessages out) {
        long before = posted;
        while (posted < offered && foundEnd == null && out.hasRoom()) {
            long first = posted;
            while (posted < offered && add(out, (int) posted & MASK)) {
                posted++;
            }
            out.send();
            for (long each = first; each < posted; each++) {
                int frame = (int) each & MASK;
                requests[frame] = out.isInline(lengths[frame]) ? 0
                        : begun(ucp_h.ucp_tag_send_nbx(endpoint(), payloads[frame], lengths[frame],
                                framesTag | UcxFormat.TAG_PAYLOAD, params[frame]));
            }
        }
        return (int) (posted - before);
    }

    private boolean add(OutgoingMessages out, int frame) {
        return out.add(header(frame), payloads[frame], lengths[frame]);
    }

    private int complete() {
        long before = completed;
        while (completed < posted) {
            int frame = (int) completed & MASK;
            requests[frame] = sent(requests[frame]);
            if (requests[frame] != 0) {
                break;
            }
            completed++;
        }
        return (int) (completed - before);
    }

    @Override
    boolean isIdle() {
        answerRequest = left(answerRequest);
        return areOver(requests) & (messages == null || messages.isIdle()) & answerRequest == 0;
    }

    @Override
    String howFar() {
        return "after " + completed + " whole frames were sent and " + (offered - completed) + " begun";
    }

    // Its end

    void abort() {
        found.abort();
    }

    /**
     * Sends what needs no waiting, and tells the peer how much that was. A peer that has not answered the hello yet gets
     * the frames over the connection by which it was found.
     */
    void sayGoodbye() {
        try {
            if (messages != null) {
                sendRest();
            }
            long rest = messages == null ? offered : 0;
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
            if (rest > 0) {
                tellFrames(rest);
            }
            saidGoodbye = true;
        } catch (ConnectionException gone) {
            // The peer is gone before us; the owner did not want to know of it any more.
        }
    }

    private void tellFrames(long rest) {
        FrameHeader header = new FrameHeader();
        try (MemoryRegion all = finder.allMemory()) {
            for (int frame = 0; frame < rest; frame++) {
                UcxFormat.decode(header(frame), header);
                tell(header, lengths[frame] == 0 ? null : all, payloads[frame]);
            }
        }
        completed += rest;
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
                int ignored = found.progress();
                ignored = worker().drive();
                ignored = advance();
            }
            if (posted > 0) {
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
            if (saidGoodbye && completed == offered && messages != null && worker().runs()) {
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
            return found.progress() == 0 && System.nanoTime() - overAt > 0;
        } catch (ConnectionException gone) {
            return true;
        }
    }

    @Override
    public void end() {
        found.close();
        if (!worker().runs()) {
            return; // what UCX has stays: nothing may be asked of it
        }
        if (messages != null) {
            messages.cancel();
        }
        cancel(answerRequest);
        disconnect();
        if (drain(CLOSE_NANOS)) {
            discard(answersTag | UcxFormat.TAG_CREDIT);
            discard(answersTag | UcxFormat.TAG_READY);
            if (hello != null) {
                hello.close();
            }
            arena.close();
        } else if (!peerHasEnded()) {
            worker().stop(this + " was closed while UCX sent from memory that is freed next, and the peer did not let "
                    + "go of it in time: all that this thread has over UCX is ended");
        }
    }
}
