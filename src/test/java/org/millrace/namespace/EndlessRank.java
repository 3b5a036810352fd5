package org.millrace.namespace;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
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
 * A rank of the engine that repeats rounds until its input ends. A round is an all-reduce that checks every sum. The
 * size of the all-reduce depends on the number of the round. The rank prints one line per event. After the given number
 * of rounds the rank waits. All ranks end after the same round when the standard input of one rank is closed.
 */
final class EndlessRank {

    private static final Duration TIMEOUT = Duration.ofMinutes(10);
    private static final int[] COUNTS = {1 << 16, 20, 1000, 9000};
    private static final long SAYS_NANOS = 10_000_000;

    private static volatile boolean told;

    private EndlessRank() {}

    /** Runs the rank. Arguments: rendezvous, rank, size, number of rounds, settings as NAME=VALUE. */
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
            Thread.ofPlatform().daemon().start(EndlessRank::awaitEnd);
            MemorySegment mine = group.device().allocate((long) Long.BYTES * COUNTS[0], arena);
            MemorySegment sum = group.device().allocate((long) Long.BYTES * COUNTS[0], arena);
            long saidAt = System.nanoTime();
            for (long round = 0, rounds = Long.parseLong(arguments[3]); round < rounds; round++) {
                int last = COUNTS[(int) (round % COUNTS.length)] - 1;
                for (int i = 0; i < last; i++) {
                    mine.setAtIndex(ValueLayout.JAVA_LONG, i, round * COUNTS[0] + i);
                }
                mine.setAtIndex(ValueLayout.JAVA_LONG, last, told ? 1 : 0);
                group.allReduce(mine, sum, last + 1, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                for (int i = 0; i < last; i++) {
                    if (sum.getAtIndex(ValueLayout.JAVA_LONG, i) != size * (round * COUNTS[0] + i)) {
                        System.out.println("WRONG in round " + round + " at " + i);
                        return;
                    }
                }
                if (sum.getAtIndex(ValueLayout.JAVA_LONG, last) > 0) {
                    System.out.println("DONE " + round);
                    return;
                }
                if (System.nanoTime() - saidAt > SAYS_NANOS || round == rounds - 1) {
                    saidAt = System.nanoTime();
                    System.out.println("AT " + round);
                }
            }
            System.out.println("IDLE");
            Thread.sleep(TIMEOUT);
        } catch (MillraceException e) {
            System.out.println("FAILED " + e.getMessage());
        }
    }

    private static void awaitEnd() {
        try {
            System.in.transferTo(OutputStream.nullOutputStream());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        told = true;
    }
}
