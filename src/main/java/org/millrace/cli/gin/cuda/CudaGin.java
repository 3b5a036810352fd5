package org.millrace.cli.gin.cuda;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.IntFunction;
import org.millrace.MillraceException;
import org.millrace.cli.launch.RankTeam;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaRuntime;
import org.millrace.nccl.NcclLibrary;

/**
 * {@code millrace gin PATTERN --device cuda}: a process for each rank and GPU.
 *
 * @param plan     what is measured
 * @param settings settings by name
 */
public record CudaGin(CudaGinPlan plan, Map<String, String> settings) {

    /**
     * Where the kernels come from.
     *
     * @param cubin   compiled ones; null to compile them
     * @param nvcc    the compiler; null to look for it
     * @param include where NCCL's headers lie; null to look for them
     */
    public record Kernels(Path cubin, Path nvcc, Path include) {
    }

    /**
     * Runs all ranks and prints a table.
     *
     * @param kernels where the kernels come from
     * @param command the command of a rank, by where it meets the others and the compiled kernels, and then by its
     *                number; what it starts calls {@link #work}
     * @param out     where the table goes
     * @param err     where failures go
     * @return whether everything arrived, and was right
     */
    public boolean run(Kernels kernels, BiFunction<String, Path, IntFunction<List<String>>> command, PrintWriter out,
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
            GinTable table = new GinTable(plan, out);
            List<String> failures = RankTeam.run(plan.ranks(), rendezvous -> command.apply(rendezvous, compiled),
                    plan.deadline(), err, table::add, table::note);
            failures.forEach(failure -> err.println("millrace: " + failure));
            err.flush();
            return failures.isEmpty() && table.isRight();
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
     * Is one rank of it, in a process of its own.
     *
     * @param rank       its number
     * @param rendezvous where it meets the others
     * @param image      the compiled kernels
     */
    public void work(int rank, String rendezvous, Path image) {
        RankTeam.work(rank,
                (results, notes) -> new CudaGinRank(plan, rank, results, notes).run(rendezvous, settings, image));
    }

    private static void delete(Path directory) {
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
}
