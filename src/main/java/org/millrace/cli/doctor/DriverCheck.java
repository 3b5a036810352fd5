package org.millrace.cli.doctor;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.millrace.cli.console.Host;

/** NVIDIA's kernel driver, by its own files. */
final class DriverCheck implements Check {

    private static final Pattern VERSION = Pattern.compile(".*?\\s(\\d+\\.\\d+(\\.\\d+)?)\\s.*");

    private final Path proc;
    private final Path dev;

    /**
     * A check.
     *
     * @param proc {@code /proc/driver/nvidia}
     * @param dev  {@code /dev}
     */
    DriverCheck(Path proc, Path dev) {
        this.proc = proc;
        this.dev = dev;
    }

    @Override
    public String subject() {
        return "driver";
    }

    @Override
    public CheckResult find() {
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
                    "in a container: start it with --gpus all; else run nvidia-smi once as root, or see the driver's NVreg_DeviceFileMode");
        }
        return CheckResult.works("NVIDIA's driver " + version);
    }
}
