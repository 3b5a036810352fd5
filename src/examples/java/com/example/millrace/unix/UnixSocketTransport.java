package com.example.millrace.unix;

import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * Step 1, the transport: a Unix-domain socket for each connection between ranks of one host. A property switches it on,
 * because a user's jar should not serve every program that has it.
 */
public final class UnixSocketTransport implements Transport {

    /** System property that switches the transport on. */
    public static final String ENABLE = "example.unix.enable";

    /** For {@link java.util.ServiceLoader}. Step 6 is the file in {@code META-INF/services} that names this class. */
    public UnixSocketTransport() {}

    @Override
    public String name() {
        return "UNIX";
    }

    @Override
    public Availability offer() {
        return Boolean.getBoolean(ENABLE) ? Availability.yes("") : Availability.no(ENABLE + " is not set");
    }

    @Override
    public Availability canConnect(PeerInfo here, PeerInfo there) {
        return here.host().equals(there.host()) ? Availability.yes("one host") : Availability.no("other host");
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
