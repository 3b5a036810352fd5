package com.example.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Map;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.Plan;
import org.millrace.ReduceOp;

/**
 * Two ranks, threads of this process, exchange numbers. A send and a receive that wait for each other belong in one
 * group. Then the ranks run an all-reduce three times from a plan that was prepared once.
 */
public final class GroupsAndPlans {

    private static final int COUNT = 4;
    private static final Duration LIMIT = Duration.ofSeconds(30);

    public static void main(String[] args) throws Exception {
        Ranks.run(2, GroupsAndPlans::rank);
    }

    private static void rank(String rendezvous, int rank, int size) {
        int peer = 1 - rank;
        try (Communicator communicator = Millrace.join(rendezvous, rank, size, Map.of("MILLRACE_DEVICE", "host"));
                DeviceStream stream = communicator.device().newStream();
                Arena arena = Arena.ofShared()) {
            MemorySegment mine = communicator.device().allocate(COUNT * Float.BYTES, arena);
            MemorySegment theirs = communicator.device().allocate(COUNT * Float.BYTES, arena);
            fill(mine, rank + 1);
            communicator.group(() -> {
                communicator.send(mine, COUNT, DataType.FLOAT32, peer, stream);
                communicator.receive(theirs, COUNT, DataType.FLOAT32, peer, stream);
            });
            stream.synchronize(LIMIT);
            System.out.println("rank " + rank + " received " + first(theirs));

            try (Plan sum = communicator.plan(stream,
                    () -> communicator.allReduce(mine, mine, COUNT, DataType.FLOAT32, ReduceOp.SUM, stream))) {
                for (int launch = 0; launch < 3; launch++) {
                    sum.launch(stream);
                }
                stream.synchronize(LIMIT);
            }
            System.out.println("rank " + rank + " has " + first(mine) + " after three sums");
        }
    }

    private static void fill(MemorySegment floats, float value) {
        for (int i = 0; i < COUNT; i++) {
            floats.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
        }
    }

    private static float first(MemorySegment floats) {
        return floats.get(ValueLayout.JAVA_FLOAT, 0);
    }
}
