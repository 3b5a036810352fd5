package org.millrace.cli.doctor;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;
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
     * Loads libraries, and prints each argument after its library was loaded.
     *
     * @param words one word for each library: a constant's name and the library's path, as in {@code
     *              UCX=/opt/libucp.so}; if the path is empty, the usual places are searched
     */
    public static void main(String[] words) {
        for (String word : words) {
            String[] parts = word.split("=", 2);
            Probe.valueOf(parts[0]).load(parts[1].isEmpty() ? null : parts[1]);
            System.out.println(word);
        }
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
     * A separate JVM that loads all libraries, one after the other. If a library ends this JVM, another JVM loads the
     * remaining libraries.
     */
    static final class Trials {

        /**
         * Time limit of a JVM, in seconds. A driver takes some seconds to initialize eight GPUs. A driver that takes
         * longer than this limit is stuck.
         */
        private static final long TIMEOUT_SECONDS = 60;
        private final Map<Probe, String> words = new EnumMap<>(Probe.class);
        private final Map<Probe, Optional<CheckResult>> harms = new EnumMap<>(Probe.class);
        private Trial trial;

        /** Starts the JVM. */
        Trials(Map<String, String> settings) {
            for (Probe probe : values()) {
                words.put(probe, probe.name() + '=' + Objects.requireNonNullElse(probe.path(settings), ""));
            }
            trial = start();
        }

        private Trial start() {
            // The JVM runs for about a second, which is too short to profit from the optimizing compiler.
            List<String> command =
                    new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=/dev/null", "-XX:TieredStopAtLevel=1",
                            "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp",
                            System.getProperty("java.class.path"), Probe.class.getName()));
            Stream.of(values()).filter(probe -> !harms.containsKey(probe)).map(words::get).forEach(command::add);
            try {
                return new Trial(new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start());
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
            while (!harms.containsKey(probe)) {
                boolean ended = trial.await();
                note(trial.loaded, ended);
            }
            return harms.get(probe);
        }

        /**
         * Records whether each library is harmful, up to the first harmful library. Then starts a JVM for the other
         * libraries.
         */
        private void note(List<String> loaded, boolean ended) {
            for (Probe each : values()) {
                boolean harmless = loaded.contains(words.get(each));
                if (harms.putIfAbsent(each,
                        harmless ? Optional.empty() : Optional.of(each.harmful(ended, trial.process))) == null
                        && !harmless && harms.size() < words.size()) {
                    trial = start();
                    return;
                }
            }
        }
    }

    /** A JVM that loads libraries, and the lines that it has printed so far. */
    private static final class Trial {

        /** Time limit for the rest of the output. A child of the JVM may keep the output open. */
        private static final Duration OUTPUT_LIMIT = Duration.ofSeconds(5);
        private final Process process;
        private final List<String> loaded = new CopyOnWriteArrayList<>();
        private final Thread reader;

        Trial(Process process) {
            this.process = process;
            reader = Thread.ofPlatform().daemon().start(this::read);
        }

        private void read() {
            try (BufferedReader lines = process.inputReader()) {
                lines.lines().forEach(loaded::add);
            } catch (IOException | UncheckedIOException closed) {
                // The process was destroyed, which closed its output. The lines that were read before are kept.
            }
        }

        /**
         * Waits for the end of the JVM, up to the time limit, and for the JVM's output. Returns whether the JVM ended
         * within the time limit.
         */
        boolean await() {
            boolean ended = false;
            try {
                ended = process.waitFor(Trials.TIMEOUT_SECONDS, TimeUnit.SECONDS);
                if (ended) {
                    reader.join(OUTPUT_LIMIT);
                }
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            } finally {
                if (!ended) {
                    process.destroyForcibly();
                }
            }
            return ended;
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
