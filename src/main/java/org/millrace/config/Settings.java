package org.millrace.config;

import static org.millrace.config.ValueTypes.addresses;
import static org.millrace.config.ValueTypes.booleans;
import static org.millrace.config.ValueTypes.choices;
import static org.millrace.config.ValueTypes.integers;
import static org.millrace.config.ValueTypes.lists;
import static org.millrace.config.ValueTypes.paths;
import static org.millrace.config.ValueTypes.powersOfTwo;
import static org.millrace.config.ValueTypes.text;
import static org.millrace.config.ValueTypes.values;
import static org.millrace.config.ValueTypes.wordsOr;

import java.net.InetAddress;
import java.net.ProtocolFamily;
import java.net.StandardProtocolFamily;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.millrace.config.Setting.ValueType;

/**
 * The table of all settings, ordered by part. The page settings.md and the output of {@code millrace doctor} are
 * generated from the table. A setting has NCCL's name where NCCL has a setting for the same purpose.
 */
@SuppressWarnings("doclint:missing") // Each setting contains its own description.
public final class Settings {

    /** The parts of Millrace that settings belong to. */
    public enum Part {
        DEVICE("Devices and native libraries", false),
        BUFFERS("Channels, buffers and work", false),
        TRANSPORTS("Transports of one host", false),
        COLLNET("Collective network", false),
        ALGORITHMS("Algorithms and protocols", false),
        NETWORK("Network", false),
        SHM("Frames over shared memory", false),
        SOCKET("Frames over TCP", false),
        SECURITY("Secret and TLS", false),
        TAKEOVER("Takeover", false),
        THREADS("Threads", false),
        FAILURES("Deadlines and faults", false),
        TRACE("Trace", false),
        LOG("Messages", false),
        PLUGIN("Plugin for libnccl", true),
        LOSS("Lost peers under libnccl", true),
        GIN("GIN under libnccl", true),
        UNPACK("UNPACK under libnccl", true);

        private final String title;
        private final boolean ofThePlugin;

        Part(String title, boolean ofThePlugin) {
            this.title = title;
            this.ofThePlugin = ofThePlugin;
        }

        public String title() {
            return title;
        }

        /**
         * {@return whether only the plugin for libnccl reads the settings of this part} The plugin reads them from the
         * environment only, for two reasons. First, the process belongs to another program. Second, some settings
         * select the Java runtime, which does not run yet when the plugin reads them.
         */
        public boolean ofThePlugin() {
            return ofThePlugin;
        }
    }

    /** Location of the kernels that the plugin serves. */
    public enum Kernels {
        NONE,
        GPU,
        /** CPU threads that emulate kernels, for instance in tests. */
        HOST
    }

    /** Comparison of payloads with their checksums, for steps and for GIN's frames. */
    public enum PayloadCheck {
        OFF,
        /** A changed payload makes its connection fail. */
        FAIL,
        /** A changed payload is only logged. */
        REPORT
    }

    /** Events of NCCL's profiler interface that the plugin records. */
    public enum Events {
        OFF,
        /** Enqueued operations. */
        OPERATIONS,
        /** Enqueued operations, and the times of their kernels. */
        KERNELS
    }

    /** Prefix of the value of {@link #NETWORK} that selects a network plugin. */
    public static final String PLUGIN_PREFIX = "plugin:";
    /** Maximum time that GIN's copy kernel stays on the GPU after the last outgoing copy, in microseconds. */
    public static final int LONGEST_COPY_KERNEL = 1_000_000;
    /**
     * Default time that GIN's copy kernel stays on the GPU after the last outgoing copy, in microseconds. A thread that
     * waits for all work of the GPU also waits for this kernel.
     */
    private static final int DEFAULT_COPY_KERNEL = 150;

    private static final ValueTypes.DurationType DEADLINES =
            new ValueTypes.DurationType(Duration.ofMillis(1), Duration.ofHours(24));
    /**
     * Unit of a buffer's size in bytes: 8 slots (NCCL_STEPS) of at least one page each. The address of each slot is
     * then aligned as every copy and network requires.
     */
    private static final long BUFFER_UNIT = 8 * 4096;
    /**
     * Minimum size of the work FIFO in bytes: twice the size of the largest item of work, rounded up to a power of two.
     * A kernel uses at most half of the FIFO.
     */
    private static final long MIN_WORK_FIFO = 256;
    /** Maximum size of the bounce buffer for unpacking, in MiB. Offsets in that buffer have 32 bits. */
    private static final int MAX_UNPACK_MIB = 4096;
    private static final int DEFAULT_UNPACK_MIB = 256;
    private static final Map<String, Kernels> KERNELS =
            Map.of("0", Kernels.NONE, "1", Kernels.GPU, "host", Kernels.HOST);
    private static final Map<String, Boolean> SWITCH = Map.of("0", false, "1", true);
    private static final String ON_BY_DEFAULT = "0 (off), 1 or not set (on)";

