package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Choice of the client to drop when too many clients are connected. */
class AdmissionTest implements Admission.Host<String> {

    private final Admission<String> clients = new Admission<>(4, this);
    private final List<String> dropped = new ArrayList<>();
    private String next = "a";

    @Override
    public String arrived(SocketChannel channel) {
        return next;
    }

    /** Returns whether the client's name begins with "rank": such a client knows the secret. */
    @Override
    public boolean knowsSecret(String client) {
        return client.startsWith("rank");
    }

    @Override
    public void drop(String client, String why) {
        dropped.add(client);
    }

    private void come(String source, String... names) {
        for (String name : names) {
            clients.add(name, source);
        }
    }

    private void accept(String name) throws IOException {
        next = name;
        SocketChannel[] waiting = {SocketChannel.open(), null};
        int[] taken = {0};
        clients.accept(() -> waiting[taken[0]++]);
        waiting[0].close();
    }

    private void runOutOfDescriptors() {
        clients.accept(() -> {
            throw new IOException("Too many open files");
        });
    }

    @Test
    void theOldestOfTheAddressFromWhichMostCame() throws IOException {
        come("one", "a");
        come("other", "b", "c");
        accept("d");
        assertEquals(List.of(), dropped);
        come("other", "e");
        accept("f");
        assertEquals(List.of("b", "c"), dropped);
        assertEquals(List.of("a", "d", "e", "f"), clients.all());
        clients.remove("e");
        runOutOfDescriptors();
        assertEquals(List.of("b", "c", "d"), dropped, "of the address from which most are left");
    }

    @Test
    void whoKnowsTheSecretStays() {
        come("one", "rank 1", "rank 2", "rank 3");
        come("other", "a", "b");
        runOutOfDescriptors();
        runOutOfDescriptors();
        assertEquals(List.of("a", "b"), dropped);
        runOutOfDescriptors();
        assertEquals("rank 1", dropped.getLast(), "where nobody else is left");
        clients.remove("unknown");
        clients.remove("rank 2");
        runOutOfDescriptors();
        assertEquals("rank 3", dropped.getLast());
        assertTrue(clients.isEmpty());
        runOutOfDescriptors();
        assertEquals(4, dropped.size());
        assertTrue(clients.pauseNanos() > 0, "nobody is left to give a descriptor");
        clients.closeReserve();
    }
}
