package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Who has to go where too many have come. */
class UnprovenClientsTest {

    /** Who has a name that begins with "rank" knows the secret. */
    private final UnprovenClients<String> clients = new UnprovenClients<>(4, client -> client.startsWith("rank"));

    private void come(String source, String... names) {
        for (String name : names) {
            clients.add(name, source);
        }
    }

    @Test
    void theOldestOfTheAddressFromWhichMostCame() {
        come("one", "a");
        come("other", "b", "c");
        come("one", "d");
        assertNull(clients.removeExcess());
        come("other", "e");
        assertEquals("b", clients.removeExcess());
        assertNull(clients.removeExcess());
        assertEquals(List.of("a", "c", "d", "e"), clients.all());
        clients.remove("c");
        assertEquals("a", clients.removeOne(), "of the address from which most are left");
    }

    @Test
    void whoKnowsTheSecretStays() {
        come("one", "rank 1", "rank 2", "rank 3");
        come("other", "a", "b");
        assertEquals("a", clients.removeExcess());
        assertEquals("b", clients.removeOne());
        assertEquals("rank 1", clients.removeOne(), "where nobody else is left");
        clients.remove("unknown");
        clients.remove("rank 2");
        assertEquals("rank 3", clients.removeOne());
        assertTrue(clients.isEmpty());
        assertNull(clients.removeOne());
    }
}
