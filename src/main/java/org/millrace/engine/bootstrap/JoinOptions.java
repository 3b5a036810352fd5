package org.millrace.engine.bootstrap;

import java.net.InetAddress;
import java.time.Duration;
import java.util.Objects;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/**
 * What a rank may say about the way it joins.
 *
 * @param deadline how long to wait for the other ranks: when joining, and again in every collective call
 * @param address  the address of this machine on which rank 0 listens, or null: loopback for {@code file:}, HOST for
 *                 {@code tcp:}. Other ranks ignore it.
 * @param secret   what every rank must know to be let in, or null: whoever can read the file is let in for
 *                 {@code file:}, anybody for {@code tcp:}
 */
public record JoinOptions(Duration deadline, InetAddress address, String secret) {

    /**
     * Options that are checked.
     *
     * @param deadline more than nothing
     * @param address  an address of this machine, or null
     * @param secret   not empty, or null
     * @throws IllegalArgumentException if the deadline is not positive or the secret is empty
     */
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

    /**
     * The defaults: loopback or the named host, and no secret of the caller's own.
     *
     * @param deadline how long to wait for the other ranks
     * @return options that say no more than that
     */
    public static JoinOptions within(Duration deadline) {
        return new JoinOptions(deadline, null, null);
    }

    /**
     * What the settings say.
     *
     * @param configuration where {@code MILLRACE_CONNECT_DEADLINE} and {@code MILLRACE_SECRET} are read
     * @return options
     */
    public static JoinOptions of(Configuration configuration) {
        JoinOptions options = within(configuration.get(Settings.CONNECT_DEADLINE));
        String secret = configuration.get(Settings.SECRET);
        return secret.isEmpty() ? options : options.withSecret(secret);
    }

    /**
     * The same, with an address for rank 0 to listen on.
     *
     * @param listenAddress an address of this machine, or null for the default
     * @return new options
     */
    public JoinOptions on(InetAddress listenAddress) {
        return new JoinOptions(deadline, listenAddress, secret);
    }

    /**
     * The same, with a secret.
     *
     * @param shared what every rank must know, or null for none
     * @return new options
     */
    public JoinOptions withSecret(String shared) {
        return new JoinOptions(deadline, address, shared);
    }

    /** Everything but the secret, which must not reach a log. */
    @Override
    public String toString() {
        return "JoinOptions[deadline=" + deadline + ", address=" + address + ", secret="
                + (secret == null ? "none" : "set") + "]";
    }
}
