package org.millrace.transport;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.KernelChannel;
import org.millrace.proxy.ConnectionName;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ConnectionTrace;
import org.millrace.trace.ProcessTrace;

/**
 * A request to a transport to make one end of a connection.
 *
 * @param there the peer, or the rank number that represents a group
 * @param index {@link KernelChannel#COLLECTIVE} or {@link KernelChannel#POINT_TO_POINT}
 * @param group the peers, if the connection has several; null for one
 */
public record EndRequest(PeerInfo here, PeerInfo there, int channel, int index, boolean sends, EndSettings settings,
        @Nullable PeerGroup group) {

    /** {@return the name of the connection, for messages} */
    public ConnectionName name() {
        if (group == null) {
            return ConnectionName.ofRing(here.rank(), there.rank(), channel, sends);
        }
        String self = "rank " + here.rank();
        return new ConnectionName(self, group.name(),
                self + (sends ? " -> " : " <- ") + group.name() + ", channel " + channel);
    }

    /** {@return the trace of the connection; null if nothing is traced} */
    public @Nullable ConnectionTrace trace(Direction direction, String network) {
        ProcessTrace process = ProcessTrace.current();
        return process == null ? null
                : process.connection(new ConnectionIdentity(settings.communicator(), here.rank(), there.rank(), channel,
                        direction, index, 0, 0, -1, settings.firstStep(), network, "rank " + there.rank(),
                        name().toString()));
    }

    /** {@return the trace of a connection with a network that reduces; null if nothing is traced} */
    public @Nullable ConnectionTrace collNetTrace(Direction direction) {
        ProcessTrace process = ProcessTrace.current();
        return process == null ? null
                : process.connection(new ConnectionIdentity(settings.communicator(), here.rank(), -1, channel,
                        direction, ConnectionIdentity.COLLNET, 0, 0, -1, settings.firstStep(), "collnet",
                        "the network that reduces", name().toString()));
    }

    /**
     * A group of ranks that one connection connects at the same time, as a network that reduces does. The group is a
     * peer of every such rank. Its number follows the rank numbers ({@code comm->nRanks} in NCCL).
     *
     * @param name    name for messages, for instance {@code "the collective network"}
     * @param members ranks of the group, ascending
     */
    public record PeerGroup(int number, String name, List<Integer> members) {

        /** Copies the list. */
        public PeerGroup {
            members = List.copyOf(members);
        }
    }
}
