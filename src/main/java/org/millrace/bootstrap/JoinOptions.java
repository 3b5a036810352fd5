package org.millrace.bootstrap;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorListener;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.connection.TlsIdentity;
import org.millrace.net.socket.SocketOptions;

/**
 * Options of a rank for joining a group.
 *
 * @param deadline       time to wait for the other ranks in the join; each later collective call may take the same time
 *                       again
 * @param secret         text that each rank must know to be admitted; null for no secret. Without a secret, a group at
 *                       {@code file:} admits each process that can read the file, and a group at {@code tcp:} without
 *                       TLS admits any process
 * @param secretRequired whether a group at {@code tcp:} without TLS must have a secret; if not, a missing secret only
 *                       causes a warning
 * @param tls            identity of this process under TLS; null if ranks communicate without TLS
 * @param run            identity of the run, the same on all ranks; empty if runs cannot be distinguished
 * @param sockets        options of TCP. They select the addresses that this machine announces, also if its host name
 *                       maps to loopback. They also limit the time for the recovery of a lost connection between hosts
 * @param listener       listener of the program for events of the communicator
 * @param place          place at which the ranks decide, after a loss, which group continues; null if there is no place
 */
public record JoinOptions(Duration deadline, @Nullable String secret, boolean secretRequired, @Nullable TlsIdentity tls,
        String run, SocketOptions sockets, CommunicatorListener listener, DecisionPlace.@Nullable Directory place) {

    /** @throws IllegalArgumentException if the deadline is not positive or the secret is empty */
    public JoinOptions {
        Objects.requireNonNull(deadline, "deadline");
        if (!deadline.isPositive()) {
            throw new IllegalArgumentException("deadline " + deadline + ": it must be positive");
        }
        if (secret != null && secret.isEmpty()) {
            throw new IllegalArgumentException("the secret is empty: leave it out, or set the same one on every rank");
        }
    }

    /** Returns the default options, without a secret from the caller. */
    static JoinOptions within(Duration deadline) {
        return new JoinOptions(deadline, null, false, null, "", SocketOptions.defaults(),
                CommunicatorListener.STANDARD_ERROR, null);
    }

    public static JoinOptions of(Configuration configuration, CommunicatorListener listener) {
        String secret = configuration.get(Settings.SECRET);
        return new JoinOptions(configuration.get(Settings.CONNECT_DEADLINE), secret.isEmpty() ? null : secret,
                configuration.get(Settings.REQUIRE_SECRET), TlsIdentity.of(configuration), configuration.runId(),
                NetworkOptions.socket(configuration), listener,
                configuration.get(Settings.DECISION_DIRECTORY)
                        .map(path -> new DecisionPlace.Directory(path, true))
                        .or(() -> configuration.get(Settings.RUN_DIRECTORY)
                                .map(path -> new DecisionPlace.Directory(path, false)))
                        .orElse(null));
    }

    /** Returns options for a group whose ranks certainly belong to one run. All other options are as in this object. */
    JoinOptions ofOneRun() {
        return new JoinOptions(deadline, secret, secretRequired, tls, run.isEmpty() ? "one run" : run, sockets,
                listener, place);
    }

    /**
     * Returns the same options with the rendezvous's directory as the place of decisions, unless a setting selects
     * another directory.
     */
    JoinOptions withPlace(@Nullable Path directory) {
        return place != null || directory == null ? this
                : new JoinOptions(deadline, secret, secretRequired, tls, run, sockets, listener,
                        new DecisionPlace.Directory(directory, false));
    }

    /** Returns a text for logs. It contains no secret, only whether a secret is set. */
    @Override
    public String toString() {
        return "JoinOptions[deadline=" + deadline + ", secret=" + (secret == null ? "none" : "set") + ", "
                + (tls == null ? "in clear" : tls) + "]";
    }
}
