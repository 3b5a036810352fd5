package org.millrace.bench.measure;

/** Repeated work. */
@FunctionalInterface
public interface Loop {

    /** Result of a loop if its other side did not answer. */
    long LOST = -1;

    /**
     * Runs the loop.
     *
     * @param count number of iterations, 1 or more
     * @return any value that depends on the work, so that a compiler cannot remove it. {@link #LOST} if the other side
     *         did not answer
     */
    long run(long count);
}