    private static final List<Setting<?>> ALL = new ArrayList<>();

    public static final Setting<String> DEVICE = setting(Part.DEVICE, "MILLRACE_DEVICE",
            text("host, cuda, auto, or the name of another provider that is on the class path"), "auto",
            "device that runs operations: host (CPU threads), cuda (GPUs through libnccl), or auto"
                    + " (cuda if it is usable, else host)");
    public static final Setting<Optional<Path>> NCCL_LIBRARY = optional(Part.DEVICE, "MILLRACE_NCCL_LIBRARY", paths(),
            "libnccl.so.2, or its directory; unset: searched under its usual names and places");
    public static final Setting<Optional<Path>> CUDART_LIBRARY = optional(Part.DEVICE, "MILLRACE_CUDART_LIBRARY",
            paths(), "libcudart.so, or its directory; unset: searched under its usual names and places");
    public static final Setting<Optional<Path>> UCX_LIBRARY = optional(Part.DEVICE, "MILLRACE_UCX_LIBRARY", paths(),
            "libucp.so.0, the library of UCX, for MILLRACE_NET=ucx; unset: as the dynamic loader"
                    + " finds it (LD_LIBRARY_PATH)");

    // NCCL's limit is 64 (MAXCHANNELS)
    public static final Setting<Optional<Integer>> MIN_CHANNELS = optional(Part.BUFFERS, "NCCL_MIN_NCHANNELS",
            integers(1, 64), "minimum number of channels of a communicator; unset: chosen for the machine");
    public static final Setting<Optional<Integer>> MAX_CHANNELS = optional(Part.BUFFERS, "NCCL_MAX_NCHANNELS",
            integers(1, 64), "maximum number of channels of a communicator; unset: chosen for the machine");
    public static final Setting<Long> BUFFER_SIZE = setting(Part.BUFFERS, "NCCL_BUFFSIZE",
            new ValueTypes.SizeType(BUFFER_UNIT, 1L << 30, BUFFER_UNIT), 1L << 20,
            "size in bytes of the Simple protocol's buffer of each connection of the emulated" + " device: 8 slots");
    public static final Setting<Long> WORK_FIFO_BYTES =
            setting(Part.BUFFERS, "NCCL_WORK_FIFO_BYTES", powersOfTwo(MIN_WORK_FIFO, 1L << 30), 1L << 20,
                    "size in bytes of the FIFO that transfers a communicator's work to kernels of the"
                            + " emulated device, if their arguments have no room for it");
    public static final Setting<Long> WORK_ARGUMENT_BYTES =
            setting(Part.BUFFERS, "NCCL_WORK_ARGS_BYTES", new ValueTypes.SizeType(0, 4096, 16), 4096L,
                    "maximum size in bytes of the arguments of a kernel of the emulated device; raised, if"
                            + " necessary, so that one operation on all channels fits; its work is then in the FIFO");
    public static final Setting<Optional<Boolean>> NET_SHARED_BUFFERS = optional(Part.BUFFERS,
            "NCCL_NET_SHARED_BUFFERS", booleans(),
            "1: the sends of a channel share slots, and so do its receives, if they use a network,"
                    + " which saves memory with many peers; the same on all ranks; unset: with 16 peers or more");
    // NCCL's default is 128 KiB
    public static final Setting<Optional<Long>> P2P_NET_CHUNK_SIZE =
            optional(Part.BUFFERS, "NCCL_P2P_NET_CHUNKSIZE", new ValueTypes.SizeType(1 << 10, 1L << 27, 1 << 10),
                    "size in bytes of a chunk of sends and receives, at most a slot; the same on all ranks;"
                            + " unset: a slot, or 128K for shared slots");
    // With transfers between user buffers, an all-reduce of 1 MiB between two processes over TCP took 330 us. Through
    // slots it took 430 us. Up to 256 KiB a noisy machine showed no difference.
    public static final Setting<Long> PTR_THRESHOLD =
            setting(Part.BUFFERS, "MILLRACE_PTR_THRESHOLD", new ValueTypes.SizeType(0, 1L << 40, 1), 256L << 10,
                    "minimum size in bytes of a hop that uses unregistered user memory in place, which saves"
                            + " copies; applies to all-reduce, all-gather and broadcast around a ring, over networks"
                            + " with this ability; 1024G: never");
    public static final Setting<Optional<Long>> REGISTERED_THRESHOLD = optional(Part.BUFFERS,
            "MILLRACE_REGISTERED_THRESHOLD", new ValueTypes.SizeType(0, 1L << 40, 1),
            "minimum size in bytes of a hop that peers read in place from registered memory, over"
                    + " P2P and SHM; smaller hops use slots; unset: 64K if elements are combined, 256K otherwise");
    public static final Setting<Boolean> GROUPED_CONNECTIONS = off(Part.BUFFERS, "MILLRACE_GROUPED_CONNECTIONS",
            "1: up to 4 channels between two ranks share one connection of the network, for rings"
                    + " only, so no operation uses trees; the same on all ranks");

