package org.millrace.device;

import java.util.List;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.kernel.CollectiveWork;

/**
 * An all-reduce over the channel's tree. Sums travel up to the root, and the result travels down. Each rank forwards
 * each chunk as soon as it has arrived. The duration of a small operation depends on the depth of the tree, not on the
 * number of ranks.
 */
final class TreeAllReduce extends CollectiveFunction {

    @Override
    ChunkShape shape(int number, CollectiveWork work, DeviceCommunicator communicator, DeviceChannel channel) {
        return ChunkShape.ONE_STEP.in(FunctionNumber.protocol(number));
    }

    /** Returns one task for the root. Returns two tasks for any other rank: one up and one down. */
    @Override
    public List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        ChunkShape shape = shape(number, work, communicator, channel);
        ChannelPart part = part(number, work, communicator, channel, shape);
        int[] children = children(channel);
        int parent = channel.view().up();
        if (parent == KernelChannel.NO_RANK) {
            return List.of(task(ChunkSchedule.combine(part, true, true, true), shape, children, children));
        }
        int[] up = {parent};
        boolean hasChildren = children.length > 0;
        return List.of(task(ChunkSchedule.combine(part, hasChildren, false, true), shape, children, up),
                task(ChunkSchedule.spread(part, false, true, hasChildren), shape, up, children));
    }

    private static ChannelTask task(ChunkSchedule schedule, ChunkShape shape, int[] from, int[] to) {
        return new ChannelTask(schedule, shape, KernelChannel.COLLECTIVE, from, to);
    }

    private static int[] children(DeviceChannel channel) {
        int count = channel.children();
        int[] children = count == 0 ? ChannelTask.NO_PEERS : new int[count];
        for (int i = 0; i < count; i++) {
            children[i] = channel.view().down(i);
        }
        return children;
    }
}
