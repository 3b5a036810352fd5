package org.millrace.engine;

import java.util.ArrayList;
import java.util.List;
import org.millrace.agent.Agent;

/**
 * Agents that come and go while one thread runs them. An agent that was removed may be in the middle of its last pass.
 */
final class AgentSet implements Agent {

    private final String name;
    private volatile Agent[] agents;

    AgentSet(String name, Agent... agents) {
        this.name = name;
        this.agents = agents.clone();
    }

    synchronized void add(Agent agent) {
        List<Agent> all = new ArrayList<>(List.of(agents));
        all.add(agent);
        agents = all.toArray(Agent[]::new);
    }

    synchronized void remove(Agent agent) {
        List<Agent> all = new ArrayList<>(List.of(agents));
        all.remove(agent);
        agents = all.toArray(Agent[]::new);
    }

    @Override
    public int doWork() {
        int work = 0;
        for (Agent agent : agents) {
            try {
                work += agent.doWork();
            } catch (Throwable failure) {
                agent.onFailure(failure);
            }
        }
        return work;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public void onFailure(Throwable failure) {
        for (Agent agent : agents) {
            agent.onFailure(failure);
        }
    }

    @Override
    public void onClose() {
        for (Agent agent : agents) {
            try {
                agent.onClose();
            } catch (Throwable failure) {
                agent.onFailure(failure);
            }
        }
    }
}
