package com.example.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Millrace;
import org.millrace.ReduceOp;
import org.millrace.Stream;

/** Adds numbers of several processes. Start one for each rank: {@code AllReduce file:/tmp/group RANK SIZE}. */
public final class AllReduce {

    private static final int COUNT = 1024;

    public static void main(String[] args) {
        int rank = Integer.parseInt(args[1]);
        int size = Integer.parseInt(args[2]);
        try (Communicator communicator = Millrace.join(args[0], rank, size);
                Stream stream = communicator.device().newStream();
                Arena arena = Arena.ofShared()) {
            MemorySegment host = arena.allocate(ValueLayout.JAVA_FLOAT, COUNT);
            for (int i = 0; i < COUNT; i++) {
                host.setAtIndex(ValueLayout.JAVA_FLOAT, i, rank + i);
            }
            MemorySegment data = communicator.device().allocate(host.byteSize(), arena);
            communicator.device().copyToDevice(host, data, stream);
            communicator.allReduce(data, data, COUNT, DataType.FLOAT32, ReduceOp.SUM, stream);
            communicator.device().copyToHost(data, host, stream);
            stream.synchronize(Duration.ofSeconds(30));
            System.out.println("rank " + rank + " on " + communicator.device().name() + ": element 7 is "
                    + host.getAtIndex(ValueLayout.JAVA_FLOAT, 7));
        }
    }
}
