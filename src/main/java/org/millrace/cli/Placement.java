package org.millrace.cli;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Where a rank runs.
 *
 * @param host as the user names it; with the user's name there before it, where one is given
 */
record Placement(int rank, String host, int localRank, int localSize) {

    private static final Set<String> THIS_HOST = Set.of("localhost", "127.0.0.1");
    private static final Pattern HOST = Pattern
            .compile("((?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9_.-]*)" + "(?::([1-9][0-9]{0,3}))?");

    /** Whether it needs no ssh. */
    boolean isHere() {
        return THIS_HOST.contains(host) || host.equals(Host.name());
    }

    /** The host without the user's name there: what others connect to. */
    String address() {
        return host.substring(host.indexOf('@') + 1);
    }

    /**
     * Places ranks, those of a host next to each other, in the order of the hosts.
     *
     * @param ranks how many; null if the hosts say it
     * @param hosts {@code HOST} or {@code HOST:RANKS} each; ranks are spread evenly where no number stands
     * @return one for each rank
     * @throws IllegalArgumentException if the two do not fit together; the message says why
     */
    static List<Placement> of(@Nullable Integer ranks, List<String> hosts) {
        List<String> names = new ArrayList<>();
        List<Integer> counts = new ArrayList<>();
        for (String each : hosts) {
            Matcher matcher = HOST.matcher(each);
            require(matcher.matches(), "--hosts: '" + each + "' is not usable; allowed: HOST, USER@HOST, or one of"
                    + " these with :RANKS, with a comma between two");
            names.add(matcher.group(1));
            if (matcher.group(2) != null) {
                counts.add(Integer.valueOf(matcher.group(2)));
            }
        }
        require(new HashSet<>(names).size() == names.size(),
                "--hosts: a host stands there twice; write HOST:RANKS for several ranks on one");
        if (counts.isEmpty()) {
            require(ranks != null, "how many ranks? Say -n RANKS, or --hosts HOST:RANKS,...");
            require(ranks >= names.size(),
                    ranks + " ranks (-n) leave " + (names.size() - ranks) + " of " + names.size() + " hosts without");
            for (int i = 0; i < names.size(); i++) {
                counts.add(ranks / names.size() + (i < ranks % names.size() ? 1 : 0));
            }
        }
        require(counts.size() == names.size(), "--hosts: say how many ranks for each host, or for none");
        int sum = counts.stream().mapToInt(Integer::intValue).sum();
        require(ranks == null || ranks == sum, "--hosts has place for " + sum + " ranks, and -n says " + ranks);
        List<Placement> placements = new ArrayList<>();
        for (int host = 0; host < names.size(); host++) {
            for (int local = 0; local < counts.get(host); local++) {
                placements.add(new Placement(placements.size(), names.get(host), local, counts.get(host)));
            }
        }
        require(names.size() == 1 || names.stream().noneMatch(THIS_HOST::contains),
                "--hosts: the others cannot reach this host as localhost; name it as they do");
        return placements;
    }

    private static void require(boolean condition, String otherwise) {
        if (!condition) {
            throw new IllegalArgumentException(otherwise);
        }
    }
}
