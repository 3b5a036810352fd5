package org.millrace.device.gin.expert;

import java.util.List;
import org.millrace.device.function.Block;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.stream.EmulatedKernel;

/** Blocks that run side by side on the emulated device, until all are done. */
final class ExpertKernel {

    private ExpertKernel() {}

    static void run(GinDeviceCommunicator communicator, String name, List<Block> blocks) {
        EmulatedKernel kernel = new EmulatedKernel("rank " + communicator.rank() + ", " + name, blocks,
                communicator.communicator()::failure, failure -> {}, communicator.requirements().deadline().toNanos());
        while (!kernel.done()) {
            if (kernel.progress() == 0) {
                Thread.yield();
            }
        }
    }
}
