package org.millrace.net;

/**
 * A connection that may have several rails, of which one can be cut on purpose: for tests. Called on the connection's
 * thread.
 */
public interface Railed {

    /** {@return how many rails the connection was made with: 1 or more} */
    int rails();

    /**
     * Resets the streams of one rail at once, as a pulled cable or a failed card would end them. The connection notices
     * when it next makes progress.
     *
     * @param rail 0 to {@code rails() - 1}, if there are several; one that is lost already is left alone
     */
    void cutRail(int rail);
}
