package org.millrace.cli.doctor;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.console.FailureText;
import org.millrace.cli.console.GlobalOptions;
import org.millrace.cli.console.Version;
import org.millrace.cli.perf.SelfTest;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.PluginSettings;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** {@code millrace doctor}. */
@Command(
        name = "doctor",
        description = {"Say what was found on this machine, and what to do about the rest.",
                "Ends with status 0 if at least the emulated device works and every setting is usable."})
public final class DoctorCommand implements Callable<Integer> {

    private static final String UNSET = "unset";

    @Spec
    private CommandSpec spec;

    @ParentCommand
    private GlobalOptions parent;

    @Option(names = "--probe", hidden = true)
    private @Nullable Probe probe;

    /** For picocli. */
    public DoctorCommand() {}

    @Override
    public Integer call() {
        if (probe != null) {
            probe.run(parent.settings());
            return ExitCode.OK;
        }
        PrintWriter out = spec.commandLine().getOut();
        out.println("millrace " + Version.millrace());
        GpuChecks gpus = new GpuChecks(parent.settings(), spec.root().commandLine().getParseResult().originalArgs());
        MachineChecks.list(parent.settings()).forEach(check -> report(out, check));
        gpus.list().forEach(check -> report(out, check));
        boolean usable;
        try {
            Configuration configuration = Configuration.load(parent.settings());
            usable = report(out, new Check("emulated device", () -> tryOut("host", parent.settings())));
            reportSettings(out, configuration);
        } catch (ConfigurationException refused) { // whatever needs settings cannot be tried
            out.printf("%-16s %-10s %s%n", "settings", CheckResult.State.UNUSABLE, indent(refused.getMessage()));
            usable = false;
        }
        out.flush();
        return usable ? ExitCode.OK : ExitCode.SOFTWARE;
    }

    /** Whether a device, by its name in {@code MILLRACE_DEVICE}, does what it is for. */
    static CheckResult tryOut(String device, Map<String, String> settings) {
        Map<String, String> all = new LinkedHashMap<>(settings);
        all.put(Settings.DEVICE.name(), device);
        List<String> failures = SelfTest.run(all);
        return failures.isEmpty() ? CheckResult.works("an all-reduce of two ranks gave what it must")
                : CheckResult.unusable(failures.getFirst(),
                        failures.subList(1, failures.size()).toArray(String[]::new));
    }

    /** Prints what a check finds; true if it is found and works. */
    static boolean report(PrintWriter out, Check check) {
        CheckResult finding;
        try {
            finding = check.look().get();
        } catch (ConfigurationException refused) {
            finding = CheckResult.unusable("not tried: see the settings below");
        } catch (RuntimeException | LinkageError failure) { // one that fails must not hide the others
            finding = CheckResult.unusable("the check failed: " + FailureText.of(failure));
        }
        out.printf("%-16s %-10s %s%n", check.subject(), finding.state(), indent(finding.summary()));
        finding.advice().forEach(line -> out.printf("%-27s > %s%n", "", indent(line)));
        return finding.state() == CheckResult.State.WORKS;
    }

    private static String indent(String text) {
        return text.replace("\n", "\n" + " ".repeat(30));
    }

    private static void reportSettings(PrintWriter out, Configuration configuration) {
        out.println("settings (also as Java system properties: NCCL_BUFFSIZE is nccl.buffsize)");
        for (Setting<?> setting : Settings.all()) {
            String value = configuration.show(setting);
            line(out, setting.name(), value.isEmpty() ? UNSET : value, configuration.origin(setting),
                    setting.description());
        }
        out.println("of the plugin for libnccl alone, and of the environment alone");
        for (Setting<?> setting : PluginSettings.all()) {
            String value = System.getenv(setting.name());
            boolean isSet = value != null && !value.isEmpty();
            line(out, setting.name(), isSet ? value : UNSET,
                    new Configuration.Origin(
                            isSet ? Configuration.Origin.Source.ENVIRONMENT : Configuration.Origin.Source.DEFAULT,
                            setting.name()),
                    setting.description());
        }
    }

    private static void line(PrintWriter out, String name, String value, Configuration.Origin origin,
            String description) {
        out.printf("  %-32s %-10s %-40s %s%n", name, value, origin, description);
    }
}
