package org.millrace.config;

import static org.millrace.config.ValueTypes.addresses;
import static org.millrace.config.ValueTypes.choices;
import static org.millrace.config.ValueTypes.integers;
import static org.millrace.config.ValueTypes.lists;
import static org.millrace.config.ValueTypes.longs;
import static org.millrace.config.ValueTypes.optional;
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
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Everything that can be set, by topic; who believes whom is in {@link SecuritySettings}. */
public final class Settings {

    /** With what {@link #NETWORK} names a network plugin. */
    public static final String PLUGIN_PREFIX = "plugin:";

    private static final DurationType DEADLINES = new DurationType(Duration.ofMillis(1), Duration.ofHours(24));
    /** NCCL_STEPS slots of at least a page each: a slot's address is then aligned for every copy and network. */
    private static final long BUFFER_UNIT = 8 * 4096;
    /** Twice the largest item of work, rounded up: a kernel takes half of the FIFO at most. */
    private static final long LEAST_WORK_FIFO = 256;

    // What runs the operations

    /** Which provider's communicators are used: {@code org.millrace.Millrace} knows which there are. */
    public static final Setting<String> DEVICE = new Setting<>("MILLRACE_DEVICE",
            text("host, cuda, auto, or the name of another provider that is on the class path"), "auto",
            "where operations run: host (CPU threads), cuda (GPUs through libnccl), or auto (cuda if it is usable,"
                    + " else host)");
    /** Path of libnccl. */
    public static final Setting<Optional<Path>> NCCL_LIBRARY =
            new Setting<>("MILLRACE_NCCL_LIBRARY", optional(paths()), Optional.empty(),
                    "libnccl.so.2, or the directory it is in; unset: looked for under its usual names and places");
    /** Path of libcudart. */
    public static final Setting<Optional<Path>> CUDART_LIBRARY =
            new Setting<>("MILLRACE_CUDART_LIBRARY", optional(paths()), Optional.empty(),
                    "libcudart.so, or the directory it is in; unset: looked for under its usual names and places");

    /** Path of libucp. */
    public static final Setting<Optional<Path>> UCX_LIBRARY = new Setting<>("MILLRACE_UCX_LIBRARY", optional(paths()),
            Optional.empty(),
            "libucp.so.0, UCX's library, for MILLRACE_NET=ucx; unset: as the dynamic loader finds it (LD_LIBRARY_PATH)");

    // Channels and buffers

    /** Lower bound of the number of channels; NCCL's limit is 64 (MAXCHANNELS). */
    public static final Setting<Optional<Integer>> MIN_CHANNELS =
            new Setting<>("NCCL_MIN_NCHANNELS", optional(integers(1, 64)), Optional.empty(),
                    "smallest number of channels of a communicator; unset: chosen for the machine");
    /** Upper bound of the number of channels. */
    public static final Setting<Optional<Integer>> MAX_CHANNELS =
            new Setting<>("NCCL_MAX_NCHANNELS", optional(integers(1, 64)), Optional.empty(),
                    "largest number of channels of a communicator; unset: chosen for the machine");
    /** Bytes of the Simple protocol's buffer of one connection: 8 slots. */
    public static final Setting<Long> BUFFER_SIZE = new Setting<>("NCCL_BUFFSIZE",
            new SizeType(BUFFER_UNIT, 1L << 30, BUFFER_UNIT), 1L << 20,
            "bytes of the Simple protocol's buffer of each connection of the emulated device, which is 8 slots");

    // Work for kernels

