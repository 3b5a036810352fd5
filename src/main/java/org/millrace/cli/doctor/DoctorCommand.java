package org.millrace.cli.doctor;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.millrace.DataType;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.cli.base.Subcommand;
import org.millrace.cli.perf.PerfEvent;
import org.millrace.cli.perf.PerfPlan;
import org.millrace.cli.perf.PerfResults;
import org.millrace.cli.perf.PerfWorker;
import org.millrace.cli.perf.Reduction;
import org.millrace.cli.run.RankRun;
import org.millrace.cli.run.RunDeadline;
import org.millrace.cli.run.ThreadRanks;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;

/** {@code millrace doctor}. */
@Command(
        name = "doctor",
        description = {"Say what was found on this machine, and what to do about the rest.",
                "Ends with status 0 if at least the emulated device (host) works and every setting is usable, else 1."})
public final class DoctorCommand extends Subcommand {

    @Option(names = "--json", description = "Write everything as JSON to standard output, settings with their values.")
    private boolean json;

    @Override
    public Integer call() {
        DoctorReport report = new DoctorReport(spec.commandLine().getOut(), json, spec.usageMessage().width());
        GpuChecks gpus = new GpuChecks(parent.settings());
        MachineChecks.list(parent.settings()).forEach(report::add);
        gpus.list().forEach(report::add);
        gpus.devices(() -> report.notWorking(GpuChecks.NEEDED)).forEach(report::add);
        Configuration configuration = null;
        boolean usable = false;
        try {
            configuration = Configuration.load(parent.settings());
            usable = report.add(new Check("device host", () -> tryOut("host", parent.settings())));
        } catch (ConfigurationException refused) { // without usable settings, no device is tested
            report.add(new Check("settings", () -> CheckResult.unusable(String.valueOf(refused.getMessage()))));
        }
        report.end(configuration, usable);
        return usable ? ExitCode.OK : ExitCode.SOFTWARE;
    }

    /** Tests a device with a small measurement. {@code device} is its name in {@code MILLRACE_DEVICE}. */
    static CheckResult tryOut(String device, Map<String, String> settings) {
        Map<String, String> all = new LinkedHashMap<>(settings);
        all.put(Settings.DEVICE.name(), device);
        List<String> failures = SelfTest.run(all);
        return failures.isEmpty() ? CheckResult.works("an all-reduce of two ranks gave what it must")
                : CheckResult.unusable(failures.getFirst(),
                        failures.subList(1, failures.size()).toArray(String[]::new));
    }

    /** The smallest measurement: two ranks and one checked all-reduce. */
    private static final class SelfTest {

        private static final Duration DEADLINE = Duration.ofSeconds(30);
        private static final long BYTES = 64 << 10;

        private SelfTest() {}

        /** Runs two ranks as threads of this process. Returns the failures. */
        static List<String> run(Map<String, String> settings) {
            PerfPlan plan = new PerfPlan(Operation.ALL_REDUCE, 2,
                    List.of(new PerfPlan.Case(0, DataType.FLOAT32, Reduction.SUM, BYTES / Float.BYTES, 1, 1)),
                    PerfPlan.Checking.AFTERWARDS, 1, DEADLINE, false, false, false);
            PerfResults results = new PerfResults(plan);
            List<String> failures = new ArrayList<>();
            try {
                Millrace.provider(settings);
                RankRun.run(plan.ranks(),
                        (rendezvous, events) -> new ThreadRanks(plan.ranks(),
                                rank -> new PerfWorker(plan, rank, rendezvous, settings), events),
                        RunDeadline.after(DEADLINE), PerfEvent.class, results::add)
                        .forEach(failure -> failures.add(failure.message()));
                results.takeComplete();
            } catch (IllegalArgumentException | MillraceException refused) {
                failures.add(refused.getMessage());
            }
            if (results.wrong() > 0) {
                failures.add("an all-reduce of two ranks gave " + results.wrong() + " wrong elements");
            }
            return failures;
        }
    }
}
