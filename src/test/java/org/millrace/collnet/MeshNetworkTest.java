package org.millrace.collnet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.DataType;
import org.millrace.MismatchException;
import org.millrace.ReduceOp;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.Sleeper;
import org.millrace.net.ConnectionException;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.connection.FullMesh;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;

/** Ranks of one process run every operation of the mesh. Frames arrive in any order. Some requests select a window. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MeshNetworkTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final int LONGS = 90_000;

    private final Arena arena = Arena.ofShared();
    private final List<Network> networks = new ArrayList<>();
    private final List<MeshNetwork> meshes = new ArrayList<>();
    private final List<MemoryRegion> memory = new ArrayList<>();
    /** Whether the rank with the highest number sends its frames late. */
    private boolean late;

    @AfterEach
    void close() {
        meshes.forEach(MeshNetwork::close);
        memory.forEach(MemoryRegion::close);
        networks.forEach(Network::close);
        arena.close();
    }

    /** Makes ranks, each with its own memory. */
    private void connect(String name, int ranks, int aggregators, boolean threads) throws Exception {
        List<Listener> listeners = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            networks.add(
                    NetworkOptions.NetworkChoice.parse(name).open(SocketOptions.defaults(), ShmOptions.defaults()));
            listeners.add(networks.get(rank).listen());
            memory.add(networks.get(rank).register(arena.allocate(2L * LONGS * Long.BYTES, 64)));
        }
        byte[][] addresses = listeners.stream().map(Listener::address).toArray(byte[][]::new);
        try (ExecutorService all = Executors.newFixedThreadPool(ranks)) {
            List<Future<MeshNetwork>> made = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                int self = rank;
                made.add(all.submit(() -> {
                    List<FullMesh> own = new ArrayList<>();
                    for (int each = 0; each < aggregators; each++) {
                        FullMesh mesh = FullMesh.connect(networks.get(self), listeners.get(self), addresses, self, each,
                                0, TIMEOUT, () -> null);
                        for (int peer = 0; late && self == ranks - 1 && peer < ranks - 1; peer++) {
                            mesh.senders()[peer] = new LateSender(mesh.senders()[peer]);
                        }
                        own.add(mesh);
                    }
                    return new MeshNetwork(self, networks.get(self), own,
                            threads ? () -> IdleProfile.rank(10, 10, Math.max(10_000, 100_000), Sleeper.PARK) : null);
                }));
            }
            for (Future<MeshNetwork> each : made) {
                meshes.add(each.get());
            }
        }
        listeners.forEach(Listener::close);
    }

    private void set(int rank, long index, long value) {
        memory.get(rank).segment().setAtIndex(ValueLayout.JAVA_LONG, index, value);
    }

    private long get(int rank, long index) {
        return memory.get(rank).segment().getAtIndex(ValueLayout.JAVA_LONG, index);
    }

    /** Compares an element with the expected value. If it is wrong, the failure contains the element's index. */
    private static void check(int rank, long index, long expected, long found) {
        if (expected != found) {
            assertEquals(expected, found, "rank " + rank + ", element " + index);
        }
    }

    private static long value(int rank, long index) {
        return (rank + 1) * 1_000_003L ^ index * 31;
    }

    private static long sum(int ranks, long index) {
        long sum = 0;
        for (int rank = 0; rank < ranks; rank++) {
            sum += value(rank, index);
        }
        return sum;
    }

    /** Calls {@code test} for the requests of all ranks alternately, until all requests are complete. */
    private void await(int[]... requests) {
        boolean[][] done = new boolean[requests.length][meshes.size()];
        for (int left = requests.length * meshes.size(); left > 0;) {
            for (int i = 0; i < requests.length; i++) {
                for (int rank = 0; rank < meshes.size(); rank++) {
                    if (!done[i][rank] && meshes.get(rank).test(requests[i][rank]) != MeshNetwork.PENDING) {
                        done[i][rank] = true;
                        left--;
                    }
                }
            }
            Thread.onSpinWait();
        }
    }

    @ParameterizedTest
    @CsvSource({"shm, 1, 1, false", "shm, 2, 1, false", "socket, 3, 2, true", "shm, 5, 3, false", "auto, 4, 2, true"})
    void everyRankGetsTheSum(String network, int ranks, int aggregators, boolean threads) throws Exception {
        connect(network, ranks, aggregators, threads);
        Random random = new Random(7 * ranks);
        for (int count : new int[] {0, 1, 7, 4096, 4097, 40_000, LONGS, 1 + random.nextInt(LONGS)}) {
            for (boolean inPlace : new boolean[] {true, false}) {
                long receive = inPlace ? 0 : LONGS;
                int[] requests = new int[ranks];
                for (int rank = 0; rank < ranks; rank++) {
                    for (int i = 0; i < count; i++) {
                        set(rank, i, value(rank, i));
                    }
                    requests[rank] = meshes.get(rank)
                            .iallreduce(memory.get(rank), 0, memory.get(rank), receive * Long.BYTES, count,
                                    DataType.INT64, ReduceOp.BuiltIn.SUM);
                }
                await(requests);
                for (int rank = 0; rank < ranks; rank++) {
                    for (int i = 0; i < count; i++) {
                        check(rank, i, sum(ranks, i), get(rank, receive + i));
                    }
                }
            }
        }
    }

    /** Some windows begin and end in the middle of a rank's part. One window contains all parts. */
    @ParameterizedTest
    @CsvSource({"shm, 2, 1, false", "socket, 3, 3, true", "auto, 5, 2, false"})
    void windowsAreGatheredAndScattered(String network, int ranks, int aggregators, boolean threads) throws Exception {
        connect(network, ranks, aggregators, threads);
        long part = LONGS / ranks;
        long[][] windows = {{0, part * ranks}, {part / 2, part * ranks - part}, {part - 1, 2}, {0, 5}, {part, 0}};
        for (long[] window : windows) {
            int[] gathered = new int[ranks];
            for (int rank = 0; rank < ranks; rank++) {
                long from = Math.clamp(rank * part, window[0], window[0] + window[1]);
                long to = Math.clamp((rank + 1) * part, window[0], window[0] + window[1]);
                for (long i = from; i < to; i++) {
                    set(rank, i - from, value(0, i));
                }
                gathered[rank] = meshes.get(rank)
                        .iallgather(memory.get(rank), 0, memory.get(rank), (long) LONGS * Long.BYTES, part * Long.BYTES,
                                window[0] * Long.BYTES, window[1] * Long.BYTES);
            }
            await(gathered);
            for (int rank = 0; rank < ranks; rank++) {
                for (long i = 0; i < window[1]; i++) {
                    check(rank, i, value(0, window[0] + i), get(rank, LONGS + i));
                }
            }
            int[] scattered = new int[ranks];
            for (int rank = 0; rank < ranks; rank++) {
                for (long i = 0; i < window[1]; i++) {
                    set(rank, i, value(rank, window[0] + i));
                }
                scattered[rank] = meshes.get(rank)
                        .ireducescatter(memory.get(rank), 0, memory.get(rank), (long) LONGS * Long.BYTES,
                                part * Long.BYTES, window[0] * Long.BYTES, window[1] * Long.BYTES, DataType.INT64,
                                ReduceOp.BuiltIn.SUM);
            }
            await(scattered);
            for (int rank = 0; rank < ranks; rank++) {
                long from = Math.clamp(rank * part, window[0], window[0] + window[1]);
                long to = Math.clamp((rank + 1) * part, window[0], window[0] + window[1]);
                for (long i = from; i < to; i++) {
                    check(rank, i, sum(ranks, i), get(rank, LONGS + i - from));
                }
            }
        }
    }

    /**
     * One rank makes as many requests as possible before the other rank makes any. The other rank keeps the frames that
     * arrive before it has made the matching request.
     */
    @Test
    void aRankMayBeFarAhead() throws Exception {
        connect("shm", 2, 2, false);
        int bytes = 512;
        int begun = 0;
        int[] ahead = new int[MeshNetwork.REQUESTS];
        for (int i = 0; i < MeshNetwork.REQUESTS; i++) {
            set(0, i * 64L, i);
            set(1, i * 64L, 1000);
        }
        while (true) {
            int request = ask(0, begun, bytes);
            if (request == MeshNetwork.NO_REQUEST) {
                break;
            }
            assertEquals(MeshNetwork.PENDING, meshes.getFirst().test(request));
            ahead[begun++] = request;
        }
        assertEquals(MeshNetwork.REQUESTS, begun);
        int[] behind = new int[begun];
        for (int i = 0; i < begun; i++) {
            behind[i] = ask(1, i, bytes);
        }
        for (int i = 0; i < begun; i++) {
            await(new int[] {ahead[i], behind[i]});
            assertEquals(1000 + i, get(0, LONGS + i * 64L));
            assertEquals(1000 + i, get(1, LONGS + i * 64L));
        }
        assertFalse(meshes.getFirst().isBusy());
    }

    private int ask(int rank, int which, int bytes) {
        return meshes.get(rank)
                .iallreduce(memory.get(rank), (long) which * bytes, memory.get(rank),
                        (long) LONGS * Long.BYTES + (long) which * bytes, bytes / Long.BYTES, DataType.INT64,
                        ReduceOp.BuiltIn.SUM);
    }

    @Test
    void ranksThatDisagreeAreBothTold() throws Exception {
        connect("shm", 2, 1, false);
        int first = meshes.getFirst()
                .iallreduce(memory.getFirst(), 0, memory.getFirst(), 0, 8, DataType.INT32, ReduceOp.BuiltIn.SUM);
        int second = meshes.getLast()
                .iallreduce(memory.getLast(), 0, memory.getLast(), 0, 4, DataType.INT64, ReduceOp.BuiltIn.MAX);
        MismatchException told = assertThrows(MismatchException.class, () -> {
            while (meshes.getLast().test(second) == MeshNetwork.PENDING) {
                meshes.getFirst().test(first);
            }
        });
        String said = told.getMessage();
        assertTrue(said.contains("rank " + told.rank() + " asks for"), said);
        assertEquals(1 - told.rank(), told.peer().orElseThrow());
        assertTrue(
                said.contains("the ranks disagree: ")
                        && said.contains("rank 1 asks for all-reduce of 32 bytes at 0, int64, max, and rank 0 for")
                        || said.contains("rank 0 asks for all-reduce of 32 bytes at 0, int32, sum, and rank 1 for"),
                said);
    }

    /** A rank may close once its own requests are complete and the other ranks need no further data from this rank. */
    @Test
    void aRankMayLeaveThatOwesNothing() throws Exception {
        connect("shm", 3, 1, false);
        int[] requests = new int[3];
        for (int rank = 0; rank < 3; rank++) {
            requests[rank] = ask(rank, 0, 64);
        }
        await(requests);
        meshes.getFirst().close();
        int next = ask(1, 1, 64);
        assertThrows(ConnectionException.class, () -> {
            while (meshes.get(1).test(next) == MeshNetwork.PENDING) {
                Thread.onSpinWait();
            }
        });
    }

    /**
     * The window of each request lies in the first rank's part of the result, so only the first rank receives data. The
     * other rank only contributes data, and may therefore be any number of requests ahead of the first rank.
     */
    @Test
    void whoOnlyGivesMayBeAheadByMoreThanOthersHaveRoomFor() throws Exception {
        connect("shm", 2, 1, false);
        int requests = 60;
        int[] given = new int[requests];
        for (int i = 0; i < requests; i++) {
            set(1, i, 1000 + i);
            given[i] = scatterOne(1, i, requests);
            for (int turn = 0; turn < 3; turn++) {
                if (given[i] >= 0 && meshes.getLast().test(given[i]) != MeshNetwork.PENDING) {
                    given[i] = MeshNetwork.NO_REQUEST;
                }
            }
        }
        for (int i = 0; i < requests; i++) {
            set(0, i, i);
            int taken = scatterOne(0, i, requests);
            while (meshes.getFirst().test(taken) == MeshNetwork.PENDING) {
                for (int each = 0; each < requests; each++) {
                    if (given[each] >= 0 && meshes.getLast().test(given[each]) != MeshNetwork.PENDING) {
                        given[each] = MeshNetwork.NO_REQUEST;
                    }
                }
            }
            assertEquals(1000 + 2 * i, get(0, LONGS + i));
        }
    }

    private int scatterOne(int rank, int which, int requests) {
        return meshes.get(rank)
                .ireducescatter(memory.get(rank), 8L * which, memory.get(rank), 8L * (LONGS + which), 8L * requests,
                        8L * which, 8, DataType.INT64, ReduceOp.BuiltIn.SUM);
    }

    /**
     * The sender passes frames to the network only in a later progress call. Until then the frames refer to the
     * operand, so the result must not overwrite the operand.
     */
    @ParameterizedTest
    @CsvSource({"2, 100", "3, 100", "3, 30000"})
    void whatIsSentInPlaceIsNotOverwrittenBefore(int ranks, int count) throws Exception {
        late = true;
        connect("shm", ranks, 1, false);
        int[] requests = new int[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            for (int i = 0; i < count; i++) {
                set(rank, i, value(rank, i));
            }
            requests[rank] = meshes.get(rank)
                    .iallreduce(memory.get(rank), 0, memory.get(rank), 0, count, DataType.INT64, ReduceOp.BuiltIn.SUM);
        }
        await(requests);
        for (int rank = 0; rank < ranks; rank++) {
            for (int i = 0; i < count; i++) {
                check(rank, i, sum(ranks, i), get(rank, i));
            }
        }
    }
}
