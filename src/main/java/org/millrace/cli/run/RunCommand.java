package org.millrace.cli.run;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.bootstrap.FreePort;
import org.millrace.cli.base.Converters;
import org.millrace.cli.base.Subcommand;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.link.LinkNetwork;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace run -n RANKS -- COMMAND}. */
@Command(
        name = "run",
        description = {
                "Start a command as ranks that find each other: Millrace.join() and torch.distributed read RANK, "
                        + "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT.",
                "What they write comes with the rank before each line; their standard input is empty. When one fails, "
                        + "all end, and the status is its own, unless --keep-going is set. INT, TERM and HUP are passed "
                        + "on to all ranks and "
                        + "what they have started, and a second one ends them by force; USR1 goes to the ranks."},
        sortOptions = false)
public final class RunCommand extends Subcommand {

    private static final int SECRET_BYTES = 32;
    /**
     * Deadline of a run if the user has set no deadline. It is longer than any run. It is short enough that
     * calculations with it do not overflow.
     */
    private static final Duration NO_LIMIT = Duration.ofDays(36_500);

    @Option(
            names = {"-n", "--ranks"},
            paramLabel = "RANKS",
            required = true,
            converter = Converters.Few.class,
            description = "Number of ranks, all on this host.")
    private int ranks;

    @Option(
            names = {"-x", "--env"},
            paramLabel = "NAME[=VALUE]",
            description = "A variable for all ranks; without a value that which it has here.")
    private List<String> exported = List.of();

    @Option(
            names = "--ranks-per-host",
            paramLabel = "K",
            converter = Converters.Few.class,
            description = "Let each K ranks of a host look like a host of their own to NCCL, by NCCL_HOSTID: they then "
                    + "use the network.")
    private @Nullable Integer ranksPerHost;

    @Option(
            names = "--link",
            paramLabel = "LINK",
            description = "Let the network look like this one, as MILLRACE_LINK says, for instance "
                    + "rate=10Gbit,delay=5ms: each rank is then a host, unless --ranks-per-host says otherwise. Hosts are"
                    + " called host0, host1 and so on: host0-host1: delay=5ms.")
    private @Nullable String link;

    @Option(
            names = "--master-port",
            paramLabel = "PORT",
            description = "Port at which rank 0 listens (default: a free one).")
    private @Nullable Integer port;

    @Option(
            names = "--grace",
            paramLabel = "TIME",
            defaultValue = "10s",
            converter = Converters.Time.class,
            description = "How long ranks that are asked to end may take, before they are killed (default: "
                    + "${DEFAULT-VALUE}).")
    private Duration grace;

    @Option(
            names = "--deadline",
            paramLabel = "TIME",
            converter = Converters.Time.class,
            description = "End everything after that time, with status 1 (default: never).")
    private @Nullable Duration deadline;

    @Option(
            names = "--keep-going",
            description = "Let the other ranks continue when a rank fails, for programs that recover with"
                    + " Communicator.shrink. The run ends with its last rank. The status is 1 after --deadline, 0 if any"
                    + " rank ended with 0, and otherwise that of the first failed rank.")
    private boolean keepGoing;

    @Option(
            names = "--no-cache",
            description = "Neither use nor make a cache of classes. Where the command is java 25 or newer with jars, its "
                    + "ranks start with one from the second run on: in $XDG_CACHE_HOME/millrace/run, made "
                    + "after the first, in the background.")
    private boolean noCache;

    @Parameters(arity = "1..*", paramLabel = "COMMAND", description = "The command and its arguments, behind --.")
    private List<String> words;

