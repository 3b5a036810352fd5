package org.millrace.collnet;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.net.FrameHeader;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.connection.FullMesh;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;

/** A rank of a mesh with a peer that sends invalid frames. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostileFramesTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    private final Arena arena = Arena.ofShared();
    private final List<Network> networks = new ArrayList<>();
    private final List<MemoryRegion> memory = new ArrayList<>();
    private MeshNetwork mesh;

    @AfterEach
    void close() {
        mesh.close();
        memory.forEach(MemoryRegion::close);
        networks.forEach(Network::close);
        arena.close();
    }

    /** Each frame breaks one rule. The last two frames are sent after this rank has begun the piece that they name. */
    @ParameterizedTest
    @CsvSource({"-1, 1, 8, 0, 8, before", "0, 0, 8, 0, 8, before", "0, 1, 8, -8, 8, before",
            "0, 1, 8, 9223372036854775807, 8, before", "0, 16777217, 8, 0, 8, before", "0, 33554433, 8, 0, 8, before",
            "0, 1, 16, 0, 8, after", "0, 1281, 8, 0, 8, after"})
    void hostileFramesAreRefused(long sequence, long what, long bytes, long scratch, int payload, String when)
            throws Exception {
        for (int rank = 0; rank < 2; rank++) {
            networks.add(
                    NetworkOptions.NetworkChoice.parse("shm").open(SocketOptions.defaults(), ShmOptions.defaults()));
            memory.add(networks.get(rank).register(arena.allocate(4096, 64)));
        }
        try (Listener here = networks.getFirst().listen();
                Listener there = networks.getLast().listen();
                ExecutorService other = Executors.newSingleThreadExecutor()) {
            byte[][] addresses = {here.address(), there.address()};
            Future<FullMesh> hostile = other
                    .submit(() -> FullMesh.connect(networks.getLast(), there, addresses, 1, 5, 0, TIMEOUT, () -> null));
            FullMesh own = FullMesh.connect(networks.getFirst(), here, addresses, 0, 5, 0, TIMEOUT, () -> null);
            mesh = new MeshNetwork(0, networks.getFirst(), List.of(own), null);
            int request = when.equals("after") ? ask8() : MeshNetwork.NO_REQUEST;
            FrameHeader header = new FrameHeader();
            long[] words = {sequence, what, bytes, scratch, 0, 0};
            for (int word = 0; word < words.length; word++) {
                header.word(word, words[word]);
            }
            header.payloadBytes(payload);
            try (FullMesh sender = hostile.get()) {
                assertTrue(sender.senders()[0].offer(header, memory.getLast(), 0));
                int asked = request == MeshNetwork.NO_REQUEST ? ask8() : request;
                assertThrows(MillraceException.class, () -> {
                    while (mesh.test(asked) == MeshNetwork.PENDING) {
                        sender.senders()[0].progress();
                    }
                });
            }
        }
    }

    private int ask8() {
        return mesh.iallreduce(memory.getFirst(), 0, memory.getFirst(), 0, 1, DataType.INT64, ReduceOp.BuiltIn.SUM);
    }
}
