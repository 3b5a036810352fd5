package com.example.millrace.experts;

import java.util.List;
import org.millrace.device.gin.HostGin;
import org.millrace.gin.GinException;

/** Runs blocks until all are done. Like blocks on a GPU, none may wait for another to end. */
final class ExpertKernel {

    private final List<Block> blocks;
    private boolean done;

    private ExpertKernel(List<Block> blocks) {
        this.blocks = blocks;
    }

    /**
     * Runs blocks on the calling thread.
     *
     * @param gin  ends the kernel if its communicator fails, or if no block makes progress within its deadline
     * @param name description of the kernel
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

    /** Runs all blocks once. Returns false if none of them made progress. */
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
