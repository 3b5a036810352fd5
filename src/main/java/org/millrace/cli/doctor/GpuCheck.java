package org.millrace.cli.doctor;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.millrace.cli.console.Host;
import org.millrace.cuda.CudaReport;

/** The GPUs: those that the CUDA runtime shows this process, and those that the driver lists, which may be more. */
final class GpuCheck implements Check {

    private final Path proc;
    private final Supplier<Optional<CudaReport>> cuda;

    /**
     * A check.
     *
     * @param proc {@code /proc/driver/nvidia}
     * @param cuda what the runtime says; empty if it must not be loaded
     */
    GpuCheck(Path proc, Supplier<Optional<CudaReport>> cuda) {
        this.proc = proc;
        this.cuda = cuda;
    }

    @Override
    public String subject() {
        return "GPUs";
    }

    @Override
    public CheckResult find() {
        List<String> listed = listed();
        Optional<CudaReport> report = cuda.get();
        List<String> usable =
                report.stream().flatMap(found -> found.devices().stream()).map(GpuCheck::describe).toList();
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
        return device.index() + " " + device.name() + " (" + Bytes.text(device.memory()) + ", compute capability "
                + device.computeCapability() + ") at " + device.pciBusId();
    }

    private List<String> listed() {
        List<String> gpus = new ArrayList<>();
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(proc.resolve("gpus"))) {
            for (Path gpu : entries) {
                gpus.add(Host.field(gpu.resolve("information").toString(), "Model").orElse("unknown model") + " at "
                        + gpu.getFileName());
            }
        } catch (IOException absent) {
            // as good as none
        }
        gpus.sort(null);
        return gpus;
    }
}
