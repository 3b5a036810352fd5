package org.millrace.cli.doctor;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.millrace.cli.base.Host;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.config.ValueTypes;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.SharedDirectory;
import org.millrace.net.ConnectionException;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.shm.SingleCopy;
import org.millrace.net.socket.Interfaces;
import org.millrace.net.socket.LocalAddress;
import org.millrace.plugin.PluginConfiguration;
import org.millrace.plugin.PluginInstaller;
import org.millrace.plugin.RuntimeModules;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedProcess;

/**
 * The checks that {@code doctor} makes on every machine, in the order of the report. A failure does not mean that
 * Millrace is unusable.
 */
final class MachineChecks {

    private static final Path LIMITS = Path.of("/proc/self/limits");
    private static final long FEW_FILES = 1024;
    private static final long MANY_FILES = 65536;
    private static final Path INTERFACES = Path.of("/sys/class/net");
    private static final int JUMBO_BYTES = 9000;
    /** Minimum speed of an interface, in Mbit/s, at which small packets cost throughput. */
    private static final int FAST = 10_000;
    /**
     * Names of each launcher's two variables, for the rank and for the number of ranks. A program joins by the first
     * launcher with both variables set, as {@code Millrace.join} does.
     */
    private static final List<String[]> LAUNCHERS =
            List.of(new String[] {"RANK", "WORLD_SIZE"}, new String[] {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                    new String[] {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"}, new String[] {"PMI_RANK", "PMI_SIZE"},
                    new String[] {"SLURM_PROCID", "SLURM_NTASKS"});
    /**
     * Docker's default size of a container's shared memory, in bytes. A few connections between ranks fill this memory.
     */
    private static final long LITTLE = 64L << 20;
    private static final String MORE =
            "in a container: start it with --shm-size=1g or more, or with --ipc=host; else: mount -o "
                    + "remount,size=1g /dev/shm";

    private static final String UNWRITABLE = " cannot be written by this user";

    private MachineChecks() {}

    static List<Check> list(Map<String, String> settings) {
        return List.of(new Check("Java", MachineChecks::java), new Check("kernel", MachineChecks::kernel),
                new Check("JVM in programs",
                        () -> jvmInPrograms(Path.of(System.getProperty("java.home")), System.getenv())),
                new Check("cores", MachineChecks::cores), new Check("proxy threads", MachineChecks::proxyThreads),
                new Check("memory", MachineChecks::memory),
                new Check("shared memory", () -> sharedMemory(SharedDirectory.MEMORY)),
                new Check("temporary files", () -> temporaryFiles(Path.of(System.getProperty("java.io.tmpdir")))),
                new Check("processes", () -> processes(Path.of("/proc"), ProcessIdentity.CURRENT)),
                new Check("single copies", () -> singleCopies(settings)),
                new Check("lost peers", () -> lostPeers(Configuration.ofPlugin(System.getenv()::get))),
                new Check("limits", () -> limits(LIMITS)), new Check("rails", () -> rails(settings)),
                new Check("ports", () -> ports(Configuration.load(settings))),
                new Check("MTU", () -> mtu(INTERFACES, railNames(settings))),
                new Check("launcher", () -> launcher(System.getenv())),
                new Check("host name", () -> hostName(Host.name(), settings)));
    }

    /** Checks the JVM and its permission to call native functions. */
    static CheckResult java() {
        String java =
                Runtime.version() + ", " + System.getProperty("java.vendor") + ", " + System.getProperty("java.home");
        if (!MachineChecks.class.getModule().isNativeAccessEnabled()) {
            return CheckResult.unusable(java + "; native access is not granted",
                    "start Java with --enable-native-access=ALL-UNNAMED, or run millrace.jar with java -jar");
        }
        String incomplete = RuntimeModules.incompleteHere();
        return incomplete == null ? CheckResult.works(java) : CheckResult.unusable(java, incomplete);
    }

    /** Checks whether the plugin can start a JVM of the Java installation {@code home} in a program without Java. */
    static CheckResult jvmInPrograms(Path home, Map<String, String> environment) {
        StringBuilder options = new StringBuilder();
        for (String variable : List.of("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")) {
            String value = environment.get(variable);
            if (value != null && !value.isBlank()) {
                options.append("; started with ").append(variable).append('=').append(value).append(", too");
            }
        }
        Path jsig = home.resolve("lib/libjsig.so");
        return Files.exists(jsig)
                ? CheckResult.works("a program that sets a handler of SIGSEGV after NCCL is initialized needs"
                        + " LD_PRELOAD=" + jsig + options)
                : CheckResult.missing(jsig + options.toString(),
                        "only a program that sets a handler of SIGSEGV after NCCL is initialized needs it: take a"
                                + " whole JDK for such");
    }

    static CheckResult kernel() {
        String kernel = Host.kernel();
        return System.getProperty("os.name").equals("Linux") ? CheckResult.works(kernel)
                : CheckResult.works(kernel,
                        "NCCL, shared memory and the looks of this machine below need Linux; the emulated device "
                                + "does not");
    }

    /**
     * Checks the processor cores and their limits: the affinity mask of this process and the quota of its control
     * group.
     */
    static CheckResult cores() {
        int usable = Runtime.getRuntime().availableProcessors();
        StringBuilder summary = new StringBuilder(usable + " usable");
        Host.line("/sys/devices/system/cpu/online").ifPresent(online -> summary.append(", online ").append(online));
        Host.field("/proc/self/status", "Cpus_allowed_list")
                .ifPresent(allowed -> summary.append(", affinity ").append(allowed));
        Host.line("/sys/fs/cgroup/cpu.max")
                .filter(quota -> !quota.startsWith("max"))
                .ifPresent(quota -> summary.append(", cgroup ").append(quota).append(" us"));
        Host.field("/proc/cpuinfo", "model name").ifPresent(model -> summary.append(", ").append(model));
        return usable > 1 ? CheckResult.works(summary.toString())
                : CheckResult.works(summary.toString(),
                        "on one core ranks take turns: times will be those of the scheduler. Grant more (taskset, "
                                + "docker --cpus).");
    }

    /**
     * Reports the number of threads that the plugin would run in a program with this environment, and whether slots
     * would lie in GPU memory.
     */
    static CheckResult proxyThreads() {
        try {
            return CheckResult.works("the plugin for libnccl would run "
                    + PluginConfiguration.describe(Configuration.ofPlugin(System.getenv()::get)));
        } catch (ConfigurationException e) {
            return CheckResult.unusable("the plugin for libnccl would refuse its settings: " + e.getMessage());
        }
    }

    /**
     * Reports main memory, the limit of the control group, and the size of the Java heap. Operands lie outside the
     * heap.
     */
    static CheckResult memory() {
        StringBuilder summary = new StringBuilder();
        Host.field("/proc/meminfo", "MemTotal")
                .ifPresent(total -> summary.append("total ").append(kibibytes(total)).append(", "));
        Host.field("/proc/meminfo", "MemAvailable")
                .ifPresent(available -> summary.append("available ").append(kibibytes(available)).append(", "));
        Host.line("/sys/fs/cgroup/memory.max")
                .filter(limit -> !limit.equals("max"))
                .ifPresent(limit -> summary.append("cgroup ").append(amount(Long.parseLong(limit))).append(", "));
        summary.append("Java heap up to ").append(amount(Runtime.getRuntime().maxMemory()));
        return CheckResult.works(summary.toString());
    }

    /**
     * Converts a value of {@code /proc/meminfo}, such as {@code 24684096 kB}. In this file the unit kB stands for KiB.
     */
    private static String kibibytes(String field) {
        return amount(Long.parseLong(field.split(" ")[0]) * 1024);
    }

    /** Checks the file system in which processes of one host share memory. */
    static CheckResult sharedMemory(Path directory) {
        if (!Files.isDirectory(directory)) {
            return CheckResult.missing(directory.toString(), "processes of one host talk over TCP instead");
        }
        if (!Files.isWritable(directory)) {
            return CheckResult.unusable(directory + UNWRITABLE,
                    "chmod 1777 " + directory + "; where its file system is read-only mount memory there: docker run "
                            + "--tmpfs " + directory + ", an emptyDir of medium Memory",
                    "until then processes of one host talk over TCP, and there is no trace for millrace top, unless "
                            + "MILLRACE_TRACE_DIRECTORY names another directory");
        }
        // The free space does not come from the FileStore. Java cannot find the FileStore if the root is not a mount
        // point (chroot).
        long free = directory.toFile().getUsableSpace();
        String summary = directory + ": " + amount(free) + " free of " + amount(directory.toFile().getTotalSpace());
        return free <= LITTLE ? CheckResult.unusable(summary + ", which is too little", MORE)
                : CheckResult.works(summary);
    }

    /**
     * Checks the system's directory of temporary files. Ranks of a run meet in this directory, and libraries are
     * unpacked into it.
     */
    static CheckResult temporaryFiles(Path directory) {
        if (Files.isDirectory(directory) && Files.isWritable(directory)) {
            return CheckResult.works(directory.toString());
        }
        return CheckResult.unusable(directory + (Files.isDirectory(directory) ? UNWRITABLE : " is not there"),
                "choose another with -Djava.io.tmpdir=DIR, or mount one there: docker run --tmpfs " + directory,
                "until then ranks of a run meet in " + SharedDirectory.MEMORY
                        + ", and a millrace.jar cannot unpack the "
                        + "plugin's library: millrace plugin install elsewhere");
    }

    static CheckResult processes(Path proc, ProcessIdentity self) {
        if (self.namespace() == 0) {
            return CheckResult.unusable("there is no " + proc + ", or it is that of another PID namespace",
                    "mount -t proc proc " + proc,
                    "until then a peer's end shows by its sockets alone, and what killed processes leave stays");
        }
        return Files.isReadable(proc.resolve("1/stat")) ? CheckResult.works(proc + " shows those of all users")
                : CheckResult.works(proc + " hides those of other users (hidepid)",
                        "what such a process leaves when it is killed stays until nothing has its number: mount -o "
                                + "remount,hidepid=0 " + proc + " shows all");
    }

    /** Checks whether large payloads between processes of one host are copied only once. */
    static CheckResult singleCopies(Map<String, String> settings) {
        return Configuration.load(settings).get(Settings.SHM_SINGLE_COPY).orElse(true)
                ? CheckResult.works(SingleCopy.describe())
                : CheckResult.missing("switched off by " + SingleCopy.SETTING + ": payloads are copied twice");
    }

    /**
     * Checks whether ncclCommGetAsyncError reports a lost peer to a program that uses the plugin. If not, the result
     * names the consequence.
     */
    static CheckResult lostPeers(Configuration settings) {
        String untold = settings.get(Settings.ON_LOSS)
                ? "is told by its next enqueue, and ends after "
                        + ValueTypes.DurationType.text(settings.get(Settings.LOSS_GRACE))
                : "is told by its next enqueue";
        if (!settings.get(Settings.ASYNC_ERROR)) {
            return CheckResult.missing("ncclCommGetAsyncError does not report them, as " + Settings.ASYNC_ERROR.name()
                    + "=0 has it: a program under the plugin " + untold);
        }
        try (Arena arena = Arena.ofConfined()) {
            if (!SingleCopy.isReadable(arena.allocate(Long.BYTES).address(), Long.BYTES)) {
                return CheckResult.unusable(
                        "ncclCommGetAsyncError does not report them, as the kernel refuses process_vm_readv: a program"
                                + " under the plugin " + untold,
                        "in a container: allow process_vm_readv in its seccomp profile");
            }
        }
        return CheckResult.works("ncclCommGetAsyncError tells programs under the plugin that call it by its name",
                "one that looks it up itself (dlsym, Python's ctypes) " + untold
                        + "; NCCL_DEBUG=INFO names who calls it");
    }

    /**
     * Checks the user's limits: open files (each TCP stream is one) and locked memory (networks with RDMA register it).
     */
    static CheckResult limits(Path limits) {
        Optional<String> files = limit(limits, "Max open files", 1);
        Optional<String> most = limit(limits, "Max open files", 2);
        Optional<String> locked = limit(limits, "Max locked memory", 1);
        if (files.isEmpty() || locked.isEmpty()) {
            return CheckResult.missing(limits.toString());
        }
        List<String> advice = new ArrayList<>();
        if (isNumber(files.get()) && Long.parseLong(files.get()) <= FEW_FILES) {
            boolean canRaise = most.filter(hard -> !isNumber(hard) || Long.parseLong(hard) >= MANY_FILES).isPresent();
            advice.add("many ranks or streams need more open files: " + (canRaise ? "ulimit -n " + MANY_FILES
                    : "the hard limit is " + most.orElse("unknown") + "; raise nofile in /etc/security/limits.conf,"
                            + " LimitNOFILE of the service, or docker run --ulimit nofile=" + MANY_FILES));
        }
        if (isNumber(locked.get())) {
            advice.add("only a network with RDMA needs more locked memory: ulimit -l unlimited");
        }
        String lockedText = isNumber(locked.get()) ? amount(Long.parseLong(locked.get())) : locked.get();
        return CheckResult.works("open files " + files.get() + ", locked memory " + lockedText,
                advice.toArray(String[]::new));
    }

    private static boolean isNumber(String limit) {
        return !limit.equals("unlimited");
    }

    /**
     * Returns a limit by its name in {@code /proc/self/limits}. The columns of this file have a fixed width: name, soft
     * limit (1), hard limit (2), unit.
     */
    private static Optional<String> limit(Path limits, String name, int column) {
        Pattern pattern = Pattern.compile(Pattern.quote(name) + "\\s+(\\S+)\\s+(\\S+)\\s.*");
        return Host.lines(limits)
                .stream()
                .map(pattern::matcher)
                .filter(Matcher::matches)
                .map(matcher -> matcher.group(column))
                .findFirst();
    }

    /**
     * Checks the addresses for connections to other hosts. Usually a host has one such address. If a host has several,
     * each address is a rail.
     */
    static CheckResult rails(Map<String, String> settings) {
        Configuration configuration = Configuration.load(settings);
        try {
            Interfaces.Choice choice = Interfaces.choose(NetworkOptions.addresses(configuration));
            String summary = choice.addresses().size() + " over TCP between hosts: " + choice;
            return LocalAddress.isHere(InetAddress.getLoopbackAddress()) ? CheckResult.works(summary)
                    : CheckResult.works(summary,
                            "loopback is down, over which ranks of one host meet at a file: ip link set lo up");
        } catch (ConnectionException none) {
            return CheckResult.unusable(String.valueOf(none.getMessage()),
                    "give an interface an address and set it up (ip address add, ip link set NAME up), or name others: "
                            + Settings.SOCKET_INTERFACES.name());
        }
    }

    /** Reports the ports on which this user's processes listen. */
    static CheckResult ports(Configuration settings) {
        Path directory = settings.get(Settings.TRACE_DIRECTORY).orElseGet(SharedDirectory::usual);
        List<String> open = new ArrayList<>();
        try {
            for (TracedProcess process : TraceReader.readAll(directory, (file, unreadable) -> {})) {
                process.ports().forEach(port -> open.add(port + " of pid " + process.identity().pid()));
            }
        } catch (IOException none) {
            return CheckResult.missing(directory.toString(), "no process has a trace there");
        }
        return CheckResult.works(open.isEmpty() ? "no process of this user listens" : String.join(", ", open));
    }

    /** Returns the names of the interfaces of the rails; none if no address can be selected. */
    private static List<String> railNames(Map<String, String> settings) {
        List<String> names = new ArrayList<>();
        try {
            for (InetAddress address : Interfaces.choose(NetworkOptions.addresses(Configuration.load(settings)))
                    .addresses()) {
                NetworkInterface named = NetworkInterface.getByInetAddress(address);
                if (named != null) {
                    names.add(named.getName());
                }
            }
        } catch (ConnectionException | SocketException none) {
            // Returns no names. The check of the rails reports the reason.
            return List.of();
        }
        return names;
    }

    /**
     * Checks that fast interfaces use jumbo frames. Interfaces without a known speed, such as virtual ones, are not
     * judged.
     *
     * @param interfaces directory with a subdirectory for each interface
     */
    static CheckResult mtu(Path interfaces, List<String> names) {
        List<String> found = new ArrayList<>();
        List<String> advice = new ArrayList<>();
        for (String name : names) {
            long mtu = number(interfaces.resolve(name).resolve("mtu"));
            long speed = number(interfaces.resolve(name).resolve("speed"));
            if (mtu > 0) {
                found.add(name + " " + mtu + (speed > 0 ? " (" + speed + " Mbit/s)" : ""));
            }
            if (mtu > 0 && mtu < JUMBO_BYTES && speed >= FAST) {
                advice.add(name + " is fast, and packets of " + mtu + " bytes cost throughput: ip link set " + name
                        + " mtu " + JUMBO_BYTES + " on all hosts, and as much on the switch");
            }
        }
        return found.isEmpty()
                ? CheckResult.missing(
                        names.isEmpty() ? "an address: see rails" : "the MTU of " + names + " in " + interfaces)
                : CheckResult.works(String.join(", ", found), advice.toArray(String[]::new));
    }

    /** Returns the number in a file; -1 if the file is absent, or does not contain a number. */
    private static long number(Path file) {
        return Host.line(file.toString()).filter(text -> text.matches("\\d{1,9}")).map(Long::parseLong).orElse(-1L);
    }

    /**
     * Checks that the variables of several launchers do not contradict each other. A process may have the variables of
     * two launchers, for instance if a shell or a rank of one launcher started the other launcher.
     */
    static CheckResult launcher(Map<String, String> environment) {
        List<String> found = new ArrayList<>();
        List<String> advice = new ArrayList<>();
        String @Nullable [] used = null;
        for (String[] names : LAUNCHERS) {
            String rank = environment.get(names[0]);
            String size = environment.get(names[1]);
            if (rank == null || size == null) {
                continue;
            }
            String words = names[0] + "=" + rank + " and " + names[1] + "=" + size;
            found.add(words);
            if (used == null) {
                used = names;
            } else if (!rank.equals(environment.get(used[0])) || !size.equals(environment.get(used[1]))) {
                advice.add(words + " differ and are not used. If their launcher starts the ranks, the others are stale:"
                        + " unset " + used[0] + " " + used[1]);
            }
        }
        return found.isEmpty() ? CheckResult.works("no variables of a launcher are set")
                : CheckResult.works("a rank would join by " + found.getFirst(), advice.toArray(String[]::new));
    }

    /**
     * Checks that this host's name stands for an address of this host, because other ranks find rank 0 by this name.
     */
    static CheckResult hostName(String name, Map<String, String> settings) {
        Configuration configuration = Configuration.load(settings);
        try {
            LocalAddress.NamedHost named = LocalAddress.NamedHost.of(name, NetworkOptions.addresses(configuration));
            String summary = named.words().isEmpty() ? name + " is " + named.addresses().getFirst().getHostAddress()
                    : named.words();
            return named.isHere() ? CheckResult.works(summary)
                    : CheckResult.unusable(summary + ", which no interface here has", "rank 0 cannot listen at tcp:"
                            + name + ":PORT, nor with MASTER_ADDR=" + name
                            + ": correct /etc/hosts or the name service, or give an address in place of the name");
        } catch (UnknownHostException e) {
            return CheckResult.missing("an address of this host's name, " + name,
                    "tcp:" + name + ":PORT and MASTER_ADDR=" + name
                            + " lead nowhere: write the name into /etc/hosts, or give an address in its place");
        } catch (ConnectionException none) {
            return CheckResult.unusable(name + ": see rails");
        }
    }

    /** Returns an amount of memory as rounded text: {@code "23.5 GiB"}. */
    static String amount(long bytes) {
        double amount = bytes;
        int power = 0;
        while (amount >= 1024 && power < 4) {
            amount /= 1024;
            power++;
        }
        return power == 0 ? bytes + " B" : String.format(Locale.ROOT, "%.1f %ciB", amount, "KMGT".charAt(power - 1));
    }
}
