package org.millrace.agent;

/** Object that makes progress in passes. A thread calls the passes one after the other. A pass never blocks. */
public interface Agent {

    /** Does the work that is possible now. Returns the amount of work in any unit; 0 if there was none. */
    int doWork();

    /**
     * Makes the next pass serve all connections or other objects of the agent. The agent's thread calls this method
     * after it has slept, and before a pass that may be followed by a sleep.
     */
    default void serveAll() {
        // Does nothing by default, because most agents serve all their objects in every pass.
    }

    /** {@return a name for the thread and for messages, for instance {@code "proxy-0"}} */
    String name();

    /**
     * Tells the agent that a pass has thrown an exception. Called on the agent's thread. The runner then continues with
     * further passes.
     */
    void onFailure(Throwable failure);

    /** Tells the agent that no more passes follow. Called once on its thread, as the last call. */
    default void onClose() {
        // Does nothing by default, because most agents have nothing to complete or to release.
    }
}
