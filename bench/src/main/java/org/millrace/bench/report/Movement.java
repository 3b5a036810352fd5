package org.millrace.bench.report;

/**
 * A line that differs from the baseline.
 *
 * @param key    key of the line
 * @param what   the compared figure. It is the ratio to C if there is one, because the ratio depends neither on the
 *               clock nor on other load. Otherwise it is Java's time
 * @param before figure of the baseline
 * @param after  figure of this run
 */
public record Movement(String key, String what, double before, double after) {

    @Override
    public String toString() {
        return Html.format("%s: %s %.3g before, %.3g now, %+.0f %%: %s", key, what, before, after,
                (after / before - 1) * 100, after > before ? "slower" : "faster");
    }
}
