package org.millrace.cli.gin.cuda;

import java.io.PrintWriter;
import org.millrace.cli.perf.RankTeam;

/** Prints a line when all ranks have measured it: the time of the slowest, and how many bytes are wrong anywhere. */
final class GinTable {

    private final CudaGinPlan plan;
    private final PrintWriter out;
    private final int[] heard;
    private final double[] nanos;
    private final long[] wrong;
    private boolean right = true;

    GinTable(CudaGinPlan plan, PrintWriter out) {
        this.plan = plan;
        this.out = out;
        heard = new int[plan.cases().size()];
        nanos = new double[heard.length];
        wrong = new long[heard.length];
        boolean all = plan.pattern() == CudaGinPlan.Pattern.ALLTOALL;
        out.printf("%12s %12s %12s %12s %8s%n", all ? "bytes/part" : "bytes", "iterations", all ? "us" : "us one way", all ? "GB/s a rank" : "GB/s", "#wrong");
        out.flush();
    }

    void add(RankTeam.Measured measured) {
        int index = measured.index();
        nanos[index] = Math.max(nanos[index], measured.nanos());
        wrong[index] += measured.wrong();
        if (++heard[index] == plan.ranks()) {
            CudaGinPlan.Case line = plan.cases().get(index);
            long bytes = line.bytes() * (plan.pattern() == CudaGinPlan.Pattern.ALLTOALL ? plan.ranks() : 1);
            out.printf("%12d %12d %12.2f %12.3f %8d%n", line.bytes(), line.iterations(), nanos[index] / 1e3, bytes / nanos[index], wrong[index]);
            out.flush();
            right &= wrong[index] == 0;
        }
    }

    boolean isRight() {
        return right;
    }
}
