package org.millrace.cli;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.MillraceCommand;
import org.millrace.cli.run.RankMain;
import org.millrace.config.Configuration;
import org.millrace.config.NearestName;
import org.millrace.config.Settings;
import org.millrace.engine.EngineProvider;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** Prints the table of supported combinations: {@code mvn -Pmatrix -Dmatrix.args="--quick"}. */
@Command(
        name = "matrix",
        description = {
                "Run every collective over every transport, in every protocol and mode, with threads and processes, "
                        + "on the emulated device," + " and check every result.",
                "A cell counts only if the communicator says that what was asked for is what ran; if it is not, its "
                        + "reason is printed."},
        sortOptions = false)
final class MatrixCommand implements Callable<Integer> {

    private static final int QUICK_GROUPS = 6;
    /**
     * Connect deadline of ranks that are processes, unless the user sets another deadline. On few cores, eight
     * processes need a long time to start simultaneously.
     */
    private static final String CONNECT_DEADLINE = "3m";

    @Spec
    private CommandSpec spec;

    @ParentCommand
    private MillraceCommand parent;

    @Option(names = "--collective", paramLabel = "NAME", split = ",", description = "Only these, with commas between.")
    private List<String> collectives = List.of();

    @Option(
            names = "--algorithm",
            paramLabel = "NAME",
            split = ",",
            description = "Only these: ring, tree, collnetdirect, collnetchain.")
    private List<String> algorithms = List.of();

    @Option(
            names = "--transport",
            paramLabel = "NAME",
            split = ",",
            description = "Only these, as in P2P, 'SHM by copy', 'NET socket', COLLNET.")
    private List<String> transports = List.of();

    @Option(names = "--protocol", paramLabel = "NAME", split = ",", description = "Only these: LL, LL128, Simple.")
    private List<String> protocols = List.of();

    @Option(names = "--mode", paramLabel = "NAME", split = ",", description = "Only these: NORMAL, OFFSET, PTR.")
    private List<String> modes = List.of();

    @Option(
            names = {"-r", "--ranks"},
            paramLabel = "N",
            split = ",",
            converter = Converters.Few.class,
            description = "Numbers of ranks (default: 2,3,5,8; with --quick 2,3).")
    private List<Integer> ranks = List.of();

    @Option(
            names = "--processes",
            paramLabel = "0|1",
            arity = "1",
            converter = Converters.Flag.class,
            description = "1: ranks are processes only; 0: threads only (default: both).")
    private @Nullable Boolean processes;

    @Option(names = "--quick", description = "Some cells of 2 and 3 ranks, picked by the seed.")
    private boolean quick;

    @Option(
            names = "--seed",
            paramLabel = "N",
            converter = Converters.Seed.class,
            description = "What data, types and samples are made from (default: different every time; printed).")
    private @Nullable Long seed;

    @Option(
            names = "--deadline",
            paramLabel = "TIME",
            defaultValue = "4h",
            converter = Converters.Time.class,
            description = "End the run after this, finished or not (default: ${DEFAULT-VALUE}).")
    private Duration deadline;

    @Option(names = "--worker-rank", hidden = true)
    private @Nullable Integer workerRank;

    /**
     * Rendezvous of a rank, in the format RANKS:RENDEZVOUS. The rank runs those groups of cells that have RANKS ranks.
     */
    @Option(names = "--worker-rendezvous", hidden = true)
    private @Nullable String workerRendezvous;

    @Override
    public Integer call() {
        long chosen = seed == null ? ThreadLocalRandom.current().nextInt(Integer.MAX_VALUE) : seed;
        MatrixPlan plan = MatrixPlan.of(selected(), chosen, parent.settings());
        require(!plan.groups().isEmpty(),
                "no cell is all of that: COLLNET runs collnetdirect and collnetchain, and every other transport ring and tree");
        Map<String, String> settings = settings();
        if (workerRank != null) {
            String[] where = workerRendezvous.split(":", 2);
            List<CellGroup> groups = plan.groups(Integer.parseInt(where[0]), true);
            RankMain.run(workerRank, new MatrixWorker(groups, workerRank, where[1], settings, chosen));
            return ExitCode.OK; // the parent reports the status
        }
        long start = System.nanoTime();
        List<CellResult> results =
                new MatrixRun(plan, settings, (rank, rendezvous) -> workerArguments(rank, rendezvous, chosen),
                        spec.commandLine().getErr(), deadline).run();
        double seconds = (System.nanoTime() - start) / 1e9;
        PrintWriter out = spec.commandLine().getOut();
        new MatrixTable(out, plan, results).print(String.format(Locale.ROOT, "seed: %d, %.0f s", chosen, seconds));
        return results.stream().allMatch(CellResult::isGood) ? ExitCode.OK : ExitCode.SOFTWARE;
    }

    private Map<String, String> settings() {
        Map<String, String> settings = parent.settings();
        Configuration configuration = Configuration.load(settings);
        EngineProvider.requireUsable(configuration); // an error in the settings is reported once, and not by every rank
        if (!configuration.isSet(Settings.CONNECT_DEADLINE)) {
            settings.put(Settings.CONNECT_DEADLINE.name(), CONNECT_DEADLINE);
        }
        return settings;
    }

    private MatrixPlan.Selected selected() {
        List<Integer> counts = !ranks.isEmpty() ? ranks : quick ? List.of(2, 3) : List.of(2, 3, 5, 8);
        require(counts.stream().allMatch(count -> count >= 2),
                "one rank has nobody to send to: --ranks must be 2 or more");
        return new MatrixPlan.Selected(
                select("--collective", List.of(Operation.values()), collectives, Operation::label),
                select("--algorithm", MatrixPlan.ALGORITHMS, algorithms, name -> name),
                select("--transport", TransportVariant.all(), transports, TransportVariant::label),
                select("--protocol", MatrixPlan.PROTOCOLS, protocols, name -> name),
                select("--mode", List.of(CellGroup.Mode.values()), modes, CellGroup.Mode::name), counts,
                processes == null ? List.of(false, true) : List.of(processes), quick ? QUICK_GROUPS : 0);
    }

    private <T> List<T> select(String option, List<T> all, List<String> names, Function<T, String> label) {
        List<T> selected = new ArrayList<>();
        for (String name : names) {
            List<T> found = all.stream().filter(each -> label.apply(each).equalsIgnoreCase(name.strip())).toList();
            List<String> known = all.stream().map(label).toList();
            require(!found.isEmpty(), option + ": there is no '" + name.strip() + "'; "
                    + NearestName.hint(name.strip(), known, "allowed: " + String.join(", ", known)));
            selected.addAll(found);
        }
        return names.isEmpty() ? all : selected;
    }

    /**
     * Returns the arguments of this process, followed by the arguments that make the new process a rank. Both processes
     * derive the same plan from the common arguments.
     */
    private List<String> workerArguments(int rank, String rendezvous, long chosen) {
        List<String> arguments = new ArrayList<>(spec.root().commandLine().getParseResult().originalArgs());
        arguments.addAll(Arrays.asList("--worker-rank", String.valueOf(rank), "--worker-rendezvous", rendezvous));
        if (seed == null) {
            arguments.addAll(List.of("--seed", String.valueOf(chosen)));
        }
        return arguments;
    }

    private void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new ParameterException(spec.commandLine(), otherwise);
        }
    }
}
