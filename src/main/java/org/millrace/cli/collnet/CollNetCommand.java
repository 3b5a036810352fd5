package org.millrace.cli.collnet;

import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.IdleProfile;
import org.millrace.cli.console.Converters;
import org.millrace.cli.console.GlobalOptions;
import org.millrace.collnet.aggregator.AggregatorConnect;
import org.millrace.collnet.aggregator.AggregatorService;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.socket.handshake.NamedHost;
import org.millrace.net.socket.stream.SocketOptions;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExitCode;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** {@code millrace collnet}. */
@Command(
        name = "collnet",
        description = "A network that reduces, in Java.",
        subcommands = CollNetCommand.AggregatorCommand.class)
public final class CollNetCommand implements Runnable {

    @Spec
    private CommandSpec spec;
    @ParentCommand
    private GlobalOptions parent;

    /** For picocli. */
    public CollNetCommand() {}

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "say what: 'millrace collnet aggregator'");
    }

    /** {@code millrace collnet aggregator}. */
    @Command(
            name = "aggregator",
            description = {
                    "Reduce for the ranks of any group that names this process in MILLRACE_COLLNET_AGGREGATORS, until "
                            + "it is ended (Ctrl-C).",
                    "Ranks have to have the same MILLRACE_SECRET, and the same MILLRACE_TLS."},
            sortOptions = false)
    public static final class AggregatorCommand implements Callable<Integer> {

        /** Of idle passes: a core is for the ranks of this host, if there are any. */
        private static final int SPINS = 200;
        private static final int YIELDS = 2_000;
        private static final long MOST_PARK_NANOS = 100_000;
        /** A process that is asked to end ends, whatever its threads do. */
        private static final long MOST_SECONDS_TO_END = 10;

        @Spec
        private CommandSpec spec;
        @ParentCommand
        private CollNetCommand command;

        @Option(
                names = "--listen",
                paramLabel = "HOST:PORT",
                defaultValue = "0.0.0.0:7070",
                description = "Where ranks connect to (default: ${DEFAULT-VALUE}).")
        private String listen;

        @Option(
                names = "--for",
                paramLabel = "TIME",
                converter = Converters.Time.class,
                description = "End after this (default: never).")
        private @Nullable Duration duration;

        /** For picocli. */
        public AggregatorCommand() {}

        @Override
        public Integer call() throws InterruptedException {
            Configuration configuration = Configuration.load(command.parent.settings());
            SocketOptions options = NetworkOptions.socket(configuration);
            InetSocketAddress where = AggregatorConnect.place("--listen", listen, options, NamedHost::listenAt);
            String secret = configuration.get(Settings.SECRET);
            PrintWriter err = spec.commandLine().getErr();
            if (secret.isEmpty() && options.tls() == null) {
                if (configuration.get(Settings.REQUIRE_SECRET)) {
                    throw new ConfigurationException(Settings.REQUIRE_SECRET.name() + "=1 wants a secret: set "
                            + Settings.SECRET.name() + ", here and on every rank");
                }
                if (!where.getAddress().isLoopbackAddress()) {
                    err.println("millrace: whoever reaches this port can use the aggregator: set "
                            + Settings.SECRET.name() + ", here and on every rank");
                }
            }
            CountDownLatch asked = new CountDownLatch(1);
            CountDownLatch ended = new CountDownLatch(1);
            Thread end = new Thread(() -> end(asked, ended), "aggregator-end");
            Runtime.getRuntime().addShutdownHook(end);
            try (AggregatorService service =
                    new AggregatorService(options, where, secret, configuration.get(Settings.CONNECT_DEADLINE),
                            () -> IdleProfile.rank(SPINS, YIELDS, MOST_PARK_NANOS))) {
                PrintWriter out = spec.commandLine().getOut();
                out.println("listening on " + service.where().getAddress().getHostAddress() + ":"
                        + service.where().getPort());
                out.flush();
                if (duration == null) {
                    asked.await();
                } else {
                    asked.await(duration.toMillis(), TimeUnit.MILLISECONDS);
                }
                out.println("groups: " + service.served());
                out.flush();
            } finally {
                ended.countDown();
                removeHook(end);
            }
            return ExitCode.OK;
        }

        /** The process is gone when this returns: ranks hear before that their connections end. */
        private static void end(CountDownLatch asked, CountDownLatch ended) {
            asked.countDown();
            try {
                ended.await(MOST_SECONDS_TO_END, TimeUnit.SECONDS);
            } catch (InterruptedException hurried) {
                Thread.currentThread().interrupt();
            }
        }

        private static void removeHook(Thread hook) {
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException endsAlready) {
                // it has run
            }
        }
    }
}
