package org.millrace.agent;

/** Something that makes progress when it is asked to, and never blocks. */
public interface Agent {

    /** Does what can be done now; returns how much it was, in any unit, 0 if there was nothing to do. */
    int doWork();

    /** Tells the agent that its thread has slept since the last pass. Called on the agent's thread. */
    default void afterSleep() {
        // most agents do the same in every pass
    }

    /** {@return a name for the thread and for messages, for instance {@code "proxy-0"}} */
    String name();

    /** Tells the agent that a pass threw. Called on the agent's thread; the runner goes on afterwards. */
    void onFailure(Throwable failure);

    /** Tells the agent that it gets no more passes. Called on its thread, once, as the last thing. */
    default void onClose() {
        // most agents hold nothing that waits for another pass
    }
}
