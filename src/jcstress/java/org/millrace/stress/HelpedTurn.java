package org.millrace.stress;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.millrace.agent.Agent;
import org.millrace.agent.HelpedAgent;
import org.millrace.agent.LimitedSleeper;
import org.millrace.agent.Sleeper;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * An agent's own thread and a helping thread run the agent's passes, one at a time. The second thread sees the plain
 * writes of the first.
 */
@JCStressTest
@Outcome(id = "1, 2, 2", expect = ACCEPTABLE, desc = "the own thread first")
@Outcome(id = "2, 1, 2", expect = ACCEPTABLE, desc = "the helper first")
@Outcome(id = "0, 1, 1", expect = ACCEPTABLE, desc = "the own thread found the turn taken, or that somebody came")
@Outcome(id = "1, 0, 1", expect = ACCEPTABLE, desc = "the helper found the turn taken")
@Outcome(expect = FORBIDDEN, desc = "both were in a pass, or one did not see the other's")
@State
public class HelpedTurn implements Agent {

    private final HelpedAgent helped = new HelpedAgent(this, _ -> {}, _ -> {}, new LimitedSleeper(Sleeper.PARK), 1);
    private int passes;
    /** Whether the condition was evaluated before. Only the helper accesses the field. */
    private boolean asked;

    /** The agent's thread. */
    @Actor
    public void own(III_Result result) {
        result.r1 = helped.doWork();
    }

    /** A helping thread of the program. {@code help} evaluates the condition before and after the thread's pass. */
    @Actor
    public void helper(III_Result result) {
        helped.help(() -> {
            result.r2 = asked ? passes : 0;
            boolean behind = asked;
            asked = true;
            return behind;
        });
    }

    /** Runs after both actors. */
    @Arbiter
    public void after(III_Result result) {
        result.r3 = passes;
    }

    @Override
    public int doWork() {
        return ++passes;
    }

    @Override
    public String name() {
        return "turns";
    }

    @Override
    public void onFailure(Throwable failure) {
        throw new AssertionError(failure);
    }
}
