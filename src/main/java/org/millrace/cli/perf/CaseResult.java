package org.millrace.cli.perf;

/**
 * What one rank, or all together, measured of a case, in place or not.
 *
 * @param nanos time of one operation, averaged over the iterations
 * @param wrong elements that are not what they should be; {@link #UNCHECKED} if nobody looked
 */
public record CaseResult(double nanos, long wrong) {

    public static final long UNCHECKED = -1;
    /** Of an operation that has no such form. */
    static final CaseResult NONE = new CaseResult(0, UNCHECKED);

    /**
     * Both ranks' wrong elements, and the time of the slower one: a collective is over when the last rank has its
     * result.
     */
    CaseResult with(CaseResult other) {
        return new CaseResult(Math.max(nanos, other.nanos), wrong == UNCHECKED ? UNCHECKED : wrong + other.wrong);
    }

    boolean isMeasured() {
        return nanos > 0;
    }

    boolean isChecked() {
        return wrong != UNCHECKED;
    }
}
