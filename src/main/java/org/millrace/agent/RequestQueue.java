package org.millrace.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * What other threads want of one agent: commands, which run before a pass, and requests, which are attempted after each
 * pass until they are answered. Any thread may add; the agent's thread does the rest.
 */
public final class RequestQueue {

    private final Queue<Runnable> commands = new ConcurrentLinkedQueue<>();
    private final List<AgentRequest> pending = new ArrayList<>();

    /** A queue with nothing in it. */
    public RequestQueue() {}

    /**
     * Has something done before one of the next passes.
     *
     * @param command run once, on the agent's thread
     */
    public void add(Runnable command) {
        commands.add(command);
    }

    /**
     * Asks for something, behind the commands that were added before.
     *
     * @param request that was not asked before
     */
    public <T extends AgentRequest> T ask(T request) {
        commands.add(() -> pending.add(request));
        return request;
    }

    /** Runs the oldest command, before a pass: one a pass, so that many do not hold up what is served. */
    public int runOne() {
        Runnable command = commands.poll();
        if (command == null) {
            return 0;
        }
        command.run();
        return 1;
    }

    /** Attempts all requests that are not answered, after a pass. */
    public void answer() {
        if (!pending.isEmpty()) {
            pending.removeIf(AgentRequest::attempt);
        }
    }
}
