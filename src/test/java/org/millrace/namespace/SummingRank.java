package org.millrace.namespace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.JoinBuilder;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.Route;

/**
 * A rank that runs an all-reduce in its group, and another all-reduce in a group without rank 0. It prints the
 * transports. Arguments: rendezvous, rank, size, settings as NAME=VALUE. Without arguments it reads the environment.
 */
public final class SummingRank {

    private static final int COUNT = 100_000;

    private SummingRank() {}

    public static void main(String[] arguments) {
        JoinBuilder builder = Millrace.builder();
        if (arguments.length > 0) {
            builder.rendezvous(arguments[0]).rank(Integer.parseInt(arguments[1])).size(Integer.parseInt(arguments[2]));
        }
        for (int i = 3; i < arguments.length; i++) {
            builder.set(arguments[i].split("=")[0], arguments[i].split("=")[1]);
        }
        try (Communicator group = builder.join();
                Communicator part = group.split(group.rank() == 0 ? 0 : 1, group.rank()).orElseThrow()) {
            require(sum(group) == group.size());
            require(sum(part) == part.size() && part.size() == (group.rank() == 0 ? 1 : group.size() - 1));
            System.out.println("all right over " + group.route().map(Route::transports).orElse(List.of()));
        } catch (MillraceException e) {
            System.out.println(e.getMessage());
        }
    }

    private static void require(boolean right) {
        if (!right) {
            throw new MillraceException("wrong");
        }
    }

    private static int sum(Communicator group) {
        try (Arena arena = Arena.ofShared(); DeviceStream stream = group.device().newStream()) {
            MemorySegment mine = group.device().allocate(Integer.BYTES * COUNT, arena);
            MemorySegment sum = group.device().allocate(Integer.BYTES * COUNT, arena);
            for (int i = 0; i < COUNT; i++) {
                mine.setAtIndex(ValueLayout.JAVA_INT, i, 1);
            }
            group.allReduce(mine, sum, COUNT, DataType.INT32, ReduceOp.SUM, stream);
            stream.synchronize(Duration.ofSeconds(60));
            return sum.getAtIndex(ValueLayout.JAVA_INT, COUNT - 1);
        }
    }
}
