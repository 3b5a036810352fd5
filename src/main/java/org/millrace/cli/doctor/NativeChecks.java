package org.millrace.cli.doctor;

import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.millrace.cuda.CudaReport;
import org.millrace.cuda.library.LibraryReport;
import org.millrace.nccl.NcclLibrary;

/**
 * What runs on GPUs, from the driver up. Libraries are loaded here only when a process of their own has survived it.
 */
final class NativeChecks {

    private static final Path DRIVER = Path.of("/proc/driver/nvidia");

    private final Map<String, String> settings;
    private final Map<Probe, ProbeProcess> trials = new EnumMap<>(Probe.class);
    private final Map<Probe, Optional<CheckResult>> harms = new EnumMap<>(Probe.class);
    private CudaReport cuda;

    /**
     * Starts the trials, all at once.
     *
     * @param settings  those of the command line
     * @param arguments of this process
     */
    NativeChecks(Map<String, String> settings, List<String> arguments) {
        this.settings = settings;
        for (Probe probe : Probe.values()) {
            trials.put(probe, ProbeProcess.start(probe, arguments));
        }
    }

    List<Check> list() {
        return List.of(new DriverCheck(DRIVER, Path.of("/dev")),
                new LibraryCheck("CUDA runtime", () -> harm(Probe.CUDA), this::cudaLibrary),
                new GpuCheck(DRIVER, this::cuda),
                new LibraryCheck("NCCL", () -> harm(Probe.NCCL), () -> NcclLibrary.probe(Probe.NCCL.path(settings))),
                new ProvidersCheck(settings, this::isHarmless));
    }

    private Optional<CheckResult> harm(Probe probe) {
        return harms.computeIfAbsent(probe, tried -> trials.get(tried).harm());
    }

    private boolean isHarmless() {
        return harm(Probe.CUDA).isEmpty() && harm(Probe.NCCL).isEmpty();
    }

    private Optional<CudaReport> cuda() {
        if (cuda == null && harm(Probe.CUDA).isEmpty()) {
            cuda = CudaReport.probe(Probe.CUDA.path(settings));
        }
        return Optional.ofNullable(cuda);
    }

    private LibraryReport cudaLibrary() {
        CudaReport report = cuda().orElseThrow();
        LibraryReport library = report.library();
        String served =
                report.driver() == null ? " (finds no driver)" : " (the driver serves CUDA " + report.driver() + ")";
        return library.version() == null ? library
                : new LibraryReport(library.title(), library.path(), library.version() + served, library.problem(),
                        library.missing(), library.setAside());
    }
}
