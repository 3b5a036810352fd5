package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;
import org.millrace.fuzz.Fuzz;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.proxy.MemoryFrames;

/**
 * Mutated GIN headers. The bytes that a header addresses lie in the window, or the communicator fails with a message
 * that names the peer.
 */
@Tag("slow")
class GinFuzzTest {

    private static final int WINDOW = 4096;
    private static final int CHUNK = 1024;
    private static final int RING = 4096;
    private static final int FRAME = (1 + FrameHeader.WORDS) * Long.BYTES;
    private static final long GUARD = 0x7777777777777777L;

    @SafeVarargs
    private static byte[] frames(Consumer<FrameHeader>... frames) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (Consumer<FrameHeader> frame : frames) {
            FrameHeader header = new FrameHeader();
            GinHeader.set(header, 0, 0, 0, 0, 0);
            frame.accept(header);
            ByteBuffer bytes = ByteBuffer.allocate(FRAME).putLong(header.payloadBytes());
            for (int word = 0; word < FrameHeader.WORDS; word++) {
                bytes.putLong(header.word(word));
            }
            all.writeBytes(bytes.array());
        }
        return all.toByteArray();
    }

    private static void hello(FrameHeader header) {
        GinHeader.hello(header, 1, 2, CHUNK);
    }

    private static void put(FrameHeader header, long offset, long bytes) {
        GinHeader.set(header, GinHeader.PUT, 0, 1, offset, 0);
        header.payloadBytes(bytes);
    }

    private static List<byte[]> recorded() {
        List<byte[]> all = new ArrayList<>();
        all.add(frames(GinFuzzTest::hello, header -> put(header, WINDOW - CHUNK, CHUNK), header -> {
            put(header, WINDOW - 8, 0);
            GinHeader.inline(header, 8, 42);
            GinHeader.signal(header, 3, 1);
        }));
        all.add(frames(GinFuzzTest::hello, header -> GinHeader.set(header, GinHeader.GET, 0, 1, 8, 512),
                header -> GinHeader.set(header, GinHeader.VA_SIGNAL, 0, 1, 8, 0)));
        all.add(frames(GinFuzzTest::hello, header -> answer(header, CHUNK), header -> {
            put(header, 128, 0);
            GinHeader.staged(header, 4096, CHUNK);
        }, header -> {
            put(header, 128, 0);
            GinHeader.staged(header, 4096 + CHUNK, 100);
            GinHeader.signal(header, 0, 1);
        }));
        all.add(frames(GinFuzzTest::hello, header -> answer(header, CHUNK - 64), header -> answer(header, CHUNK),
                header -> answer(header, 64)));
        return all;
    }

    private static void answer(FrameHeader header, long bytes) {
        GinHeader.set(header, GinHeader.GET_DATA, 0, 0, 0, 0);
        header.payloadBytes(bytes);
    }

    @Test
    void ginHeaders() throws Exception {
        Fuzz.run("GIN headers", 10_000, recorded(), input -> {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment guarded = arena.allocate(3 * WINDOW, 64).fill((byte) 0x77);
                Throwable failure = failureOf(arena, guarded, input);
                assertTrue(failure == null || failure.getMessage().contains("rank 1"), () -> "" + failure);
                for (int at = 0; at < WINDOW; at += Long.BYTES) {
                    assertEquals(GUARD, guarded.get(ValueLayout.JAVA_LONG, at), "before the window");
                    assertEquals(GUARD, guarded.get(ValueLayout.JAVA_LONG, 2L * WINDOW + at), "behind the window");
                }
            }
        });
    }

    private static Throwable failureOf(Arena arena, MemorySegment guarded, byte[] input) {
        MemoryFrames back = new MemoryFrames(null);
        MemoryFrames forth = new MemoryFrames(null);
        GinCommunicator communicator = new GinCommunicator(0, 0, new FrameSender[] {null, forth.sender()},
                new FrameReceiver[] {null, back.receiver()}, new GinOptions(CHUNK, 8, Duration.ZERO), failure -> {});
        MemorySegment shared = arena.allocate(StagingRing.bytes(RING), 64);
        communicator.stageIn(1, new StagingRing(shared, shared.address()));
        communicator.register(HostWindowMemory.register(new NoNetwork(), guarded.asSlice(WINDOW, WINDOW)));
        GinPair.Context context = new GinPair.Context(arena, 0, GinDescriptorFormat.V30, 4, 4, 0);
        communicator.add(context.agentSide);
        // answers are accepted only while a get is in flight
        GinDescriptorFormat.V30.begin(context.words, GinOp.GET, 2 * CHUNK);
        GinDescriptorFormat.V30.source(context.words, 1, 0);
        GinDescriptorFormat.V30.target(context.words, 1, WINDOW - 2 * CHUNK);
        context.post(1);
        GinAgent agent = new GinAgent("test");
        agent.add(communicator);
        MemorySegment payload = arena.allocate(2 * CHUNK).fill((byte) -1);
        ByteBuffer bytes = ByteBuffer.wrap(input);
        while (bytes.remaining() >= FRAME && communicator.failure() == null) {
            FrameHeader header = new FrameHeader();
            // a longer payload is not possible, because the network refuses it
            header.payloadBytes(Math.floorMod(bytes.getLong(), 2 * CHUNK + 1L));
            for (int word = 0; word < FrameHeader.WORDS; word++) {
                header.word(word, bytes.getLong());
            }
            back.sender().offer(header, MemoryFrames.region(payload), 0);
            for (int pass = 0; pass < 20; pass++) {
                agent.doWork();
            }
        }
        GinPair.remove(communicator, context);
        return communicator.failure();
    }
}
