package org.millrace.engine.rendezvous;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.List;
import org.millrace.engine.rendezvous.Message.Contribution;
import org.millrace.engine.rendezvous.Message.Departed;
import org.millrace.engine.rendezvous.Message.Failed;
import org.millrace.engine.rendezvous.Message.Letter;
import org.millrace.engine.rendezvous.Message.Present;
import org.millrace.engine.rendezvous.Peer.Stage;

/**
 * Rank 0: passes on what each rank says to all others, and tells them when one is lost. {@link Admission} decides who
 * is let in.
 */
final class Coordinator implements Side, Admission.Host {

    private final Group group;
    private final Admission admission;
    private final List<Peer> members = new ArrayList<>();
    private final InetAddress address;
    private boolean leaving;

    private Coordinator(Group group, Meeting meeting, Selector selector) throws IOException {
        this.group = group;
        this.address = ((InetSocketAddress) meeting.listener().getLocalAddress()).getAddress();
        this.admission = new Admission(group, meeting, selector, this);
    }

    /** Takes over the meeting, and closes it if that fails. */
    static Coordinator open(Group group, Meeting meeting, Selector selector) throws IOException {
        try {
            return new Coordinator(group, meeting, selector);
        } catch (IOException | RuntimeException e) {
            meeting.close();
            throw e;
        }
    }

    @Override
    public InetAddress address() {
        return address;
    }

    @Override
    public void say(Message message) {
        if (message instanceof Failed failed) {
            tell(group.self().rank(), group.self() + " failed: " + failed.message(), null);
        } else if (message instanceof Letter letter) {
            send(letter);
        } else {
            relay(Wire.encode(message), null);
        }
    }

    @Override
    public void leave() {
        if (!leaving) {
            relay(Wire.encode(new Departed(group.self().rank())), null);
            members.forEach(member -> member.link.finish());
            leaving = true;
            admission.leave();
        }
    }

    @Override
    public void ready(SelectionKey key) {
        if (key.attachment() instanceof Peer peer) {
            try {
                peer.link.serve(message -> handle(peer, message));
            } catch (IOException e) {
                lost(peer, e);
            }
        } else {
            admission.accept();
        }
    }

    private void handle(Peer peer, Message message) throws IOException {
        if (!peer.admitted()) {
            admission.handle(peer, message);
        } else if (!leaving) { // otherwise only the end of the connection is waited for
            obey(peer, message);
        }
    }

    private void obey(Peer peer, Message message) throws ProtocolException {
        switch (message) {
            case Contribution part when part.rank() == peer.identity().rank() -> {
                ByteBuffer frame = Wire.encode(part); // before the data is handed to a caller of this rank, who may
                                                      // change it
                group.contributed(part);
                relay(frame, peer);
            }
            case Letter letter when letter.from() == peer.identity().rank() -> deliver(letter);
            case Failed failed -> fail(peer, "failed: " + failed.message());
            case Departed departed -> depart(peer);
            default -> throw new ProtocolException(
                    "sent a " + message.getClass().getSimpleName() + " that is not for it to send");
        }
    }

    private void deliver(Letter letter) throws ProtocolException {
        if (letter.to() == group.self().rank()) {
            group.arrived(letter);
        } else {
            send(letter);
        }
    }

    /** To a rank that has gone nothing is sent: whoever waits for its answer learns of that in another way. */
    private void send(Letter letter) {
        for (Peer member : members) {
            if (member.identity().rank() == letter.to()) {
                member.link.send(Wire.encode(letter));
            }
        }
    }

    @Override
    public void admit(Peer peer) throws IOException {
        members.add(peer);
        if (members.size() == group.size() - 1) {
            // Before any rank can learn that the group is complete: one that goes on to its next group must not find
            // this one's door.
            admission.closeDoor();
        }
        for (int rank = 0; rank < group.size(); rank++) {
            Identity there = group.identity(rank);
            if (there != null) {
                peer.link.send(Wire.encode(new Present(there)));
            }
        }
        relay(Wire.encode(new Present(peer.identity())), null);
        group.present(peer.identity());
    }

    @Override
    public void contradicted(int rank, String how) {
        if (!group.isComplete()) { // a group that has come together is not disturbed by a latecomer
            tell(rank, how, null);
        }
    }

    private void depart(Peer peer) throws ProtocolException {
        if (!group.isComplete()) {
            fail(peer, "left before the group was complete");
        }
        peer.stage = Stage.DEPARTED;
        group.departed(peer.identity().rank());
        relay(Wire.encode(new Departed(peer.identity().rank())), peer);
        peer.link.finish();
    }

    private void lost(Peer peer, IOException cause) {
        if (!peer.admitted()) {
            admission.lost(peer, cause);
            return;
        }
        peer.link.close();
        if (!leaving) {
            fail(peer, cause instanceof ProtocolException ? cause.getMessage() : "is gone: " + cause.getMessage());
        }
    }

    /** Tells what has become of a member. Only the first time: what follows is a consequence. */
    private void fail(Peer peer, String fate) {
        if (peer.stage == Stage.MEMBER) {
            peer.stage = Stage.FAILED;
            tell(peer.identity().rank(), peer.identity() + " " + fate, peer);
        }
    }

    /** Tells all ranks of a failure but the one whose it is. */
    private void tell(int rank, String message, Peer source) {
        if (rank != group.self().rank()) {
            group.failed(new RemoteFailure(rank, message));
        }
        relay(Wire.encode(new Failed(rank, message)), source);
    }

    private void relay(ByteBuffer frame, Peer source) {
        for (Peer member : members) {
            if (member != source) {
                member.link.send(frame);
            }
        }
    }

    @Override
    public void tick() {
        admission.tick();
    }

    @Override
    public long nanosToNextTick() {
        return admission.nanosToNextTick();
    }

    @Override
    public boolean finished() {
        return leaving && admission.isOver() && members.stream().noneMatch(member -> member.link.isOpen());
    }

    @Override
    public void ended() {
        admission.ended();
    }
}
