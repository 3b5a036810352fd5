package org.millrace.net.link;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Objects;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.PageMemory;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.connection.InFlight;
import org.millrace.net.connection.NativeRegion;

/**
 * A sender that delays its frames as if they crossed a link. A frame is copied as soon as this sender has room for the
 * frame. The owner may then overwrite the payload, as after a TCP send. The copy first waits for the link's line, and
 * then occupies the line piece by piece. Then the copy is in flight for the delay of the link. Finally the copy is
 * offered to the wrapped sender.
 */
final class LinkSender extends FrameEnd.Carried implements FrameSender {

    /**
     * Maximum number of bytes that wait for the line. Linux has the same limit for a socket's send buffer (tcp_wmem).
     */
    private static final long MAX_WAITING = 4L << 20;
    /** Maximum number of bytes in flight, whatever the rate and the delay of the link. */
    private static final long MAX_IN_FLIGHT = 256L << 20;
    /** Maximum number of bytes that the wrapped sender has accepted but not sent; they stay in this sender's memory. */
    private static final long MAX_IN_NETWORK = 4L << 20;
    /**
     * Divisor: {@link #framesCompleted} assumes that the next payload is at most 1/{@value} longer than the longest
     * payload so far.
     */
    private static final long SLACK = 8;
    private static final int MAX_FRAMES = 1024;
    /** Approximate size of a frame's header on a network, in bytes. */
    private static final int HEADER_BYTES = 64;
    private static final long PIECE_BYTES = 16 << 10;
    /**
     * Maximum time for which pieces of frames reserve the line in advance, in ticks. The reserved line stays busy while
     * this process's threads do other work. One connection reserves at most half of this time, so that other
     * connections can reserve the line, too.
     */
    private static final long AHEAD = Duration.ofMillis(1).toNanos() * LinkNetwork.SharedLine.TICKS;
    private static final int WORDS = FrameHeader.WORDS + 1;

    private final FrameSender wire;
    private final Network network;
    private final LinkNetwork.SharedLine line;
    private final LinkNetwork owner;
    private final SplittableRandom random = new SplittableRandom(1);

    /**
     * Frames in this sender. A payload's position is the number of payload bytes before it on this connection. The
     * payload is stored in the sender's memory at this position modulo the length of the memory.
     */
    private final InFlight frames = new InFlight(MAX_FRAMES);
    private final long[] words = new long[frames.slots() * WORDS];
    private final long[] positions = new long[frames.slots()];
    private final long[] ends = new long[frames.slots()];
    /**
     * For each slot of {@link #frames}, a time in ticks of the line: at first the time when the frame was offered.
     * After the frame has left the line, the slot contains the time when the frame arrives.
     */
    private final long[] times = new long[frames.slots()];
    private final FrameHeader header = new FrameHeader();

    private @Nullable ConnectionException lost;
    private volatile boolean closed;

    private long left;
    private long passedOn;
    private long bytesLeftOfNext;
    private long waitingBytes;
    private long lastArrival;
    private long ownFree;
    private long end;
    private long longest;

    private Arena arena = Arena.ofShared();
    private MemorySegment memory;
    private MemoryRegion region;

    LinkSender(FrameSender wire, Network network, LinkNetwork.SharedLine line, LinkNetwork owner) {
        super(wire);
        this.wire = wire;
        this.network = network;
        this.line = line;
        this.owner = owner;
        memory = PageMemory.allocate(
                Math.min(line.schedule().bytesOnTheWay(), MAX_IN_FLIGHT) + MAX_WAITING + MAX_IN_NETWORK, arena);
        region = network.register(memory);
    }