    public static final Setting<Boolean> MY_TRANSPORT_ENABLE = setting(Part.TRANSPORTS, "NCCL_MY_TRANSPORT_ENABLE",
            booleans(), true, "0: transports of other jars on the class path are not used");
    public static final Setting<Boolean> P2P_DISABLE =
            off(Part.TRANSPORTS, "NCCL_P2P_DISABLE", "1: ranks of one process do not write into each other's memory");
    public static final Setting<Boolean> P2P_MEMCPY = off(Part.TRANSPORTS, "NCCL_P2P_USE_CUDA_MEMCPY",
            "1: between ranks of one process the sender's proxy copies, instead of its device");
    public static final Setting<Boolean> SHM_DISABLE =
            off(Part.TRANSPORTS, "NCCL_SHM_DISABLE", "1: devices of one host's processes do not share memory");
    public static final Setting<Boolean> SHM_MEMCPY = off(Part.TRANSPORTS, "NCCL_SHM_USE_CUDA_MEMCPY",
            "1: proxies copy between shared memory and the devices' own memory, on the sides set by"
                    + " NCCL_SHM_MEMCPY_MODE");
    public static final Setting<Integer> SHM_MEMCPY_MODE =
            setting(Part.TRANSPORTS, "NCCL_SHM_MEMCPY_MODE", integers(1, 3), 1,
                    "with NCCL_SHM_USE_CUDA_MEMCPY: 1 the sender's proxy copies, 2 the receiver's, 3" + " both");
    public static final Setting<Integer> SHM_LOCALITY = setting(Part.TRANSPORTS, "NCCL_SHM_LOCALITY", integers(1, 2), 2,
            "NUMA node of shared memory: 1 the sender's, 2 the receiver's; the same on all ranks");
    public static final Setting<Optional<String>> HOST_ID = optional(Part.TRANSPORTS, "NCCL_HOSTID", text("any text"),
            "name of the host: P2P and SHM connect only ranks with the same name; unset: the" + " system's host name");

    public static final Setting<Boolean> COLLNET_ENABLE = off(Part.COLLNET, "NCCL_COLLNET_ENABLE",
            "1 on all ranks: all-reduces, all-gathers and reduce-scatters of up to"
                    + " MILLRACE_COLLNET_MAX_BYTES use a collective network; it is a network of another jar"
                    + " that all ranks have, or else the ranks reduce for each other");
    // Up to this size, the collective network is at least as fast as the ring (collnet.md).
    public static final Setting<Long> COLLNET_MAX_BYTES =
            setting(Part.COLLNET, "MILLRACE_COLLNET_MAX_BYTES", new ValueTypes.SizeType(1, 1L << 40, 1), 8L << 10,
                    "maximum size of a collective that uses the collective network, all ranks' parts"
                            + " together; larger collectives use the ring, unless NCCL_ALGO=collnet; the same on all"
                            + " ranks");

    public static final Setting<Optional<String>> ALGORITHMS = optional(Part.ALGORITHMS, "NCCL_ALGO",
            text("algorithms with commas between, as in ring,tree or ^tree; perhaps by function, as in"
                    + " ring;allreduce:tree"),
            "algorithms that collectives may use; the emulated device has ring, and tree for"
                    + " all-reduce; unset: chosen by size");
    public static final Setting<Optional<String>> PROTOCOLS =
            optional(Part.ALGORITHMS, "NCCL_PROTO",
                    text("protocols with commas between, as in LL,Simple or ^LL128; perhaps by function, as in"
                            + " Simple;allreduce:LL"),
                    "protocols of collectives: LL, LL128, Simple; unset: chosen by size");
    // NCCL's default is 16 KiB
    public static final Setting<Optional<Long>> P2P_LL_THRESHOLD =
            optional(Part.ALGORITHMS, "NCCL_P2P_LL_THRESHOLD", new ValueTypes.SizeType(0, 1L << 40, 1),
                    "maximum size of sends and receives that use LL; the same on all ranks; unset: none,"
                            + " because Simple is faster on CPU threads at every size");

