package org.millrace.cli.doctor;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.ExitStatus;
import org.millrace.cli.run.JavaCommand;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.cuda.CudaReport;
import org.millrace.nccl.NcclLibrary;

/**
 * A native library that doctor loads. A separate process loads it first, because a damaged library can end the process.
 */
enum Probe {
    /** The library libnccl. */
    NCCL(Settings.NCCL_LIBRARY),
    /** The library libcudart, including the driver and the GPUs. */
    CUDA(Settings.CUDART_LIBRARY),
    /** The library libucp, including the network cards that it supports. */
    UCX(Settings.UCX_LIBRARY),
    /** The NCCL network plugin that the settings choose as the network, if any. */
    NET_PLUGIN(Settings.NETWORK.name() + "=" + Settings.PLUGIN_PREFIX, configuration -> {
        String network = configuration.get(Settings.NETWORK);
        return network.startsWith(Settings.PLUGIN_PREFIX)
                ? Optional.of(network.substring(Settings.PLUGIN_PREFIX.length()))
                : Optional.empty();
    });

    private final String pointer;
    private final Function<Configuration, Optional<String>> path;

    Probe(Setting<? extends Optional<Path>> setting) {
        this(setting.name() + "=", configuration -> configuration.get(setting).map(Object::toString));
    }

    Probe(String pointer, Function<Configuration, Optional<String>> path) {
        this.pointer = pointer;
        this.path = path;
    }

    /**
     * Returns the library's path in the settings; null if the settings contain no path, or if a setting is not usable.
     * Another check reports unusable settings.
     */
    @Nullable
    String path(Map<String, String> overrides) {
        try {
            return path.apply(Configuration.load(overrides)).orElse(null);
        } catch (ConfigurationException refused) {
            return null;
        }
    }

    /** Loads the library, queries all its facts and discards the results. */
    void run(Map<String, String> overrides) {
        switch (this) {
            case NCCL -> NcclLibrary.probe(path(overrides));
            case CUDA -> CudaReport.probe(path(overrides));
            case UCX -> GpuChecks.ucx(path(overrides));
            case NET_PLUGIN -> Optional.ofNullable(path(overrides)).ifPresent(GpuChecks::netPlugin);
        }
    }

    /** A separate JVM that loads a library, and the outcome of the loading. */
    static final class Trial {

        /**
         * Time limit, in seconds. A driver takes some seconds to initialize eight GPUs. A driver that takes longer than
         * this limit is stuck.
         */
        private static final long TIMEOUT_SECONDS = 60;
        private final Probe probe;
        private final Process process;

        private Trial(Probe probe, Process process) {
            this.probe = probe;
            this.process = process;
        }

        static Trial start(Probe probe, List<String> arguments) {
            List<String> all = new ArrayList<>(arguments);
            all.addAll(List.of("--probe", probe.name()));
            List<String> command = JavaCommand.of(all);
            command.addAll(1, List.of("-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=/dev/null"));
            try {
                return new Trial(probe,
                        JavaCommand.builder(command)
                                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                                .redirectError(ProcessBuilder.Redirect.DISCARD)
                                .start());
            } catch (IOException failure) {
                throw new MillraceException("no process can be started to try a library in: " + failure.getMessage(),
                        failure);
            }
        }

        /**
         * Waits for the trial. Returns the reason why this process must not load the library; empty if the trial
         * succeeded.
         */
        Optional<CheckResult> harm() {
            boolean ended = false;
            try {
                ended = process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            } finally {
                process.destroyForcibly();
            }
            String remedy = "install it anew, or point at another one with " + probe.pointer + "/path/to/library";
            if (!ended) {
                return Optional.of(
                        CheckResult.unusable("a process that loads it does not end within " + TIMEOUT_SECONDS + " s",
                                "does nvidia-smi answer? If so, " + remedy));
            }
            int status = process.exitValue();
            if (status == 0) {
                return Optional.empty();
            }
            return Optional.of(CheckResult.unusable("loading it ends the process (" + ExitStatus.text(status)
                    + "): the file, or one that it loads, is damaged", remedy));
        }
    }
}
