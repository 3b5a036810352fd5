package org.millrace.bench.soak;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Map;
import java.util.Random;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * One rank of one group. It joins, runs the operations of the group's seed, compares every element, and leaves. It is
 * also the program of a separate process that is killed.
 */
final class SoakRank {

    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    private static final int LARGEST = 256 << 10;

    private final String rendezvous;
    private final int rank;
    private final int size;
    private final Map<String, String> settings;
    private final Random random;
    private long wrong;
    private long operations;

    SoakRank(String rendezvous, int rank, int size, Map<String, String> settings, long seed) {
        this.rendezvous = rendezvous;
        this.rank = rank;
        this.size = size;
        this.settings = settings;
        this.random = new Random(seed); // the same on all ranks
    }

    /** Runs operations forever. Arguments: RENDEZVOUS RANK SIZE SEED NAME=VALUE ... */
    public static void main(String[] arguments) {
        Map<String, String> settings = new java.util.HashMap<>();
        for (int i = 4; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        new SoakRank(arguments[0], Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]), settings,
                Long.parseLong(arguments[3])).run(Integer.MAX_VALUE, false);
    }

    /** Joins, runs the given number of operations, and closes or aborts the communicator. */
    void run(int count, boolean abort) {
        try (Arena arena = Arena.ofShared()) {
            try (Communicator communicator = Millrace.join(rendezvous, rank, size, settings);
                    DeviceStream stream = communicator.device().newStream()) {
                MemorySegment send = communicator.device().allocate(8L * LARGEST * size, arena);
                MemorySegment receive = communicator.device().allocate(8L * LARGEST * size, arena);
                for (int number = 0; number < count; number++) {
                    operation(communicator, stream, send, receive);
                }
                if (abort) {
                    communicator.abort();
                }
            }
        }
    }

    private void operation(Communicator communicator, DeviceStream stream, MemorySegment send, MemorySegment receive) {
        int count = 1 + random.nextInt(random.nextInt(3) == 0 ? LARGEST : 1024);
        int base = random.nextInt(1000);
        int kind = random.nextInt(4);
        for (int i = 0; i < count * (kind == 2 ? size : 1); i++) {
            send.setAtIndex(ValueLayout.JAVA_LONG, i, base + rank + i);
        }
        switch (kind) {
            case 0 -> communicator.allReduce(send, receive, count, DataType.INT64, ReduceOp.SUM, stream);
            case 1 -> communicator.allGather(send, receive, count, DataType.INT64, stream);
            case 2 -> communicator.allToAll(send, receive, count, DataType.INT64, stream);
            default -> communicator.broadcast(send, receive, count, DataType.INT64, base % size, stream);
        }
        stream.synchronize(TIMEOUT);
        operations++;
        int all = kind == 1 || kind == 2 ? count * size : count;
        for (int i = 0; i < all; i++) {
            int from = i / count;
            long expected = switch (kind) {
                case 0 -> (long) size * (base + i) + (long) size * (size - 1) / 2;
                case 1 -> base + from + i % count;
                case 2 -> base + from + (long) rank * count + i % count;
                default -> base + base % size + i;
            };
            wrong += receive.getAtIndex(ValueLayout.JAVA_LONG, i) == expected ? 0 : 1;
        }
    }

    /** Returns the number of wrong elements. */
    long wrong() {
        return wrong;
    }

    long operations() {
        return operations;
    }
}
