package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.nio.channels.Selector;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.millrace.MillraceException;
import org.millrace.engine.bootstrap.Handshake.Greeted;
import org.millrace.engine.bootstrap.Handshake.WrongPlaceException;

/** How every rank but 0 gets to rank 0: tries again until rank 0 is there or the deadline has passed. */
final class BootstrapClient {

    private static final long MIN_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long MAX_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private BootstrapClient() {}

    /** This rank's side of the connection, on which its proof is on the way. */
    static Member pay(Rendezvous rendezvous, GroupState group, Selector selector, Deadline deadline) throws IOException {
        Handshake introduction = new Handshake(selector, group.self(), group.size());
        String what = group.self() + " cannot join the group at " + rendezvous;
        IOException why = null;
        for (long pause = MIN_PAUSE_NANOS;; pause = Math.min(2 * pause, MAX_PAUSE_NANOS)) {
            try {
                ServerAddress place = rendezvous.find();
                Greeted rankZero = introduction.greet(place, deadline);
                introduction.prove(rankZero, place);
                group.present(rankZero.challenge().identity());
                return new Member(group, rankZero.link(), rankZero.challenge().identity());
            } catch (IOException e) {
                if (e instanceof WrongPlaceException && !rendezvous.mayBeStale()) {
                    throw new MillraceException(what + ": " + e.getMessage(), e);
                }
                if (why == null || !deadline.expired()) { // an attempt that was cut short says less than the one before
                    why = e;
                }
                if (deadline.expired()) {
                    throw new MillraceException(
                            what + ": rank 0 has not come within " + deadline + "; at last: " + why.getMessage(), why);
                }
            }
            LockSupport.parkNanos(Math.min(pause, deadline.remainingNanos()));
            if (Thread.currentThread().isInterrupted()) {
                throw new MillraceException(what + ": interrupted while waiting for rank 0");
            }
        }
    }
}
