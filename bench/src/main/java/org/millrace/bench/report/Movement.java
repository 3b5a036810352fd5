package org.millrace.bench.report;

/**
 * A line that is not where the baseline has it.
 *
 * @param key    its key
 * @param what   the figure that is compared: the ratio to C where there is one, since it does not depend on the clock
 *               or the neighbours of the day; else Java's time
 * @param before the baseline's
 * @param after  this run's
 */
public record Movement(String key, String what, double before, double after) {

    @Override
    public String toString() {
        return Html.format("%s: %s %.3g before, %.3g now, %+.0f %%: %s", key, what, before, after,
                (after / before - 1) * 100, after > before ? "slower" : "faster");
    }
}