    /** Bytes of the FIFO in which work travels to kernels. */
    public static final Setting<Long> WORK_FIFO_BYTES =
            new Setting<>("NCCL_WORK_FIFO_BYTES", powersOfTwo(LEAST_WORK_FIFO, 1L << 30), 1L << 20,
                    "bytes of the FIFO in which a communicator's work travels to kernels of the emulated device, where"
                            + " their arguments have no room for it");
    /** Bytes of a kernel's arguments. */
    public static final Setting<Long> WORK_ARGUMENT_BYTES = new Setting<>("NCCL_WORK_ARGS_BYTES",
            new SizeType(0, 4096, 16), 4096L,
            "the most bytes of arguments of a kernel of the emulated device; never fewer than one operation on all"
                    + " channels takes without its work");
    /** Where the work FIFO's counters begin. */
    public static final Setting<Long> FIRST_WORK =
            new Setting<>("MILLRACE_FIRST_WORK", new SizeType(0, (1L << 32) - 16, 16), 0L,
                    "where the counters of the work FIFO begin, for tests of their wrap");

    // Transports

    /** Whether ranks of one process do without each other's memory. */
    public static final Setting<Boolean> P2P_DISABLE = new Setting<>("NCCL_P2P_DISABLE", ValueTypes.booleans(), false,
            "1: ranks of one process do not write into each other's memory");
    /** Whether a proxy copies between ranks of one process. */
    public static final Setting<Boolean> P2P_MEMCPY = new Setting<>("NCCL_P2P_USE_CUDA_MEMCPY", ValueTypes.booleans(),
            false, "1: between ranks of one process the sender's proxy copies, instead of its device");
    /** Whether processes of one host do without shared memory for connections. */
    public static final Setting<Boolean> SHM_DISABLE = new Setting<>("NCCL_SHM_DISABLE", ValueTypes.booleans(), false,
            "1: devices of one host's processes do not share memory");
    /** Whether proxies copy to or from shared memory. */
    public static final Setting<Boolean> SHM_MEMCPY = new Setting<>("NCCL_SHM_USE_CUDA_MEMCPY", ValueTypes.booleans(),
            false,
            "1: proxies copy between shared memory and the devices' own, on the sides that NCCL_SHM_MEMCPY_MODE says");
    /** Which proxies copy. */
    public static final Setting<Integer> SHM_MEMCPY_MODE = new Setting<>("NCCL_SHM_MEMCPY_MODE", integers(1, 3), 1,
            "with NCCL_SHM_USE_CUDA_MEMCPY: 1 the sender's proxy copies, 2 the receiver's, 3 both");
    /** Which side makes shared memory. */
    public static final Setting<Integer> SHM_LOCALITY = new Setting<>("NCCL_SHM_LOCALITY", integers(1, 2), 2,
            "whose memory node shared memory lies on: 1 the sender's, 2 the receiver's; the same on all ranks");

    /** What tells hosts apart. */
    public static final Setting<Optional<String>> HOST_ID = new Setting<>("NCCL_HOSTID", optional(text("any text")),
            Optional.empty(),
            "ranks with the same text are on one host, all others are not: P2P and SHM connect ranks of one host; unset:"
                    + " hosts are told apart by their names");

    /** Whether a network that reduces is used. */
    public static final Setting<Boolean> COLLNET_ENABLE = new Setting<>("NCCL_COLLNET_ENABLE", ValueTypes.booleans(),
            false,
            "1 on all ranks: all-reduces, all-gathers and reduce-scatters of up to MILLRACE_COLLNET_MAX_BYTES go"
                    + " through a collective network: one of another jar that all ranks have, or else the ranks reduce"
                    + " for each other");
    /** The largest operation that goes that way: so far it takes no longer than the ring ({@code collnet.md}). */
    public static final Setting<Long> COLLNET_MAX_BYTES = new Setting<>("MILLRACE_COLLNET_MAX_BYTES",
            new SizeType(1, 1L << 40, 1), 8L << 10,
            "largest collective that goes through the collective network, all ranks' parts together: larger ones"
                    + " go around the ring, unless NCCL_ALGO=collnet; the same on all ranks");

