package org.millrace.device.function;

import org.millrace.device.primitives.BlockMemory;

/** What a rank does alone: a reduction in a group of one, or the part of an exchange that a rank has with itself. */
public final class LocalBlock implements Block {

    private final BlockMemory memory;
    private final long elements;
    private boolean done;

    /**
     * A block that has not begun.
     *
     * @param memory   the elements, and what the operation does to each of them before and after combining
     * @param elements how many
     */
    public LocalBlock(BlockMemory memory, long elements) {
        this.memory = memory;
        this.elements = elements;
    }

    @Override
    public void begin() {
        // waits for nobody, so there is nothing to enter
    }

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
        return "nobody";
    }
}
