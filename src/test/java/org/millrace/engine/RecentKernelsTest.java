package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.Plan;
import org.millrace.ReduceOp;
import org.millrace.Registration;

/** A repeated operation is planned only once. The tests change the conditions of the operation between two calls. */
class RecentKernelsTest extends EngineFixture {

    /**
     * Size of an all-reduce in bytes. Two ranks exchange short operands directly. An operand of this size travels
     * around the ring, and the operation's plan is cached.
     */
    private static final int MORE_THAN_EXCHANGED = 32 << 10;

    private interface Program {
        void run(Communicator communicator, DeviceStream stream, Arena arena) throws Exception;
    }

    private void run(int ranks, Map<String, String> settings, Program program) throws Exception {
        EngineGroup.ranks(directory, ranks, settings, (communicator, stream, arena) -> {
            program.run(communicator, stream, arena);
        });
    }

    /**
     * Repeats a sequence of collectives that is longer than the cache. The collectives of the sequence differ in
     * operand, length, operator or root.
     */
    @ParameterizedTest
    @CsvSource({"2, ring, Simple", "3, tree, Simple", "3, ring, LL", "2, ring, LL128"})
    void collectivesTakeTurns(int ranks, String algorithm, String protocol) throws Exception {
        run(ranks, EngineGroup.settings("NCCL_ALGO", algorithm, "NCCL_PROTO", protocol, "org.millrace.engine.firstStep",
                "4294967290"), (communicator, stream, arena) -> {
                    int size = communicator.size();
                    MemorySegment[] data = new MemorySegment[7];
                    for (int i = 0; i < data.length; i++) {
                        data[i] = communicator.device().allocate(8 * Long.BYTES, arena);
                    }
                    for (int turn = 0; turn < 60; turn++) {
                        int mine = communicator.rank() + turn;
                        for (MemorySegment each : data) {
                            each.fill((byte) 0);
                            each.set(ValueLayout.JAVA_LONG, 0, mine);
                        }
                        for (int twice = 0; twice < 2; twice++) {
                            communicator.allReduce(data[0], data[1], 1, DataType.INT64, ReduceOp.SUM, stream);
                        }
                        communicator.allReduce(data[0], data[2], 1, DataType.INT64, ReduceOp.MAX, stream);
                        communicator.allReduce(data[0], data[3], 2, DataType.INT64, ReduceOp.SUM, stream);
                        communicator.allReduce(data[0], data[4], 1, DataType.INT64, new ReduceOp.PreMulSum(2), stream);
                        communicator.allReduce(data[0], data[5], 1, DataType.INT64, new ReduceOp.PreMulSum(3), stream);
                        communicator.broadcast(data[6], data[6], 1, DataType.INT64, turn % size, stream);
                        stream.synchronize(TIMEOUT);
                        long sum = size * (size - 1) / 2 + (long) size * turn;
                        long[] expected = {mine, sum, size - 1 + turn, sum, 2 * sum, 3 * sum, turn % size + turn};
                        for (int i = 0; i < data.length; i++) {
                            assertEquals(expected[i], data[i].get(ValueLayout.JAVA_LONG, 0), "turn " + turn + ", " + i);
                        }
                    }
                });
    }

    /**
     * Each rank sends to both neighbors and receives from both. The cache has too few entries for all transfers, which
     * differ in peer, operand, length or type. Some calls repeat the previous call, and some belong to a group.
     */
    @ParameterizedTest
    @CsvSource({"auto, 0", "shm, 0", "socket, 0", "socket, 64"})
    void transfersTakeTurns(String network, String llBytes) throws Exception {
        run(3, EngineGroup.settings("MILLRACE_NET", network, "NCCL_P2P_LL_THRESHOLD", llBytes,
                "org.millrace.engine.firstStep", "4294967290"), (communicator, stream, arena) -> {
                    int rank = communicator.rank();
                    int[] peers = {(rank + 1) % 3, (rank + 2) % 3};
                    MemorySegment out = communicator.device().allocate(8 * Long.BYTES, arena);
                    MemorySegment[] in = new MemorySegment[5];
                    for (int i = 0; i < in.length; i++) {
                        in[i] = communicator.device().allocate(8 * Long.BYTES, arena);
                    }
                    for (int turn = 0; turn < 60; turn++) {
                        for (int i = 0; i < 8; i++) {
                            out.setAtIndex(ValueLayout.JAVA_LONG, i, 1000 * turn + 10 * i + rank);
                        }
                        for (int twice = 0; twice < 2; twice++) {
                            communicator.send(out, 1, DataType.INT64, peers[0], stream);
                            communicator.receive(in[0], 1, DataType.INT64, peers[1], stream);
                        }
                        communicator.send(out.asSlice(8), 2, DataType.INT64, peers[0], stream);
                        communicator.receive(in[1], 2, DataType.INT64, peers[1], stream);
                        communicator.send(out, 8, DataType.INT8, peers[1], stream);
                        communicator.receive(in[2], 8, DataType.INT8, peers[0], stream);
                        communicator.group(() -> {
                            communicator.receive(in[3], 1, DataType.INT64, peers[1], stream);
                            communicator.send(out, 1, DataType.INT64, peers[0], stream);
                        });
                        communicator.send(out, 8, DataType.INT64, peers[0], stream);
                        communicator.receive(in[4], 8, DataType.INT64, peers[1], stream);
                        stream.synchronize(TIMEOUT);
                        long[] expected = {peers[1], 10 + peers[1], peers[0], peers[1], peers[1]};
                        for (int i = 0; i < in.length; i++) {
                            assertEquals(1000L * turn + expected[i], in[i].get(ValueLayout.JAVA_LONG, 0),
                                    "turn " + turn + ", " + i);
                        }
                        assertEquals(1000L * turn + 70 + peers[1], in[4].getAtIndex(ValueLayout.JAVA_LONG, 7));
                    }
                });
    }

