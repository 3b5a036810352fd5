package org.millrace.plugin.takeover;

import org.millrace.plugin.takeover.ConnectionLocator.Ends;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.trace.TracedCommunicator;

/**
 * Name of a connection in messages of the check: ranks, channel and operation, as far as NCCL shows them to a plugin.
 * These values are read only when a message needs the name.
 *
 * @param end          the network's sender or receiver
 * @param communicator NCCL's hash of the communicator; 0 if unknown
 */
record CheckedConnection(Object end, long communicator, ConnectionLocator locator, boolean receives) {

    @Override
    public String toString() {
        Ends ends = locator.ends(receives);
        return (ends == null ? "" : ConnectionName.ofRing(ends.rank(), ends.peer(), ends.channel(), !receives) + ", ")
                + "operation " + TracedCommunicator.present(communicator, ends == null ? -1 : ends.rank()) + ", " + end;
    }
}
