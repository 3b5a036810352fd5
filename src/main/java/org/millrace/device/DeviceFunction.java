package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A function of the device: what the block of a channel does with an item of work, and what it sends and receives
 * meanwhile. It keeps nothing: all is derived from the item and the channel, by the host that announces it to the
 * proxies and by the device that does it, so that both have the same result.
 */
public interface DeviceFunction {

    /**
     * What an item sends and receives on a channel: tasks that go on at the same time, none if the rank is alone.
     *
     * @param number of the function, from the item's batch: its protocol, type and operator
     */
    List<ChannelTask> tasks(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel);

    /**
     * The block that runs an item on a channel. Called on the device's thread, in the order in which items were
     * planned.
     *
     * @param item its bytes, which are gone when this returns
     */
    Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
            KernelMemory lookup);
}
