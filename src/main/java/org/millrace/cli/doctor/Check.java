package org.millrace.cli.doctor;

/** Looks at one thing that Millrace needs or can use. */
public interface Check {

    /**
     * What is looked at.
     *
     * @return one or two words
     */
    String subject();

    /**
     * Looks. May take a few seconds; need not catch what it does not expect.
     *
     * @return what was found
     */
    CheckResult find();
}
