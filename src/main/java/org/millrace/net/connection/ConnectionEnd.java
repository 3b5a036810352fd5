package org.millrace.net.connection;

/** A sender or a receiver, as far as both are named, and blame others, by the state of their connection. */
public abstract class ConnectionEnd {

    private final ConnectionState state;

    protected ConnectionEnd(ConnectionState state) {
        this.state = state;
    }

    public final String peer() {
        return state.peer();
    }

    public final void blame(String lostPeer) {
        state.blame(lostPeer);
    }

    @Override
    public final String toString() {
        return state.toString();
    }
}
