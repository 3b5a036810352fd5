package org.millrace.engine;

import org.millrace.agent.Agent;
import org.millrace.engine.rendezvous.GroupFailure;

/** Hears from the control plane that another rank failed. */
final class FailureWatch implements Agent {

    private final GroupFailure failure;

    FailureWatch(GroupFailure failure) {
        this.failure = failure;
    }

    @Override
    public int doWork() {
        return failure.watch() ? 1 : 0;
    }

    @Override
    public String name() {
        return "watch";
    }

    @Override
    public void onFailure(Throwable thrown) {
        failure.fail(thrown);
    }
}
