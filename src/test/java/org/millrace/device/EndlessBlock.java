package org.millrace.device;

/** Waits for an event that never occurs. */
public final class EndlessBlock implements Block {

    private EndlessBlock() {}

    public static EmulatedKernel kernel() {
        return new EmulatedKernel("a kernel that does not end", new Block[] {new EndlessBlock()}, () -> null,
                failure -> {}, () -> true, new StallLimit(Long.MAX_VALUE));
    }

    @Override
    public int progress() {
        return 0;
    }

    @Override
    public boolean done() {
        return false;
    }

    @Override
    public String waitingFor() {
        return "nothing";
    }
}
