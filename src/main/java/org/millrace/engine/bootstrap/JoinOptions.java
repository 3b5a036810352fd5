package org.millrace.engine.bootstrap;

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
 * What a rank may say about the way it joins.
 *
 * @param deadline       how long to wait for the other ranks: when joining, and again in every collective call
 * @param secret         what every rank must know to be let in, or null: then every process that can read the file is
 *                       let in for {@code file:}, and any process for {@code tcp:}
 * @param secretRequired whether a group that other hosts can reach must have one, in place of a warning
 * @param tls            who this process is under TLS; null where ranks talk in clear
 * @param sockets        which of its addresses this machine announces, where a name means none that others reach, and
 *                       for how long connections between hosts that are lost are made again
 * @param listener       the program's
 */
public record JoinOptions(Duration deadline, @Nullable String secret, boolean secretRequired, @Nullable TlsIdentity tls,
        SocketOptions sockets, CommunicatorListener listener) {

    /** @throws IllegalArgumentException if the deadline is not positive or the secret is empty */
    public JoinOptions {
        Objects.requireNonNull(deadline, "deadline");
        if (!deadline.isPositive()) {
            throw new IllegalArgumentException(
                    "deadline " + deadline + ": a group needs more than no time to come together");
        }
        if (secret != null && secret.isEmpty()) {
            throw new IllegalArgumentException("the secret is empty: leave it out, or set the same one on every rank");
        }
    }

    /** The defaults: no secret of the caller's own. */
    static JoinOptions within(Duration deadline) {
        return new JoinOptions(deadline, null, false, null, SocketOptions.defaults(),
                CommunicatorListener.STANDARD_ERROR);
    }

    /** What the settings of deadline, secret and TLS say. */
    public static JoinOptions of(Configuration configuration, CommunicatorListener listener) {
        String secret = configuration.get(Settings.SECRET);
        return new JoinOptions(configuration.get(Settings.CONNECT_DEADLINE), secret.isEmpty() ? null : secret,
                configuration.get(Settings.REQUIRE_SECRET), TlsIdentity.of(configuration),
                NetworkOptions.socket(configuration), listener);
    }

    /** The same, with a secret; null for none. */
    JoinOptions withSecret(@Nullable String shared) {
        return new JoinOptions(deadline, shared, secretRequired, tls, sockets, listener);
    }

    /** Everything but the secret, which must not reach a log. */
    @Override
    public String toString() {
        return "JoinOptions[deadline=" + deadline + ", secret=" + (secret == null ? "none" : "set") + ", "
                + (tls == null ? "in clear" : tls) + "]";
    }
}
