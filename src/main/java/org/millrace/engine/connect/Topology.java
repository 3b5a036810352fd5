package org.millrace.engine.connect;

import org.millrace.device.channel.DeviceChannel;
import org.millrace.device.work.DeviceCommunicator;

/** Fills the channels of a communicator with this rank's neighbours, as kernels read them. */
public final class Topology {

    private static final int TREES = 2;

    private Topology() {}

    /** Channels that a communicator has: rings use so many, and a pair of trees one each at least. */
    public static int channels(int ranks, int rings) {
        return ranks == 1 ? rings : Math.max(TREES, rings);
    }

    /**
     * Rings pass the ranks in the order of their numbers, which they have from the beginning. Channels take the two
     * trees in turn.
     */
    public static void fill(DeviceCommunicator device) {
        for (int channel = 0; channel < device.channels() && device.ranks() > 1; channel++) {
            TreePlace place = TreePlace.of(channel % TREES, device.rank(), device.ranks());
            int depth = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(device.ranks());
            device.channel(channel)
                    .view()
                    .tree(depth, place.parent(), place.children().stream().mapToInt(Integer::intValue).toArray());
        }
    }

    /** Asks for the rings' connections; all others are made when an operation needs them. */
    public static void connectRings(DeviceCommunicator device, Connectors connectors, int rings) {
        for (int number = 0; number < rings && device.ranks() > 1; number++) {
            DeviceChannel channel = device.channel(number);
            connectors.send(channel.view().next(), number, DeviceChannel.COLLECTIVE);
            connectors.receive(channel.view().previous(), number, DeviceChannel.COLLECTIVE);
        }
    }
}
