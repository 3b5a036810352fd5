package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.Registration;
import org.millrace.net.ucx.Ucx;

/**
 * Location of an operation's data in transit: a connection's own slots, shared slots, or the user's memory. Some tests
 * use memory that must be flushed.
 */
@Timeout(240)
@Tag("slow")
class EngineBufferModesTest extends EngineFixture {

    private static final List<Operation> COPYING = List.of(Operation.SEND_RECEIVE, Operation.ALL_TO_ALL,
            Operation.GATHER, Operation.SCATTER, Operation.BROADCAST, Operation.ALL_GATHER);
    private static final int[] COUNTS = {1, 1023, 4096, 30_001};

    @AfterEach
    void off() throws Exception {
        WatchedTransport.off();
    }

    private static Map<String, String> settings(int channels, boolean shares) {
        return EngineGroup.settings("NCCL_BUFFSIZE", "64K", "NCCL_MIN_NCHANNELS", "" + channels,
                "NCCL_NET_SHARED_BUFFERS", shares ? "1" : "0", "org.millrace.engine.firstStep", "4294967290");
    }

    /**
     * Every rank enqueues all operations that do not combine elements, without a wait between them. Checks the results.
     */
    private void run(int ranks, Map<String, String> settings, IntPredicate registers) throws Exception {
        EngineGroup.ranks(directory, ranks, settings, (communicator, stream, arena) -> {
            for (int count : COUNTS) {
                List<Call.Running> running = COPYING.stream()
                        .flatMap(operation -> java.util.stream.Stream.of(false, true)
                                .map(inPlace -> new Call(operation, count, ReduceOp.SUM,
                                        (count + operation.ordinal()) % ranks, inPlace, count).new Running(communicator,
                                                stream, arena, registers.test(communicator.rank()))))
                        .toList();
                stream.synchronize(TIMEOUT);
                running.forEach(call -> assertNull(call.wrong()));
                running.forEach(Call.Running::release);
            }
        });
    }

    @ParameterizedTest
    @CsvSource({"2, 1, false", "3, 2, true", "5, 1, false", "5, 3, true"})
    void noByteOfRegisteredMemoryGoesThroughASlot(int ranks, int channels, boolean shares) throws Exception {
        WatchedTransport.on(directory, false);
        run(ranks, settings(channels, shares), _ -> true);
        assertEquals(0, WatchedNetwork.SENT_BY_SLOTS.get());
        assertEquals(0, WatchedNetwork.RECEIVED_BY_SLOTS.get());
        assertTrue(WatchedNetwork.SENT_BY_USER.get() > 0);
        assertEquals(WatchedNetwork.SENT_BY_USER.get(), WatchedNetwork.RECEIVED_BY_USER.get());
    }

    /** Each end of a connection decides independently whether it uses registered memory or slots. */
    @ParameterizedTest
    @CsvSource({"2, 1, true", "2, 1, false", "5, 2, true", "3, 1, false"})
    void anEndWithRegisteredMemoryGetsOnWithOneThatHasNone(int ranks, int channels, boolean shares) throws Exception {
        WatchedTransport.on(directory, false);
        run(ranks, settings(channels, shares), rank -> rank % 2 == 0);
        assertTrue(WatchedNetwork.SENT_BY_USER.get() > 0 && WatchedNetwork.RECEIVED_BY_SLOTS.get() > 0);
        assertTrue(WatchedNetwork.SENT_BY_SLOTS.get() > 0 && WatchedNetwork.RECEIVED_BY_USER.get() > 0);
    }

    @ParameterizedTest
    @CsvSource({"2, false", "3, true"})
    void whatIsNotRegisteredOrIsCombinedGoesThroughSlots(int ranks, boolean shares) throws Exception {
        WatchedTransport.on(directory, false);
        run(ranks, settings(1, shares), _ -> false);
        EngineGroup.ranks(directory, ranks, settings(1, shares), (communicator, stream, arena) -> {
            Call.Running reduced = new Call(Operation.ALL_REDUCE, 5000, ReduceOp.SUM, 0, true, 7).new Running(
                    communicator, stream, arena, true);
            stream.synchronize(TIMEOUT);
            assertNull(reduced.wrong());
            reduced.release();
        });
        assertEquals(0, WatchedNetwork.SENT_BY_USER.get() + WatchedNetwork.RECEIVED_BY_USER.get());
        assertTrue(WatchedNetwork.SENT_BY_SLOTS.get() > 0);
    }

