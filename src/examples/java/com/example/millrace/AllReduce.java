package com.example.millrace;

import java.util.concurrent.TimeUnit;
import org.millrace.Communicator;
import org.millrace.Millrace;
import org.millrace.ReduceOp;
import org.millrace.Stream;

/** Adds numbers of several processes. Start one for each rank: {@code AllReduce file:/tmp/group RANK SIZE}. */
public final class AllReduce {

    public static void main(String[] args) throws Exception {
        int rank = Integer.parseInt(args[1]);
        int size = Integer.parseInt(args[2]);
        try (Communicator communicator = Millrace.join(args[0], rank, size);
                Stream stream = communicator.device().newStream()) {
            float[] values = new float[1024];
            for (int i = 0; i < values.length; i++) {
                values[i] = rank + i;
            }
            communicator.allReduce(values, ReduceOp.SUM, stream).toCompletableFuture().get(30, TimeUnit.SECONDS);
            System.out.println("rank " + rank + " on " + communicator.device().name() + ": element 7 is " + values[7]);
        }
    }
}
