package org.millrace.net.connection;

import java.net.InetAddress;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Consumer;

/**
 * Logs the required NCCL_BUFFSIZE once for each host with a round trip of 5 ms or more. The size determines how many
 * bytes a connection has in flight. The size is fixed before the round trip can be measured, and is the same on all
 * ranks, so only the user can choose it. Used by one thread.
 */
final class LongLines {

    /**
     * Minimum round trip in microseconds. A host is reported if its round trip is at least this long. NCCL has 4 MiB in
     * flight on a connection by default, which yields 800 MB/s at this round trip.
     */
    static final int LONG_MICROS = 5_000;
    /** Assumed rate of the network, in bytes per microsecond: 10 Gbit/s. */
    private static final int BYTES_PER_MICRO = 1_250;
    private static final long MAX_MIB = 64;

    private final Consumer<String> reader;
    private final Set<InetAddress> told = new HashSet<>();

    LongLines(Consumer<String> reader) {
        this.reader = reader;
    }

    void look(List<TcpStream> streams) {
        for (TcpStream stream : streams) {
            if (stream.carriesFrames && stream.roundTripMicros >= LONG_MICROS && told.add(stream.remote.getAddress())) {
                reader.accept(advice(TcpStreams.words(stream.remote.getAddress()), stream.roundTripMicros));
            }
        }
    }

    private static String advice(String host, long micros) {
        long mib = Math.min(MAX_MIB, Long.highestOneBit(2 * micros * BYTES_PER_MICRO >> 20));
        return String.format(Locale.ROOT,
                "the way to %s and back takes %.1f ms, and a connection has no more under way than NCCL_BUFFSIZE: each"
                        + " MiB of it brings %.0f MB/s at most. NCCL_BUFFSIZE=%dM, the same on all ranks, brings %.0f MB/s",
                host, micros / 1e3, (1 << 20) / (double) micros, mib, mib * (1 << 20) / (double) micros);
    }
}
