package org.millrace.engine.bootstrap;

import java.net.InetAddress;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.net.tls.TlsIdentity;

/**
 * What a rank may say about the way it joins.
 *
 * @param deadline       how long to wait for the other ranks: when joining, and again in every collective call
 * @param address        the address of this machine on which rank 0 listens, or null: loopback for {@code file:}, HOST
 *                       for {@code tcp:}. Other ranks ignore it.
 * @param secret         what every rank must know to be let in, or null: then every process that can read the file is
 *                       let in for {@code file:}, and any process for {@code tcp:}
 * @param secretRequired whether a group that other hosts can reach must have one, in place of a warning
 * @param tls            who this process is under TLS; null where ranks talk in clear
 * @param sockets        which of its addresses this machine announces, where a name means none that others reach
 */
public record JoinOptions(Duration deadline, @Nullable InetAddress address, @Nullable String secret,
        boolean secretRequired, @Nullable TlsIdentity tls, SocketOptions sockets) {

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

    /** The defaults: loopback or the named host, and no secret of the caller's own. */
    static JoinOptions within(Duration deadline) {
        return new JoinOptions(deadline, null, null, false, null, SocketOptions.defaults());
    }

    /** What the settings of deadline, secret and TLS say. */
    public static JoinOptions of(Configuration configuration) {
        String secret = configuration.get(Settings.SECRET);
        return new JoinOptions(configuration.get(Settings.CONNECT_DEADLINE), null, secret.isEmpty() ? null : secret,
                configuration.get(Settings.REQUIRE_SECRET), TlsIdentity.of(configuration),
                NetworkOptions.addresses(configuration));
    }

    /** The same, with an address for rank 0 to listen on; null for the default. */
    public JoinOptions on(@Nullable InetAddress listenAddress) {
        return new JoinOptions(deadline, listenAddress, secret, secretRequired, tls, sockets);
    }

    /** The same, with a secret; null for none. */
    JoinOptions withSecret(@Nullable String shared) {
        return new JoinOptions(deadline, address, shared, secretRequired, tls, sockets);
    }

    /** The same, under TLS; null for in clear. */
    JoinOptions withTls(@Nullable TlsIdentity identity) {
        return new JoinOptions(deadline, address, secret, secretRequired, identity, sockets);
    }

    /** The same, where a group that other hosts can reach must have a secret. */
    JoinOptions requiringSecret() {
        return new JoinOptions(deadline, address, secret, true, tls, sockets);
    }

    /** Everything but the secret, which must not reach a log. */
    @Override
    public String toString() {
        return "JoinOptions[deadline=" + deadline + ", address=" + address + ", secret="
                + (secret == null ? "none" : "set") + ", " + (tls == null ? "in clear" : tls) + "]";
    }
}
