package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.millrace.abi.kernel.CollectiveWork;

/** A collective of a single rank, or of no elements. It copies the elements from the input to the output. */
final class LocalCopy extends CollectiveFunction {

    @Override
    public List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        return List.of();
    }

    @Override
    public Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
            KernelMemory lookup) {
        CollectiveWork work = CollectiveWork.of(item);
        return block(memory(number, work, communicator.ranks(), lookup), work.count());
    }

    /**
     * Returns a block that copies the elements once. If the operator first changes each rank's elements, for example by
     * a multiplication, the block applies this change to the copied elements.
     */
    static Block block(BlockMemory memory, long elements) {
        return new Block() {
            private boolean done;

            @Override
            public int progress() {
                memory.own().copy(memory.input(), 0, memory.output(), 0, elements);
                done = true;
                return 1;
            }

            @Override
            public boolean done() {
                return done;
            }

            @Override
            public String waitingFor() {
                return "no connection";
            }
        };
    }
}
