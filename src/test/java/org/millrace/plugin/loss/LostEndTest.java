package org.millrace.plugin.loss;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.NetworkInterface;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.LostPeerException;

/**
 * Names of lost processes in reports. The network between two of three processes is cut. The third process reports to
 * each of the two that the other process is lost.
 */
class LostEndTest {

    private static final String THIRD = "pid 1 on 198.51.100.1";
    private static final String OTHER = "pid 2 on 198.51.100.2";
    private static final String THIS = "pid " + ProcessHandle.current().pid() + " on ";

    private static LostEnd told(String lost) {
        return LostEnd.of(new LostPeerException("closed by the peer, which has itself lost " + lost, lost), THIRD, "",
                () -> false);
    }

    @Test
    void whoIsLostIsToldWhoHasLostIt() {
        LostEnd end = told(OTHER);
        assertEquals(OTHER, end.peer());
        assertEquals(OTHER, end.namedTo("pid 3 on 198.51.100.3"));
        assertEquals(THIRD, end.namedTo(OTHER));
    }

    static Stream<String> namesOfThisProcess() throws Exception {
        return Stream.concat(Stream.of(THIS + ProcessIdentity.HOST),
                NetworkInterface.networkInterfaces()
                        .flatMap(NetworkInterface::inetAddresses)
                        .map(address -> THIS + address.getHostAddress()));
    }

    @ParameterizedTest
    @MethodSource("namesOfThisProcess")
    void aProcessIsNotToldThatItHasLostItself(String name) {
        assertEquals(THIRD, told(name).peer());
    }

    /** Processes in different containers can have the same pid. */
    @Test
    void aProcessOfTheSamePidOnAnotherHostIsAnother() {
        assertEquals(THIS + "198.51.100.2", told(THIS + "198.51.100.2").peer());
        assertEquals(THIS + "another", told(THIS + "another").peer());
    }
}
