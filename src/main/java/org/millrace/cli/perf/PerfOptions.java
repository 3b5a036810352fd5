package org.millrace.cli.perf;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.cli.base.Converters;
import org.millrace.config.NearestName;
import org.millrace.config.ValueTypes;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec.Target;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** The options of {@code perf}. An option that also exists in nccl-tests has the same name there. */
final class PerfOptions {

    private static final int DEFAULT_FACTOR = 2;

    @Spec(Target.MIXEE)
    private CommandSpec spec;

    @Parameters(
            paramLabel = "COLLECTIVE",
            converter = Selection.CollectiveConverter.class,
            completionCandidates = Selection.Collectives.class,
            description = "What to measure: ${COMPLETION-CANDIDATES}.")
    Operation collective;

    @Option(
            names = {"-b", "--minbytes"},
            paramLabel = "SIZE",
            defaultValue = "8",
            converter = Converters.Size.class,
            description = "Smallest size (default: ${DEFAULT-VALUE}).")
    private long min;

    @Option(
            names = {"-e", "--maxbytes"},
            paramLabel = "SIZE",
            defaultValue = "64M",
            converter = Converters.Size.class,
            description = "Largest size (default: ${DEFAULT-VALUE}).")
    private long max;

    @Option(
            names = {"-f", "--stepfactor"},
            paramLabel = "FACTOR",
            converter = Converters.Count.class,
            description = "Multiply sizes by this (default: " + DEFAULT_FACTOR + ").")
    private @Nullable Integer factor;

    @Option(
            names = {"-i", "--stepbytes"},
            paramLabel = "SIZE",
            converter = Converters.Size.class,
            description = "Add this to sizes instead.")
    private @Nullable Long step;

    @Option(
            names = {"-r", "--ranks"},
            paramLabel = "N",
            defaultValue = "2",
            converter = Converters.Few.class,
            description = "Number of ranks (default: ${DEFAULT-VALUE}).")
    int ranks;

    @Option(
            names = {"-n", "--iters"},
            paramLabel = "N",
            converter = Converters.Count.class,
            description = "Operations that are timed (default: 20000, fewer for large sizes).")
    private @Nullable Integer iterations;

    @Option(
            names = {"-w", "--warmup_iters"},
            paramLabel = "N",
            converter = Converters.CountOrNone.class,
            description = "Operations of each line before those (default: as many as the JIT compiler needs, within 2 s"
                    + " and 256 MiB a line; further ones of the smallest size and of 1 MiB before the first line).")
    private @Nullable Integer warmup;

    @Option(
            names = {"-t", "-d", "--type", "--datatype"},
            paramLabel = "TYPE",
            defaultValue = "float",
            converter = Selection.TypesConverter.class,
            description = "Element types, with commas between, or all (default: ${DEFAULT-VALUE}).")
    private Selection.Types types;

    @Option(
            names = {"-o", "--op"},
            paramLabel = "OP",
            defaultValue = "sum",
            converter = Selection.ReductionsConverter.class,
            description = "Reductions, with commas between, or all (default: ${DEFAULT-VALUE}). Of no meaning for "
                    + "collectives that do not reduce.")
    private Selection.Reductions reductions;

    @Option(
            names = {"-c", "--check"},
            paramLabel = "0|1",
            arity = "1",
            defaultValue = "1",
            converter = Converters.Flag.class,
            description = "Compare every result with a reference (default: ${DEFAULT-VALUE}).")
    private boolean check;

    @Option(
            names = "--check-every",
            description = "Compare the result of every operation, those before and those that are timed included. "
                    + "On by itself where MILLRACE_FAULT is set.")
    private boolean checkEvery;

    @Option(
            names = {"-R", "--local_register"},
            paramLabel = "0|1",
            arity = "1",
            defaultValue = "0",
            converter = Converters.Flag.class,
            description = "Register the operands, so that they are used in place where that is possible (default: "
                    + "${DEFAULT-VALUE}).")
    private boolean register;

    @Option(
            names = "--unpack",
            description = "Kernels gather what they receive over networks; short for "
                    + "-D NCCL_NET_DEVICE_UNPACK_ENABLED=1.")
    boolean unpack;

    @Option(
            names = "--profile",
            description = "Say below each line for how long its kernels ran, rank by rank: on the emulated device.")
    private boolean profile;

    @Option(
            names = "--seed",
            paramLabel = "N",
            converter = Converters.Seed.class,
            description = "What the data is made from (default: different every time; printed).")
    @Nullable
    Long seed;

    @Option(names = "--processes", description = "Every rank is a process of its own, not a thread; on GPUs always.")
    boolean processes;

    @Option(names = "--device", paramLabel = "NAME", description = "host or cuda; short for -D MILLRACE_DEVICE=NAME.")
    @Nullable
    String device;

    @Option(
            names = "--net",
            paramLabel = "NAME",
            description = "What carries the data; short for -D MILLRACE_NET=NAME.")
    @Nullable
    String net;

    @Option(
            names = "--ranks-per-host",
            paramLabel = "K",
            converter = Converters.Few.class,
            description = "Let each K ranks be those of a host, by NCCL_HOSTID: others reach them over the network. On"
                    + " GPUs 1 unless you say.")
    @Nullable
    Integer ranksPerHost;

