package org.millrace.bench.suite;

import java.util.List;

/** Things that are measured together. A variant has a JVM of its own, so that the compiler knows of no other. */
public interface Suite {

    /**
     * What it is called on the command line.
     *
     * @return one word
     */
    String name();

    /**
     * What it stands under in the report.
     *
     * @return a few words
     */
    String title();

    /**
     * What its operations are, for the reader of the report.
     *
     * @return a paragraph
     */
    String description();

    /**
     * The variants that this machine can run.
     *
     * @param full whether the rare ones are wanted
     * @return names; none if this machine cannot run it at all
     */
    List<String> variants(boolean full);

    /**
     * Measures a variant. Runs in a JVM of its own.
     *
     * @param variant one of {@link #variants}
     * @param bench   where results go
     * @throws Exception if it cannot be measured
     */
    void run(String variant, Bench bench) throws Exception;
}
