package org.millrace.bench.report;

/**
 * A line that differs from the baseline.
 *
 * @param key    its key
 * @param what   the compared figure: the ratio to C if there is one, because it depends neither on the clock nor on the
 *               load of the day. Otherwise Java's time
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
