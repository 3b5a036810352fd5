package org.millrace.engine;

/** An operation of a plan. Each run of it is an operation of its own to the proxies. */
sealed interface PlannedOperation permits PlannedCollective, PlannedTransfer {

    /**
     * Tells the proxies of the next run.
     *
     * @return what it is, for messages
     */
    Object announce(Announcer announcer);
}
