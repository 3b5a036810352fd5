package org.millrace.net.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/** Arrival times of frames, exact to the nanosecond, on the test's clock. */
class LinkSenderTest {

    private static final long HEADER = 64;
    private static final long SECOND = 1_000_000_000;
    /** Interval between two polls of a thread, in nanoseconds. */
    private static final long STEP = 1_000;

    private final MemorySegment source = Arena.ofAuto().allocate(16 << 20, 8);
    private long now = 12_345;
    private final Wire wire = new Wire();

    /** A frame that the link passed to the network, with its time. */
    private record Arrival(long nanos, long word, long bytes, long first) {
    }

    private FrameSender behind(String link) {
        return sender(new LinkNetwork(wire, new LinkTable(link), "here", () -> now, true));
    }

    private static FrameSender sender(Network network) {
        return sender(network, new byte[0]);
    }

    private static FrameSender sender(Network network, byte[] address) {
        FrameSender made = network.connect(address, new ConnectionKey(1, 1)).poll();
        assertTrue(made != null);
        return made;
    }

    private boolean offer(FrameSender sender, long word, long bytes) {
        FrameHeader header = new FrameHeader();
        header.word(0, word);
        header.payloadBytes(bytes);
        MemorySegment payload = source.asSlice(0, Math.max(bytes, 8));
        payload.set(ValueLayout.JAVA_LONG, 0, ~word);
        boolean taken = sender.offer(header, bytes == 0 ? null : wire.register(payload), 0);
        // The change has no effect, because the sender under test has copied the payload.
        payload.set(ValueLayout.JAVA_LONG, 0, 7);
        return taken;
    }

    private void run(long nanos, FrameSender... senders) {
        for (long until = now + nanos; now < until; now += STEP) {
            for (FrameSender each : senders) {
                each.progress();
            }
        }
    }

    @Test
    void aFrameTakesItsTimeOnTheLineAndTheDelay() {
        long began = now;
        FrameSender sender = behind("rate=1Gbit,delay=5ms");
        assertTrue(offer(sender, 1, 125_000 - HEADER));
        assertTrue(offer(sender, 2, 0));
        assertEquals(2, sender.framesCompleted(), "copied");
        run(10_000_000, sender);
        assertEquals(List.of(1L, 2L), wire.arrived.stream().map(Arrival::word).toList());
        assertEquals(6_000_000, wire.arrived.get(0).nanos - began, STEP);
        assertEquals(6_000_512, wire.arrived.get(1).nanos - began, STEP);
        assertEquals(~1L, wire.arrived.getFirst().first, "the payload, as it was when it was offered");
    }

    /** The delay keeps many frames waiting. In the second run the thread polls only once per millisecond. */
    @Test
    void theRateIsKeptWhateverTheDelayAndHoweverSeldomAThreadLooks() {
        for (long every : new long[] {STEP, 1_000_000}) {
            wire.arrived.clear();
            FrameSender sender = behind("rate=10Gbit,delay=50ms");
            long began = now;
            while (now - began < SECOND) {
                while (offer(sender, 1, 131_072 - HEADER)) {
                    assertTrue(wire.arrived.size() < 100_000);
                }
                now += every;
                sender.progress();
            }
            double seconds = (wire.arrived.getLast().nanos - began) / 1e9 - 0.05;
            double rate = wire.arrived.size() * 131_072L * 8 / seconds;
            assertEquals(1e10, rate, 1e8, "bit/s");
        }
    }

    @Test
    void connectionsShareTheLineOfTheirProcess() {
        Network network = new LinkNetwork(wire, new LinkTable("rate=1Gbit"), "here", () -> now, true);
        FrameSender first = sender(network);
        FrameSender second = sender(network);
        long began = now;
        for (int i = 0; i < 8; i++) {
            assertTrue(offer(first, 1, 125_000 - HEADER));
            assertTrue(offer(second, 2, 125_000 - HEADER));
        }
        run(20_000_000, first, second);
        assertEquals(16, wire.arrived.size());
        assertEquals(16_000_000, wire.arrived.getLast().nanos - began, 2 * STEP);
        assertEquals(8, wire.arrived.subList(0, 8).stream().mapToLong(Arrival::word).sum() - 4, 2,
                "each has its turn: " + wire.arrived);
    }

    /** Three hosts: 5 ms from a to b, 1 ms from b to c, and no link between a and c. */
    @Test
    void eachConnectionHasTheLinkOfItsHosts() {
        LinkTable links = new LinkTable("b-a: rate=1Gbit,delay=5ms; *-b: delay=1ms");
        Network[] hosts = new Network[3];
        for (int i = 0; i < 3; i++) {
            hosts[i] = new LinkNetwork(wire, links, "abc".substring(i, i + 1), () -> now, true);
        }
        long began = now;
        FrameSender[] senders = new FrameSender[9];
        for (int i = 0; i < senders.length; i++) {
            senders[i] = sender(hosts[i / 3], hosts[i % 3].listen().address());
            assertTrue(offer(senders[i], i, 125_000 - HEADER));
        }
        assertEquals(List.of(0L, 2L, 6L, 8L), words(), "a and c, themselves and each other, have no link");
        run(2_000_000, senders);
        assertEquals(1_000_000, wire.arrived.getFirst().nanos - began, STEP);
        assertEquals(List.of(4L, 5L, 7L), words(), "b to itself, and with c");
        run(3_900_000, senders);
        assertEquals(List.of(), words());
        run(200_000, senders);
        assertEquals(List.of(1L, 3L), words(), "a and b, each on a line of its own");
    }

