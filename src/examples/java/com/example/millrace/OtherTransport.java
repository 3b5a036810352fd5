package com.example.millrace;

import com.example.millrace.unix.UnixSocketTransport;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Map;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * Sends data over a transport that Millrace does not contain: {@link UnixSocketTransport}. Such a transport may be in
 * any jar on the class path with a file {@code META-INF/services/org.millrace.transport.Transport} that names it. This
 * one must be switched on, so that it does not affect programs that merely have the jar.
 */
public final class OtherTransport {

    public static void main(String[] args) throws Exception {
        System.setProperty(UnixSocketTransport.ENABLE, "true");
        try {
            Ranks.run(2, OtherTransport::rank);
        } finally {
            System.clearProperty(UnixSocketTransport.ENABLE);
        }
    }

    private static void rank(String rendezvous, int rank, int size) {
        try (Communicator communicator = Millrace.join(rendezvous, rank, size, Map.of("MILLRACE_DEVICE", "host"));
                DeviceStream stream = communicator.device().newStream();
                Arena arena = Arena.ofShared()) {
            MemorySegment data = communicator.device().allocate(1 << 20, arena);
            communicator.allReduce(data, data, 1 << 18, DataType.INT32, ReduceOp.SUM, stream);
            stream.synchronize(Duration.ofSeconds(30));
            System.out.println("rank " + rank + ": " + communicator.route().orElseThrow());
        }
    }
}