    /** Whether connections of sends and receives share their slots, as is the default in NCCL. */
    public static final Setting<Optional<Boolean>> NET_SHARED_BUFFERS =
            new Setting<>("NCCL_NET_SHARED_BUFFERS", optional(ValueTypes.booleans()), Optional.empty(),
                    "1 lets the sends of a channel share slots, and its receives, where they go over a network: less"
                            + " memory with many peers; the same on all ranks; unset: with 16 peers or more");
    /** Bytes of a chunk of sends and receives; NCCL takes 128 KiB. */
    public static final Setting<Optional<Long>> P2P_NET_CHUNK_SIZE = new Setting<>("NCCL_P2P_NET_CHUNKSIZE",
            optional(new SizeType(1 << 10, 1L << 27, 1 << 10)), Optional.empty(),
            "bytes of a chunk of sends and receives, at most a slot, the same on all ranks; unset: a slot, or 128K"
                    + " where slots are shared");

    /**
     * From which size on collectives over networks leave data where the user has it. All-reduce of 1 MiB between two
     * processes over TCP took 330 us so, and 430 through slots; up to 256 KiB there was no difference that a noisy
     * machine would show.
     */
    public static final Setting<Long> PTR_THRESHOLD = new Setting<>("MILLRACE_PTR_THRESHOLD",
            new SizeType(0, 1L << 40, 1), 256L << 10,
            "bytes of a hop from which on all-reduce, all-gather and broadcast around a ring send from and receive"
                    + " into memory"
                    + " that was not registered, over networks that can: fewer copies; 1024G for never");

    /** From which size on peers read registered operands where they lie. */
    public static final Setting<Optional<Long>> REGISTERED_THRESHOLD = new Setting<>("MILLRACE_REGISTERED_THRESHOLD",
            optional(new SizeType(0, 1L << 40, 1)), Optional.empty(),
            "smallest hop of an operation whose registered operands peers read where they lie, over P2P and SHM: less"
                    + " goes through slots; unset: 64K where elements are combined, 256K elsewhere");

    /** Whether the channels of a ring share connections of the network. */
    public static final Setting<Boolean> GROUPED_CONNECTIONS =
            new Setting<>("MILLRACE_GROUPED_CONNECTIONS", ValueTypes.booleans(), false,
                    "1 lets up to 4 channels between two ranks share one connection of the network, for rings alone: no"
                            + " trees then; the same on all ranks");

    // Algorithms

    /** Which algorithms collectives may run. */
    public static final Setting<Optional<String>> ALGORITHMS = new Setting<>("NCCL_ALGO",
            optional(text("algorithms with commas between, as in ring,tree or ^tree; perhaps by function, as in"
                    + " ring;allreduce:tree")),
            Optional.empty(),
            "algorithms that collectives may run; the emulated device has ring, and tree for all-reduce; unset:"
                    + " chosen by size");

    /** Which protocols their data may travel in. */
    public static final Setting<Optional<String>> PROTOCOLS = new Setting<>("NCCL_PROTO",
            optional(text("protocols with commas between, as in LL,Simple or ^LL128; perhaps by function, as in"
                    + " Simple;allreduce:LL")),
            Optional.empty(), "protocols of collectives: LL, LL128, Simple; unset: chosen by size");
    /** Largest send or receive that travels in LL; NCCL takes 16 KiB. */
    public static final Setting<Optional<Long>> P2P_LL_THRESHOLD = new Setting<>("NCCL_P2P_LL_THRESHOLD",
            optional(new SizeType(0, 1L << 40, 1)), Optional.empty(),
            "sends and receives of up to so many bytes travel in LL, the same on all ranks; unset: none, as Simple"
                    + " is faster on CPU threads at every size");

    // The network

