package org.millrace.plugin.loss;

import org.millrace.MillraceException;

/** Lets a test say that a connection of this process was lost. */
public final class LostConnection {

    private LostConnection() {}

    public static void report(String what) {
        ConnectionFailures.report(new MillraceException(what));
    }
}
