package org.millrace.plugin.path;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionKey;
import org.millrace.net.Listener;

class PeerHandleTest {

    private final byte[] address = new byte[Listener.ADDRESS_BYTES];
    private final MemorySegment memory = Arena.ofAuto().allocate(plugin_h.NCCL_NET_HANDLE_MAXSIZE() + 8L, 8);

    private PeerHandle written() {
        new Random(4).nextBytes(address);
        PeerHandle handle = new PeerHandle((byte) 2, new ConnectionKey(-5, 6), address);
        memory.fill((byte) 0x77);
        handle.write(memory.address());
        return handle;
    }

    @Test
    void travelsInNcclsBytesAndTouchesNoOthers() {
        assertEquals(written(), PeerHandle.read(memory.address()));
        assertEquals(0x7777777777777777L, memory.get(ValueLayout.JAVA_LONG, plugin_h.NCCL_NET_HANDLE_MAXSIZE()));
    }

    @Test
    void anotherPluginsHandleIsRefused() {
        memory.fill((byte) 1);
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> PeerHandle.read(memory.address()));
        assertTrue(refused.getMessage().contains("does every rank use this plugin?"), refused.getMessage());
    }

    @Test
    void anotherVersionsHandleIsRefused() {
        written();
        memory.set(ValueLayout.JAVA_BYTE, 4, (byte) 9);
        IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> PeerHandle.read(memory.address()));
        assertTrue(refused.getMessage().contains("version 9"), refused.getMessage());
    }
}
