package org.millrace.config;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * What messages are about: NCCL's words, of {@code NCCL_DEBUG_SUBSYS}. The command line has messages of some of them
 * alone.
 */
@SuppressWarnings("doclint:missing") // NCCL documents them
public enum LogSubsystem {
    INIT,
    COLL,
    P2P,
    SHM,
    NET,
    GRAPH,
    TUNING,
    ENV,
    ALLOC,
    ALLOC_HOST,
    CALL,
    PROXY,
    NVLS,
    BOOTSTRAP,
    REG,
    PROFILE,
    RAS,
    DESTROY;

    private static final String ALL = "ALL";

    /** Written as NCCL reads it: names with commas between; after {@code ^} all but these. */
    static final ValueType<Set<LogSubsystem>> SETS = new ValueType<>() {

        @Override
        public Set<LogSubsystem> parse(String text) {
            boolean excluded = text.startsWith("^");
            EnumSet<LogSubsystem> named = EnumSet.noneOf(LogSubsystem.class);
            for (String name : List.of((excluded ? text.substring(1) : text).split(","))) {
                String word = name.strip().toUpperCase(Locale.ROOT);
                if (word.equals(ALL)) {
                    named.addAll(EnumSet.allOf(LogSubsystem.class));
                } else {
                    named.add(LogSubsystem.valueOf(word));
                }
            }
            return Set.copyOf(excluded ? EnumSet.complementOf(named) : named);
        }

        @Override
        public String format(Set<LogSubsystem> value) {
            if (value.size() == values().length) {
                return ALL;
            }
            return value.isEmpty() ? "^" + ALL
                    : value.stream().sorted().map(LogSubsystem::name).collect(Collectors.joining(","));
        }

        @Override
        public String allowed() {
            return Arrays.stream(values()).map(LogSubsystem::name).collect(Collectors.joining(", ")) + " and " + ALL
                    + ", with commas between, perhaps after ^ (all but these)";
        }
    };
}
