package org.millrace.transport;

import org.millrace.abi.KernelChannel;
import org.millrace.proxy.ConnectionName;

/**
 * Which end of which connection a transport is to make.
 *
 * @param here     this rank
 * @param there    the rank at the other end
 * @param channel  number of the channel
 * @param index    {@link KernelChannel#COLLECTIVE} or {@link KernelChannel#POINT_TO_POINT}
 * @param sends    whether this end sends
 * @param settings what all connections have in common
 */
public record EndRequest(PeerInfo here, PeerInfo there, int channel, int index, boolean sends, EndSettings settings) {

    /** {@return the name of the connection, for messages} */
    public ConnectionName name() {
        return ConnectionName.ofRing(here.rank(), there.rank(), channel, sends);
    }
}
