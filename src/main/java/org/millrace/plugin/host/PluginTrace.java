package org.millrace.plugin.host;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Setting;
import org.millrace.config.Settings;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.SharedDirectory;
import org.millrace.net.connection.SilenceWatch;
import org.millrace.rehearsal.Recording;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.StallWatch;

/** Writes the plugin's data about the whole process to the process's trace: Java's version, rank and settings. */
public final class PluginTrace {

    /** Property that the shim ({@code jvm_options.c}) sets when it passes a startup cache to the JVM. */
    private static final String CACHE = "org.millrace.cache";

    private PluginTrace() {}

    /**
     * Returns the Java release, and whether the JVM uses the startup cache that the shim passed. The JVM reports
     * "sharing" of classes only if it uses a cache.
     */
    public static String java() {
        String java = "Java " + Runtime.version().feature();
        if (System.getProperty(CACHE) == null) {
            return java;
        }
        return java + (System.getProperty("java.vm.info", "").contains("sharing") ? ", started with its cache"
                : ", which its cache does not fit");
    }

    /**
     * Opens this process's trace, if the settings enable it.
     *
     * @param serves name of the plugin table (network, GIN, …) that NCCL uses
     */
    public static synchronized void open(Configuration settings, String serves) {
        Settings.TraceDetail detail = settings.traceDetail();
        boolean first = ProcessTrace.current() == null;
        if (detail != Settings.TraceDetail.OFF) {
            ProcessTrace.open(settings.get(Settings.TRACE_DIRECTORY).orElseGet(SharedDirectory::usual),
                    detail == Settings.TraceDetail.STEPS);
        }
        try {
            Recording.open(settings, NcclLog::warn);
        } catch (ConfigurationException refused) {
            NcclLog.warn(refused.getMessage() + ". Nothing is recorded");
        }
        ProcessTrace trace = ProcessTrace.current();
        if (settings.get(Settings.PROXY_TRACE).orElse(false)) {
            say(trace);
        }
        if (trace != null) {
            trace.describe("plugin, " + serves + ", Java " + Runtime.version().feature(),
                    LauncherRank.rank(NativeEnvironment::get), LauncherRank.size(NativeEnvironment::get));
            trace.settings(set(settings));
            if (first) {
                StallWatch.start(trace, settings.get(Settings.STALL_REPORT), PluginTrace::tell);
                SilenceWatch.start(trace);
            }
        }
    }

    /** Logs the path of the trace, or the lack of a trace, for a user who set NCCL_PROXY_TRACE=1. */
    private static void say(@Nullable ProcessTrace trace) {
        if (trace == null) {
            NcclLog.warn(Settings.PROXY_TRACE.name() + "=1, and there is no space for the trace of proxies in "
                    + Settings.TRACE_DIRECTORY.name());
        } else {
            NcclLog.info("proxies write their steps to " + trace.path() + ": millrace dump "
                    + ProcessHandle.current().pid() + " reads them");
        }
    }

    /**
     * Writes a sentence to standard error. {@code NCCL_DEBUG} has no effect on this sentence or on reports of losses.
     */
    private static void tell(String sentence) {
        System.err.println(LauncherRank.line(NativeEnvironment::get) + ": " + sentence);
    }

    private static Map<String, String> set(Configuration settings) {
        Map<String, String> set = new LinkedHashMap<>();
        for (Setting<?> setting : Settings.all()) {
            if (settings.isSet(setting) && !setting.secret()) {
                set.put(setting.name(), settings.text(setting));
            }
        }
        return set;
    }

    /** Values that a launcher sets in a process's environment. */
    public static final class LauncherRank {

        private static final List<String> RANKS =
                List.of("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID");
        private static final List<String> SIZES =
                List.of("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS");

        private LauncherRank() {}

        /** Returns the prefix of this process's lines on standard error: {@code millrace: rank 3, pid 41 on a-host}. */
        public static String line(UnaryOperator<@Nullable String> environment) {
            String rank = first(RANKS, environment);
            return "millrace: " + (rank == null ? "" : "rank " + rank + ", ") + "pid " + ProcessHandle.current().pid()
                    + " on " + ProcessIdentity.HOST;
        }

        /** Returns the process's rank; -1 if no launcher sets it. */
        public static int rank(UnaryOperator<@Nullable String> environment) {
            return number(first(RANKS, environment));
        }

        /** Returns the number of ranks; -1 if no launcher sets it. */
        public static int size(UnaryOperator<@Nullable String> environment) {
            return number(first(SIZES, environment));
        }

        private static @Nullable String first(List<String> names, UnaryOperator<@Nullable String> environment) {
            for (String name : names) {
                String value = environment.apply(name);
                if (value != null && !value.isEmpty()) {
                    return value;
                }
            }
            return null;
        }

        private static int number(@Nullable String text) {
            try {
                return text == null ? -1 : Integer.parseInt(text);
            } catch (NumberFormatException none) {
                return -1;
            }
        }
    }
}
