package org.millrace.config;

import static org.millrace.config.ValueTypes.integers;
import static org.millrace.config.ValueTypes.optional;
import static org.millrace.config.ValueTypes.paths;
import static org.millrace.config.ValueTypes.text;
import static org.millrace.config.ValueTypes.values;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Settings that only the plugin for libnccl reads. They are of the environment alone: the process is another program's,
 * and there is no Java yet where the first three say which one the plugin starts, and how.
 */
public final class PluginSettings {

    /** Where the kernels run that the plugin serves. */
    public enum Kernels {
        /** None are served. */
        NONE,
        /** On the GPU. */
        GPU,
        /** The CPU plays them, as in tests. */
        HOST
    }

    private static final Map<String, Kernels> KERNELS =
            Map.of("0", Kernels.NONE, "1", Kernels.GPU, "host", Kernels.HOST);
    private static final Map<String, Boolean> SWITCH = Map.of("0", false, "1", true);
    private static final String ON_BY_DEFAULT = "0 (off), 1 or not set (on)";
    /** The longest that the copy kernel stays, in microseconds. */
    public static final int LONGEST_COPY_KERNEL = 1_000_000;
    /** Offsets in the bounce buffer have 32 bits. */
    private static final int MOST_UNPACK_MIB = 4096;
    private static final int USUAL_UNPACK_MIB = 256;

    /** The Java that is started. */
    public static final Setting<Optional<Path>> JAVA_HOME = new Setting<>("MILLRACE_JAVA_HOME", optional(paths()),
            Optional.empty(), "home of the Java that the plugin starts; unset: what was installed with it");
    /** The classes that it runs. */
    public static final Setting<Optional<Path>> JAR = new Setting<>("MILLRACE_JAR", optional(paths()), Optional.empty(),
            "the millrace.jar that it runs; unset: the one beside the plugin");
    /** More of its options. */
    public static final Setting<Optional<String>> JAVA_OPTIONS =
            new Setting<>("MILLRACE_JAVA_OPTS", optional(text("options of Java, with blanks between")),
                    Optional.empty(), "more options of that Java, with blanks between");

    /** Whether there is GIN, and for which kernels. */
    public static final Setting<Kernels> GIN = new Setting<>("MILLRACE_GIN",
            values(KERNELS, "0 (no GIN), 1 or not set (for GPUs), host (for kernels that are played by the CPU)"),
            Kernels.GPU, "0: no GIN; host: for kernels that are played by the CPU; unset: for GPUs");
    /** Whether GIN maps memory of peers. */
    public static final Setting<Boolean> GIN_DIRECT = new Setting<>("MILLRACE_GIN_DIRECT",
            values(SWITCH, ON_BY_DEFAULT), true,
            "0: GIN maps no memory of peers, all bytes are staged; unset: from GPU to GPU where that is possible");
    /** Whether GIN shares memory between processes of one host. */
    public static final Setting<Boolean> GIN_SHARED =
            new Setting<>("MILLRACE_GIN_SHARED", values(SWITCH, ON_BY_DEFAULT), true,
                    "0: what GIN stages goes over the network between ranks of one host too;"
                            + " unset: in memory that they share");
    /** How long GIN's copy kernel stays; 0: there is none. */
    public static final Setting<Integer> GIN_COPY_KERNEL = new Setting<>("MILLRACE_GIN_COPY_KERNEL",
            integers(0, LONGEST_COPY_KERNEL,
                    "0 to " + LONGEST_COPY_KERNEL + " microseconds, 0 or not set for no such kernel"),
            0, "microseconds that a kernel which makes GIN's small copies stays on the GPU after the last;"
                    + " unset: none is there");

    /** Whether kernels unpack what they receive, and which. */
    public static final Setting<Kernels> UNPACK = new Setting<>("MILLRACE_UNPACK",
            values(KERNELS,
                    "1 (the GPU's kernels unpack), 0 or not set (they do not),"
                            + " or host (for kernels that are played by the CPU)"),
            Kernels.NONE, "1: kernels gather what arrives from a bounce buffer; host: those that are played by the CPU;"
                    + " unset: they do not");
    /** The length of the bounce buffer. */
    public static final Setting<Integer> UNPACK_MIB = new Setting<>("MILLRACE_UNPACK_MIB",
            integers(1, MOST_UNPACK_MIB,
                    "1 to " + MOST_UNPACK_MIB + " MiB of bounce buffer, or not set (here: " + USUAL_UNPACK_MIB + ")"),
            USUAL_UNPACK_MIB, "length of that bounce buffer, 1 to 4096 MiB; unset: 256");

    /** Whether slots are in the memory of GPUs. */
    public static final Setting<Optional<Boolean>> DEVICE_SLOTS = new Setting<>("MILLRACE_DEVICE_SLOTS",
            optional(ValueTypes.booleans()), Optional.empty(),
            "0: what kernels send and receive in protocol Simple waits in the host's memory;"
                    + " 1: in the GPU's, which is an error where it cannot; unset: in the GPU's if the launcher says that"
                    + " all ranks are on this host");

    /** What is kept of NCCL's profiler events. */
    public enum Events {
        /** Nothing. */
        OFF,
        /** Operations that are enqueued. */
        OPERATIONS,
        /** Those, and when their kernels run. */
        KERNELS
    }

    /** Which of NCCL's profiler events are kept. */
    public static final Setting<Events> PROFILER = new Setting<>("MILLRACE_PROFILER",
            values(Map.of("0", Events.OFF, "1", Events.OPERATIONS, "kernels", Events.KERNELS),
                    "0 (off), 1 or not set (operations that are enqueued), or kernels (when their kernels run, too:"
                            + " NCCL's proxy thread then polls)"),
            Events.OPERATIONS, "0: operations that NCCL enqueues are not written down; kernels: when their kernels run"
                    + " is written down, too, for which NCCL's proxy thread polls; unset: that they are enqueued");

    /** Whether a process that has lost a peer it waits for ends. */
    public static final Setting<Boolean> ON_LOSS = new Setting<>("MILLRACE_ON_LOSS",
            values(Map.of("report", false, "exit", true),
                    "report (it is said, on standard error and to the next enqueue), exit or not set (the process then"
                            + " ends)"),
            true, "report: a lost peer is only told of; unset: the process ends if nobody aborts the communicator");
    /** How long the program has to abort a communicator that has lost a peer. */
    public static final Setting<Duration> LOSS_GRACE = new Setting<>("MILLRACE_LOSS_GRACE",
            new DurationType(Duration.ZERO, Duration.ofHours(24)), Duration.ofSeconds(5),
            "how long the program has to abort or destroy a communicator that has lost a peer; unset: 5s");

    /** Whether NCCL's answer to who asks for errors says that a peer is lost. */
    public static final Setting<Boolean> ASYNC_ERROR = new Setting<>("MILLRACE_ASYNC_ERROR",
            values(SWITCH, ON_BY_DEFAULT), true,
            "0: ncclCommGetAsyncError does not tell of a lost peer; unset: it does, whoever calls it by its name");

    private static final List<Setting<?>> ALL = List.of(JAVA_HOME, JAR, JAVA_OPTIONS, ON_LOSS, LOSS_GRACE, ASYNC_ERROR,
            PROFILER, DEVICE_SLOTS, GIN, GIN_DIRECT, GIN_SHARED, GIN_COPY_KERNEL, UNPACK, UNPACK_MIB);

    private PluginSettings() {}

    /** {@return every setting of the plugin alone, in the order of the topics} */
    public static List<Setting<?>> all() {
        return ALL;
    }
}