    /** What carries frames. */
    public static final Setting<String> NETWORK = new Setting<>("MILLRACE_NET",
            wordsOr(PLUGIN_PREFIX, "PATH, where PATH is that of a network plugin for NCCL", "auto", "shm", "socket",
                    "ucx"),
            "auto",
            "what carries the data: frames over shared memory (shm), TCP (socket), what UCX finds, as cards with "
                    + "RDMA (ucx), or a network plugin for NCCL (plugin:PATH), between any two ranks; auto: memory "
                    + "that two ranks share, frames where there is none");
    /** Which devices of a network plugin. */
    public static final Setting<List<Integer>> NET_DEVICES = new Setting<>("MILLRACE_NET_DEVICES",
            lists(integers(0, 1023)), List.of(),
            "with MILLRACE_NET=plugin:PATH: numbers of the plugin's devices that connections go over, in turns, as"
                    + " millrace doctor lists them; unset: all");
    /** How many buffers a network plugin beneath is asked to receive at once. */
    public static final Setting<Integer> NET_MAX_RECVS = new Setting<>("NCCL_NET_MAX_RECVS", integers(1, 8), 8,
            "with MILLRACE_NET=plugin:PATH: the most buffers that one receive of the plugin has, of those that it"
                    + " allows; with MILLRACE_TAKEOVER=0 also the most that one of NCCL's has, 1 unless set");
    /** Whether kernels gather what they receive; MILLRACE_UNPACK by another name. */
    public static final Setting<Optional<Boolean>> NET_DEVICE_UNPACK = new Setting<>("NCCL_NET_DEVICE_UNPACK_ENABLED",
            optional(ValueTypes.booleans()), Optional.empty(),
            "1: kernels gather what they receive over networks from pages; under libnccl 1 is MILLRACE_UNPACK=1, and 0"
                    + " is MILLRACE_UNPACK=0");
    /** From which size on they do; under libnccl always. */
    public static final Setting<Long> NET_DEVICE_UNPACK_THRESHOLD =
            new Setting<>("NCCL_NET_DEVICE_UNPACK_THRESHOLD", new SizeType(0, 4L << 20, 1), 0L,
                    "bytes of a slice from which on kernels that unpack gather it; 0 under libnccl");
    /** Whether frames over shared memory are copied once. */
    public static final Setting<Optional<Boolean>> SHM_SINGLE_COPY =
            new Setting<>("MILLRACE_SHM_SINGLE_COPY", optional(ValueTypes.booleans()), Optional.empty(),
                    "1: large payloads of frames over shared memory are read where they lie in the sending process's"
                            + " memory, or it is an error; 0: they are copied into a ring and out of it; unset: read"
                            + " where the kernel allows it and that takes less of a core's time");
    /** With what rings in shared memory are read and written. */
    public static final Setting<ShmAccess> SHM_ACCESS =
            new Setting<>("MILLRACE_SHM_ACCESS", choices(ShmAccess.class), ShmAccess.SEGMENT,
                    "with what frames are copied into and out of shared memory: segment, the JDK's memory segments; or"
                            + " chronicle, Chronicle Bytes, which a program that uses the library adds itself"
                            + " (net.openhft:chronicle-bytes)");
    /** Which interfaces are used. */
    public static final Setting<Optional<String>> SOCKET_INTERFACES = new Setting<>("NCCL_SOCKET_IFNAME", optional(
            text("prefixes of interface names with commas between; a leading ^ excludes them, a leading = wants exact"
                    + " names")),
            Optional.empty(),
            "network interfaces to use, as in eth,ib or ^docker or =eth0; several are rails; unset: one, loopback"
                    + " and docker only if there is no other");
    /** Which kind of addresses. */
    public static final Setting<Optional<ProtocolFamily>> SOCKET_FAMILY = new Setting<>("NCCL_SOCKET_FAMILY",
            optional(values(Map.of("AF_INET", StandardProtocolFamily.INET, "AF_INET6", StandardProtocolFamily.INET6),
                    "AF_INET, AF_INET6")),
            Optional.empty(),
            "AF_INET or AF_INET6: only addresses of interfaces that are of IPv4, or of IPv6; unset: IPv4 where there is"
                    + " one");
    /** Which addresses are used, whatever the interfaces. */
    public static final Setting<Optional<List<InetAddress>>> SOCKET_ADDRESSES =
            new Setting<>("MILLRACE_SOCKET_ADDRESSES", optional(lists(addresses())), Optional.empty(),
                    "addresses of this host to use in place of those of interfaces, one rail each; unset: as interfaces"
                            + " have them");
    /** TCP connections per connection. */
    public static final Setting<Optional<Integer>> SOCKET_STREAMS = new Setting<>("MILLRACE_SOCKET_STREAMS",
            optional(integers(1, 16)), Optional.empty(),
            "TCP streams over which a connection spreads large payloads, on each rail; unset: chosen for the machine");