    @Override
    public synchronized boolean offer(FrameHeader offered, @Nullable MemoryRegion payload, long offset) {
        checkOpen();
        long bytes = offered.payloadBytes();
        check(payload, offset, bytes);
        if (!hasRoom(bytes)) {
            progress();
            if (!hasRoom(bytes)) {
                return false;
            }
        }
        if (frames.isEmpty()) {
            end = 0;
            grow(bytes);
        }
        longest = Math.max(longest, bytes);
        long position = place(bytes);
        if (payload != null) {
            MemorySegment.copy(payload.segment(), offset, memory, position % memory.byteSize(), bytes);
        }
        int slot = frames.begin();
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            words[slot * WORDS + word] = offered.word(word);
        }
        words[slot * WORDS + FrameHeader.WORDS] = bytes;
        positions[slot] = position;
        end = position + bytes;
        ends[slot] = end;
        times[slot] = line.now();
        waitingBytes += bytes;
        if (left == frames.begun() - 1) {
            bytesLeftOfNext = bytes + HEADER_BYTES;
        }
        progress();
        return true;
    }

    private void checkOpen() {
        if (lost != null) {
            throw lost;
        }
        if (closed) {
            throw closedHere();
        }
    }

    private ConnectionException closedHere() {
        return new ConnectionException(this + ": closed on this side");
    }

    private static void check(@Nullable MemoryRegion payload, long offset, long bytes) {
        if (bytes < 0 || bytes > 0 && payload == null) {
            throw new IllegalArgumentException("a payload of " + bytes + " bytes in " + payload);
        }
        if (payload != null) {
            Objects.checkFromIndexSize(offset, bytes, payload.segment().byteSize());
            if (payload instanceof NativeRegion region && region.isClosed()) {
                throw new IllegalStateException(payload + " was closed");
            }
        }
    }

    /** Returns the position of the next payload, such that the payload does not wrap around the end of the memory. */
    private long place(long bytes) {
        long toTheEnd = memory.byteSize() - end % memory.byteSize();
        return bytes > toTheEnd ? end + toTheEnd : end;
    }

    private boolean hasRoom(long bytes) {
        return frames.isEmpty() || !frames.isFull() && (waitingBytes == 0 || waitingBytes + bytes <= MAX_WAITING)
                && place(bytes) + bytes - positions[frames.oldest()] <= memory.byteSize();
    }

    private void grow(long bytes) {
        if (bytes > memory.byteSize()) {
            release();
            arena = Arena.ofShared();
            memory = PageMemory.allocate(bytes, arena);
            region = network.register(memory);
        }
    }

    private void release() {
        region.close();
        arena.close();
    }

    @Override
    public synchronized int progress() {
        try {
            if (frames.isEmpty()) {
                checkOpen();
                return wire.progress();
            }
            return advance();
        } catch (ConnectionException end) {
            lost = end;
            throw end;
        }
    }

    private int advance() {
        long now = line.now();
        leave(now);
        int moved = 0;
        while (passedOn < left && times[frames.slot(passedOn)] <= now && passOn(frames.slot(passedOn))) {
            passedOn++;
            moved = 1;
        }
        moved |= wire.progress();
        while (frames.done() < wire.framesCompleted()) {
            frames.finishOldest();
        }
        // The caller must not sleep if a frame will leave the line or arrive soon.
        boolean soon = left < frames.begun() ? !line.shape(now).down()
                : passedOn < left && times[frames.slot(passedOn)] - now < AHEAD;
        return moved > 0 || soon ? 1 : 0;
    }

    private boolean passOn(int slot) {
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            header.word(word, words[slot * WORDS + word]);
        }
        long bytes = words[slot * WORDS + FrameHeader.WORDS];
        header.payloadBytes(bytes);
        return bytes == 0 ? wire.offer(header, null, 0)
                : wire.offer(header, region, positions[slot] % memory.byteSize());
    }

    /**
     * Lets pieces of waiting frames occupy the line. Stops when the line is reserved for {@link #AHEAD}, when this
     * connection has reserved half of that time, or while the link is down. A frame is in flight when all its pieces
     * have left.
     */
    private void leave(long now) {
        LinkShape shape = line.shape(now);
        while (left < frames.begun() && !shape.down() && line.free() < now + AHEAD && ownFree < now + AHEAD / 2) {
            int slot = frames.slot(left);
            long piece = Math.min(bytesLeftOfNext, PIECE_BYTES);
            long ready = Math.max(times[slot], line.upSince(now));
            long gone = line.take(ready, piece, shape);
            ownFree = Math.max(gone,
                    Math.max(ownFree, ready) + LinkNetwork.SharedLine.ticks(piece, shape.bitsPerConnection()));
            bytesLeftOfNext -= piece;
            if (bytesLeftOfNext == 0) {
                lastArrival = Math.max(lastArrival, ownFree + delay(shape));
                times[slot] = lastArrival;
                waitingBytes -= words[slot * WORDS + FrameHeader.WORDS];
                left++;
                bytesLeftOfNext =
                        left < frames.begun() ? words[frames.slot(left) * WORDS + FrameHeader.WORDS] + HEADER_BYTES : 0;
            }
        }
    }

    private long delay(LinkShape shape) {
        long jitter = shape.jitter().toNanos();
        long nanos = shape.delay().toNanos() + (jitter == 0 ? 0 : random.nextLong(-jitter, jitter + 1));
        return nanos * LinkNetwork.SharedLine.TICKS;
    }

    /**
     * Returns the number of copied frames. The owner may overwrite the payloads of these frames. The newest frame is
     * counted only while the sender has room for another frame. An owner without incomplete frames can therefore offer
     * another frame at any time.
     */
    @Override
    public synchronized long framesCompleted() {
        return frames.begun() - (hasRoom(longest + longest / SLACK) ? 0 : 1);
    }

    /**
     * Advances frames in flight for an owner that may have stopped polling. Called by this network's thread, and by the
     * thread that closes the sender.
     *
     * @return whether frames are still in flight and can arrive
     */
    synchronized boolean drain() {
        if (frames.isEmpty() || lost != null) {
            return false;
        }
        try {
            progress();
            return !frames.isEmpty();
        } catch (ConnectionException end) {
            // The owner's next call throws this failure.
            return false;
        } catch (RuntimeException unexpected) {
            lost = new ConnectionException(this + ": " + unexpected, unexpected);
            return false;
        }
    }

    @Override
    public void close() {
        closed = true;
        owner.close(this);
    }

    /** Closes the wrapped sender and frees the memory. */
    synchronized void closeWire() {
        wire.close();
        release();
        lost = closedHere();
    }

    @Override
    public void abort() {
        closed = true;
        if (owner.forget(this)) {
            synchronized (this) {
                wire.abort();
                release();
                lost = closedHere();
            }
        }
    }

    @Override
    public String toString() {
        return wire + ", MILLRACE_LINK=" + line.schedule();
    }
}
