package org.millrace.cli.doctor;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorProvider;
import org.millrace.Millrace;
import org.millrace.cli.base.Host;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaReport;
import org.millrace.library.NativeLibrary;
import org.millrace.nccl.NcclLibrary;
import org.millrace.net.ConnectionException;
import org.millrace.net.plugin.PluginNetwork;
import org.millrace.net.plugin.PluginOptions;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.ucx.UcxNetwork.UcxUnavailableException;
import org.millrace.net.ucx.UcxNetwork;

/**
 * Checks of the software for GPUs, from the driver to NCCL. A library is loaded in this process only after a separate
 * process has loaded it without a crash.
 */
final class GpuChecks {

    /**
     * Subjects of the checks that must succeed for a device with GPUs. The emulated device does not need these
     * subjects.
     */
    static final Set<String> NEEDED = Set.of("driver", "CUDA runtime", "GPUs", "NCCL");

    private static final Path DRIVER = Path.of("/proc/driver/nvidia");

    private static final Pattern VERSION = Pattern.compile(".*?\\s(\\d+\\.\\d+(\\.\\d+)?)\\s.*");

    private final Map<String, String> settings;
    private final Probe.Trials trials;
    private @Nullable CudaReport cuda;

    /** Starts the trial of all libraries. */
    GpuChecks(Map<String, String> settings) {
        this.settings = settings;
        trials = new Probe.Trials(settings);
    }

    List<Check> list() {
        List<Check> checks = new ArrayList<>(List.of(new Check("driver", () -> driver(DRIVER, Path.of("/dev"))),
                new Check("CUDA runtime", () -> library(trials.harm(Probe.CUDA), this::cudaLibrary)),
                new Check("GPUs", () -> gpus(DRIVER, cuda())),
                new Check("NCCL",
                        () -> nccl(
                                library(trials.harm(Probe.NCCL), () -> NcclLibrary.probe(Probe.NCCL.path(settings))))),
                new Check("UCX", () -> trials.harm(Probe.UCX).orElseGet(() -> ucx(Probe.UCX.path(settings))))));
        String plugin = Probe.NET_PLUGIN.path(settings);
        if (plugin != null) {
            checks.add(new Check("network plugin",
                    () -> trials.harm(Probe.NET_PLUGIN).orElseGet(() -> netPlugin(plugin))));
        }
        return checks;
    }

    /** Checks the NCCL network plugin that the settings choose as the network, and lists its devices. */
    static CheckResult netPlugin(String path) {
        try (PluginNetwork network =
                PluginNetwork.open(Path.of(path), SocketOptions.defaults(), PluginOptions.defaults())) {
            return CheckResult.works(network.name().substring("plugin ".length()) + ", table v" + network.version(),
                    network.devices()
                            .stream()
                            .map(device -> "device " + device.index() + ": " + device.describe())
                            .toArray(String[]::new));
        } catch (ConnectionException unusable) {
            return CheckResult.unusable(String.valueOf(unusable.getMessage()),
                    "name another one, or another network, with " + Settings.NETWORK.name());
        }
    }

    /** Checks UCX and names the transports that UCX offers on this machine. */
    static CheckResult ucx(@Nullable String path) {
        try {
            return CheckResult.works(UcxNetwork.describe(Optional.ofNullable(path).map(Path::of)));
        } catch (UcxUnavailableException unusable) {
            return unusable.isMissing() ? CheckResult.missing(unusable.problem(), unusable.remedy())
                    : CheckResult.unusable(unusable.problem(), unusable.remedy());
        }
    }

    private Optional<CudaReport> cuda() {
        if (cuda == null && trials.harm(Probe.CUDA).isEmpty()) {
            cuda = CudaReport.probe(Probe.CUDA.path(settings));
        }
        return Optional.ofNullable(cuda);
    }

    private NativeLibrary.Report cudaLibrary() {
        CudaReport report = cuda().orElseThrow();
        NativeLibrary.Report library = report.library();
        String served =
                report.driver() == null ? " (finds no driver)" : " (the driver serves CUDA " + report.driver() + ")";
        return library.version() == null ? library
                : new NativeLibrary.Report(library.title(), library.path(), library.version() + served,
                        library.problem(), library.missing(), library.setAside());
    }

    /** Checks NVIDIA's kernel driver by its files in {@code /proc/driver/nvidia} and {@code /dev}. */
    static CheckResult driver(Path proc, Path dev) {
        Path versionFile = proc.resolve("version");
        Path control = dev.resolve("nvidiactl");
        List<String> lines = Host.lines(versionFile);
        if (lines.isEmpty()) {
            return CheckResult.missing("NVIDIA's driver; looked at " + versionFile,
                    "no GPU here? Then nothing: the emulated device is used");
        }
        Matcher matcher = VERSION.matcher(lines.getFirst());
        String version = matcher.matches() ? matcher.group(1) : lines.getFirst();
        if (!Files.isReadable(control) || !Files.isWritable(control)) {
            return CheckResult.unusable(
                    "NVIDIA's driver " + version + ", but " + control
                            + " is absent or not readable and writable by this user",
                    "in a container: start it with --gpus all; else run nvidia-smi once as root, or see the "
                            + "driver's NVreg_DeviceFileMode");
        }
        return CheckResult.works("NVIDIA's driver " + version);
    }

