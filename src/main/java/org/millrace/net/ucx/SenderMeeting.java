package org.millrace.net.ucx;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.shm.SharedMemory;

/**
 * Handshake of a sender. The sender sends the address of its worker over the setup connection, see {@link UcxEnd}. The
 * sender receives the address of the receiver's worker over UCX. Callers of all methods must hold the worker's lock.
 */
final class SenderMeeting {

    private final UcxEnd end;
    private final FrameSender found;
    private final Network finder;
    private final long answersTag = UcxEnd.newTag();
    private long framesTag;
    private int bufferBytes;
    private @Nullable MemorySegment answer;
    private long request;
    /** Memory with the hello's payload, which is the address of this end's worker; null before the hello is sent. */
    private @Nullable MemoryRegion hello;

    SenderMeeting(UcxEnd end, FrameSender found, Network finder) {
        this.end = end;
        this.found = found;
        this.finder = finder;
    }

    /** Returns the UCX tag of the receiver's answer and credits, without the tag's lowest bits. */
    long answersTag() {
        return answersTag;
    }

    /** Returns whether the handshake is complete: the receiver has answered, and the endpoint exists. */
    boolean isOver() {
        return bufferBytes > 0;
    }

    /** Returns the UCX tag of messages to the receiver, without the tag's lowest bits. */
    long framesTag() {
        return framesTag;
    }

    /** Returns the length of the receiver's buffers, in bytes. */
    int bufferBytes() {
        return bufferBytes;
    }

    /** Advances the handshake without blocking. Returns the amount of work done. */
    int advance() {
        MemorySegment awaited = answer;
        if (awaited == null) {
            writeHello();
            return 1;
        }
        long bytes = end.received(request);
        if (bytes == UcxEnd.UNDER_WAY) {
            return 0;
        }
        request = 0;
        if (bytes != UcxEnd.FAILED) {
            read(awaited.address(), bytes);
        }
        return 1;
    }

    private void writeHello() {
        byte[] address = end.worker().address();
        MemorySegment from = end.arena.allocate(address.length);
        MemorySegment.copy(MemorySegment.ofArray(address), 0, from, 0, address.length);
        MemoryRegion region = finder.register(from);
        hello = region;
        MemorySegment awaited = end.arena.allocate(UcxFormat.READY_BYTES + UcxFormat.MAX_ADDRESS_BYTES, Long.BYTES);
        answer = awaited;
        request =
                end.receive(awaited.address(), awaited.byteSize(), answersTag | UcxFormat.TAG_READY, end.plainReceive);
        FrameHeader header = new FrameHeader();
        header.payloadBytes(address.length);
        header.word(0, UcxFormat.HELLO);
        header.word(1, answersTag);
        header.word(2, SharedMemory.thisHost());
        header.word(3, end.flags());
        header.word(4, ProcessIdentity.CURRENT.pid());
        header.word(5, ProcessIdentity.CURRENT.startTicks());
        if (!found.offer(header, region, 0)) {
            throw new IllegalStateException(end + ": a new connection takes no frame");
        }
    }

    private void read(long at, long bytes) {
        if (bytes <= UcxFormat.READY_BYTES) {
            throw end.notProtocol("an answer of " + bytes + " bytes");
        }
        UcxFormat.check(end.toString(), UcxFormat.READY, UcxFormat.word(at));
        long buffers = UcxFormat.word(at + 48);
        long length = UcxFormat.word(at + 56);
        if (buffers != UcxFormat.BUFFERS || length < UcxFormat.LEAST_BUFFER_BYTES
                || length > UcxFormat.MAX_BUFFER_BYTES) {
            throw end.notProtocol(buffers + " buffers of " + length + " bytes");
        }
        framesTag = UcxFormat.word(at + 8) & UcxFormat.TAG_MASK;
        end.connect(UcxEnd.at(at + UcxFormat.READY_BYTES, bytes - UcxFormat.READY_BYTES), UcxFormat.word(at + 16),
                UcxFormat.word(at + 24), UcxFormat.word(at + 32), UcxFormat.word(at + 40));
        bufferBytes = (int) length;
    }

    void cancel() {
        end.cancel(request);
    }

    /** Returns whether this object has no request in UCX. Frees a complete request. */
    boolean isIdle() {
        request = end.left(request);
        return request == 0;
    }

    void close() {
        end.discard(answersTag | UcxFormat.TAG_READY);
        if (hello != null) {
            hello.close();
        }
    }
}
