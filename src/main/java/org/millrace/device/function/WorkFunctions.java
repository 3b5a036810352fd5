package org.millrace.device.function;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.WorkType;
import org.millrace.device.work.KernelMemory;

/**
 * A communicator's device functions: what NCCL's kernels keep in {@code ncclDevFuncTable}, and the connections that
 * they run over.
 */
public interface WorkFunctions {

    /**
     * Makes the block that runs an item on a channel. Called on the device's thread, in the order in which items were
     * planned.
     *
     * @param function number of the function, from the item's batch
     * @param type     what the item is
     * @param item     its bytes, which are gone when this returns
     * @param channel  the channel
     * @param memory   what the item's addresses mean
     * @return the block
     * @throws org.millrace.MillraceException if there is no such function
     */
    Block block(int function, WorkType type, MemorySegment item, int channel, KernelMemory memory);
}
