package org.millrace.bench.measure;

/** Something that is done over and over. */
@FunctionalInterface
public interface Loop {

    /** What a loop returns if its other side did not answer. */
    long LOST = -1;

    /**
     * Does it.
     *
     * @param count how often, 1 or more
     * @return anything that depends on the work, so that a compiler cannot leave it out; {@link #LOST} if the other
     *         side did not answer
     */
    long run(long count);
}
