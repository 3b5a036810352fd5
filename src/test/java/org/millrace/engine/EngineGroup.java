package org.millrace.engine;

import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.DeviceStream;

/** Ranks of one group as threads of this process. */
final class EngineGroup {

    /**
     * Longest wait of any test, in seconds. With this limit, a hanging test fails before the build reaches its own
     * timeout.
     */
    static final long TIMEOUT_SECONDS = 60;

    /** Code of one rank. */
    interface RankBody {
        void run(Communicator communicator) throws Exception;
    }

    /** Code of one rank, with a stream of the rank's device and an arena that is closed with the stream. */
    interface StreamBody {
        void run(Communicator communicator, DeviceStream stream, Arena arena) throws Exception;
    }

    private EngineGroup() {}

    static Map<String, String> settings(String... pairs) {
        Map<String, String> settings =
                new HashMap<>(Map.of("MILLRACE_CONNECT_DEADLINE", "20s", "MILLRACE_STALL_DEADLINE", "20s"));
        for (int i = 0; i < pairs.length; i += 2) {
            settings.put(pairs[i], pairs[i + 1]);
        }
        return settings;
    }

    /** Runs a body on each rank. Each rank must complete without an exception. */
    static void ranks(Path directory, int ranks, Map<String, String> settings, RankBody body)
            throws InterruptedException {
        requireNone(thrown(directory, ranks, settings, body));
    }

    static void ranks(Path directory, int ranks, Map<String, String> settings, StreamBody body)
            throws InterruptedException {
        requireNone(thrown(directory, ranks, settings, body));
    }

    private static void requireNone(List<Throwable> thrown) {
        for (int rank = 0; rank < thrown.size(); rank++) {
            if (thrown.get(rank) != null) {
                throw new AssertionError("rank " + rank + ": " + thrown.get(rank), thrown.get(rank));
            }
        }
    }

    /** Runs a body on each rank. Returns the exception of each rank, null for a rank without an exception. */
    static List<Throwable> thrown(Path directory, int ranks, Map<String, String> settings, RankBody body)
            throws InterruptedException {
        return call(ranks, rank -> () -> {
            try (Communicator communicator = join(directory, rank, ranks, settings)) {
                body.run(communicator);
            }
            return null;
        });
    }

    static List<Throwable> thrown(Path directory, int ranks, Map<String, String> settings, StreamBody body)
            throws InterruptedException {
        return thrown(directory, ranks, settings, communicator -> {
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                body.run(communicator, stream, arena);
            }
        });
    }

    /**
     * Joins the group. The initial values of the step counters and work counters are system properties instead of
     * settings, so they apply to all ranks of a test.
     */
    static Communicator join(Path directory, int rank, int ranks, Map<String, String> settings) {
        return join(directory, rank, ranks, settings, CommunicatorListener.STANDARD_ERROR);
    }

    static Communicator join(Path directory, int rank, int ranks, Map<String, String> settings,
            CommunicatorListener listener) {
        Map<String, String> ours = new HashMap<>(settings);
        for (String property : List.of("org.millrace.engine.firstStep", "org.millrace.engine.firstWork")) {
            String value = ours.remove(property);
            if (value == null) {
                System.clearProperty(property);
            } else {
                System.setProperty(property, value);
            }
        }
        return new EngineProvider().join("file:" + directory.resolve("group"), rank, ranks, ours, listener);
    }

    /** Runs one callable per rank, each on its own thread. */
    static List<Throwable> call(int ranks, java.util.function.IntFunction<Callable<Void>> body)
            throws InterruptedException {
        return call(ranks, TIMEOUT_SECONDS, body);
    }

    /**
     * Runs one callable per rank with the given limit in seconds. Tests with many operations need a longer limit,
     * because their duration depends on the machine.
     */
    static List<Throwable> call(int ranks, long patienceSeconds, java.util.function.IntFunction<Callable<Void>> body)
            throws InterruptedException {
        try (ExecutorService threads =
                Executors.newThreadPerTaskExecutor(Thread.ofPlatform().name("test-rank-", 0).factory())) {
            List<Future<Void>> futures = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                futures.add(threads.submit(body.apply(rank)));
            }
            List<Throwable> thrown = new ArrayList<>();
            for (Future<Void> future : futures) {
                try {
                    future.get(patienceSeconds, TimeUnit.SECONDS);
                    thrown.add(null);
                } catch (ExecutionException e) {
                    thrown.add(e.getCause());
                } catch (TimeoutException e) {
                    thrown.add(e);
                    threads.shutdownNow();
                }
            }
            return thrown;
        }
    }

    /**
     * Returns the names of Millrace's live threads. Omits the trace's thread, because it ends a moment after the other
     * threads.
     */
    static List<String> threadsAlive() {
        return Thread.getAllStackTraces()
                .keySet()
                .stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("millrace-") && !name.equals("millrace-trace"))
                .sorted()
                .toList();
    }
}
