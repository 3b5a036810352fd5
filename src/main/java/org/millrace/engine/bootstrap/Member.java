package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ProtocolException;
import java.nio.channels.SelectionKey;
import org.millrace.engine.bootstrap.Message.Contribution;
import org.millrace.engine.bootstrap.Message.Departed;
import org.millrace.engine.bootstrap.Message.Failed;
import org.millrace.engine.bootstrap.Message.Letter;
import org.millrace.engine.bootstrap.Message.Present;
import org.millrace.engine.bootstrap.Message.Rejected;

/** Every rank but 0: one connection to rank 0, which says what the others say. */
final class Member implements ControlRole {

    private final GroupState group;
    private final ControlConnection link;
    private final RankIdentity coordinator;
    private boolean leaving;

    /** Begins after this rank has sent its {@link Message.Proof}. */
    Member(GroupState group, ControlConnection link, RankIdentity coordinator) {
        this.group = group;
        this.link = link;
        this.coordinator = coordinator;
    }

    @Override
    public InetAddress address() {
        return link.local();
    }

    @Override
    public void say(Message message) {
        link.send(MessageCodec.encode(message));
    }

    @Override
    public void leave() {
        leaving = true;
        say(new Departed(group.self().rank()));
        link.finish();
    }

    @Override
    public void ready(SelectionKey key) {
        try {
            link.serve(this::handle);
        } catch (IOException e) {
            link.close();
            if (!leaving) {
                group.failed(new RemoteFailure(coordinator.rank(),
                        coordinator + (e instanceof ProtocolException ? " " : " is gone: ") + e.getMessage()));
            }
        }
    }

    private void handle(Message message) throws ProtocolException {
        switch (message) {
            case Present arrival -> group.present(arrival.identity());
            case Contribution part -> group.contributed(part);
            case Letter letter -> group.arrived(letter);
            case Failed failed -> group.failed(new RemoteFailure(failed.rank(), failed.message()));
            case Departed departed -> depart(departed.rank());
            case Rejected rejected -> {
                group.poison(coordinator + " does not let it in: " + rejected.reason());
                link.close();
            }
            default -> throw new ProtocolException(
                    "sent a " + message.getClass().getSimpleName() + ", which rank 0 never sends to a member");
        }
    }

    private void depart(int rank) throws ProtocolException {
        group.departed(rank);
        if (rank == coordinator.rank()) {
            link.close();
        }
    }

    @Override
    public void tick() {
        // nothing is ever due: whoever waits has a deadline of its own
    }

    @Override
    public long nanosToNextTick() {
        return Long.MAX_VALUE;
    }

    @Override
    public boolean finished() {
        return !link.isOpen();
    }

    @Override
    public void ended() {
        // the link is all there is, and the loop closes it
    }
}
