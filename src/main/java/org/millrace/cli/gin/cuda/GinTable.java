package org.millrace.cli.gin.cuda;

import java.io.PrintWriter;
import java.util.Arrays;
import java.util.Objects;
import org.millrace.cli.launch.RankTeam;

/** Prints a line when all ranks have measured it: the time of the slowest, and how many bytes are wrong anywhere. */
final class GinTable {

    private final CudaGinPlan plan;
    private final PrintWriter out;
    private final int[] heard;
    private final double[] nanos;
    private final long[] wrong;
    private final String[] notes;
    private boolean right = true;

    GinTable(CudaGinPlan plan, PrintWriter out) {
        this.plan = plan;
        this.out = out;
        heard = new int[plan.cases().size()];
        nanos = new double[heard.length];
        wrong = new long[heard.length];
        notes = new String[plan.ranks()];
        boolean all = plan.pattern() == CudaGinPlan.Pattern.ALLTOALL;
        out.printf("%12s %12s %12s %12s %8s%n", all ? "bytes/part" : "bytes", "iterations", all ? "us" : "us one way",
                all ? "GB/s a rank" : "GB/s", "#wrong");
        out.flush();
    }

    void add(RankTeam.Measured measured) {
        int index = measured.index();
        nanos[index] = Math.max(nanos[index], measured.nanos());
        wrong[index] += measured.wrong();
        if (++heard[index] == plan.ranks()) {
            CudaGinPlan.Case line = plan.cases().get(index);
            long bytes = line.bytes() * (plan.pattern() == CudaGinPlan.Pattern.ALLTOALL ? plan.ranks() : 1);
            out.printf("%12d %12d %12.2f %12.3f %8d%n", line.bytes(), line.iterations(), nanos[index] / 1e3,
                    bytes / nanos[index], wrong[index]);
            out.flush();
            right &= wrong[index] == 0;
        }
    }

    /** Ranks end in any order: what they noted is printed when all have, in the order of ranks. */
    void note(String text, int rank) {
        notes[rank] = text;
        if (Arrays.stream(notes).noneMatch(Objects::isNull)) {
            for (int each = 0; each < notes.length; each++) {
                out.println("# rank " + each + ": " + notes[each]);
            }
            out.flush();
        }
    }

    boolean isRight() {
        return right;
    }
}
