package org.millrace.plugin;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleStrategy;
import org.millrace.net.FrameSender;

/**
 * A thread that writes frames for agents while these have many, where to write is to copy: the agent copies to and from
 * its device and reads what arrives meanwhile. It sleeps while frames are few.
 */
final class SendHelper implements Agent, AutoCloseable {

    private static final VarHandle PASSES;

    static {
        try {
            PASSES = MethodHandles.lookup().findVarHandle(SendHelper.class, "passes", long.class);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private final List<HelpedSender> senders = new CopyOnWriteArrayList<>();
    private final AgentRunner runner;
    /** The helper's thread alone writes it. */
    private long passes;

    /** Starts the thread. */
    public SendHelper(IdleStrategy idle) {
        runner = AgentRunner.start(this, idle);
    }

    /** {@return a sender for an agent's thread, whose frames this thread sends when they are many} */
    public FrameSender help(FrameSender wire) {
        HelpedSender helped = new HelpedSender(wire, this);
        senders.add(helped);
        return helped;
    }

    void leave(HelpedSender helped) {
        senders.remove(helped);
    }

    void wake() {
        runner.wake();
    }

    /** How many passes there were: as long as the number changes, the thread has a core. From any thread. */
    long passes() {
        return (long) PASSES.getOpaque(this);
    }

    @Override
    public String name() {
        return "gin-send";
    }

    @Override
    public int doWork() {
        PASSES.setOpaque(this, passes + 1);
        int work = 0;
        for (int i = 0; i < senders.size(); i++) {
            work += senders.get(i).help();
        }
        return work;
    }

    @Override
    public void onFailure(Throwable failure) {
        // a sender keeps what it threw for its own agent; without this thread agents send by themselves
    }

    /** Ends the thread. Senders that are still open go on without it. */
    @Override
    public void close() {
        runner.close();
    }
}
