package org.millrace.agent;

/** Makes progress in passes, which a thread calls. A pass never blocks. */
public interface Agent {

    /** Does the work that is possible now. Returns the amount of work in any unit; 0 if there was none. */
    int doWork();

    /** Tells the agent that its thread has slept since the last pass. Called on the agent's thread. */
    default void afterSleep() {
        // most agents do the same in every pass
    }

    /** {@return a name for the thread and for messages, for instance {@code "proxy-0"}} */
    String name();

    /** Tells the agent that a pass threw. Called on the agent's thread. The runner continues afterwards. */
    void onFailure(Throwable failure);

    /** Tells the agent that no more passes follow. Called once on its thread, as the last call. */
    default void onClose() {
        // most agents have nothing to complete or to release
    }
}
