package org.millrace.config;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;

/** Finds the known name that the author of a mistyped name probably meant. */
public final class NearestName {

    private NearestName() {}

    /**
     * Returns a hint for a message about an unknown name.
     *
     * @param unknown   the unknown name
     * @param known     the known names
     * @param otherwise text to return if no known name is near
     * @return {@code "did you mean X?"}, or {@code otherwise}
     */
    public static String hint(String unknown, Collection<String> known, String otherwise) {
        return of(unknown, known).map(near -> "did you mean " + near + "?").orElse(otherwise);
    }

    /**
     * Returns the nearest name by Levenshtein distance. Upper and lower case count as equal, and so do {@code -},
     * {@code .} and {@code _}.
     *
     * @param unknown the unknown name
     * @param known   the known names
     * @return the name; empty if no known name is near enough for a typing error
     */
    public static Optional<String> of(String unknown, Collection<String> known) {
        String written = normal(unknown);
        int near = Math.max(1, written.length() / 4);
        return known.stream()
                .min(Comparator.comparingInt(name -> distance(written, normal(name))))
                .filter(name -> distance(written, normal(name)) <= near);
    }

    private static String normal(String name) {
        return name.toUpperCase(Locale.ROOT).replace('.', '_').replace('-', '_');
    }

    /**
     * Returns the Levenshtein distance: the minimum number of characters to insert, remove or replace in order to turn
     * one word into the other.
     */
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
