package org.millrace.net.link;

import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiPredicate;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.file.ProcessIdentity;

/**
 * The links of {@code MILLRACE_LINK}. A connection between two hosts uses the link of the first pair that matches the
 * hosts, in the order of the setting. If no pair matches, the connection uses the link without a pair. A listener's
 * address has no room for the name of the listener's host. Instead, the address contains a number that is computed from
 * the name.
 */
final class LinkTable {

    /** Number that stands for a host if its processes do not send a number. */
    static final int UNKNOWN = 0;

    private static final String NO_PAIR = "";
    private static final String ANY = "*";

    /** Links by pair, in the order of the setting; {@link #NO_PAIR} is the key of the link without a pair. */
    private final Map<String, LinkSchedule> links = new LinkedHashMap<>();

    /**
     * Reads links, separated by semicolons. Each link may begin with a pair of hosts and a colon.
     *
     * @throws IllegalArgumentException if a link cannot be read; the message lists the allowed forms
     */
    LinkTable(String text) {
        for (String part : text.split(";", -1)) {
            String link = part.strip();
            int colon = link.startsWith(LinkSchedule.FILE) ? -1 : link.indexOf(':');
            String pair = colon < 0 ? NO_PAIR : link.substring(0, colon).strip();
            if (colon >= 0 && !pair.matches(".+-.+")) {
                throw new IllegalArgumentException("'" + pair + "' before ':' is no pair of hosts; allowed: HOST-HOST,"
                        + " where " + ANY + " is any host");
            }
            if (links.put(pair, LinkSchedule.parse(link.substring(colon + 1).strip())) != null) {
                throw new IllegalArgumentException(
                        colon < 0 ? "two links have no pair of hosts before them; allowed: HOST-HOST: LINK"
                                : "the pair '" + pair + "' is given twice");
            }
        }
    }

    /**
     * Returns the configured links; empty if the setting is not set.
     *
     * @throws ConfigurationException if a link cannot be read; the message lists the allowed forms
     */
    static Optional<LinkTable> of(Configuration configuration) {
        try {
            return configuration.get(Settings.LINK).map(LinkTable::new);
        } catch (IllegalArgumentException refused) {
            throw new ConfigurationException(Settings.LINK.name() + ": " + refused.getMessage());
        }
    }

    /** Returns the name of this process's host. */
    static String host(Configuration configuration) {
        return configuration.get(Settings.HOST_ID).orElse(ProcessIdentity.HOST);
    }

    /** Returns the number of a host, which is never {@link #UNKNOWN}. */
    static int number(String host) {
        CRC32 sum = new CRC32();
        sum.update(host.getBytes(StandardCharsets.UTF_8));
        return (int) sum.getValue() | 1;
    }

    Collection<LinkSchedule> all() {
        return links.values();
    }

    boolean hasPairs() {
        return links.keySet().stream().anyMatch(pair -> !pair.equals(NO_PAIR));
    }

    /**
     * Returns the link between two hosts, given by their numbers, in either order; null if no link is configured
     * between the hosts.
     */
    @Nullable
    LinkSchedule between(int one, int other) {
        return links.entrySet()
                .stream()
                .filter(link -> fits(link.getKey(),
                        (left, right) -> is(left, one) && is(right, other) || is(left, other) && is(right, one)))
                .map(Map.Entry::getValue)
                .findFirst()
                .orElse(links.get(NO_PAIR));
    }

    private static boolean is(String name, int host) {
        return name.equals(ANY) || number(name) == host;
    }

    /**
     * Returns whether a text, "name-name", matches two hosts. Names may contain hyphens, so each hyphen is tried as the
     * separator.
     */
    private static boolean fits(String pair, BiPredicate<String, String> hosts) {
        for (int at = pair.indexOf('-'); at >= 0; at = pair.indexOf('-', at + 1)) {
            if (hosts.test(pair.substring(0, at), pair.substring(at + 1))) {
                return true;
            }
        }
        return false;
    }

    /**
     * Refuses pairs that name an unknown host.
     *
     * @throws ConfigurationException if a pair names an unknown host; the message lists the known hosts
     */
    void require(Collection<String> hosts) {
        Set<Integer> numbers = hosts.stream().map(LinkTable::number).collect(Collectors.toSet());
        for (String pair : links.keySet()) {
            if (!pair.equals(NO_PAIR)
                    && !fits(pair, (left, right) -> (left.equals(ANY) || numbers.contains(number(left)))
                            && (right.equals(ANY) || numbers.contains(number(right))))) {
                throw new ConfigurationException(Settings.LINK.name() + ": '" + pair
                        + "' is no pair of this run's hosts, which are " + String.join(", ", hosts));
            }
        }
    }
}
