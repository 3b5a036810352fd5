import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * One of two ranks of a flood's measurement: {@code FloodRank RENDEZVOUS RANK}. Rank 1 joins when a line arrives on its
 * standard input. When another line arrives, both ranks create their data connections and reduce. Each prints the
 * durations in milliseconds.
 */
public final class FloodRank {

    private static final int ELEMENTS = 1 << 20;
    private static final int OPERATIONS = 10;

    private FloodRank() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int rank = Integer.parseInt(arguments[1]);
        if (rank > 0) {
            in.readLine();
        }
        long begin = System.nanoTime();
        try (Communicator communicator = Millrace.join(arguments[0], rank, 2);
                DeviceStream stream = communicator.device().newStream()) {
            say("joined", begin);
            in.readLine();
            begin = System.nanoTime();
            float[] values = new float[ELEMENTS];
            for (int operation = 0; operation < OPERATIONS; operation++) {
                Arrays.fill(values, rank + operation);
                communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream)
                        .toCompletableFuture()
                        .get(100, TimeUnit.SECONDS);
                for (float value : values) {
                    if (value != 2 * operation + 1) {
                        throw new AssertionError("lost: " + value + " in operation " + operation);
                    }
                }
                if (operation == 0) {
                    say("first", begin);
                }
            }
            System.out.println("right " + peakMegabytes());
            in.readLine(); // the communicator stays open until the flood is over
        }
    }

    private static void say(String what, long begin) {
        System.out.println(what + " " + (System.nanoTime() - begin) / 1_000_000);
    }

    private static long peakMegabytes() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/status"))
                .stream()
                .filter(line -> line.startsWith("VmHWM:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) >> 10)
                .findFirst()
                .orElse(0);
    }
}
