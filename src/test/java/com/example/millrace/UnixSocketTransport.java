package com.example.millrace;

import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;
import org.millrace.transport.Verdict;

/**
 * Step 1, the transport: a Unix-domain socket for each connection between ranks of one host. As a user's jar does not
 * want to serve everybody, it is switched on by a property.
 */
public final class UnixSocketTransport implements Transport {

    /** System property that switches the transport on. */
    public static final String ENABLE = "example.unix.enable";

    /** For {@link java.util.ServiceLoader}: step 6 is the file in {@code META-INF/services} that names this class. */
    public UnixSocketTransport() {}

    @Override
    public String name() {
        return "UNIX";
    }

    @Override
    public Verdict offer() {
        return Boolean.getBoolean(ENABLE) ? Verdict.yes("") : Verdict.no(ENABLE + " is not set");
    }

    @Override
    public Verdict canConnect(PeerInfo here, PeerInfo there) {
        return here.host().equals(there.host()) ? Verdict.yes("one host") : Verdict.no("other host");
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new SendEnd(request);
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new ReceiveEnd(request);
    }
}
