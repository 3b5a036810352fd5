package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.net.InetAddress;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SilentLinkTest {

    private static SilentLink throughWords(String local, String remote, String host) throws Exception {
        SilentLink link = new SilentLink(InetAddress.getByName(local), InetAddress.getByName(remote), host);
        return SilentLink.of(SilentLink.words(link));
    }

    @ParameterizedTest
    @CsvSource({"10.77.0.2, 10.77.0.3, host1", "fd00::1, fe80:1:2:3:4:5:6:7, b2", "10.0.0.1, fd00::2, x"})
    void whatIsSaidIsRead(String local, String remote, String host) throws Exception {
        assertEquals(new SilentLink(InetAddress.getByName(local), InetAddress.getByName(remote), host),
                throughWords(local, remote, host));
    }

    @Test
    void aLongNameIsCut() throws Exception {
        assertEquals("x".repeat(38), throughWords("10.0.0.1", "10.0.0.2", "x".repeat(100)).host());
        assertEquals("x".repeat(14), throughWords("fd00::1", "fd00::2", "x".repeat(100)).host());
    }

    @Test
    void zerosAreNoLinkAndAnythingElseIsHarmless() {
        assertNull(SilentLink.of(SilentLink.words(null)));
        assertNull(SilentLink.of(new long[] {-1, -1, -1, -1, -1, -1}));
        assertNull(SilentLink.of(new long[] {0x1010 | 0x0f00, 0, 0, 0, 0, 0}));
        long name = 0x0a1b_0a1bL;
        assertEquals("????", SilentLink.of(new long[] {0x0404, 0, name << 16, 0, 0, 0}).host());
    }
}
