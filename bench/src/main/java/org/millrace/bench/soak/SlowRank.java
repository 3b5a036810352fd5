package org.millrace.bench.soak;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * A rank of {@link SlowJob} in a separate process. It runs the given number of operations and pauses at random before
 * some of them. It prints the time from the beginning of each pause to the launch of the operation.
 */
final class SlowRank {

    private static final Duration TIMEOUT = Duration.ofMinutes(15);
    private static final int LARGEST = 64 << 10;
    private static final int AHEAD = 3;

    private SlowRank() {}

    /** Runs the rank. Arguments: RENDEZVOUS RANK SIZE SEED OPERATIONS NAME=VALUE ... */
    public static void main(String[] arguments) throws InterruptedException {
        int rank = Integer.parseInt(arguments[1]);
        int size = Integer.parseInt(arguments[2]);
        long seed = Long.parseLong(arguments[3]);
        int operations = Integer.parseInt(arguments[4]);
        Map<String, String> settings = new HashMap<>();
        for (int i = 5; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Random same = new Random(seed);
        Random own = new Random(seed + rank + 1);
        try (Arena arena = Arena.ofShared()) {
            try (Communicator communicator = Millrace.join(arguments[0], rank, size, settings);
                    DeviceStream stream = communicator.device().newStream()) {
                MemorySegment send = communicator.device().allocate(8L * LARGEST * size, arena);
                MemorySegment receive = communicator.device().allocate(8L * LARGEST * size, arena);
                int ahead = same.nextInt(AHEAD);
                for (int number = 0; number < operations; number++) {
                    long paused = pause(own);
                    operate(communicator, stream, send, receive, same, size);
                    if (paused != 0) {
                        System.out.println("pause " + paused + " " + System.nanoTime());
                    }
                    if (number % (ahead + 1) == ahead) {
                        stream.synchronize(TIMEOUT);
                    }
                }
                stream.synchronize(TIMEOUT);
            }
        }
        System.out.println("done");
    }

    /**
     * Pauses once in six times, for less or for more than the watcher's limit. {@return time of the beginning, 0 for
     * none}
     */
    private static long pause(Random own) throws InterruptedException {
        if (own.nextInt(6) != 0) {
            return 0;
        }
        long begun = System.nanoTime();
        Thread.sleep(own.nextInt(4) == 0 ? 1000 + own.nextInt(3000) : own.nextInt(700));
        return begun;
    }

    private static void operate(Communicator communicator, DeviceStream stream, MemorySegment send,
            MemorySegment receive, Random same, int size) {
        int count = 1 + same.nextInt(same.nextBoolean() ? LARGEST : 1024);
        int root = same.nextInt(size);
        switch (same.nextInt(6)) {
            case 0 -> communicator.allReduce(send, receive, count, DataType.INT64, ReduceOp.MAX, stream);
            case 1 -> communicator.allGather(send, receive, count, DataType.INT64, stream);
            case 2 -> communicator.allToAll(send, receive, count, DataType.INT64, stream);
            case 3 -> communicator.reduceScatter(send, receive, count, DataType.INT64, ReduceOp.MAX, stream);
            case 4 -> communicator.reduce(send, receive, count, DataType.INT64, ReduceOp.MAX, root, stream);
            default -> communicator.broadcast(send, receive, count, DataType.INT64, root, stream);
        }
    }
}
