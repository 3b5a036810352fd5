package com.example.millrace;

import org.millrace.JoinBuilder;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * Adds numbers of several processes, one for each rank. The command is {@code AllReduce file:/tmp/group RANK SIZE}, or
 * {@code AllReduce} if a launcher has set the environment.
 */
public final class AllReduce {

    public static void main(String[] args) {
        JoinBuilder group = Millrace.builder(); // the launcher's environment provides the rest
        if (args.length > 0) {
            group.rendezvous(args[0]).rank(Integer.parseInt(args[1])).size(Integer.parseInt(args[2]));
        }
        group.run(communicator -> {
            int rank = communicator.rank();
            float[] values = new float[1024];
            for (int i = 0; i < values.length; i++) {
                values[i] = rank + i;
            }
            communicator.allReduce(Operand.of(values), ReduceOp.SUM);
            System.out.printf("rank %d on %s: element 7 is %s%n", rank, communicator.device().name(), values[7]);
        });
    }
}
