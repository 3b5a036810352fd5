package org.millrace.plugin;

import org.millrace.MillraceException;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyException.DisagreementException;

/** Lets a test say that a connection of this process was lost. */
public final class LostConnection {

    private LostConnection() {}

    public static void report(String what) {
        ConnectionFailures.report(new MillraceException(what));
    }

    /** The connection's ends run different operations. */
    public static void reportDisagreement(String what) {
        ConnectionFailures.report(
                new MillraceException(what, new DisagreementException(ConnectionName.of("connection 3"), what)));
    }
}
