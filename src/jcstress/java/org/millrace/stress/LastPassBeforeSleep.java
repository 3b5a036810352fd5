package org.millrace.stress;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.millrace.agent.Sleeper;
import org.millrace.net.shm.Doorbell;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/**
 * A thread announces a sleep at a {@link Doorbell} and makes a last pass, while another thread stores work and wakes
 * the first thread. The last pass finds the work, or the thread is woken.
 */
@JCStressTest
@Outcome(id = "true, false", expect = ACCEPTABLE, desc = "the last pass finds the work, and no thread had to be woken")
@Outcome(id = "true, true", expect = ACCEPTABLE, desc = "the last pass finds the work, and the thread is woken too")
@Outcome(id = "false, true", expect = ACCEPTABLE, desc = "the last pass came before the work, and the thread is woken")
@Outcome(id = "false, false", expect = FORBIDDEN, desc = "the thread sleeps although there is work")
@State
public class LastPassBeforeSleep {

    private final Doorbell doorbell = new Doorbell();
    private final Sleeper sleeper = doorbell.sleeper(1);
    private int work;

    /** The thread that goes to sleep. The first call of {@code sleep} only announces the sleep. */
    @Actor
    public void sleeping(ZZ_Result result) {
        sleeper.sleep(1);
        result.r1 = work != 0;
    }

    /** The thread that has work for the other thread. */
    @Actor
    public void waking() {
        work = 1;
        doorbell.wakeOwner();
    }

    /** Runs after both actors. A wake ends the announcement. */
    @Arbiter
    public void after(ZZ_Result result) {
        result.r2 = !doorbell.isAnnounced();
    }
}
