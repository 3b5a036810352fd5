package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;

/**
 * A rank in a separate process. It runs all-reduces until the process is killed or an all-reduce fails. It prints one
 * line per event.
 */
final class AllReduceRank {

    private AllReduceRank() {}

    /** Runs the rank. Arguments: directory, rank, size, settings as NAME=VALUE. */
    public static void main(String[] arguments) {
        List<String> pairs = new ArrayList<>();
        Arrays.stream(arguments).skip(3).forEach(setting -> pairs.addAll(List.of(setting.split("=", 2))));
        try (Communicator communicator = EngineGroup.join(Path.of(arguments[0]), Integer.parseInt(arguments[1]),
                Integer.parseInt(arguments[2]), EngineGroup.settings(pairs.toArray(String[]::new)));
                Arena arena = Arena.ofShared();
                DeviceStream stream = communicator.device().newStream()) {
            MemorySegment data = communicator.device().allocate(8 << 16, arena);
            for (int round = 0;; round++) {
                communicator.allReduce(data, data, 1 << 16, DataType.INT64, ReduceOp.MAX, stream);
                stream.synchronize(Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS));
                if (round == 10) {
                    System.out.println("running");
                }
            }
        } catch (MillraceException e) {
            System.out.println(e.getMessage());
        }
        System.out.println("left " + EngineGroup.threadsAlive());
    }
}