    /** Returns the words of the arrived frames in order, and forgets the frames. */
    private List<Long> words() {
        List<Long> words = wire.arrived.stream().map(Arrival::word).sorted().toList();
        wire.arrived.clear();
        return words;
    }

    @Test
    void nothingLeavesWhileTheLinkIsDownAndNothingIsLost() throws Exception {
        java.nio.file.Path file = java.nio.file.Files.createTempFile("link", "");
        java.nio.file.Files.writeString(file, "0s delay=1ms\n10ms down\n30ms delay=1ms\n");
        FrameSender sender = behind("@" + file);
        java.nio.file.Files.delete(file);
        long began = now;
        run(15_000_000, sender);
        assertTrue(offer(sender, 1, 100));
        run(10_000_000, sender);
        assertEquals(List.of(), wire.arrived);
        run(10_000_000, sender);
        assertEquals(31_000_000, wire.arrived.getFirst().nanos - began, 2 * STEP);
    }

    @Test
    void jitterKeepsTheOrderAndTheBounds() {
        FrameSender sender = behind("delay=1ms,jitter=500us");
        List<Long> offered = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            offered.add(now);
            assertTrue(offer(sender, i, 8));
            run(100_000, sender);
        }
        run(10_000_000, sender);
        long shortest = Long.MAX_VALUE;
        long longest = 0;
        for (int i = 0; i < 1000; i++) {
            Arrival arrival = wire.arrived.get(i);
            assertEquals(i, arrival.word);
            shortest = Math.min(shortest, arrival.nanos - offered.get(i));
            longest = Math.max(longest, arrival.nanos - offered.get(i));
        }
        assertTrue(shortest >= 500_000 && shortest < 700_000, "shortest " + shortest);
        assertTrue(longest <= 1_500_000 + STEP && longest > 1_400_000, "longest " + longest);
    }

    @Test
    void lossesSlowEachConnectionByItself() {
        Network network = new LinkNetwork(wire, new LinkTable("delay=50ms,loss=0.01%"), "here", () -> now, true);
        FrameSender first = sender(network);
        FrameSender second = sender(network);
        long began = now;
        for (int i = 0; i < 10; i++) {
            assertTrue(offer(first, 1, 100_000 - HEADER));
            assertTrue(offer(second, 2, 100_000 - HEADER));
        }
        run(2 * SECOND, first, second);
        double expected = 1e6 * 8 / LinkShape.parse("delay=50ms,loss=0.01%").bitsPerConnection();
        assertEquals(20, wire.arrived.size());
        assertEquals(expected, (wire.arrived.getLast().nanos - began) / 1e9 - 0.05, 0.001);
    }

    @Test
    void aFrameThatIsLongerThanTheMemoryIsSent() {
        FrameSender sender = behind("rate=100Gbit");
        assertTrue(offer(sender, 1, 64));
        assertFalse(offer(sender, 2, 9 << 20), "behind another one");
        run(1_000_000, sender);
        assertTrue(offer(sender, 2, 9 << 20));
        run(2_000_000, sender);
        assertTrue(offer(sender, 3, 5 << 20));
        run(2_000_000, sender);
        assertEquals(List.of(~1L, ~2L, ~3L), wire.arrived.stream().map(Arrival::first).toList());
    }

    @Test
    void whatIsOnTheWayArrivesWhenTheConnectionIsClosed() {
        Network network = new LinkNetwork(wire, new LinkTable("delay=20ms"), "here", System::nanoTime, false);
        FrameSender sender = sender(network);
        assertTrue(offer(sender, 1, 100));
        sender.close();
        sender.close();
        assertFalse(wire.closed, "on the way");
        network.close();
        assertEquals(1, wire.arrived.size());
        assertTrue(wire.closed);
    }

    @Test
    void anAbortDropsWhatIsOnTheWay() {
        FrameSender sender = behind("delay=20ms");
        assertTrue(offer(sender, 1, 100));
        sender.abort();
        sender.close();
        assertTrue(wire.closed);
        assertEquals(List.of(), wire.arrived);
    }

    /** A network that accepts everything at once, and records the times. */
    private final class Wire implements Network {

        private final List<Arrival> arrived = new ArrayList<>();
        private volatile boolean closed;

        @Override
        public String name() {
            return "wire";
        }

        @Override
        public Listener listen() {
            return new Listener() {
                @Override
                public byte[] address() {
                    return new byte[ADDRESS_BYTES];
                }

                @Override
                public Pending<FrameReceiver> expect(ConnectionKey key) {
                    throw new UnsupportedOperationException();
                }

                @Override
                public void close() {}
            };
        }

        @Override
        public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
            return new Pending<>() {
                @Override
                public FrameSender poll() {
                    return new WireSender();
                }

                @Override
                public void close() {}
            };
        }

        @Override
        public MemoryRegion register(MemorySegment memory) {
            return new MemoryRegion() {
                @Override
                public MemorySegment segment() {
                    return memory;
                }

                @Override
                public void close() {}
            };
        }

        @Override
        public void close() {}
    }

    private final class WireSender implements FrameSender {

        private long frames;

        @Override
        public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
            frames++;
            wire.arrived.add(new Arrival(now, header.word(0), header.payloadBytes(),
                    region == null ? 0 : region.segment().get(ValueLayout.JAVA_LONG_UNALIGNED, offset)));
            return true;
        }

        @Override
        public int progress() {
            return 0;
        }

        @Override
        public long framesCompleted() {
            return frames;
        }

        @Override
        public void close() {
            wire.closed = true;
        }

        @Override
        public void abort() {
            wire.closed = true;
        }

        @Override
        public String toString() {
            return "wire";
        }
    }
}