    /** @param harm reason why this process must not load the library; empty if this process may load the library */
    static CheckResult library(Optional<CheckResult> harm, Supplier<NativeLibrary.Report> loaded) {
        return harm.orElseGet(() -> library(loaded.get()));
    }

    /**
     * Adds advice about defects of the found release of NCCL. The summary of {@code found} must begin with the release.
     */
    static CheckResult nccl(CheckResult found) {
        @Nullable
        String defect = switch (found.summary().split("[^0-9.]", 2)[0]) {
            case "2.28.9" -> "2.28.9 deadlocks when CUDA graphs with operations across hosts are replayed (vllm#52504):"
                    + " take 2.30.7 or newer";
            case "2.30.3", "2.30.4" -> "2.30.3 and 2.30.4 never start the RMA of a network plugin (nccl#2156):"
                    + " take 2.30.7 or newer for one-sided operations over Millrace";
            default -> null;
        };
        if (defect == null || found.state() != CheckResult.State.WORKS) {
            return found;
        }
        List<String> advice = new ArrayList<>(found.advice());
        advice.add(defect);
        return new CheckResult(found.state(), found.summary(), advice);
    }

    private static CheckResult library(NativeLibrary.Report report) {
        if (report.problem() == null) {
            List<String> passed = report.setAside()
                    .stream()
                    .map(candidate -> "passed over, because it is broken: " + candidate)
                    .toList();
            return new CheckResult(CheckResult.State.WORKS, report.version() + ", " + report.path(), passed);
        }
        // The first sentence of the report names the problem, and the other sentences name the remedies.
        List<String> sentences = new ArrayList<>(List.of(report.problem().split("(?<=[^.])\\. (?=[A-Z])")));
        String summary = (report.path() == null ? "" : report.path() + ": ") + sentences.removeFirst();
        return new CheckResult(report.missing() ? CheckResult.State.MISSING : CheckResult.State.UNUSABLE, summary,
                sentences);
    }

    /**
     * Compares the GPUs that the driver lists with the GPUs that this process can use. The CUDA runtime may offer fewer
     * GPUs to this process than the driver lists.
     *
     * @param report report of the runtime; empty if the runtime must not be loaded
     */
    static CheckResult gpus(Path proc, Optional<CudaReport> report) {
        List<String> listed = listed(proc);
        List<String> usable =
                report.stream().flatMap(found -> found.devices().stream()).map(GpuChecks::describe).toList();
        String problem = report.map(CudaReport::deviceProblem).orElse("the CUDA runtime cannot be loaded");
        if (!usable.isEmpty()) {
            String hidden = usable.size() < listed.size() ? "; the driver lists " + listed.size() : "";
            return CheckResult.works(usable.size() + ": " + String.join(", ", usable) + hidden);
        }
        if (!listed.isEmpty()) {
            return CheckResult.unusable(listed.size() + " listed by the driver (" + String.join(", ", listed)
                    + "), but this process can use none", problem);
        }
        return CheckResult.missing("GPUs; looked at " + proc.resolve("gpus") + " and asked the CUDA runtime", problem);
    }

    private static String describe(CudaReport.Device device) {
        return device.index() + " " + device.name() + " (" + MachineChecks.amount(device.memory())
                + ", compute capability " + device.computeCapability() + ") at " + device.pciBusId();
    }

    private static List<String> listed(Path proc) {
        List<String> gpus = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(proc.resolve("gpus"))) {
            for (Path gpu : entries) {
                gpus.add(Host.field(gpu.resolve("information").toString(), "Model").orElse("unknown model") + " at "
                        + gpu.getFileName());
            }
        } catch (IOException absent) {
            // Without a directory of GPUs, the result is the same as for a driver that lists no GPU.
        }
        gpus.sort(null);
        return gpus;
    }

    /**
     * Returns a check for each implementation of communicators on the class path. Excludes the emulated device, which
     * {@link DoctorCommand} tests with a measurement.
     *
     * @param missing function that returns the subjects of {@link #NEEDED} that do not work; called after the checks of
     *                these subjects have run
     */
    List<Check> devices(Supplier<String> missing) {
        List<String> broken = new ArrayList<>();
        List<Check> checks = new ArrayList<>(Millrace.providers(broken)
                .stream()
                .filter(provider -> !provider.device().equals("host"))
                .map(provider -> new Check("device " + provider.device(),
                        () -> device(provider, settings, provider.device().equals("cuda") ? missing.get() : "")))
                .toList());
        if (!broken.isEmpty()) {
            checks.add(new Check("providers", () -> CheckResult.unusable("some on the class path cannot be loaded",
                    broken.toArray(String[]::new))));
        }
        return checks;
    }

    /** Checks whether a device can be used. Does not repeat problems that earlier checks have reported. */
    static CheckResult device(CommunicatorProvider provider, Map<String, String> settings, String missing) {
        if (!missing.isEmpty()) {
            return CheckResult.missing("needs what does not work: " + missing + ", see above");
        }
        return provider.whyUnusable(settings)
                .map(CheckResult::unusable)
                .orElseGet(() -> CheckResult.works("can be used"));
    }
}
