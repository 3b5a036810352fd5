package org.millrace.engine;

import org.millrace.abi.PointToPointWork;

/**
 * The transfers of one item of a plan: a send, a receive or both.
 *
 * @param send    null for none
 * @param receive null for none
 */
record PlannedTransfer(PointToPointWork work, SendOrReceive send, SendOrReceive receive) implements PlannedOperation {

    @Override
    public Object announce(Announcer announcer) {
        announcer.announce(this);
        return this;
    }

    @Override
    public String toString() {
        return send == null ? receive.toString() : receive == null ? send.toString() : send + " and " + receive;
    }
}
