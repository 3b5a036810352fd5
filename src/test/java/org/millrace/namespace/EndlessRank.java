package org.millrace.namespace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.JoinBuilder;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;

/**
 * A rank of the engine that adds up again and again, or a number of times and then stays, and says a line for what
 * happens.
 */
final class EndlessRank {

    private static final Duration PATIENCE = Duration.ofMinutes(10);
    private static final int COUNT = 1 << 16;
    private static final int WARM = 10;

    private EndlessRank() {}

    /** Arguments: rendezvous, rank, size, how often it adds up, settings as NAME=VALUE. */
    public static void main(String[] arguments) throws InterruptedException {
        System.setProperty("log4j2.level", "WARN");
        int size = Integer.parseInt(arguments[2]);
        JoinBuilder builder = Millrace.builder()
                .network("socket")
                .rendezvous(arguments[0])
                .rank(Integer.parseInt(arguments[1]))
                .size(size);
        for (int i = 4; i < arguments.length; i++) {
            builder.set(arguments[i].split("=")[0], arguments[i].split("=")[1]);
        }
        try (Communicator group = builder.join();
                Arena arena = Arena.ofShared();
                DeviceStream stream = group.device().newStream()) {
            MemorySegment mine = group.device().allocate((long) Long.BYTES * COUNT, arena);
            MemorySegment sum = group.device().allocate((long) Long.BYTES * COUNT, arena);
            for (int i = 0; i < COUNT; i++) {
                mine.setAtIndex(ValueLayout.JAVA_LONG, i, i);
            }
            for (long round = 0, rounds = Long.parseLong(arguments[3]); round < rounds; round++) {
                group.allReduce(mine, sum, COUNT, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(PATIENCE);
                for (int i = 0; i < COUNT; i++) {
                    if (sum.getAtIndex(ValueLayout.JAVA_LONG, i) != (long) size * i) {
                        System.out.println("WRONG in round " + round);
                        return;
                    }
                }
                if (round % WARM == 0) {
                    System.out.println("ROUND " + round);
                }
            }
            System.out.println("IDLE");
            Thread.sleep(PATIENCE);
        } catch (MillraceException e) {
            System.out.println("FAILED " + e.getMessage());
        }
    }
}
