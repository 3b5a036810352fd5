package org.millrace.config;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;

/** Of names that there are, the one that somebody may have meant who wrote another. */
public final class NearestName {

    private NearestName() {}

    /**
     * What to say behind a name that does not exist.
     *
     * @param unknown   what was written
     * @param known     what there is
     * @param otherwise to be said if nothing of that is near
     * @return {@code "did you mean X?"}, or the other text
     */
    public static String hint(String unknown, Collection<String> known, String otherwise) {
        return of(unknown, known).map(near -> "did you mean " + near + "?").orElse(otherwise);
    }

    /**
     * The nearest, upper and lower case and {@code -}, {@code .} and {@code _} alike.
     *
     * @param unknown what was written
     * @param known   what there is
     * @return the name; empty if none is near enough to be a slip of the fingers
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