    /** Whether the plugin takes connections over from libnccl's proxy. */
    public static final Setting<Optional<Boolean>> TAKEOVER =
            new Setting<>("MILLRACE_TAKEOVER", optional(ValueTypes.booleans()), Optional.empty(),
                    "1: Java serves libnccl's connections, or it is an error; 0: libnccl's own proxy does; unset: Java"
                            + " where it is possible");

    // Threads

    /** Upper bound of polling threads. */
    public static final Setting<Optional<Integer>> THREADS =
            new Setting<>("MILLRACE_THREADS", optional(integers(1, 256)), Optional.empty(),
                    "how many polling threads a rank may use; unset: what its cores can spare");
    /** Passes without work before a polling thread sleeps: some milliseconds, as a sleep takes 60 µs at least. */
    public static final Setting<Integer> IDLE_THRESHOLD = new Setting<>("NCCL_PROXY_IDLE_THRESHOLD",
            integers(0, Integer.MAX_VALUE), 20_000,
            "passes without work after which a polling thread begins to sleep between passes; 0: it never sleeps;"
                    + " unset: in a takeover after 4 ms");
    /** How long an idle polling thread sleeps. */
    public static final Setting<Integer> IDLE_SLEEP_MICROS = new Setting<>("NCCL_PROXY_IDLE_SLEEP_US",
            integers(1, 1_000_000), 100,
            "longest sleep of an idle polling thread between two passes, in microseconds; unset: in a takeover a"
                    + " twentieth of the time that it was idle, 5000 at most");

    // Failures

    /** How long ranks wait for each other at the start. */
    public static final Setting<Duration> CONNECT_DEADLINE = new Setting<>("MILLRACE_CONNECT_DEADLINE", DEADLINES,
            Duration.ofSeconds(30), "how long a rank waits for the others to come and for connections to be made");
    /** How long an operation may stand still. */
    public static final Setting<Duration> STALL_DEADLINE = new Setting<>("MILLRACE_STALL_DEADLINE", DEADLINES,
            Duration.ofSeconds(60), "an operation fails that all ranks have come to and that stands still for so long");
    /** How long a rank that lives may be late. */
    public static final Setting<Duration> LATE_DEADLINE = new Setting<>("MILLRACE_LATE_DEADLINE", DEADLINES,
            Duration.ofMinutes(30), "how long a rank that lives may come to an operation behind others");
    /** How long a rank may take to leave. */
    public static final Setting<Duration> CLOSE_DEADLINE = new Setting<>("MILLRACE_CLOSE_DEADLINE", DEADLINES,
            Duration.ofSeconds(60), "how long close() waits; then it gives up what is left, and says what");
    /** The fault that is planted. */
    public static final Setting<Optional<String>> FAULT = new Setting<>("MILLRACE_FAULT",
            optional(text("flip:frame=N,bit=N  cut:frame=N[,rail=N]  delay:frame=N,polls=N  garbage:frame=N")),
            Optional.empty(), "a fault to plant, for tests; unset: none");

    /** Where step counters begin. */
    public static final Setting<Long> FIRST_STEP = new Setting<>("MILLRACE_FIRST_STEP", longs(), 0L,
            "where the step counters of connections begin, for tests of their wrap");

    // Messages

