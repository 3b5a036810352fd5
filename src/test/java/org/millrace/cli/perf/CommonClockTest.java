package org.millrace.cli.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.cli.run.RunDeadline;

/** Ranks with different clocks decide together: either all ranks stop, or none does. */
@Timeout(120)
class CommonClockTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    @TempDir
    Path directory;

    @ParameterizedTest
    @CsvSource({"3600, 3600, false", "0, 3600, true", "3600, 0, true", "0, 0, true"})
    void allRanksHearTheSame(long first, long second, boolean passed) throws Exception {
        long[] seconds = {first, second};
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            List<Future<Boolean>> heard = new ArrayList<>();
            for (int rank = 0; rank < 2; rank++) {
                heard.add(threads.submit(rank(rank, Duration.ofSeconds(seconds[rank]))));
            }
            for (Future<Boolean> each : heard) {
                assertEquals(passed, each.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS));
            }
        }
    }

    private Callable<Boolean> rank(int rank, Duration time) {
        return () -> {
            try (Arena arena = Arena.ofShared();
                    Communicator communicator = Millrace.join("file:" + directory.resolve("group"), rank, 2,
                            Map.of("MILLRACE_DEVICE", "host"));
                    DeviceStream stream = communicator.device().newStream()) {
                return new CheckedCollectives(communicator, stream, arena, Long.BYTES, RunDeadline.after(TIMEOUT),
                        false).forAny(RunDeadline.after(time)::passed).getAsBoolean();
            }
        };
    }
}
