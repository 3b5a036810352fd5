package org.millrace.bench.suite;

import java.util.List;

/** Related measurements. Each variant has its own JVM, so that the compiler sees no other variant. */
public interface Suite {

    /**
     * Returns its name on the command line.
     *
     * @return one word
     */
    String name();

    /**
     * Returns its heading in the report.
     *
     * @return a few words
     */
    String title();

    /**
     * Returns a description of its operations for the reader of the report.
     *
     * @return a paragraph
     */
    String description();

    /**
     * Returns the variants that this machine can run.
     *
     * @param full whether to include the rare ones
     * @return names, none if this machine cannot run the suite at all
     */
    List<String> variants(boolean full);

    /**
     * Measures a variant. Runs in a separate JVM.
     *
     * @param variant one of {@link #variants}
     * @param bench   receives the results
     * @throws Exception if it cannot be measured
     */
    void run(String variant, Bench bench) throws Exception;
}