    /**
     * If a network can access all memory, operations use unregistered memory in place. In some runs one rank has a
     * higher threshold for unregistered memory, and uses slots.
     */
    @ParameterizedTest
    @CsvSource({"2, socket, 0", "3, shm, 0", "3, socket, 1", "2, shm, 1", "3, ucx, 0", "2, ucx, 1"})
    void largeOperationsUseMemoryInPlaceThatNobodyRegistered(int ranks, String network, int slotsOnRank)
            throws Exception {
        Ucx.assumeUsable(network);
        List<Throwable> thrown = EngineGroup.call(ranks, rank -> () -> {
            Map<String, String> settings = settings(2, false);
            settings.putAll(Map.of("MILLRACE_NET", network, "NCCL_ALGO", "ring", "MILLRACE_PTR_THRESHOLD",
                    rank == slotsOnRank ? "1024G" : "8K"));
            try (Communicator communicator = EngineGroup.join(directory, rank, ranks, settings);
                    Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream()) {
                for (Operation operation : List.of(Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.BROADCAST)) {
                    for (int count : new int[] {1000, 30_001}) {
                        for (boolean inPlace : new boolean[] {false, true}) {
                            Call.Running running =
                                    new Call(operation, count, ReduceOp.SUM, 0, inPlace, count).new Running(
                                            communicator, stream, arena);
                            stream.synchronize(TIMEOUT);
                            assertNull(running.wrong());
                            assertEquals(rank == slotsOnRank || count == 1000 ? "NORMAL" : "PTR",
                                    communicator.route().orElseThrow().mode(), operation + " of " + count);
                        }
                    }
                }
            }
            return null;
        });
        thrown.forEach(failure -> assertNull(failure));
    }

    /** Without a flush of received data the device would read the old content of its memory. */
    @ParameterizedTest
    @CsvSource({"2, 1, true, true", "3, 1, false, false", "3, 2, false, true"})
    void memoryThatAsksForItIsFlushedBeforeTheDeviceLooks(int ranks, int channels, boolean shares, boolean registers)
            throws Exception {
        WatchedTransport.on(directory, true);
        run(ranks, settings(channels, shares), _ -> registers);
        assertEquals(WatchedNetwork.RECEIVED_BY_SLOTS.get() + WatchedNetwork.RECEIVED_BY_USER.get(),
                WatchedNetwork.FLUSHED.get());
        assertTrue(WatchedNetwork.FLUSHED.get() > 0);
    }

