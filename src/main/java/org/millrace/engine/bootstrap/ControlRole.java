package org.millrace.engine.bootstrap;

import java.net.InetAddress;
import java.nio.channels.SelectionKey;

/**
 * What one rank does with its sockets: {@link Coordinator} on rank 0, {@link Member} elsewhere. Everything is called on
 * the control thread.
 */
interface ControlRole {

    /**
     * An address of this machine that other ranks of the group have reached, or were reached from. May be called by any
     * thread.
     */
    InetAddress address();

    /** Says something to the other ranks in this rank's name. */
    void say(Message message);

    /** Begins to leave the group; {@link #finished()} turns true soon after. More than one call does nothing more. */
    void leave();

    /** A channel of this side can be read, written or accepted from. */
    void ready(SelectionKey key);

    /** Does what is due by now. */
    void tick();

    /** How long nothing is due; {@code Long.MAX_VALUE} for as long as nobody says anything. */
    long nanosToNextTick();

    /** True once nothing is left to do. */
    boolean finished();

    /**
     * The control thread ends, after {@link #finished()} or by force, and closes all channels. Nothing else may be left
     * behind either.
     */
    void ended();
}
