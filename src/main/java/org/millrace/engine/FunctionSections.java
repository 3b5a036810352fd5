package org.millrace.engine;

import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.config.ConfigurationException;

/**
 * The texts of {@code NCCL_ALGO} and {@code NCCL_PROTO}, read as NCCL reads them: names with commas between, after
 * {@code ^} those that are not wanted; sections with semicolons between, each for the function that it begins with, or
 * for all.
 */
final class FunctionSections {

    /** {@code Operation.ncclName} in lower case, in the order of the operations' codes; no sends and receives. */
    static final List<String> FUNCTIONS = List.of("broadcast", "reduce", "allgather", "reducescatter", "allreduce");

    private FunctionSections() {}

    /** The same for each function. */
    static <T> Map<String, T> all(T each) {
        Map<String, T> functions = new LinkedHashMap<>();
        FUNCTIONS.forEach(function -> functions.put(function, each));
        return functions;
    }

    /**
     * What a text allows each function.
     *
     * @param everything what {@code ^} takes names from
     * @param named      what a name stands for; null for one that there is not
     * @param what       what the names are of, for messages
     * @param refused    makes the error of a reason
     * @throws ConfigurationException if the text is not understood
     */
    static <E extends Enum<E>> Map<String, Set<E>> parse(String text, Set<E> everything,
            Function<String, @Nullable Set<E>> named, String what, Function<String, ConfigurationException> refused) {
        Map<String, Set<E>> allowed = all(everything);
        for (String section : text.toLowerCase(Locale.ROOT).split(";")) {
            int colon = section.indexOf(':');
            String function = section.substring(0, Math.max(colon, 0)).strip();
            if (colon >= 0 && !FUNCTIONS.contains(function)) {
                throw refused.apply("there is no function " + function);
            }
            String names = section.substring(colon + 1).strip();
            boolean excluded = names.startsWith("^");
            EnumSet<E> meant = EnumSet.copyOf(everything);
            if (!excluded) {
                meant.clear();
            }
            for (String name : (excluded ? names.substring(1) : names).split(",")) {
                Set<E> known = named.apply(name.strip());
                if (known == null) {
                    throw refused.apply("there is no " + what + " " + name.strip());
                }
                if (excluded) {
                    meant.removeAll(known);
                } else {
                    meant.addAll(known);
                }
            }
            if (colon < 0) {
                allowed.replaceAll((_, _) -> meant);
            } else {
                allowed.put(function, meant);
            }
        }
        return allowed;
    }
}
