import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * Cost of ranks that share cores: all-reduces of floats in a fresh process, and some seconds later. Prints a line for
 * each rank, with tabs between: the word {@code rank}, seconds from START until it had joined, then microseconds of an
 * operation of 8 B and of 1 MiB in the first two seconds. LATER seconds after joining it measures again 8 B, 8 B with a
 * wait for each operation, and 1 MiB. The last columns are threads, resident megabytes, and the process's own share of
 * them (PSS).
 *
 * <pre>
 *   START=&lt;ns since 1970&gt; java -cp millrace.jar:. Ranks LATER RENDEZVOUS RANK SIZE     one rank
 *   START=&lt;ns since 1970&gt; java -cp millrace.jar:. Ranks LATER threads SIZE             all of them
 * </pre>
 */
final class Ranks {

    private static final int LARGE = 1 << 20;
    private static final Duration DEADLINE = Duration.ofMinutes(2);

    private final Communicator communicator;
    private final DeviceStream stream;
    private final MemorySegment send;
    private final MemorySegment receive;

    private Ranks(Communicator communicator, DeviceStream stream, Arena arena) {
        this.communicator = communicator;
        this.stream = stream;
        send = communicator.device().allocate(LARGE, arena);
        receive = communicator.device().allocate(LARGE, arena);
        send.fill((byte) 1);
    }

    public static void main(String[] words) throws IOException {
        double later = Double.parseDouble(words[0]);
        if (words[1].equals("threads")) {
            Millrace.local(Integer.parseInt(words[2]), communicator -> measure(communicator, later));
            return;
        }
        try (Communicator communicator =
                Millrace.join(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]))) {
            measure(communicator, later);
        }
    }

    private static void measure(Communicator communicator, double later) throws IOException {
        double joined = System.currentTimeMillis() / 1e3 - Long.parseLong(System.getenv("START")) / 1e9;
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            new Ranks(communicator, stream, arena).measure(joined, System.nanoTime() + (long) (later * 1e9));
        }
    }

    private void measure(double joined, long later) throws IOException {
        double fresh = run(8, 100, false, 1);
        double freshLarge = run(LARGE, 5, false, 1);
        run(8, 100, false, (later - System.nanoTime()) / 1e9);
        double small = run(8, 100, false, 1);
        double waited = run(8, 100, true, 1);
        double large = run(LARGE, 5, false, 1);
        System.out.print(String.format(Locale.ROOT, "rank\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%d\t%d%n", joined, fresh,
                freshLarge, small, waited, large, status("status", "Threads:"), status("status", "VmRSS:") / 1000,
                status("smaps_rollup", "Pss:") / 1000)); // one call, because ranks share the output
    }

    /**
     * Returns the microseconds of an operation, averaged over operations until the given time has passed on any rank.
     */
    private double run(int bytes, int batch, boolean waits, double seconds) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        long taken = 0;
        long operations = 0;
        long now;
        do {
            long start = System.nanoTime();
            for (int i = 0; i < batch; i++) {
                communicator.allReduce(send, receive, bytes / Float.BYTES, DataType.FLOAT32, ReduceOp.SUM, stream);
                if (waits) {
                    stream.synchronize(DEADLINE);
                }
            }
            stream.synchronize(DEADLINE);
            now = System.nanoTime();
            taken += now - start;
            operations += batch;
        } while (communicator.allReduce(now >= end ? 1L : 0, ReduceOp.MAX) == 0);
        return taken / 1e3 / operations;
    }

    private static long status(String file, String name) throws IOException {
        return Files.readAllLines(Path.of("/proc/self", file))
                .stream()
                .filter(line -> line.startsWith(name))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                .sum();
    }
}
