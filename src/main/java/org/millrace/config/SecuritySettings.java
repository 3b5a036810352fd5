package org.millrace.config;

import static org.millrace.config.ValueTypes.optional;
import static org.millrace.config.ValueTypes.paths;
import static org.millrace.config.ValueTypes.text;

import java.nio.file.Path;
import java.util.Optional;

/** How ranks know each other, and whether strangers can read what they say. {@link Settings#all} has them, too. */
public final class SecuritySettings {

    /** What ranks prove to each other that they belong together with. */
    public static final Setting<String> SECRET =
            new Setting<>("MILLRACE_SECRET", text("any text, the same for every rank"), "",
                    "what ranks that meet at an address prove that they belong together with; never shown", true);

    /** Whether a group that others can reach needs a secret. */
    public static final Setting<Boolean> REQUIRE_SECRET = new Setting<>("MILLRACE_REQUIRE_SECRET",
            ValueTypes.booleans(), false,
            "1: ranks that meet at an address, loopback too, refuse to do so without MILLRACE_SECRET, in place of a"
                    + " warning; the plugin then needs MILLRACE_TLS=1");
    /** Whether TCP is encrypted. */
    public static final Setting<Boolean> TLS = new Setting<>("MILLRACE_TLS", ValueTypes.booleans(), false,
            "1: what ranks say and send each other over TCP is under TLS 1.3, both ends of every stream authenticated by"
                    + " MILLRACE_SECRET or by certificates; the same on all ranks");
    /** Which certificate this process shows. */
    public static final Setting<Optional<Path>> TLS_CERTIFICATE = new Setting<>("MILLRACE_TLS_CERTIFICATE",
            optional(paths()), Optional.empty(),
            "with MILLRACE_TLS=1: a PEM file with this process's certificate, and those that lead to the authority;"
                    + " unset: by the secret");
    /** Its private key. */
    public static final Setting<Optional<Path>> TLS_KEY = new Setting<>("MILLRACE_TLS_KEY", optional(paths()),
            Optional.empty(), "with MILLRACE_TLS=1: a PEM file with its private key, PKCS#8 and not encrypted");
    /** Whose certificates are believed. */
    public static final Setting<Optional<Path>> TLS_CA = new Setting<>("MILLRACE_TLS_CA", optional(paths()),
            Optional.empty(),
            "with MILLRACE_TLS=1: a PEM file with the authority whose certificates are ranks'; one that signs for others"
                    + " too lets them in");

    private SecuritySettings() {}
}