    @Option(
            names = "--channels",
            paramLabel = "N",
            description = "Short for -D NCCL_MIN_NCHANNELS=N -D NCCL_MAX_NCHANNELS=N.")
    @Nullable
    String channels;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            converter = Converters.ResultFile.class,
            description = "Write the results there too, for programs.")
    @Nullable
    Path json;

    @Option(
            names = "--html",
            paramLabel = "FILE",
            converter = Converters.ResultFile.class,
            description = "Draw the results there too: a page for browsers.")
    @Nullable
    Path html;

    @Option(
            names = "--deadline",
            paramLabel = "TIME",
            defaultValue = "10m",
            converter = Converters.Time.class,
            description = "End the run after this, finished or not (default: ${DEFAULT-VALUE}).")
    private Duration deadline;

    @Option(names = "--worker-rank", hidden = true)
    @Nullable
    Integer workerRank;

    @Option(names = "--worker-rendezvous", hidden = true)
    @Nullable
    String workerRendezvous;

    PerfPlan plan(long data, boolean faultPlanted) {
        PerfPlan.Sizes sizes = new PerfPlan.Sizes(min, max,
                step != null ? 1 : Optional.ofNullable(factor).orElse(DEFAULT_FACTOR), step != null ? step : 0);
        require(min <= max, "the smallest size (-b " + ValueTypes.SizeType.text(min)
                + ") is larger than the largest (-e " + ValueTypes.SizeType.text(max) + ")");
        require(factor == null || step == null, "sizes grow by a factor (-f) or by a step (-i), not by both");
        require(factor == null || factor >= 2, "sizes must grow: -f " + factor + " is less than 2");
        require(step == null || step >= 1, "sizes must grow: -i 0 is less than 1");
        return new PerfPlan(collective, ranks,
                PerfPlan.cases(types.values(), collective.reduces() ? reductions.values() : List.of(Reduction.SUM),
                        sizes, collective.parts(ranks), iterations == null ? 0 : iterations,
                        warmup == null ? -1 : warmup),
                checking(faultPlanted), data, deadline, profile, register,
                // The ranks use an operation to agree on the end of an automatic warm-up. A planted fault could falsify
                // the result of this operation, so a run with a planted fault has no automatic warm-up.
                warmup == null && !faultPlanted);
    }

    private PerfPlan.Checking checking(boolean faultPlanted) {
        if (!check) {
            return PerfPlan.Checking.NONE;
        }
        return checkEvery || faultPlanted ? PerfPlan.Checking.EVERY : PerfPlan.Checking.AFTERWARDS;
    }

    private void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new ParameterException(spec.commandLine(), otherwise);
        }
    }

    /** Returns a description of the options in one line, in the format of nccl-tests. */
    String describe(PerfPlan plan, boolean asProcesses) {
        PerfPlan.Case first = plan.cases().getFirst();
        PerfPlan.Case last = plan.cases().getLast();
        return "ranks: " + ranks + (asProcesses ? " (processes)" : " (threads)") + " minBytes: " + min + " maxBytes: "
                + max + " step: "
                + (step == null ? Optional.ofNullable(factor).orElse(DEFAULT_FACTOR) + "(factor)" : step + "(bytes)")
                + " warmup iters: " + range(first.warmup(), last.warmup()) + " iters: "
                + range(first.iterations(), last.iterations()) + " validation: "
                + (plan.checking() == PerfPlan.Checking.EVERY ? "every" : check ? 1 : 0) + " seed: " + plan.seed();
    }

    private static String range(int first, int last) {
        return first == last ? String.valueOf(first) : first + ".." + last;
    }

    /**
     * Arguments that consist of names. A collective is one name. Types and reductions are one or several names,
     * separated by commas, or {@code all}.
     */
    static final class Selection {

        private Selection() {}

        record Types(List<DataType> values) {
        }

        record Reductions(List<Reduction> values) {
        }

        /** Parses types by NCCL's name (float) or Millrace's name (float32). */
        static final class TypesConverter implements ITypeConverter<Types> {
            @Override
            public Types convert(String text) {
                return new Types(several(text, DataType.values(), DataType::label));
            }
        }

        static final class ReductionsConverter implements ITypeConverter<Reductions> {
            @Override
            public Reductions convert(String text) {
                return new Reductions(several(text, Reduction.values(), Reduction::toString));
            }
        }

        static final class CollectiveConverter implements ITypeConverter<Operation> {
            @Override
            public Operation convert(String text) {
                return one(text, Operation.values(), Operation::label, "");
            }
        }

        static final class Collectives implements Iterable<String> {
            @Override
            public Iterator<String> iterator() {
                return Arrays.stream(Operation.values()).map(Operation::label).iterator();
            }
        }

        private static <T extends Enum<T>> List<T> several(String text, T[] all, Function<T, String> label) {
            return text.equalsIgnoreCase("all") ? List.of(all)
                    : Stream.of(text.split(","))
                            .map(name -> one(name.strip(), all, label, "all, or one or more of "))
                            .toList();
        }

        private static <T extends Enum<T>> T one(String name, T[] all, Function<T, String> label, String choice) {
            List<String> labels = Arrays.stream(all).map(label).toList();
            return Arrays.stream(all)
                    .filter(each -> label.apply(each).equalsIgnoreCase(name) || each.name().equalsIgnoreCase(name))
                    .findFirst()
                    .orElseThrow(() -> new TypeConversionException("there is no '" + name + "'; "
                            + NearestName.hint(name, labels, "allowed: " + choice + String.join(", ", labels))));
        }
    }
}
