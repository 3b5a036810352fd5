package org.millrace.plugin.net;

import org.millrace.net.FrameReceiver;
import org.millrace.net.Pending;

/**
 * What NCCL calls a listener: it is good for one connection.
 *
 * @param connection the receiving end in the making
 * @param patience   of the communicator that it will belong to
 */
record PendingAccept(Pending<FrameReceiver> connection, DrainTimeout patience) {
}
