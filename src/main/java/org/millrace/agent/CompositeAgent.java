package org.millrace.agent;

/** Several agents on one thread, for machines that cannot spare a spinning thread for each. */
public final class CompositeAgent implements Agent {

    private final Agent[] agents;
    private final String name;

    /**
     * Runs agents one after another in each pass.
     *
     * @param agents in this order
     */
    public CompositeAgent(Agent... agents) {
        this.agents = agents.clone();
        StringBuilder names = new StringBuilder();
        for (Agent agent : agents) {
            names.append(names.isEmpty() ? "" : "+").append(agent.name());
        }
        this.name = names.toString();
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
}
