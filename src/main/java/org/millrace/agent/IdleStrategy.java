package org.millrace.agent;

/** What a polling thread does after a pass. One instance serves one thread. */
public interface IdleStrategy {

    /**
     * Called after every pass.
     *
     * @param workCount what the pass did; more than 0 resets the strategy
     */
    void idle(int workCount);
}
