package org.millrace.cli.perf;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import org.millrace.Millrace;
import org.millrace.cli.base.Json;
import org.millrace.cli.base.StatusLine;
import org.millrace.cli.base.Subcommand;
import org.millrace.cli.run.JavaCommand;
import org.millrace.cli.run.ProcessRanks;
import org.millrace.cli.run.RankMain;
import org.millrace.cli.run.RankRun;
import org.millrace.cli.run.RunDeadline;
import org.millrace.cli.run.ThreadRanks;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.engine.EngineProvider;
import org.millrace.net.link.Fault;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Mixin;

/** {@code millrace perf COLLECTIVE}. */
@Command(
        name = "perf",
        description = {"Measure a collective and check its results.",
                "On GPUs (--device cuda) every rank is a process with a GPU and an NCCL_HOSTID of its own, so that "
                        + "NCCL takes it for a host"
                        + " and uses the network; set NCCL_HOSTID yourself to have all ranks on one host.",
                "Times are those of one operation, averaged over the iterations, of the slowest rank."
                        + " What is checked is one more operation on fresh random data."},
        sortOptions = false)
public final class PerfCommand extends Subcommand {

    /**
     * Device on which each rank is a separate process. NCCL reads the host id from an environment variable, so only
     * separate processes can have different host ids.
     */
    private static final String GPU = "cuda";
    private static final String EMULATED = "host";

    @Mixin
    private PerfOptions options;

    /** Whether every rank is a separate process. */
    private boolean processes;

    @Override
    public Integer call() {
        Map<String, String> settings = settings();
        Configuration configuration = Configuration.load(settings);
        long seed = options.seed == null ? ThreadLocalRandom.current().nextLong(Integer.MAX_VALUE) : options.seed;
        PerfPlan plan = options.plan(seed, configuration.get(Settings.FAULT).isPresent());
        // Planted faults are not checked at the end of each process, because a fault may have happened in another
        // rank's process.
        Fault.PlantedFaults.leaveToCaller();
        if (options.workerRank != null) {
            RankMain.run(options.workerRank,
                    new PerfWorker(plan, options.workerRank, options.workerRendezvous, settings));
            return ExitCode.OK; // the parent process determines the exit status
        }
        String device = requireDevice(settings);
        processes = options.processes || device.equals(GPU);
        if (device.equals(EMULATED)) {
            // The settings are checked here, so that this process reports an error once. Without this check, every rank
            // would report the error.
            EngineProvider.requireUsable(configuration);
        }

        PerfResults results = new PerfResults(plan);
        PrintWriter out = spec.commandLine().getOut();
        PerfTable table = new PerfTable(out, plan, results, options.describe(plan, processes),
                StatusLine.isTerminal(StatusLine.OUT));
        List<RankRun.Failure> failures = run(plan, table, settings);
        table.eraseStatus();
        boolean complete = failures.isEmpty();
        if (complete) {
            failures = missedFaults(device, configuration, results);
        }
        writeJson(new PerfJson(plan, results), configuration, failures);
        if (complete) {
            table.printFooter();
        }
        if (!failures.isEmpty()) {
            RankRun.print(failures, spec.commandLine().getErr(), parent.stackTraces());
            return ExitCode.SOFTWARE;
        }
        return results.wrong() == 0 ? ExitCode.OK : ExitCode.SOFTWARE;
    }

    /**
     * Returns a failure for each planted fault that has not happened at any rank. The run has not tested such a fault.
     * Returns no failure for devices other than the emulated device and GPUs.
     */
    private static List<RankRun.Failure> missedFaults(String device, Configuration configuration, PerfResults results) {
        if (!device.equals(EMULATED) && !device.equals(GPU)) {
            return List.of();
        }
        return Fault.of(configuration)
                .stream()
                .filter(fault -> !results.happened(fault))
                .map(fault -> new RankRun.Failure(Fault.PlantedFaults.missed(fault)
                        + (device.equals(GPU) ? ": only networks of the emulated device have faults" : ""), ""))
                .toList();
    }

    private Map<String, String> settings() {
        Map<String, String> settings = parent.settings();
        if (options.device != null) {
            settings.put(Settings.DEVICE.name(), options.device);
        }
        if (options.net != null) {
            settings.put(Settings.NETWORK.name(), options.net);
        }
        if (options.unpack) {
            settings.put(Settings.NET_DEVICE_UNPACK.name(), "1");
        }
        if (options.channels != null) {
            settings.put(Settings.MIN_CHANNELS.name(), options.channels);
            settings.put(Settings.MAX_CHANNELS.name(), options.channels);
        }
        return settings;
    }

    /** Returns the device. Called before ranks start, because otherwise every rank would report an unknown device. */
    private static String requireDevice(Map<String, String> settings) {
        try {
            return Millrace.provider(settings).device();
        } catch (IllegalArgumentException unknown) {
            throw new ConfigurationException(unknown.getMessage());
        }
    }

    private List<RankRun.Failure> run(PerfPlan plan, PerfTable table, Map<String, String> settings) {
        return RankRun
                .run(plan.ranks(),
                        (rendezvous, events) -> processes
                                ? new ProcessRanks(plan.ranks(),
                                        rank -> JavaCommand.ofRank(plan.ranks(),
                                                workerArguments(plan, rank, rendezvous)),
                                        rank -> variables(rank, settings), events, spec.commandLine().getErr())
                                : new ThreadRanks(plan.ranks(), rank -> {
                                    Map<String, String> own = new HashMap<>(settings);
                                    own.putAll(variables(rank, settings));
                                    return new PerfWorker(plan, rank, rendezvous, own);
                                }, events),
                        RunDeadline.after(plan.deadline()), PerfEvent.class, table);
    }

    /**
     * Returns the environment variables that set a rank's host id. On GPUs each rank has a separate host id by default.
     * On other devices a rank has a separate host id only if the user asks for it.
     */
    private Map<String, String> variables(int rank, Map<String, String> settings) {
        boolean emulated = !requireDevice(settings).equals(GPU);
        if (emulated && options.ranksPerHost == null) {
            return Map.of();
        }
        int host = rank / Optional.ofNullable(options.ranksPerHost).orElse(1);
        return emulated ? ProcessRanks.host(host) : ProcessRanks.hostWithGpus(host);
    }

    /**
     * Returns the arguments of a rank: the arguments of this process, and further arguments that make the new process a
     * rank. The rank derives its plan from the arguments of this process.
     */
    private List<String> workerArguments(PerfPlan plan, int rank, String rendezvous) {
        List<String> arguments = new ArrayList<>(spec.root().commandLine().getParseResult().originalArgs());
        arguments.addAll(List.of("--worker-rank", String.valueOf(rank), "--worker-rendezvous", rendezvous));
        if (options.seed == null) {
            arguments.addAll(List.of("--seed", String.valueOf(plan.seed())));
        }
        return arguments;
    }

    private void writeJson(PerfJson json, Configuration configuration, List<RankRun.Failure> failures) {
        if (options.json == null && options.html == null) {
            return;
        }
        String document =
                json.write(processes, configuration, failures.stream().map(RankRun.Failure::message).toList());
        if (options.html != null && failures.isEmpty()) {
            PerfPage.write(options.html, List.of(PerfRun.of("this run", document)), Map.of());
        }
        if (options.json != null) {
            Json.save("--json", options.json, document);
        }
    }
}
