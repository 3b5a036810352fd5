package org.millrace.plugin.loss;

import org.millrace.MillraceException;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyException.DisagreementException;

/** Lets a test report that a connection of this process was lost. */
public final class LostConnection {

    private LostConnection() {}

    public static void report(String what) {
        ConnectionFailures.report(new MillraceException(what));
    }

    /** Reports that the two ranks of a connection run different operations. */
    public static void reportDisagreement(String what) {
        ConnectionFailures.report(
                new MillraceException(what, new DisagreementException(ConnectionName.of("connection 3"), what)));
    }
}
