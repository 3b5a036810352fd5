package org.millrace.config;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** Guesses which name was meant by one that does not exist. */
public final class Suggestion {

    private Suggestion() {}

    /**
     * The known name that is nearest to an unknown one.
     *
     * @param unknown what was written; case and the choice between dots, dashes and underscores do not count
     * @param known   the names there are
     * @return the nearest, or empty if none is near enough to be a slip of the fingers
     */
    public static Optional<String> nearest(String unknown, List<String> known) {
        String written = normal(unknown);
        int near = Math.max(2, written.length() / 4);
        return known.stream()
                .min(Comparator.comparingInt(name -> distance(written, normal(name))))
                .filter(name -> distance(written, normal(name)) <= near);
    }

    private static String normal(String name) {
        return name.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_');
    }

    /** Levenshtein's: how many characters must be inserted, removed or replaced to make one word of the other. */
    private static int distance(String a, String b) {
        int[] previous = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            previous[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int[] current = new int[b.length() + 1];
            current[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = previous[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                current[j] = Math.min(replaced, 1 + Math.min(previous[j], current[j - 1]));
            }
            previous = current;
        }
        return previous[b.length()];
    }
}
