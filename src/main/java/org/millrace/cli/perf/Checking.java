package org.millrace.cli.perf;

/** Which operations' results are compared with a reference. */
enum Checking {
    /** None: only times are wanted. */
    NONE,
    /** One more operation after those that are timed, on operands of its own. */
    AFTERWARDS,
    /**
     * Every operation, each on operands of its own: where a fault is planted nobody knows which one it hits. Times then
     * include filling and comparing.
     */
    EVERY
}
