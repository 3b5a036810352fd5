package org.millrace.transport;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.KernelChannel;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ConnectionTrace;
import org.millrace.trace.ProcessTrace;

/**
 * A request to a transport to create one end of a connection.
 *
 * @param here  this rank
 * @param there the peer. For a connection to a group of peers, {@code there} stands for the group and contains the
 *              group's number as the rank
 * @param index {@link KernelChannel#COLLECTIVE} or {@link KernelChannel#POINT_TO_POINT}
 * @param sends whether the end is the sending end
 * @param group the peers of a connection with several peers; null for a connection with one peer
 */
public record EndRequest(PeerInfo here, PeerInfo there, int channel, int index, boolean sends, EndSettings settings,
        @Nullable PeerGroup group) {

    /** {@return the connection's name in messages} */
    public ConnectionName name() {
        if (group == null) {
            return ConnectionName.ofRing(here.rank(), there.rank(), channel, sends);
        }
        String self = "rank " + here.rank();
        return new ConnectionName(self, group.name(),
                self + (sends ? " -> " : " <- ") + group.name() + ", channel " + channel);
    }

    /** {@return a new trace of the connection; null if this process has no trace} */
    public @Nullable ConnectionTrace trace(Direction direction, String network) {
        ProcessTrace process = ProcessTrace.current();
        return process == null ? null
                : process.connection(new ConnectionIdentity(settings.communicator(), here.rank(), there.rank(), channel,
                        direction, index, 0, 0, -1, settings.firstStep(), network, "rank " + there.rank(),
                        name().toString()));
    }

    /** {@return a new trace of a connection to a collective network; null if this process has no trace} */
    public @Nullable ConnectionTrace collNetTrace(Direction direction) {
        ProcessTrace process = ProcessTrace.current();
        return process == null ? null
                : process.connection(new ConnectionIdentity(settings.communicator(), here.rank(), -1, channel,
                        direction, ConnectionIdentity.COLLNET, 0, 0, -1, settings.firstStep(), "collnet",
                        "the network that reduces", name().toString()));
    }

    /**
     * A group of ranks at the other end of one connection, as with a collective network. The group is the peer of each
     * of its ranks.
     *
     * @param number  number of the group, one more than the highest rank ({@code comm->nRanks} in NCCL)
     * @param name    name for messages, for instance {@code "the collective network"}
     * @param members ranks of the group, ascending
     */
    public record PeerGroup(int number, String name, List<Integer> members) {

        /** Copies the list, so that the group is immutable. */
        public PeerGroup {
            members = List.copyOf(members);
        }
    }
}
