package org.millrace.cli.gin;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.ResultTable;
import org.millrace.cli.run.ProcessRanks;
import org.millrace.cli.run.RankMain;
import org.millrace.cli.run.RankRun;
import org.millrace.cli.run.RunDeadline;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaRuntime;
import org.millrace.nccl.NcclLibrary;

/**
 * Runs {@code millrace gin PATTERN --device cuda}, with one process for each rank and GPU.
 *
 * @param plan     plan of the measurement
 * @param settings settings by name
 */
record CudaGin(GinPlan.OnGpus plan, Map<String, String> settings) {

    /**
     * Origin of the kernels.
     *
     * @param cubin   compiled kernels; null to compile them
     * @param nvcc    compiler; null to search for it
     * @param include directory of NCCL's headers; null to search for it
     */
    public record Kernels(@Nullable Path cubin, @Nullable Path nvcc, @Nullable Path include) {
    }

    /**
     * Runs all ranks and prints a table.
     *
     * @param kernels origin of the kernels
     * @param command returns the command of a rank from the rendezvous, the path of the compiled kernels and the rank
     *                number. The command's process calls {@link #work}
     * @param table   receives the results
     * @param err     receives the failures
     * @return whether all data arrived and was right
     */
    public boolean run(Kernels kernels, BiFunction<String, Path, IntFunction<List<String>>> command, ResultTable table,
            PrintWriter err) {
        Path directory = null;
        try {
            Path image = kernels.cubin();
            Configuration configuration = Configuration.load(settings);
            CudaRuntime cuda =
                    CudaRuntime.load(configuration.get(Settings.CUDART_LIBRARY).map(Object::toString).orElse(null));
            if (cuda.deviceCount() < plan.ranks()) {
                throw new MillraceException(plan.ranks() + " ranks need as many GPUs, and here are "
                        + cuda.deviceCount() + ": NCCL has no two ranks on one GPU");
            }
            if (image == null) {
                directory = Files.createTempDirectory("millrace-gin-");
                NcclLibrary nccl =
                        NcclLibrary.load(configuration.get(Settings.NCCL_LIBRARY).map(Object::toString).orElse(null));
                KernelCompiler.requireGin(nccl.version(), nccl.versionText(), nccl.library().path());
                image = KernelCompiler.compile(directory, cuda.device(0), kernels.nvcc(), kernels.include(),
                        nccl.library().path());
            }
            Path compiled = image.toAbsolutePath();
            CaseResults results = new CaseResults(plan, table);
            List<RankRun.Failure> failures = RankRun.run(plan.ranks(),
                    (rendezvous, events) -> new ProcessRanks(plan.ranks(), command.apply(rendezvous, compiled),
                            ProcessRanks::hostWithGpus, events, err),
                    RunDeadline.after(plan.deadline()), GinEvent.class, results);
            RankRun.print(failures, err, false);
            return failures.isEmpty() && results.isRight();
        } catch (IOException failure) {
            throw new MillraceException(
                    "no directory for the kernels can be made in " + System.getProperty("java.io.tmpdir") + ": "
                            + failure + "; make room there or choose another with -Djava.io.tmpdir=DIR",
                    failure);
        } finally {
            delete(directory);
        }
    }

    /**
     * Runs one rank in its own process.
     *
     * @param rank       number of the rank
     * @param rendezvous address where the ranks meet
     * @param image      compiled kernels
     */
    public void work(int rank, String rendezvous, Path image) {
        RankMain.run(rank, new CudaGinRank(plan, rank, rendezvous, settings, image));
    }

    private static void delete(@Nullable Path directory) {
        if (directory != null) {
            try (var files = Files.list(directory)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
                Files.delete(directory);
            } catch (IOException failure) {
                System.err.println("millrace: " + directory + " is left behind: " + failure);
            }
        }
    }

    /**
     * Prints a line of the table when all ranks have measured it. The line has the slowest rank's time and the sum of
     * all wrong bytes.
     */
    private static final class CaseResults implements RankRun.Listener<GinEvent> {

        private final GinPlan.OnGpus plan;
        private final ResultTable table;
        private final int[] heard;
        private final double[] nanos;
        private final long[] wrong;
        private final @Nullable String[] notes;
        private boolean right = true;

        CaseResults(GinPlan.OnGpus plan, ResultTable table) {
            this.plan = plan;
            this.table = table;
            heard = new int[plan.cases().size()];
            nanos = new double[heard.length];
            wrong = new long[heard.length];
            notes = new String[plan.ranks()];
            boolean all = plan.all();
            table.begin(new ResultTable.Column(all ? "bytes/part" : "bytes", "bytes", "%12d"),
                    new ResultTable.Column("iterations", "iterations", "%12d"),
                    new ResultTable.Column(all ? "us" : "us one way", all ? "us" : "us_one_way", "%12.2f"),
                    new ResultTable.Column(all ? "GB/s a rank" : "GB/s", "gb_per_s", "%12.3f"),
                    new ResultTable.Column("#wrong", "wrong", "%8d"));
        }

        @Override
        public void heard(GinEvent event) {
            switch (event) {
                case GinEvent.Measured measured -> add(measured);
                case GinEvent.Noted noted -> note(noted.text(), noted.rank());
            }
        }

        private void add(GinEvent.Measured measured) {
            int index = measured.index();
            nanos[index] = Math.max(nanos[index], measured.nanos());
            wrong[index] += measured.wrong();
            if (++heard[index] == plan.ranks()) {
                GinPlan.OnGpus.Case line = plan.cases().get(index);
                right &= wrong[index] == 0;
                long bytes = line.bytes() * (plan.all() ? plan.ranks() : 1);
                table.row(line.bytes(), line.iterations(), nanos[index] / 1e3, bytes / nanos[index], wrong[index]);
            }
        }

        /** Stores a rank's note. When the last rank's note has arrived, prints all notes in the order of the ranks. */
        private void note(String text, int rank) {
            notes[rank] = text;
            if (Arrays.stream(notes).noneMatch(Objects::isNull)) {
                for (int each = 0; each < notes.length; each++) {
                    table.say("# rank " + each + ": " + notes[each]);
                }
            }
        }

        boolean isRight() {
            return right;
        }
    }
}