    public static final Setting<String> NETWORK = setting(Part.NETWORK, "MILLRACE_NET",
            wordsOr(PLUGIN_PREFIX, "PATH, where PATH is a network plugin for NCCL", "auto", "shm", "socket", "ucx"),
            "auto",
            "network between any two ranks: frames over shared memory (shm), TCP (socket), UCX's"
                    + " transports, such as cards with RDMA (ucx), or a network plugin for NCCL (plugin:PATH);"
                    + " auto: shared memory if two ranks share some, otherwise frames");
    public static final Setting<List<Integer>> NET_DEVICES =
            setting(Part.NETWORK, "MILLRACE_NET_DEVICES", lists(integers(0, 1023)), List.of(),
                    "with MILLRACE_NET=plugin:PATH: numbers of the plugin's devices that connections use in"
                            + " turn, as listed by millrace doctor; unset: all");
    public static final Setting<Integer> NET_MAX_RECVS = setting(Part.NETWORK, "NCCL_NET_MAX_RECVS", integers(1, 8), 8,
            "with MILLRACE_NET=plugin:PATH: maximum number of buffers of one receive of the plugin,"
                    + " within the plugin's own limit; with MILLRACE_TAKEOVER=0 also the limit for receives of"
                    + " NCCL, where unset means 1");
    public static final Setting<Optional<Boolean>> NET_DEVICE_UNPACK =
            optional(Part.NETWORK, "NCCL_NET_DEVICE_UNPACK_ENABLED", booleans(),
                    "1: kernels gather data from networks out of pages; under libnccl 1 is"
                            + " MILLRACE_UNPACK=1, and 0 is MILLRACE_UNPACK=0");
    public static final Setting<Long> NET_DEVICE_UNPACK_THRESHOLD =
            setting(Part.NETWORK, "NCCL_NET_DEVICE_UNPACK_THRESHOLD", new ValueTypes.SizeType(0, 4L << 20, 1), 0L,
                    "minimum size in bytes of a slice that kernels gather; 0 under libnccl");

    public static final Setting<Optional<Boolean>> SHM_SINGLE_COPY =
            optional(Part.SHM, "MILLRACE_SHM_SINGLE_COPY", booleans(),
                    "1: large payloads of frames over shared memory are read directly from the sending"
                            + " process's memory, otherwise an error occurs; 0: they are copied into a ring and out of"
                            + " it; unset: read directly if the kernel allows it and it takes less of a core's time");

    public static final Setting<Optional<String>> SOCKET_INTERFACES = optional(Part.SOCKET, "NCCL_SOCKET_IFNAME",
            text("prefixes of interface names with commas between; a leading ^ excludes them, a leading = selects"
                    + " exact names"),
            "network interfaces, as in eth,ib or ^docker or =eth0; several are rails; unset: one,"
                    + " and loopback or docker only without any other");
    public static final Setting<Optional<ProtocolFamily>> SOCKET_FAMILY = optional(Part.SOCKET, "NCCL_SOCKET_FAMILY",
            values(Map.of("AF_INET", StandardProtocolFamily.INET, "AF_INET6", StandardProtocolFamily.INET6),
                    "AF_INET, AF_INET6"),
            "AF_INET or AF_INET6: only IPv4 or only IPv6 addresses of interfaces; unset: IPv4 if" + " available");
    public static final Setting<Optional<List<InetAddress>>> SOCKET_ADDRESSES =
            optional(Part.SOCKET, "MILLRACE_SOCKET_ADDRESSES", lists(addresses()),
                    "addresses of this host, one rail each, instead of the interfaces' addresses; unset: the"
                            + " interfaces' addresses");
    public static final Setting<Optional<Integer>> SOCKET_STREAMS = optional(Part.SOCKET, "MILLRACE_SOCKET_STREAMS",
            integers(1, 16), "number of TCP streams per rail over which a connection spreads large payloads; unset:"
                    + " chosen for the machine",
            "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD");