    /** How much is logged. */
    public static final Setting<LogLevel> LOG_LEVEL = new Setting<>("NCCL_DEBUG", choices(LogLevel.class),
            LogLevel.WARN, "how much the command line logs, and NCCL with it");
    /** Of what. */
    public static final Setting<Set<LogSubsystem>> LOG_SUBSYSTEMS = new Setting<>("NCCL_DEBUG_SUBSYS",
            LogSubsystem.SETS, Set.copyOf(EnumSet.allOf(LogSubsystem.class)),
            "what the command line logs besides warnings and errors; NCCL filters its own lines, and those of the"
                    + " plugin, which are of INIT and NET");

    // What is written down

    /** How much a process writes down of what its connections do, for {@code millrace top} and its like. */
    public static final Setting<TraceDetail> TRACE = new Setting<>("MILLRACE_TRACE", choices(TraceDetail.class),
            TraceDetail.STEPS,
            "what a process writes down of its connections, for millrace ps, top, why, dump and metrics: nothing (off),"
                    + " counters, or the last steps of each as well (steps)");
    /** Where. */
    public static final Setting<Optional<Path>> TRACE_DIRECTORY =
            new Setting<>("MILLRACE_TRACE_DIRECTORY", optional(paths()), Optional.empty(),
                    "directory for what is written down; it should be memory; unset: where rings in shared memory are");

    /** Whether the steps of proxies are. */
    public static final Setting<Optional<Boolean>> PROXY_TRACE =
            new Setting<>("NCCL_PROXY_TRACE", optional(ValueTypes.booleans()), Optional.empty(),
                    "1: the last steps of each connection's proxy are written down, and it is said where; 0: they are"
                            + " not; unset: as MILLRACE_TRACE says");
    /** After what time a stall is told. */
    public static final Setting<Duration> STALL_REPORT = new Setting<>("MILLRACE_STALL_REPORT",
            new DurationType(Duration.ZERO, Duration.ofHours(24)), Duration.ofSeconds(10),
            "a connection that stands still for so long with something posted is told on standard error, with the rank"
                    + " and the cause, as millrace why says; 0s: never");

    private static final List<Setting<?>> ALL = List.of(DEVICE, NCCL_LIBRARY, CUDART_LIBRARY, UCX_LIBRARY, MIN_CHANNELS,
            MAX_CHANNELS, BUFFER_SIZE, NET_SHARED_BUFFERS, P2P_NET_CHUNK_SIZE, PTR_THRESHOLD, REGISTERED_THRESHOLD,
            GROUPED_CONNECTIONS, P2P_LL_THRESHOLD, WORK_FIFO_BYTES, WORK_ARGUMENT_BYTES, FIRST_WORK, P2P_DISABLE,
            P2P_MEMCPY, SHM_DISABLE, SHM_MEMCPY, SHM_MEMCPY_MODE, SHM_LOCALITY, HOST_ID, COLLNET_ENABLE,
            COLLNET_MAX_BYTES, ALGORITHMS, PROTOCOLS, NETWORK, NET_DEVICES, NET_MAX_RECVS, NET_DEVICE_UNPACK,
            NET_DEVICE_UNPACK_THRESHOLD, SHM_SINGLE_COPY, SHM_ACCESS, SOCKET_INTERFACES, SOCKET_FAMILY,
            SOCKET_ADDRESSES, SOCKET_STREAMS, SecuritySettings.SECRET, SecuritySettings.REQUIRE_SECRET,
            SecuritySettings.TLS, SecuritySettings.TLS_CERTIFICATE, SecuritySettings.TLS_KEY, SecuritySettings.TLS_CA,
            TAKEOVER, THREADS, IDLE_THRESHOLD, IDLE_SLEEP_MICROS, CONNECT_DEADLINE, STALL_DEADLINE, LATE_DEADLINE,
            CLOSE_DEADLINE, FAULT, FIRST_STEP, TRACE, TRACE_DIRECTORY, PROXY_TRACE, STALL_REPORT, LOG_LEVEL,
            LOG_SUBSYSTEMS);

    private Settings() {}

    /** {@return every setting, in the order of the topics} */
    public static List<Setting<?>> all() {
        return ALL;
    }
}
