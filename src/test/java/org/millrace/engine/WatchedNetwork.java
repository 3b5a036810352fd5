package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.millrace.net.ConnectionKey;
import org.millrace.net.Forwarding;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.TestOptions;
import org.millrace.net.shm.ShmNetwork;

/**
 * A shared-memory network that counts payload bytes. It has one count for memory that programs registered, and one
 * count for all other memory. If flushes are enabled, a payload arrives in a hidden copy of its destination. Only a
 * flush copies the payload to the destination.
 */
final class WatchedNetwork implements Network {

    static final AtomicLong SENT_BY_USER = new AtomicLong();
    static final AtomicLong SENT_BY_SLOTS = new AtomicLong();
    static final AtomicLong RECEIVED_BY_USER = new AtomicLong();
    static final AtomicLong RECEIVED_BY_SLOTS = new AtomicLong();
    static final AtomicLong FLUSHED = new AtomicLong();
    static final AtomicLong CONNECTIONS = new AtomicLong();
    /** Action that a receiving proxy runs between its checks and its write to memory that a program registered. */
    static volatile Runnable beforeUserMemory = () -> {};

    private final Network network;
    private final boolean flushes;

    WatchedNetwork(Path directory, boolean flushes) {
        this.network = new ShmNetwork(TestOptions.shm(directory));
        this.flushes = flushes;
    }

    static void reset() {
        beforeUserMemory = () -> {};
        for (AtomicLong counter : new AtomicLong[] {SENT_BY_USER, SENT_BY_SLOTS, RECEIVED_BY_USER, RECEIVED_BY_SLOTS,
                FLUSHED, CONNECTIONS}) {
            counter.set(0);
        }
    }

    private final class Region implements MemoryRegion {
        private final Arena arena = Arena.ofShared();
        private final boolean ofUser;
        private final MemorySegment shadow;
        private final MemoryRegion place;
        private final MemoryRegion arrival;

        Region(MemorySegment memory, boolean ofUser) {
            this.ofUser = ofUser;
            this.place = network.register(memory);
            this.shadow = flushes ? arena.allocate(memory.byteSize(), 4096) : null;
            this.arrival = flushes ? network.register(shadow) : place;
        }

        @Override
        public MemorySegment segment() {
            return place.segment();
        }

        @Override
        public void flush(long offset, long bytes) {
            FLUSHED.addAndGet(bytes);
            if (flushes) {
                MemorySegment.copy(shadow, offset, place.segment(), offset, bytes);
            }
        }

        @Override
        public void close() {
            place.close();
            arrival.close();
            if (arena.scope().isAlive()) {
                arena.close();
            }
        }
    }

    private static final class Sender extends Forwarding.Sender {
        Sender(FrameSender sender) {
            super(sender);
        }

        @Override
        public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
            Region watched = (Region) region;
            boolean taken = inner.offer(header, watched.place, offset);
            if (taken) {
                (watched.ofUser ? SENT_BY_USER : SENT_BY_SLOTS).addAndGet(header.payloadBytes());
            }
            return taken;
        }
    }

    private static final class Receiver extends Forwarding.Receiver {
        private long payloadBytes;

        Receiver(FrameReceiver receiver) {
            super(receiver);
        }

        @Override
        public FrameHeader poll() {
            FrameHeader header = inner.poll();
            payloadBytes = header == null ? 0 : header.payloadBytes();
            return header;
        }

        @Override
        public void accept(MemoryRegion region, long offset) {
            Region watched = (Region) region;
            (watched.ofUser ? RECEIVED_BY_USER : RECEIVED_BY_SLOTS).addAndGet(payloadBytes);
            if (watched.ofUser) {
                beforeUserMemory.run();
            }
            inner.accept(watched.arrival, offset);
        }
    }

    private record Wrapped<T>(Pending<T> pending, UnaryOperator<T> wrap) implements Pending<T> {
        @Override
        public T poll() {
            T made = pending.poll();
            return made == null ? null : wrap.apply(made);
        }

        @Override
        public void close() {
            pending.close();
        }
    }

    @Override
    public String name() {
        return "watched";
    }

    @Override
    public Listener listen() {
        Listener listener = network.listen();
        return new Listener() {
            @Override
            public byte[] address() {
                return listener.address();
            }

            @Override
            public Pending<FrameReceiver> expect(ConnectionKey key) {
                return new Wrapped<>(listener.expect(key), Receiver::new);
            }

            @Override
            public void close() {
                listener.close();
            }
        };
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        CONNECTIONS.incrementAndGet();
        return new Wrapped<>(network.connect(address, key), Sender::new);
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return new Region(memory, false);
    }

    MemoryRegion registerOfUser(MemorySegment memory) {
        return new Region(memory, true);
    }

    @Override
    public void close() {
        network.close();
    }
}
