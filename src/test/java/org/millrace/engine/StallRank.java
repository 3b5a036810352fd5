package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.device.EmulatedDevice;
import org.millrace.device.EndlessBlock;
import org.millrace.device.EmulatedKernel;
import org.millrace.trace.Verdict.Cause;

/**
 * Ranks in a separate process that run operations until a planned fault stalls one rank of the group. The ranks then
 * wait until the process is killed.
 */
final class StallRank {

    private static final Duration TIMEOUT = Duration.ofMinutes(5);
    private static final CountDownLatch NEVER = new CountDownLatch(1);

    /** Fault of the victim, with the cause that the verdict must name. */
    enum Way {
        /** The victim's program does not call the operation. */
        LAUNCH(Cause.NOT_LAUNCHED),
        /** The victim's process is stopped during the operation. */
        STOP(Cause.STOPPED),
        /** The victim's process is killed during the operation. */
        KILL(Cause.GONE),
        /** The victim's kernel does not begin, because earlier work on its stream does not end. */
        BEGIN(Cause.NOT_BEGUN),
        /** The victim's kernel makes no progress, because other work keeps the device busy. */
        CONSUME(Cause.NOT_CONSUMED),
        /** The victim's operation differs in size from the operation of the other ranks. */
        DISAGREE(Cause.DISAGREEMENT),
        /** A frame of the victim is never sent. */
        BLACK_HOLE(Cause.WIRE),
        /** A connection of the victim breaks. */
        CUT(Cause.CUT);

        final Cause cause;

        Way(Cause cause) {
            this.cause = cause;
        }

        boolean isOfTheWire() {
            return this == BLACK_HOLE || this == CUT;
        }
    }

    /** Kind of operation that the ranks repeat. */
    enum Pattern {
        ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL, NEIGHBOURS
    }

    private final int rank;
    private final int size;
    private final Way way;
    private final boolean victim;
    private final int faulty;
    private final Pattern pattern;
    private final int ahead;
    private final long count;

    private StallRank(int rank, String[] arguments) {
        this.rank = rank;
        size = Integer.parseInt(arguments[2]);
        way = Way.valueOf(arguments[3]);
        victim = rank == Integer.parseInt(arguments[4]);
        faulty = Integer.parseInt(arguments[5]);
        pattern = Pattern.valueOf(arguments[6]);
        ahead = Integer.parseInt(arguments[7]);
        count = Long.parseLong(arguments[8]);
    }

    /**
     * Runs the ranks of this process. Arguments: directory, ranks of this process separated by commas, number of all
     * ranks, {@link Way}, victim, number of the victim's faulty operation, {@link Pattern}. Further arguments: number
     * of operations that a rank enqueues after the faulty operation, number of elements, settings as NAME=VALUE. A
     * setting for the victim only is written as victim:NAME=VALUE.
     */
    public static void main(String[] arguments) throws InterruptedException {
        for (String rank : arguments[1].split(",")) {
            StallRank each = new StallRank(Integer.parseInt(rank), arguments);
            Thread.ofPlatform().name("rank " + rank).start(() -> each.run(arguments));
        }
        NEVER.await();
    }

    private void run(String[] arguments) {
        List<String> pairs = new ArrayList<>();
        Arrays.stream(arguments)
                .skip(9)
                .filter(setting -> victim || !setting.startsWith("victim:"))
                .forEach(setting -> pairs.addAll(List.of(setting.replace("victim:", "").split("=", 2))));
        Map<String, String> settings = EngineGroup.settings(pairs.toArray(String[]::new));
        Communicator communicator = EngineGroup.join(Path.of(arguments[0]), rank, size, settings);
        try {
            operate(communicator);
        } catch (MillraceException failure) {
            System.out.println("rank " + rank + " heard: " + failure.getMessage());
            park(); // the failed communicator stays open, as in a program that has not closed it yet
        }
    }

    private void operate(Communicator communicator) {
        MemorySegment send = communicator.device().allocate(8 * count * (size + 1), Arena.global());
        MemorySegment receive = communicator.device().allocate(8 * count * (size + 1), Arena.global());
        Deque<DeviceStream> streams = new ArrayDeque<>();
        for (int number = 0;; number++) {
            boolean here = victim && number == faulty;
            if (here && way == Way.LAUNCH) {
                said("does not launch");
                park();
            }
            DeviceStream stream = communicator.device().newStream();
            if (here && way == Way.BEGIN) {
                said("has something before its kernel");
                EmulatedKernel endless = EndlessBlock.kernel();
                ((EmulatedDevice) communicator.device()).launch(endless, stream);
            }
            enqueue(communicator, send, receive, here && way == Way.DISAGREE ? count + 1 : count, stream);
            if (here && way == Way.CONSUME) {
                said("keeps the device busy");
                communicator.device().newStream().call(StallRank::park);
            }
            if (here && (way == Way.STOP || way == Way.KILL)) {
                said(way.name().toLowerCase(Locale.ROOT));
                signal(way == Way.STOP ? "STOP" : "KILL");
            }
            streams.add(stream);
            if (streams.size() > ahead) {
                try (DeviceStream first = streams.remove()) {
                    first.synchronize(TIMEOUT);
                }
            }
        }
    }

    private void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long elements,
            DeviceStream stream) {
        switch (pattern) {
            case ALL_REDUCE -> communicator.allReduce(send, receive, elements, DataType.INT64, ReduceOp.MAX, stream);
            case ALL_GATHER -> communicator.allGather(send, receive, elements, DataType.INT64, stream);
            case REDUCE_SCATTER ->
                communicator.reduceScatter(send, receive, elements, DataType.INT64, ReduceOp.MAX, stream);
            case BROADCAST -> communicator.broadcast(send, receive, elements, DataType.INT64, 0, stream);
            case ALL_TO_ALL -> communicator.allToAll(send, receive, elements, DataType.INT64, stream);
            case NEIGHBOURS -> communicator.group(() -> {
                communicator.send(send, elements, DataType.INT64, (rank + 1) % size, stream);
                communicator.receive(receive, elements, DataType.INT64, (rank + size - 1) % size, stream);
            });
        }
    }

    private void said(String what) {
        System.out.println("rank " + rank + " " + what);
    }

    private static void park() {
        try {
            NEVER.await();
        } catch (InterruptedException leave) {
            Thread.currentThread().interrupt();
        }
    }

    private static void signal(String name) {
        try {
            new ProcessBuilder("kill", "-" + name, Long.toString(ProcessHandle.current().pid())).start().waitFor();
        } catch (java.io.IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
        park();
    }
}
