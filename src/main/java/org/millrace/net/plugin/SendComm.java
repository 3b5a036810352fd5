package org.millrace.net.plugin;

import java.lang.foreign.Arena;

/** A communicator that sends. */
final class SendComm extends PluginComm {

    SendComm(PluginConnection connection, long communicator, Arena arena) {
        super(connection, communicator, NetFunction.CLOSE_SEND, arena);
    }

    /** Begins to send a message; false if the plugin takes none now. */
    boolean send(PluginRegion region, long address, long bytes, int tag) {
        if (window.isFull() || connection.isBroken() || !knows(region)) {
            return false;
        }
        return began(NetFunction.ISEND,
                table.isend(watch, communicator, address, bytes, tag, memory.handle(region), newRequest()));
    }
}
