package org.millrace.cli.doctor;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.ExitStatus;
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

    /**
     * Loads libraries. Ends with {@link Trials#LOADED}, which no library chooses as its exit status.
     *
     * @param words a probe and the library's path for each library, as in {@code UCX=/opt/libucp.so}; without a path
     *              the library is searched
     */
    public static void main(String[] words) {
        for (String word : words) {
            String[] parts = word.split("=", 2);
            Probe.valueOf(parts[0]).load(parts[1].isEmpty() ? null : parts[1]);
        }
        System.exit(Trials.LOADED);
    }

    /** Loads the library, queries all its facts and discards the results. */
    private void load(@Nullable String path) {
        switch (this) {
            case NCCL -> NcclLibrary.probe(path);
            case CUDA -> CudaReport.probe(path);
            case UCX -> GpuChecks.ucx(path);
            case NET_PLUGIN -> Optional.ofNullable(path).ifPresent(GpuChecks::netPlugin);
        }
    }

    /**
     * A separate JVM that loads all libraries, one after the other. If this JVM does not load all of them, a further
     * JVM tries each library alone.
     */
    static final class Trials {

        /** Exit status of a JVM that has loaded all its libraries. */
        private static final int LOADED = 113;
        /**
         * Time limit of a JVM, in seconds. A driver takes some seconds to initialize eight GPUs. A driver that takes
         * longer than this limit is stuck.
         */
        private static final long TIMEOUT_SECONDS = 60;
        private final Map<Probe, String> words = new EnumMap<>(Probe.class);
        private final Map<Probe, Optional<CheckResult>> harms = new EnumMap<>(Probe.class);
        private final Process all;

        /** Starts the JVM. */
        Trials(Map<String, String> settings) {
            for (Probe probe : values()) {
                words.put(probe, probe.name() + '=' + Objects.requireNonNullElse(probe.path(settings), ""));
            }
            all = start(words.values());
        }

        private static Process start(Collection<String> words) {
            // The JVM lives for a second, which is too short for the optimizing compiler.
            List<String> command =
                    new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=/dev/null", "-XX:TieredStopAtLevel=1",
                            "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp",
                            System.getProperty("java.class.path"), Probe.class.getName()));
            command.addAll(words);
            try {
                return new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .redirectError(ProcessBuilder.Redirect.DISCARD)
                        .start();
            } catch (IOException failure) {
                throw new MillraceException("no process can be started to try a library in: " + failure.getMessage(),
                        failure);
            }
        }

        /**
         * Waits for the trial of a library. Returns the reason why this process must not load the library; empty if the
         * trial succeeded.
         */
        Optional<CheckResult> harm(Probe probe) {
            return harms.computeIfAbsent(probe,
                    _ -> harm(probe, all).flatMap(_ -> harm(probe, start(List.of(words.get(probe))))));
        }

        private static Optional<CheckResult> harm(Probe probe, Process process) {
            boolean ended = false;
            try {
                ended = process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
            if (!ended) {
                process.destroyForcibly();
            }
            return ended && process.exitValue() == LOADED ? Optional.empty()
                    : Optional.of(probe.harmful(ended, process));
        }
    }

    private CheckResult harmful(boolean ended, Process process) {
        String remedy = "install it anew, or point at another one with " + pointer + "/path/to/library";
        return ended
                ? CheckResult.unusable("loading it ends the process (" + ExitStatus.text(process.exitValue())
                        + "): the file, or one that it loads, is damaged", remedy)
                : CheckResult.unusable("a process that loads it does not end within " + Trials.TIMEOUT_SECONDS + " s",
                        "does nvidia-smi answer? If so, " + remedy);
    }
}
