package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The check of payloads by {@code MILLRACE_CHECK}, under a C host with connections that are taken over. */
@Tag("slow")
class PayloadCheckHostTest {

    private static HostProgram host(String program, String network) throws Exception {
        return HostProgram.compile(program, "-DNET_VERSION=11", "-DNCCL_CODE=23007", "-rdynamic")
                .withNetwork(network)
                .with("MILLRACE_CHECK", "1")
                .with("MILLRACE_LOSS_GRACE", "300ms");
    }

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket"})
    void aChangedBitIsReportedByTakeover(String network) throws Exception {
        var right = host("takeover_host", network).run(HostProgram.library(), "processes", 2, 300, 7, "small");
        assertEquals(0, right.exit(), right.output());
        assertEquals(0, right.count("LOG 2 "), right.output());
        var wrong = host("takeover_host", network).with("MILLRACE_FAULT", "flip:frame=40,bit=3")
                .run(HostProgram.library(), "processes", 2, 300, 7, "small");
        assertNotEquals(0, wrong.exit(), wrong.output());
        assertTrue(wrong.count("differs from the payload that was sent") > 0, wrong.output());
    }

    @ParameterizedTest
    @CsvSource({"shm, slot, 0 -> rank 1, changed in its slot", "socket, slot, 0 -> rank 1, changed in its slot",
            "shm, frame, 1 <- rank 0, differs from the payload that was sent",
            "socket, frame, 1 <- rank 0, differs from the payload that was sent",
            "shm, destination, 1 <- rank 0, changed in the receiver's slot",
            "socket, destination, 1 <- rank 0, changed in the receiver's slot"})
    void eachMessageOfTakeoverNamesOperationRanksAndChannel(String network, String fault, String ranks, String change)
            throws Exception {
        var found = host("check_host", network).with("MILLRACE_CHECK", "report")
                .with("MILLRACE_FAULT", fault.equals("frame") ? "flip:frame=5,bit=3" : null)
                .run(HostProgram.library(), fault);
        assertEquals(0, found.exit(), found.output());
        Pattern message = Pattern.compile("rank " + ranks
                + ", channel 2, operation Broadcast #\\d+ \\(512 bytes, RING SIMPLE\\), .+, step \\d+ \\(slot [0-7], SIMPLE\\): "
                + ".*" + change);
        assertTrue(found.warnings().stream().anyMatch(line -> message.matcher(line).find()), found.output());
    }
}
