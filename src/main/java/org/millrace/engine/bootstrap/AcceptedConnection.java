package org.millrace.engine.bootstrap;

import org.millrace.engine.bootstrap.Message.Hello;

/** A connection that rank 0 accepted, from a stranger's first byte to a member's goodbye. */
final class AcceptedConnection {

    /** How far the connection has come; it only moves on. */
    enum Stage {
        EXPECTS_HELLO, EXPECTS_PROOF, MEMBER, FAILED, DEPARTED, REFUSED
    }

    final ControlConnection link;
    final Deadline introduction;
    /** What is hashed into both sides' proofs, so that none can be used twice. */
    final byte[] nonce = Secret.randomBytes();

    Stage stage = Stage.EXPECTS_HELLO;
    /** What the other side says of itself; believed once it has shown that it knows the secret. */
    Hello hello;

    AcceptedConnection(ControlConnection link, Deadline introduction) {
        this.link = link;
        this.introduction = introduction;
        link.attach(this);
    }

    /** True from admission to the end, whatever has become of the rank since. */
    boolean admitted() {
        return stage == Stage.MEMBER || stage == Stage.FAILED || stage == Stage.DEPARTED;
    }

    RankIdentity identity() {
        return hello.identity();
    }
}