    @Override
    public Integer call() {
        Map<String, String> settings = settings();
        require(port == null || port > 0 && port < 1 << Short.SIZE, "--master-port: a number from 1 to 65535");
        List<String> hosts = hosts();
        // The links are checked here, so that this process reports an error once. Without this check, every rank would
        // report the error.
        LinkNetwork.require(Configuration.load(settings), hosts);
        Map<String, String> common = common(settings);
        RankCache cache = cache(common);
        AtomicReference<CommandRanks> made = new AtomicReference<>();
        PrintWriter err = spec.commandLine().getErr();
        RunDeadline limit = RunDeadline.after(deadline == null ? NO_LIMIT : deadline);
        List<RankRun.Failure> failures = RankRun.run(ranks, (rendezvous, events) -> {
            common.putIfAbsent(Settings.RUN_DIRECTORY.name(), runDirectory(rendezvous));
            CommandRanks.Command command = new CommandRanks.Command(cache == null ? words : cache.words(),
                    rank -> variables(rank, hosts, common), grace);
            made.set(new CommandRanks(ranks, command, new FileOutputStream(FileDescriptor.out),
                    new FileOutputStream(FileDescriptor.err), keepGoing ? err : null, events));
            return made.get();
        }, limit, RankEvent.class, event -> {});
        RankRun.print(failures, err, parent.stackTraces());
        CommandRanks started = made.get();
        if (started.ending() != null) {
            err.println("millrace: SIG" + started.ending() + " was passed on, and the ranks have ended");
        }
        // With --keep-going, an exceeded deadline determines the exit status, even if a rank failed before.
        boolean isOverdue = keepGoing && !failures.isEmpty() && limit.passed() && started.ending() == null;
        int status = isOverdue ? ExitCode.SOFTWARE
                : Math.max(started.status(), failures.isEmpty() ? ExitCode.OK : ExitCode.SOFTWARE);
        if (cache != null && status == ExitCode.OK) {
            cache.makeInBackground();
        }
        return status;
    }

    /**
     * Returns the run's directory, which outlives each rank. Ranks use this directory to decide which ranks continue.
     */
    private static String runDirectory(String rendezvous) {
        return Path.of(rendezvous.substring(rendezvous.indexOf(':') + 1)).getParent().toString();
    }

    private @Nullable RankCache cache(Map<String, String> common) {
        Map<String, String> environment = new HashMap<>(System.getenv());
        environment.putAll(common);
        return noCache ? null : RankCache.of(words, environment);
    }

    private Map<String, String> settings() {
        Map<String, String> settings = parent.settings();
        if (link != null) {
            settings.put(Settings.LINK.name(), link);
        }
        return settings;
    }

    /** Returns the environment variables that all ranks have in common. An empty value removes a variable. */
    private Map<String, String> common(Map<String, String> settings) {
        Map<String, String> common = new LinkedHashMap<>();
        // An empty value removes the variable. An outer torchrun may have set it, but torchrun's store does not serve
        // these ranks.
        common.put("TORCHELASTIC_USE_AGENT_STORE", "");
        if (System.getenv("MILLRACE_SECRET") == null) {
            byte[] secret = new byte[SECRET_BYTES];
            new SecureRandom().nextBytes(secret);
            common.put("MILLRACE_SECRET", HexFormat.of().formatHex(secret));
        }
        common.put(Settings.RUN_ID.name(), "millrace run " + ProcessHandle.current().pid());
        common.putAll(settings);
        for (String each : exported) {
            String[] parts = each.split("=", 2);
            require(parts[0].matches("[A-Za-z_][A-Za-z0-9_]*"), "-x: '" + parts[0] + "' is no name of a variable");
            String value = parts.length == 2 ? parts[1] : System.getenv(parts[0]);
            require(value != null, "-x " + each + ": there is no such variable here; write " + each + "=VALUE");
            common.put(parts[0], value);
        }
        common.put("WORLD_SIZE", String.valueOf(ranks));
        common.put("LOCAL_WORLD_SIZE", String.valueOf(ranks));
        common.put("MASTER_ADDR", "127.0.0.1");
        common.put("MASTER_PORT", String.valueOf(port != null ? port : freePort()));
        return common;
    }

    private static Map<String, String> variables(int rank, List<String> hosts, Map<String, String> common) {
        Map<String, String> variables = new LinkedHashMap<>(common);
        variables.put("RANK", String.valueOf(rank));
        variables.put("LOCAL_RANK", String.valueOf(rank));
        if (!hosts.isEmpty()) {
            variables.put(Settings.HOST_ID.name(), hosts.get(rank));
        }
        return variables;
    }

    /** Returns the host name of each rank if this host emulates several hosts, otherwise an empty list. */
    private List<String> hosts() {
        if (ranksPerHost == null && link == null) {
            return List.of();
        }
        int each = ranksPerHost == null ? 1 : ranksPerHost;
        return IntStream.range(0, ranks).mapToObj(rank -> ProcessRanks.hostName(rank / each)).toList();
    }

    private static int freePort() {
        try {
            return FreePort.find();
        } catch (IOException none) {
            throw new MillraceException("no port is free for rank 0 to listen at: " + none.getMessage(), none);
        }
    }
}
