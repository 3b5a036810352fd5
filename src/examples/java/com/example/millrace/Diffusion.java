package com.example.millrace;

import java.util.Arrays;
import org.millrace.Communicator;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;
import org.millrace.Serializer;

/**
 * Heat in a closed ring of cells. Each rank has a part of the ring. The page coming-from-mpi.md shows this program
 * beside the program of mpi4py that was ported.
 */
public final class Diffusion {

    /**
     * Values that rank 0 determines.
     *
     * @param cells number of cells of all ranks together
     * @param steps number of steps
     * @param rate  share of the difference to a neighbor that moves in one step
     */
    public record Plan(int cells, int steps, double rate) {
    }

    public static void main(String[] args) {
        Millrace.run(Diffusion::diffuse);
    }

    static void diffuse(Communicator communicator) {
        int rank = communicator.rank();
        int size = communicator.size();
        Plan plan = communicator.broadcast(rank == 0 ? new Plan(1200, 500, 0.25) : null, 0, Serializer.of(Plan.class));
        int left = Math.floorMod(rank - 1, size);
        int right = (rank + 1) % size;
        int n = plan.cells() / size;
        double[] heat = new double[n + 2]; // elements 0 and n + 1 are copies of the neighbors' cells
        heat[1] = rank == 0 ? 100 : 0;
        for (int step = 0; step < plan.steps(); step++) {
            communicator.sendReceive(Operand.of(heat, 1, 2), left, Operand.of(heat, n + 1, n + 2), right);
            communicator.sendReceive(Operand.of(heat, n, n + 1), right, Operand.of(heat, 0, 1), left);
            double[] old = heat.clone();
            for (int i = 1; i <= n; i++) {
                heat[i] += plan.rate() * (old[i - 1] - 2 * old[i] + old[i + 1]);
            }
        }
        double total = communicator.allReduce(Arrays.stream(heat, 1, n + 1).sum(), ReduceOp.SUM);
        double[] all = rank == 0 ? new double[n * size] : null;
        communicator.gather(Operand.of(heat, 1, n + 1), all == null ? null : Operand.of(all), 0);
        if (rank == 0) {
            System.out.printf("heat of %d cells: %.3f, of the first cell: %.3f%n", n * size, total, all[0]);
        }
    }
}
