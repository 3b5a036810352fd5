package org.millrace.proxy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.random.RandomGenerator;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * A connection within one thread. A frame is copied when it is accepted. After a random number of passes it is counted
 * as complete.
 */
public final class MemoryFrames {

    private static final int DEPTH = 16;

    private final RandomGenerator random;
    private final FrameHeader[] headers = new FrameHeader[DEPTH];
    private final MemoryRegion[] regions = new MemoryRegion[DEPTH];
    private final long[] offsets = new long[DEPTH];
    private long offered;
    private long accepted;
    private long received;
    private long sent;
    private boolean senderClosed;
    private boolean senderAborted;
    private boolean settled;
    private boolean receiverClosed;
    private boolean cut;
    private Runnable onOffer = () -> {};

    /** @param random decides when frames complete; null for immediate completion */
    public MemoryFrames(RandomGenerator random) {
        this.random = random;
        for (int i = 0; i < DEPTH; i++) {
            headers[i] = new FrameHeader();
        }
    }

    /** Returns memory as a region of this connection, without any registration. */
    public static MemoryRegion region(MemorySegment memory) {
        return new MemoryRegion() {
            @Override
            public MemorySegment segment() {
                return memory;
            }

            @Override
            public void close() {
                // The region holds no resources.
            }
        };
    }

    /** Returns memory in which a receiver keeps lines before it stores them in a slot. */
    public static MemoryRegion staging(Arena arena, ConnectionLayout layout) {
        return region(arena.allocate(layout.bufferOffset(Protocol.SIMPLE), LL128Line.BYTES));
    }

    private boolean later() {
        return random != null && random.nextInt(3) == 0;
    }

    private static void copy(FrameHeader from, FrameHeader to) {
        to.payloadBytes(from.payloadBytes());
        for (int word = 0; word < FrameHeader.WORDS; word++) {
            to.word(word, from.word(word));
        }
    }

    private static int at(long index) {
        return (int) (index % DEPTH);
    }

    /** Returns the header of the frame that was offered last, for tests that falsify it. */
    public FrameHeader lastOffered() {
        return headers[at(offered - 1)];
    }

    /** Returns the number of frames that were offered. */
    public long offered() {
        return offered;
    }

    /** Sets an action to run while a frame is offered. */
    public void onOffer(Runnable action) {
        onOffer = action;
    }

    /** Loses the connection when the next payload is received. */
    public void cut() {
        cut = true;
    }

    /** Returns whether the sending end was closed. A closed end reads no further payload. */
    public boolean senderClosed() {
        return senderClosed;
    }

    /**
     * Returns whether the sending end was aborted before it had been settled. Its unsent frames are dropped, and no
     * payload is read after the abort.
     */
    public boolean senderGaveUp() {
        return senderAborted && !settled;
    }

    /** Returns whether the receiving end was closed. A closed end writes no further payload. */
    public boolean receiverClosed() {
        return receiverClosed;
    }

    public FrameSender sender() {
        return new FrameSender() {
            @Override
            public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
                if (offered - sent == DEPTH || later()) {
                    return false;
                }
                onOffer.run();
                copy(header, headers[at(offered)]);
                regions[at(offered)] = region;
                offsets[at(offered)] = offset;
                offered++;
                return true;
            }

            @Override
            public int progress() {
                if (sent < accepted && !later()) {
                    sent++;
                    return 1;
                }
                return 0;
            }

            @Override
            public long framesCompleted() {
                return sent;
            }

            @Override
            public void abort() {
                senderAborted = true;
                close();
            }

            @Override
            public void settle() {
                settled = true;
            }

            @Override
            public void close() {
                senderClosed = true;
            }
        };
    }

    public FrameReceiver receiver() {
        return receiver(false);
    }

    /** Returns a receiver with a method {@code storesWholeWords} that returns the given value. */
    public FrameReceiver receiver(boolean storesWholeWords) {
        return new FrameReceiver() {
            @Override
            public boolean storesWholeWords(long bytes) {
                return storesWholeWords;
            }

            @Override
            public FrameHeader poll() {
                return accepted < offered ? headers[at(accepted)] : null;
            }

            @Override
            public void accept(MemoryRegion region, long offset) {
                int index = at(accepted);
                long bytes = headers[index].payloadBytes();
                if (bytes > 0) {
                    if (cut) {
                        throw new ConnectionException("cut by the test");
                    }
                    MemorySegment.copy(regions[index].segment(), offsets[index], region.segment(), offset, bytes);
                }
                accepted++;
            }

            @Override
            public int progress() {
                if (received < accepted && !later()) {
                    received++;
                    return 1;
                }
                return 0;
            }

            @Override
            public long framesCompleted() {
                return received;
            }

            @Override
            public void close() {
                receiverClosed = true;
            }
        };
    }
}
