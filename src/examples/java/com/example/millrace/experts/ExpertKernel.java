package com.example.millrace.experts;

import java.util.List;
import org.millrace.device.gin.HostGin;
import org.millrace.gin.GinException;

/** Blocks that run side by side, as on a GPU, until all are done. */
final class ExpertKernel {

    private final List<Block> blocks;
    private boolean done;

    private ExpertKernel(List<Block> blocks) {
        this.blocks = blocks;
    }

    /**
     * Runs blocks on the calling thread.
     *
     * @param gin  its communicator's failure ends the kernel, and so does its deadline, if no block moves for so long
     * @param name says what the kernel is
     */
    static void run(HostGin gin, String name, List<Block> blocks) {
        ExpertKernel kernel = new ExpertKernel(blocks);
        try {
            do {
                gin.waitUntil(name, kernel::moves);
            } while (!kernel.done);
        } catch (GinException failure) {
            throw new GinException(name + ": " + failure.getMessage() + "; " + kernel.waitingFor(), failure);
        }
    }

    /** Passes all blocks once; false if none of them could do anything. */
    private boolean moves() {
        int work = 0;
        done = true;
        for (Block block : blocks) {
            if (!block.done()) {
                work += block.progress();
                done &= block.done();
            }
        }
        return done || work > 0;
    }

    private String waitingFor() {
        return blocks.stream()
                .filter(block -> !block.done())
                .map(Block::waitingFor)
                .findFirst()
                .orElse("all blocks are done");
    }
}
