package com.example.millrace;

import static java.util.concurrent.TimeUnit.SECONDS;

import org.millrace.Communicator;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;
import org.millrace.Stream;

/**
 * Adds numbers of several processes, one for each rank: {@code AllReduce file:/tmp/group RANK SIZE}, or without
 * arguments where a launcher has said that in the environment.
 */
public final class AllReduce {

    public static void main(String[] args) throws Exception {
        try (Communicator communicator = args.length == 0 ? Millrace.join()
                : Millrace.join(args[0], Integer.parseInt(args[1]), Integer.parseInt(args[2]));
                Stream stream = communicator.device().newStream()) {
            int rank = communicator.rank();
            float[] values = new float[1024];
            for (int i = 0; i < values.length; i++) {
                values[i] = rank + i;
            }
            communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream).toCompletableFuture().get(30, SECONDS);
            System.out.println("rank " + rank + " on " + communicator.device().name() + ": element 7 is " + values[7]);
        }
    }
}