    public static final Setting<String> SECRET =
            add(new Setting<>(Part.SECURITY, "MILLRACE_SECRET", text("any text, the same for every rank"), "",
                    "secret that authenticates ranks that meet at an address; never shown", List.of(), true));
    public static final Setting<String> RUN_ID =
            setting(Part.SECURITY, "MILLRACE_RUN_ID", text("any text, the same for every rank of a run"), "",
                    "identity of the run: ranks with different ones do not join one group, also if they use the same"
                            + " address; unset: the launcher's",
                    "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "SLURM_JOB_ID");
    public static final Setting<Boolean> REQUIRE_SECRET = off(Part.SECURITY, "MILLRACE_REQUIRE_SECRET",
            "1: ranks that meet at an address, also on loopback, fail without MILLRACE_SECRET"
                    + " instead of a warning; the plugin then needs MILLRACE_TLS=1");
    public static final Setting<Boolean> TLS = off(Part.SECURITY, "MILLRACE_TLS",
            "1: all TCP traffic between ranks uses TLS 1.3, and both ends of every stream"
                    + " authenticate by MILLRACE_SECRET or by certificates; the same on all ranks");
    public static final Setting<Optional<Path>> TLS_CERTIFICATE = optional(Part.SECURITY, "MILLRACE_TLS_CERTIFICATE",
            paths(), "with MILLRACE_TLS=1: a PEM file with this process's certificate and the intermediate"
                    + " certificates up to the authority; unset: the secret is used");
    public static final Setting<Optional<Path>> TLS_KEY = optional(Part.SECURITY, "MILLRACE_TLS_KEY", paths(),
            "with MILLRACE_TLS=1: a PEM file with its private key, PKCS#8 and not encrypted");
    public static final Setting<Optional<Path>> TLS_CA = optional(Part.SECURITY, "MILLRACE_TLS_CA", paths(),
            "with MILLRACE_TLS=1: a PEM file with the authority of the ranks' certificates; all its"
                    + " certificates are admitted");

    public static final Setting<Optional<Boolean>> TAKEOVER = optional(Part.TAKEOVER, "MILLRACE_TAKEOVER", booleans(),
            "1: Java serves libnccl's connections, or an error occurs; 0: libnccl's own proxy serves"
                    + " them; unset: Java if possible, and under RCCL its own proxy");

    public static final Setting<Optional<Integer>> THREADS = optional(Part.THREADS, "MILLRACE_THREADS",
            integers(1, 256), "maximum number of polling threads of a rank; unset: derived from its number of cores");
    // A thread makes the default number of passes in a few milliseconds. With fewer passes, a thread would also sleep
    // in short waits. Such a sleep would cost more time than it saves, because a sleep takes at least 60 us.
    public static final Setting<Integer> IDLE_THRESHOLD =
            setting(Part.THREADS, "NCCL_PROXY_IDLE_THRESHOLD", integers(0, Integer.MAX_VALUE), 20_000,
                    "number of passes without work until a polling thread sleeps between passes; 0: it never"
                            + " sleeps; unset: in a takeover after 4 ms");
    public static final Setting<Optional<Integer>> IDLE_SLEEP_MICROS =
            optional(Part.THREADS, "NCCL_PROXY_IDLE_SLEEP_US", integers(1, 1_000_000),
                    "maximum sleep of an idle polling thread between two passes, in microseconds; unset:"
                            + " 200000 if each event wakes the thread, 1000 if a network does not; in a takeover a"
                            + " twentieth of its idle time up to 5000, then a two-hundredth up to 50000");

    public static final Setting<Duration> CONNECT_DEADLINE =
            setting(Part.FAILURES, "MILLRACE_CONNECT_DEADLINE", DEADLINES, Duration.ofSeconds(30),
                    "time that a rank waits for the other ranks and for connections to be made");
    public static final Setting<Duration> RECONNECT_DEADLINE = setting(Part.FAILURES, "MILLRACE_RECONNECT_DEADLINE",
            new ValueTypes.DurationType(Duration.ZERO, Duration.ofHours(24)), Duration.ofSeconds(60),
            "time that a TCP connection without any stream waits for a new stream, unless the peer's"
                    + " process is known to have ended; 0s: a lost stream is not replaced; the same on all ranks");
    public static final Setting<Duration> STALL_DEADLINE =
            setting(Part.FAILURES, "MILLRACE_STALL_DEADLINE", DEADLINES, Duration.ofSeconds(60),
                    "time without progress after which an operation fails that all ranks have launched");
    public static final Setting<Duration> LATE_DEADLINE = setting(Part.FAILURES, "MILLRACE_LATE_DEADLINE", DEADLINES,
            Duration.ofMinutes(30), "time that ranks wait in an operation for a living rank that has not launched it");
    public static final Setting<Duration> CLOSE_DEADLINE =
            setting(Part.FAILURES, "MILLRACE_CLOSE_DEADLINE", DEADLINES, Duration.ofSeconds(60),
                    "time that close() waits for operations and for the other ranks to close; then it throws");
    public static final Setting<Optional<Path>> DECISION_DIRECTORY = optional(Part.FAILURES, "MILLRACE_DECISION_DIR",
            paths(), "directory in which the ranks of one host decide after a loss which of them continue;"
                    + " unset: MILLRACE_RUN_DIR, that of a file: rendezvous, or only a majority of the ranks continues");
    public static final Setting<Optional<Path>> RUN_DIRECTORY = optional(Part.FAILURES, "MILLRACE_RUN_DIR", paths(),
            "directory of a run, which millrace run sets: used for decisions if MILLRACE_DECISION_DIR is unset; if a"
                    + " rank cannot use it, only a majority of the ranks continues; unset: none");
    public static final Setting<PayloadCheck> CHECK = setting(Part.FAILURES, "MILLRACE_CHECK",
            values(Map.of("0", PayloadCheck.OFF, "1", PayloadCheck.FAIL, "report", PayloadCheck.REPORT),
                    "0 or not set (no check), 1 (a changed payload fails the communicator) or report (a changed payload"
                            + " is only logged)"),
            PayloadCheck.OFF,
            "1: each payload has a CRC-32C checksum from the sender's slot to the receiver's slot, and a change"
                    + " fails the communicator; report: a change is only logged; the same on all ranks; slots are then"
                    + " in host memory, and GIN's bytes pass the network");
    public static final Setting<Optional<String>> FAULT = optional(Part.FAILURES, "MILLRACE_FAULT",
            text("flip:frame=N,bit=N  cut:frame=N[,rail=N]  delay:frame=N,polls=N  garbage:frame=N"),
            "a fault to inject, for tests; unset: none");
    public static final Setting<Optional<String>> LINK = optional(Part.NETWORK, "MILLRACE_LINK",
            text("rate=N[K|M|G]bit,delay=TIME,jitter=TIME,loss=N%, each if wanted; or @ and the path of a file of them;"
                    + " HOST-HOST: before it for two hosts alone, and ; between several"),
            "emulated properties of the network for all data that this process sends, as the page"
                    + " links.md describes; unset: none");

    public static final Setting<TraceDetail> TRACE =
            setting(Part.TRACE, "MILLRACE_TRACE", choices(TraceDetail.class), TraceDetail.STEPS,
                    "data that a process records about its connections, for millrace ps, top, why, dump and"
                            + " metrics: none (off), counters, or also the last steps of each connection (steps)",
                    "NCCL_PROXY_TRACE");
    public static final Setting<Optional<Path>> TRACE_DIRECTORY = optional(Part.TRACE, "MILLRACE_TRACE_DIRECTORY",
            paths(),
            "directory of the trace, which should be in memory; unset: the directory of rings in" + " shared memory");
    public static final Setting<Optional<Boolean>> PROXY_TRACE = optional(Part.TRACE, "NCCL_PROXY_TRACE", booleans(),
            "1: the last steps of each connection's proxy are recorded, and a message names the"
                    + " file; 0: they are not recorded; unset: as MILLRACE_TRACE states");
    public static final Setting<Optional<Path>> RECORD = optional(Part.TRACE, "MILLRACE_RECORD", paths(),
            "directory for the record of every operation and of every connection's steps, for"
                    + " millrace record, replay and simulate; a new directory for each run; needs the trace");
    public static final Setting<Long> RECORD_BYTES =
            setting(Part.TRACE, "MILLRACE_RECORD_BYTES", new ValueTypes.SizeType(64 << 10, 1L << 40, 1), 64L << 20,
                    "size of each thread's file of a recording, at 64 bytes a step; when it is full, the"
                            + " oldest steps are overwritten");
    public static final Setting<Duration> STALL_REPORT = setting(Part.TRACE, "MILLRACE_STALL_REPORT",
            new ValueTypes.DurationType(Duration.ZERO, Duration.ofHours(24)), Duration.ofSeconds(10),
            "time without progress after which a connection with posted data is reported on standard"
                    + " error, with the rank and the cause, in the words of millrace why; 0s: never. The value of"
                    + " the process's first communicator applies");

    public static final Setting<LogLevel> LOG_LEVEL = setting(Part.LOG, "NCCL_DEBUG", choices(LogLevel.class),
            LogLevel.WARN, "level of log messages of the command line and of NCCL");
    public static final Setting<Set<LogSubsystem>> LOG_SUBSYSTEMS =
            setting(Part.LOG, "NCCL_DEBUG_SUBSYS", LogSubsystem.SETS, Set.copyOf(EnumSet.allOf(LogSubsystem.class)),
                    "subjects that the command line logs besides warnings and errors; NCCL filters its own"
                            + " lines and the plugin's, which belong to INIT and NET");

    public static final Setting<Optional<Path>> JAVA_HOME = optional(Part.PLUGIN, "MILLRACE_JAVA_HOME", paths(),
            "home of the Java that the plugin starts; unset: the Java that was installed with it");
    public static final Setting<Optional<Path>> JAR = optional(Part.PLUGIN, "MILLRACE_JAR", paths(),
            "the millrace.jar that the plugin runs; unset: the jar beside the plugin");
    public static final Setting<Optional<String>> JAVA_OPTIONS = optional(Part.PLUGIN, "MILLRACE_JAVA_OPTS",
            text("options of Java, separated by blanks"), "additional options of that Java, separated by blanks");
    public static final Setting<Optional<Boolean>> DEVICE_SLOTS =
            optional(Part.PLUGIN, "MILLRACE_DEVICE_SLOTS", booleans(),
                    "memory for the data of kernels in protocol Simple: 0: the host's; 1: the GPU's, or an"
                            + " error if it cannot be used; unset: the GPU's if the launcher states that all ranks are"
                            + " on this host");
    public static final Setting<Events> PROFILER = setting(Part.PLUGIN, "MILLRACE_PROFILER",
            values(Map.of("0", Events.OFF, "1", Events.OPERATIONS, "kernels", Events.KERNELS),
                    "0 (off), 1 or not set (operations that are enqueued), or kernels (when their kernels run, too:"
                            + " NCCL's proxy thread then polls)"),
            Events.OPERATIONS,
            "0: operations that NCCL enqueues are not recorded; kernels: the times of their kernels"
                    + " are recorded, too, and NCCL's proxy thread polls for them; unset: only enqueued"
                    + " operations");

    public static final Setting<Boolean> ON_LOSS = setting(Part.LOSS, "MILLRACE_ON_LOSS",
            values(Map.of("report", false, "exit", true),
                    "report (reported on standard error and to the next enqueue), exit or not set (the process then"
                            + " ends)"),
            true, "report: a lost peer is only reported; unset: the process also ends if the program does"
                    + " not abort the communicator");
    public static final Setting<Duration> LOSS_GRACE = setting(Part.LOSS, "MILLRACE_LOSS_GRACE",
            new ValueTypes.DurationType(Duration.ZERO, Duration.ofHours(24)), Duration.ofSeconds(5),
            "time for the program to abort or destroy a communicator that has lost a peer; unset: 5s");
    public static final Setting<Boolean> ASYNC_ERROR =
            setting(Part.LOSS, "MILLRACE_ASYNC_ERROR", values(SWITCH, ON_BY_DEFAULT), true,
                    "0: ncclCommGetAsyncError does not report a lost peer; unset: it does if the program"
                            + " calls it by its name");

    public static final Setting<Kernels> GIN = setting(Part.GIN, "MILLRACE_GIN",
            values(KERNELS, "0 (no GIN), 1 or not set (for GPUs), host (for emulated kernels)"), Kernels.GPU,
            "0: no GIN; host: for emulated kernels; unset: for GPUs");
    public static final Setting<Boolean> GIN_DIRECT =
            setting(Part.GIN, "MILLRACE_GIN_DIRECT", values(SWITCH, ON_BY_DEFAULT), true,
                    "0: GIN maps no memory of peers, and all bytes are staged; unset: bytes move from GPU to"
                            + " GPU if possible");
    public static final Setting<Boolean> GIN_SHARED =
            setting(Part.GIN, "MILLRACE_GIN_SHARED", values(SWITCH, ON_BY_DEFAULT), true,
                    "0: staged data of GIN uses the network, also between ranks of one host; unset: ranks of"
                            + " one host use shared memory");
    public static final Setting<Integer> GIN_COPY_KERNEL =
            setting(Part.GIN, "MILLRACE_GIN_COPY_KERNEL",
                    integers(0, LONGEST_COPY_KERNEL,
                            "0 to " + LONGEST_COPY_KERNEL + " microseconds, 0 for no such kernel"),
                    DEFAULT_COPY_KERNEL,
                    "time that the kernel for GIN's small copies stays on the GPU after the last outgoing copy, in"
                            + " microseconds");

    public static final Setting<Kernels> UNPACK = setting(Part.UNPACK, "MILLRACE_UNPACK",
            values(KERNELS,
                    "1 (the GPU's kernels unpack), 0 or not set (they do not), or host (for emulated" + " kernels)"),
            Kernels.NONE,
            "1: kernels gather received data from a bounce buffer; host: emulated kernels do; unset:" + " they do not",
            "NCCL_NET_DEVICE_UNPACK_ENABLED");
    public static final Setting<Integer> UNPACK_MIB = setting(Part.UNPACK, "MILLRACE_UNPACK_MIB",
            integers(1, MAX_UNPACK_MIB,
                    "1 to " + MAX_UNPACK_MIB + " MiB of bounce buffer, or not set (here: " + DEFAULT_UNPACK_MIB + ")"),
            DEFAULT_UNPACK_MIB, "size of that bounce buffer, 1 to 4096 MiB; unset: 256");

    private Settings() {}

    private static <T> Setting<T> setting(Part part, String name, ValueType<T> type, T otherwise, String description,
            String... aliases) {
        return add(new Setting<>(part, name, type, otherwise, description, List.of(aliases), false));
    }

    /** Adds a setting without a default. The code that reads the setting determines the value if it is not set. */
    private static <T> Setting<Optional<T>> optional(Part part, String name, ValueType<T> type, String description,
            String... aliases) {
        return setting(part, name, ValueTypes.optional(type), Optional.empty(), description, aliases);
    }

    private static Setting<Boolean> off(Part part, String name, String description) {
        return setting(part, name, booleans(), false, description);
    }

    private static <T> Setting<T> add(Setting<T> setting) {
        ALL.add(setting);
        return setting;
    }

    /** {@return every setting, in the order of the parts} */
    public static List<Setting<?>> all() {
        return Collections.unmodifiableList(ALL);
    }

    /** {@return the settings that configure a program: all settings except the settings that only the plugin reads} */
    public static List<Setting<?>> ofPrograms() {
        return ALL.stream().filter(setting -> !setting.part().ofThePlugin()).toList();
    }

    /**
     * The values of {@code NCCL_DEBUG} and the levels of Millrace's own messages. NCCL orders them VERSION, WARN, INFO,
     * ABORT, TRACE (nccl_common.h). Millrace has no message of the level ABORT, so ABORT prints the same messages as
     * INFO.
     */
    public enum LogLevel {
        /** Only errors. */
        VERSION("ERROR"),
        /** Warnings and errors. */
        WARN("WARN"),
        /** Warnings, errors and events during setup. */
        INFO("INFO"),
        /** The same messages as {@link #INFO}. */
        ABORT("INFO"),
        /**
         * The messages of {@link #INFO}, each operation that is launched, and each fallback after a failed first
         * attempt.
         */
        TRACE("TRACE");

        private final String loggerLevel;

        LogLevel(String loggerLevel) {
            this.loggerLevel = loggerLevel;
        }

        /** {@return the level of the loggers, by Log4j's name} */
        public String loggerLevel() {
            return loggerLevel;
        }
    }

    /** Amount of information that a process records about its connections. */
    public enum TraceDetail {
        /** No information. */
        OFF,
        /** Counters. */
        COUNTERS,
        /** Counters, and the last steps of each connection. */
        STEPS
    }

    /**
     * Subjects of messages, with the names that NCCL uses in {@code NCCL_DEBUG_SUBSYS}. On the command line, Millrace
     * logs messages about some of these subjects, but not about the others.
     */
    @SuppressWarnings("doclint:missing") // NCCL's documentation describes the constants
    public enum LogSubsystem {
        INIT,
        COLL,
        P2P,
        SHM,
        NET,
        GRAPH,
        TUNING,
        ENV,
        ALLOC,
        ALLOC_HOST,
        CALL,
        PROXY,
        NVLS,
        BOOTSTRAP,
        REG,
        PROFILE,
        RAS,
        DESTROY;

        private static final String ALL = "ALL";

        /**
         * Sets of subjects in NCCL's format: names separated by commas. A leading {@code ^} selects all other subjects.
         */
        static final ValueType<Set<LogSubsystem>> SETS = new ValueType<>() {

            @Override
            public Set<LogSubsystem> parse(String text) {
                boolean excluded = text.startsWith("^");
                EnumSet<LogSubsystem> named = EnumSet.noneOf(LogSubsystem.class);
                for (String name : List.of((excluded ? text.substring(1) : text).split(","))) {
                    String word = name.strip().toUpperCase(Locale.ROOT);
                    if (word.equals(ALL)) {
                        named.addAll(EnumSet.allOf(LogSubsystem.class));
                    } else {
                        named.add(LogSubsystem.valueOf(word));
                    }
                }
                return Set.copyOf(excluded ? EnumSet.complementOf(named) : named);
            }

            @Override
            public String format(Set<LogSubsystem> value) {
                if (value.size() == values().length) {
                    return ALL;
                }
                return value.isEmpty() ? "^" + ALL
                        : value.stream().sorted().map(LogSubsystem::name).collect(Collectors.joining(","));
            }

            @Override
            public String allowed() {
                return Arrays.stream(values()).map(LogSubsystem::name).collect(Collectors.joining(", ")) + " and " + ALL
                        + ", with commas between, perhaps after ^ (all but these)";
            }
        };
    }
}