    /** Each rank has four peers. Eight slots for each peer would exceed the number of slots in a channel's pool. */
    @Test
    void aPoolWithTooFewSlotsForAllServesAll() throws Exception {
        Map<String, String> settings = settings(1, true);
        settings.put("NCCL_P2P_NET_CHUNKSIZE", "1K");
        settings.put("MILLRACE_NET", "shm");
        EngineGroup.ranks(directory, 5, settings, communicator -> {
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    DeviceStream other = communicator.device().newStream()) {
                List<Call.Running> running =
                        java.util.stream.IntStream.range(0, 6)
                                .mapToObj(i -> new Call(Operation.ALL_TO_ALL, 25_000 + i, ReduceOp.SUM, 0, false,
                                        i).new Running(communicator, i % 2 == 0 ? stream : other, arena))
                                .toList();
                stream.synchronize(TIMEOUT);
                other.synchronize(TIMEOUT);
                running.forEach(call -> assertNull(call.wrong()));
            }
        });
    }

    /**
     * Six channels share two network connections. Eight slots for each channel are just enough: with fewer slots, ranks
     * that wait for each other in a ring could stop making progress.
     */
    @ParameterizedTest
    @CsvSource({"2, 0, 2147483640", "3, 4294967290, 0", "5, 0, -4"})
    void channelsOfARingShareConnections(int ranks, long firstStep, long seed) throws Exception {
        WatchedTransport.on(directory, false);
        Map<String, String> settings = settings(6, false);
        settings.putAll(Map.of("MILLRACE_GROUPED_CONNECTIONS", "1", "NCCL_BUFFSIZE", "32K",
                "org.millrace.engine.firstStep", "" + firstStep));
        EngineGroup.ranks(directory, ranks, settings, communicator -> {
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    DeviceStream other = communicator.device().newStream()) {
                List<Call.Running> running = java.util.stream.IntStream.range(0, 24).mapToObj(i -> {
                    Operation operation = List.of(Operation.ALL_REDUCE, Operation.ALL_GATHER, Operation.BROADCAST,
                            Operation.REDUCE_SCATTER).get(i % 4);
                    return new Call(operation, i % 3 == 0 ? 100 + i : 60_000 + i, ReduceOp.SUM, i % ranks, false,
                            seed + i).new Running(communicator, i % 2 == 0 ? stream : other, arena,
                                    i % 5 == communicator.rank());
                }).toList();
                stream.synchronize(TIMEOUT);
                other.synchronize(TIMEOUT);
                running.forEach(call -> assertNull(call.wrong()));
                running.forEach(Call.Running::release);
            }
        });
        assertEquals(2 * ranks, WatchedNetwork.CONNECTIONS.get());
    }

    @Test
    void treesCannotShareConnections() throws Exception {
        Map<String, String> settings = settings(2, false);
        settings.putAll(Map.of("MILLRACE_GROUPED_CONNECTIONS", "1", "NCCL_ALGO", "tree"));
        for (Throwable failure : EngineGroup.thrown(directory, 2, settings, _ -> {})) {
            assertTrue(failure != null && failure.getMessage().contains("MILLRACE_GROUPED_CONNECTIONS=1 needs rings"),
                    String.valueOf(failure));
        }
    }

    /** After an abort, the communicator is still open. A registration is then closed, and its memory is freed. */
    @ParameterizedTest
    @CsvSource({"shm, 0", "socket, 1", "shm, 1", "ucx, 0", "ucx, 1", "auto, 0"})
    void afterAnAbortNothingTouchesRegisteredMemory(String network, int shares) throws Exception {
        Ucx.assumeUsable(network);
        // rank 2 aborts only after the others have begun to send; otherwise the others would fail before they send
        CountDownLatch sending = new CountDownLatch(2);
        Map<String, String> settings = settings(1, shares == 1);
        settings.put("MILLRACE_NET", network);
        EngineGroup.ranks(directory, 3, settings, communicator -> {
            int count = 1 << 22;
            try (DeviceStream stream = communicator.device().newStream()) {
                if (communicator.rank() == 2) {
                    assertTrue(sending.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                    communicator.abort();
                    return;
                }
                try (Arena arena = Arena.ofShared()) {
                    MemorySegment data = communicator.device().allocate(count, arena);
                    try (Registration registration = communicator.register(data)) {
                        assertNotNull(registration);
                        communicator.group(() -> {
                            // rank 2 never receives
                            communicator.send(data.asSlice(0, count / 2), count / 2, DataType.INT8, 2, stream);
                            communicator.send(data.asSlice(0, count / 2), count / 2, DataType.INT8,
                                    1 - communicator.rank(), stream);
                            communicator.receive(data.asSlice(count / 2, count / 2), count / 2, DataType.INT8,
                                    1 - communicator.rank(), stream);
                        });
                        sending.countDown();
                        assertThrows(MillraceException.class, () -> stream.synchronize(TIMEOUT));
                    }
                }
            }
        });
    }

    @Test
    void onlyMemoryThatEveryThreadMayWriteCanBeRegistered() throws Exception {
        EngineGroup.ranks(directory, 2, settings(1, false), communicator -> {
            try (Arena shared = Arena.ofShared(); Arena confined = Arena.ofConfined()) {
                assertThrows(IllegalArgumentException.class,
                        () -> communicator.register(MemorySegment.ofArray(new byte[64])));
                assertThrows(IllegalArgumentException.class, () -> communicator.register(confined.allocate(64)));
                assertThrows(IllegalArgumentException.class,
                        () -> communicator.register(shared.allocate(64).asReadOnly()));
                Registration registration = communicator.register(shared.allocate(64));
                registration.close();
                registration.close();
                left(communicator, shared);
            }
        });
    }

    /** A registration may outlive its communicator. */
    private static void left(Communicator communicator, Arena arena) {
        Registration registration = communicator.register(arena.allocate(64));
        communicator.close();
        registration.close();
        assertThrows(MillraceException.class, () -> communicator.register(arena.allocate(64)));
    }
}
