import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.millrace.DataType;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * One of two ranks: {@code Rate sendrecv|send|all_reduce BYTES OPERATIONS}. Rank 0 prints the mean of the last
 * operations, in Mbit/s in each direction.
 */
public class Rate {
    public static void main(String[] args) {
        long bytes = Long.parseLong(args[1]);
        int operations = Integer.parseInt(args[2]);
        Millrace.builder().run(communicator -> {
            try (Arena arena = Arena.ofShared()) {
                MemorySegment from = arena.allocate(bytes, 4096);
                MemorySegment to = arena.allocate(bytes, 4096);
                int peer = 1 - communicator.rank();
                try (var stream = communicator.device().newStream()) {
                    long begin = 0;
                    for (int i = 0; i < operations + 2; i++) {
                        if (i == 2) {
                            begin = System.nanoTime();
                        }
                        switch (args[0]) {
                            case "all_reduce" ->
                                communicator.allReduce(from, to, bytes / 4, DataType.FLOAT32, ReduceOp.SUM, stream);
                            case "sendrecv" -> communicator.group(() -> {
                                communicator.send(from, bytes, DataType.INT8, peer, stream);
                                communicator.receive(to, bytes, DataType.INT8, peer, stream);
                            });
                            default -> {
                                if (communicator.rank() == 0) {
                                    communicator.send(from, bytes, DataType.INT8, peer, stream);
                                } else {
                                    communicator.receive(to, bytes, DataType.INT8, peer, stream);
                                }
                            }
                        }
                        stream.synchronize(Duration.ofMinutes(2));
                    }
                    communicator.barrier();
                    double mbits = bytes * 8e3 * operations / (System.nanoTime() - begin);
                    if (communicator.rank() == 0) {
                        System.out.printf("%s %d %.0f%n", args[0], bytes, mbits);
                    }
                }
            }
        });
    }
}
