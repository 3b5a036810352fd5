package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.net.ConnectionException;

/** When a connection closes, it releases all its resources, even if one of the releases throws. */
class ConnectionStateTest {

    private final OpenResources network = new OpenResources("network");
    private final List<String> done = new ArrayList<>();

    private final class Played extends ConnectionState {
        Played() {
            super(ConnectionStateTest.this.network, "connection", "peer");
        }

        @Override
        protected void release() {
            done.add("released");
        }
    }

    @Test
    void aThrowOfTheLastUseDoesNotSkipTheRelease() {
        Played connection = new Played();
        network.opened(connection, () -> done.add("closed with the network"));
        RuntimeException thrown = new IllegalStateException("thrown by the test");
        assertSame(thrown, assertThrows(IllegalStateException.class, () -> connection.close(() -> {
            throw thrown;
        })));
        assertThrows(ConnectionException.class, connection::checkOpen);
        network.close();
        assertEquals(List.of("released"), done);
    }

    @Test
    void aThrowOfOneDoesNotKeepTheOthersOpen() {
        for (int i = 0; i < 3; i++) {
            network.opened(i, () -> {
                done.add("closed");
                throw new IllegalStateException("thrown by the test");
            });
        }
        RuntimeException first = assertThrows(IllegalStateException.class, network::close);
        assertEquals(List.of("closed", "closed", "closed"), done);
        assertTrue(first.getSuppressed().length == 2);
    }
}
