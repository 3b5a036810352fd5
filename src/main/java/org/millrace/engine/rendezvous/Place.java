package org.millrace.engine.rendezvous;

import java.net.InetSocketAddress;

/**
 * Where the other ranks find rank 0.
 *
 * @param address resolved
 * @param secret  what both sides must know
 */
record Place(InetSocketAddress address, Secret secret) {

    @Override
    public String toString() {
        return address.getAddress().getHostAddress() + ':' + address.getPort();
    }
}