    /** Memory that was freed and allocated again at the same address is different memory. */
    @Test
    @SuppressWarnings("restricted") // the memory stays allocated when the arena of a view is closed
    void anArenaIsClosedAndAnotherOneHasItsPlace() throws Exception {
        run(2, EngineGroup.settings(), (communicator, stream, arena) -> {
            MemorySegment place = communicator.device().allocate(Long.BYTES, arena);
            for (int turn = 0; turn < 3; turn++) {
                MemorySegment closed;
                try (Arena own = Arena.ofShared()) {
                    MemorySegment data = MemorySegment.ofAddress(place.address()).reinterpret(Long.BYTES, own, null);
                    data.set(ValueLayout.JAVA_LONG, 0, turn);
                    communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, stream);
                    stream.synchronize(TIMEOUT);
                    assertEquals(2 * turn, data.get(ValueLayout.JAVA_LONG, 0));
                    closed = data;
                }
                assertThrows(IllegalArgumentException.class,
                        () -> communicator.allReduce(closed, closed, 1, DataType.INT64, ReduceOp.SUM, stream));
            }
        });
    }

    /** Repeats one call before, during and after the registration of its memory. */
    @Test
    void memoryIsRegisteredBetweenTwoCalls() throws Exception {
        run(2, EngineGroup.settings("MILLRACE_REGISTERED_THRESHOLD", "0"), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(MORE_THAN_EXCHANGED, arena);
            for (int turn = 0; turn < 2; turn++) {
                assertEquals("NORMAL", mode(communicator, data, stream));
                Registration registration = communicator.register(data);
                assertEquals("PTR", mode(communicator, data, stream));
                assertEquals("PTR", mode(communicator, data, stream));
                registration.close();
                assertEquals("NORMAL", mode(communicator, data, stream));
            }
        });
    }

    private static String mode(Communicator communicator, MemorySegment data, DeviceStream stream) {
        communicator.allReduce(data, data, MORE_THAN_EXCHANGED, DataType.INT8, ReduceOp.SUM, stream);
        stream.synchronize(TIMEOUT);
        return communicator.route().orElseThrow().mode();
    }

    /** Repeats a send and a receive before, during and after the registration of their memory. */
    @Test
    void memoryOfATransferIsRegisteredBetweenTwoCalls() throws Exception {
        run(2, EngineGroup.settings("MILLRACE_NET", "shm"), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(MORE_THAN_EXCHANGED, arena);
            for (int turn = 0; turn < 2; turn++) {
                assertEquals("NORMAL", modeOfTransfer(communicator, data, stream));
                Registration registration = communicator.register(data);
                assertEquals("PTR", modeOfTransfer(communicator, data, stream));
                assertEquals("PTR", modeOfTransfer(communicator, data, stream));
                registration.close();
                assertEquals("NORMAL", modeOfTransfer(communicator, data, stream));
            }
        });
    }

    private static String modeOfTransfer(Communicator communicator, MemorySegment data, DeviceStream stream) {
        if (communicator.rank() == 0) {
            communicator.send(data, MORE_THAN_EXCHANGED, DataType.INT8, 1, stream);
        } else {
            communicator.receive(data, MORE_THAN_EXCHANGED, DataType.INT8, 0, stream);
        }
        stream.synchronize(TIMEOUT);
        return communicator.route().orElseThrow().mode();
    }

    /** A captured or grouped call does not count as a repetition of a call outside captures and groups. */
    @Test
    void theSameCallIsCapturedGroupedAndRefused() throws Exception {
        run(2, EngineGroup.settings(), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(Long.BYTES, arena);
            data.set(ValueLayout.JAVA_LONG, 0, 1);
            Runnable call = () -> communicator.allReduce(data, data, 1, DataType.INT64, ReduceOp.SUM, stream);
            call.run();
            stream.synchronize(TIMEOUT);
            assertEquals(2, data.get(ValueLayout.JAVA_LONG, 0));
            stream.beginCapture();
            call.run();
            try (Plan captured = stream.endCapture()) {
                assertEquals(2, data.get(ValueLayout.JAVA_LONG, 0));
                captured.launch(stream);
                communicator.group(() -> {
                    call.run();
                    call.run();
                });
                call.run();
                stream.synchronize(TIMEOUT);
            }
            assertEquals(32, data.get(ValueLayout.JAVA_LONG, 0));
            communicator.close();
            MillraceException refused = assertThrows(MillraceException.class, call::run);
            assertTrue(refused.getMessage().contains("the communicator is closed"), refused.getMessage());
        });
    }
}
