package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.Connected;
import org.millrace.net.Forwarding;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Warnings;
import org.millrace.net.ucx.Ucx;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;

/**
 * Checksums of steps over every network: each planted change of a payload is found and named, and no unchanged payload
 * is reported.
 */
class StepCheckTest {

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 256, 8 * 2048, 8 * 1024);
    /** Number of frames after which a connection closes, in the tests of faults. */
    private static final int STEPS = 40;
    private static final int FAULTS = Integer.getInteger("millrace.test.faults", 10);

    /** Place where the test changes one bit of a payload. */
    enum Place {
        SLOT("changed in its slot"),
        FRAME("differs from the payload that was sent"),
        DESTINATION("changed in the receiver's slot");

        final String text;

        Place(String text) {
            this.text = text;
        }
    }

    /** Changes the payload of one frame on its way: in the sender's slot, or in the copy that the network reads. */
    private static final class FaultySender extends Forwarding.Sender {

        private final Network network;
        private final Place place;
        private long due;
        private final long bit;
        private long offered;

        FaultySender(FrameSender inner, Network network, Place place, long due, long bit) {
            super(inner);
            this.network = network;
            this.place = place;
            this.due = due;
            this.bit = bit;
        }

        @Override
        public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
            if (offered != due || place == Place.DESTINATION || header.payloadBytes() == 0) {
                boolean accepted = inner.offer(header, region, offset);
                offered += accepted && header.payloadBytes() > 0 ? 1 : 0;
                return accepted;
            }
            MemorySegment from = region.segment();
            if (place == Place.SLOT) {
                boolean accepted = inner.offer(header, region, offset);
                if (accepted) {
                    flip(from, offset, header.payloadBytes(), bit);
                    offered++;
                }
                return accepted;
            }
            MemorySegment copy = Arena.ofAuto().allocate(header.payloadBytes(), 64);
            MemorySegment.copy(from, offset, copy, 0, header.payloadBytes());
            flip(copy, 0, header.payloadBytes(), bit);
            boolean accepted = inner.offer(header, network.register(copy), 0);
            offered += accepted ? 1 : 0;
            return accepted;
        }
    }

    private static void flip(MemorySegment memory, long offset, long bytes, long bit) {
        long at = offset + bit / 8 % bytes;
        memory.set(ValueLayout.JAVA_BYTE, at, (byte) (memory.get(ValueLayout.JAVA_BYTE, at) ^ 1 << bit % 8));
    }

    /** A connection of two proxies, and the actions of both kernels. */
    private static final class Pair implements AutoCloseable {

        final MemorySegment from;
        final MemorySegment to;
        final SendMem sendingCredits;
        final RecvMem sending;
        final SendMem receivingCredits;
        final RecvMem receiving;
        final Connected ends;
        final FaultySender faulty;
        final SendProxy send;
        final ReceiveProxy receive;

        Pair(Arena arena, Network network, PayloadCheck action, Place place, long due, long bit) {
            from = memory(arena);
            to = memory(arena);
            sendingCredits = LAYOUT.sendMem(from);
            sending = LAYOUT.recvMem(from);
            receivingCredits = LAYOUT.sendMem(to);
            receiving = LAYOUT.recvMem(to);
            ends = Connected.make(network, network);
            MemoryRegion staging = network.register(arena.allocate(LAYOUT.bufferOffset(Protocol.SIMPLE), 128));
            ConnectionName out = ConnectionName.ofRing(0, 1, 3, true);
            ConnectionName in = ConnectionName.ofRing(1, 0, 3, false);
            faulty = new FaultySender(ends.sender(), network, place, due, bit);
            FrameSender wire = place == null ? ends.sender() : faulty;
            send = SendProxy.byMemory(out, SlotBuffers.inOne(LAYOUT, network.register(from)), 0,
                    StepCheck.of(action, out, false).of(wire), (c, f) -> {});
            receive = ReceiveProxy.byMemory(in, SlotBuffers.inOne(LAYOUT, network.register(to)), staging, 0,
                    StepCheck.of(action, in, false).of(ends.receiver()), (c, f) -> {});
        }

        /** Returns another receiving proxy of this connection. */
        ReceiveProxy receiver(Arena arena, Network network, PayloadCheck action) {
            ConnectionName in = ConnectionName.ofRing(1, 0, 3, false);
            return ReceiveProxy.byMemory(in, SlotBuffers.inOne(LAYOUT, network.register(to)),
                    network.register(arena.allocate(LAYOUT.bufferOffset(Protocol.SIMPLE), 128)), 0,
                    StepCheck.of(action, in, false).of(ends.receiver()), (c, f) -> {});
        }

        private static MemorySegment memory(Arena arena) {
            MemorySegment memory = arena.allocate(LAYOUT.totalBytes(), 4096);
            memory.asSlice(0, LAYOUT.bufferOffset(Protocol.SIMPLE)).fill((byte) 0x5a);
            RecvMem recvMem = LAYOUT.recvMem(memory);
            for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
                recvMem.sizePlain(slot, RecvMem.EMPTY);
            }
            return memory;
        }

        /** Writes and posts a step, as a sending kernel does. */
        void post(Protocol protocol, long step, Random random) {
            long slot = LAYOUT.slotOffset(protocol, step);
            long bytes = switch (protocol) {
                case LL -> 16L * (1 + random.nextInt(16));
                case LL128 -> 2048;
                case SIMPLE -> 1 + random.nextInt(1024);
            };
            sending.sizeRelease(ConnectionLayout.slot(step), bytes);
            switch (protocol) {
                case LL -> {
                    for (long at = 0; at < bytes; at += LLLine.BYTES) {
                        LLLine.storeOpaque(from, slot + at, LLLine.half(random.nextInt(), LLLine.flag(step)),
                                LLLine.half(random.nextInt(), LLLine.flag(step)));
                    }
                }
                case LL128 -> {
                    for (long at = 0; at < bytes; at += LL128Line.BYTES) {
                        for (int word = 0; word < 15; word++) {
                            from.set(ValueLayout.JAVA_LONG, slot + at + 8 * word, random.nextLong());
                        }
                        LL128Line.NCCL.flagsRelease(from, slot + at, 1, LL128Line.flag(step));
                    }
                }
                case SIMPLE -> {
                    for (long at = 0; at < bytes; at++) {
                        from.set(ValueLayout.JAVA_BYTE, slot + at, (byte) random.nextInt());
                    }
                }
            }
            if (protocol != Protocol.LL) {
                sending.tailRelease(step + 1);
            }
        }

        /** Lets both proxies work until a step was received and its credit has returned. */
        void move(long step) {
            while (receiving.tailAcquire() <= step || sendingCredits.headAcquire() <= step) {
                send.progress();
                receive.progress();
            }
        }

        @Override
        public void close() {
            ends.close();
        }
    }

    private static NetEndpoint open(String name) {
        Ucx.assumeUsable(name);
        Map<String, String> settings = switch (name) {
            case "tls" -> Map.of("MILLRACE_NET", "socket", "MILLRACE_TLS", "1", "MILLRACE_SECRET", "of the test");
            case "link" -> Map.of("MILLRACE_NET", "socket", "NCCL_HOSTID", "x", "MILLRACE_LINK",
                    "x-x: rate=10Gbit,delay=10us,jitter=10us,loss=0.1%; down");
            default -> Map.of("MILLRACE_NET", name);
        };
        return NetEndpoint.open(Configuration.ofPlugin(settings::get));
    }

    /** Runs steps until a change is reported. Returns the report of each end, null for an end without a report. */
    private static String[] reports(Pair pair, Place place, Random random, long due) {
        String[] texts = new String[2];
        for (long step = 0; step < STEPS; step++) {
            pair.post(Protocol.of(random.nextInt(3)), step, random);
            while (texts[0] == null && texts[1] == null
                    && (pair.receiving.tailAcquire() <= step || pair.sendingCredits.headAcquire() <= step)) {
                texts[0] = reported(pair.send);
                texts[1] = reported(pair.receive);
            }
            if (texts[0] != null || texts[1] != null) {
                return texts;
            }
            if (place == Place.DESTINATION && step == due) {
                int protocol = 0;
                // Each protocol has its own buffer. This loop changes the step's slot in every buffer.
                for (Protocol each : Protocol.values()) {
                    flip(pair.to, LAYOUT.slotOffset(each, step), 1, protocol);
                }
            }
            pair.receivingCredits.headRelease(step + 1);
        }
        return texts;
    }

    private static String reported(ProxyConnection proxy) {
        try {
            proxy.progress();
            return null;
        } catch (MillraceException changed) {
            return changed.getMessage();
        }
    }

    @ParameterizedTest
    @CsvSource({"shm, SLOT", "shm, FRAME", "shm, DESTINATION", "socket, SLOT", "socket, FRAME", "socket, DESTINATION",
            "tls, SLOT", "tls, FRAME", "tls, DESTINATION", "ucx, SLOT", "ucx, FRAME", "ucx, DESTINATION", "link, SLOT",
            "link, FRAME", "link, DESTINATION"})
    void aChangedPayloadIsFoundAndNamed(String network, Place place) {
        try (NetEndpoint endpoint = open(network)) {
            for (int fault = 0; fault < FAULTS; fault++) {
                Random random = new Random(fault);
                long due = random.nextInt(STEPS - 10);
                try (Arena arena = Arena.ofShared();
                        Pair pair = new Pair(arena, endpoint.network(), PayloadCheck.FAIL, place, due,
                                random.nextInt(1 << 20))) {
                    String[] texts = reports(pair, place, random, due);
                    String text = texts[place == Place.SLOT ? 0 : 1];
                    String where = "rank " + (place == Place.SLOT ? "0 -> rank 1" : "1 <- rank 0")
                            + ", channel 3, step " + due + " (slot " + due % 8;
                    assertTrue(text != null && text.contains(place.text) && text.contains(where), place + " of step "
                            + due + ", fault " + fault + ": " + List.of(texts[0] + "", texts[1] + ""));
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket", "tls", "ucx", "link"})
    void anUnchangedPayloadIsNotReported(String network) {
        int steps = Integer.getInteger("millrace.test.steps", 5_000);
        try (NetEndpoint endpoint = open(network);
                Arena arena = Arena.ofShared();
                Pair pair = new Pair(arena, endpoint.network(), PayloadCheck.FAIL, null, 0, 0)) {
            Random random = new Random(1);
            for (long step = 0; step < steps; step++) {
                pair.post(Protocol.of(random.nextInt(3)), step, random);
                pair.move(step);
                pair.receivingCredits.headRelease(step + 1);
            }
            assertEquals(steps, pair.sendingCredits.headAcquire());
        }
    }

    @Test
    void aReportOnlyCheckContinues() {
        try (NetEndpoint endpoint = open("shm");
                Arena arena = Arena.ofShared();
                Warnings warnings = new Warnings("org.millrace.net.check");
                Pair pair = new Pair(arena, endpoint.network(), PayloadCheck.REPORT, Place.FRAME, 5, 77)) {
            String[] texts = reports(pair, Place.FRAME, new Random(3), 5);
            assertEquals(1, warnings.all().size(), warnings.all()::toString);
            assertNull(texts[0]);
            assertNull(texts[1]);
            assertEquals(STEPS, pair.sendingCredits.headAcquire());
        }
    }

    /** Several changed payloads are in flight at once, and each is reported once, on arrival. */
    @Test
    void changedPayloadsInFlightAreReportedOnceEach() {
        try (NetEndpoint endpoint = open("shm");
                Arena arena = Arena.ofShared();
                Warnings warnings = new Warnings("org.millrace.net.check");
                Pair pair = new Pair(arena, endpoint.network(), PayloadCheck.REPORT, Place.FRAME, 0, 77)) {
            for (int step = 0; step < 3; step++) {
                pair.faulty.due = step; // in each round, the payload of the next frame changes
                pair.post(Protocol.SIMPLE, step, new Random(step));
                pair.move(step);
            }
            pair.receivingCredits.headRelease(3);
            pair.post(Protocol.SIMPLE, 3, new Random(3));
            pair.move(3);
            assertEquals(3, warnings.all().size(), warnings.all()::toString);
        }
    }

    @Test
    void aReportOnlyCheckNamesAPeerWithoutTheCheckOnce() {
        try (NetEndpoint endpoint = open("shm");
                Arena arena = Arena.ofShared();
                Warnings warnings = new Warnings("org.millrace.net.check")) {
            Network network = endpoint.network();
            try (Pair pair = new Pair(arena, network, PayloadCheck.OFF, null, 0, 0)) {
                ReceiveProxy checking = pair.receiver(arena, network, PayloadCheck.REPORT);
                for (int step = 0; step < 2; step++) {
                    pair.post(Protocol.SIMPLE, step, new Random(step));
                    while (pair.receiving.tailAcquire() <= step) {
                        pair.send.progress();
                        checking.progress();
                    }
                    pair.receivingCredits.headRelease(step + 1);
                }
            }
            assertEquals(1, warnings.all().size(), warnings.all()::toString);
        }
    }

    @Test
    void aPeerWithoutTheCheckIsNamed() {
        try (NetEndpoint endpoint = open("shm"); Arena arena = Arena.ofShared()) {
            Network network = endpoint.network();
            try (Pair pair = new Pair(arena, network, PayloadCheck.OFF, null, 0, 0)) {
                ConnectionName in = ConnectionName.ofRing(1, 0, 3, false);
                ReceiveProxy checking = ReceiveProxy.byMemory(in, SlotBuffers.inOne(LAYOUT, network.register(pair.to)),
                        network.register(arena.allocate(LAYOUT.bufferOffset(Protocol.SIMPLE), 128)), 0,
                        StepCheck.of(PayloadCheck.FAIL, in, false).of(pair.ends.receiver()), (c, f) -> {});
                pair.post(Protocol.SIMPLE, 0, new Random(1));
                String text = null;
                while (text == null) {
                    pair.send.progress();
                    text = reported(checking);
                }
                assertTrue(text.contains("MILLRACE_CHECK") && text.contains("all ranks"), text);
            }
        }
    }
}
