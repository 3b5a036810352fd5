package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/** A rank that sends invalid messages after it was accepted. The other ranks report this rank and the message. */
@Timeout(120)
class HostileLettersTest extends EngineFixture {

    private final Map<String, String> settings = EngineGroup.settings("NCCL_COLLNET_ENABLE", "1");

    /** Messages that a rank sends after it was accepted. */
    private interface Talk {
        void to(ControlPlane control);
    }

    /**
     * Runs rank 0 of Millrace and a rank 1 that sends arbitrary messages. Returns the failure of rank 0. Rank 1 must
     * receive this failure, too.
     */
    private String failureAfter(Talk talk) throws InterruptedException {
        String[] told = new String[1];
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            if (rank == 0) {
                EngineGroup.join(directory, rank, 2, settings).close();
                return null;
            }
            try (ControlPlane control = ControlPlane.join("file:" + directory.resolve("group"), 1, 2, TIMEOUT)) {
                talk.to(control);
                try {
                    control.barrier();
                } catch (MillraceException expected) {
                    told[0] = control.failure() == null ? "nothing" : control.failure().message();
                }
            }
            return null;
        });
        assertNull(thrown.get(1));
        MillraceException failure = assertInstanceOf(MillraceException.class, thrown.get(0));
        assertTrue(String.valueOf(told[0]).contains(failure.getMessage()), told[0] + " / " + failure.getMessage());
        return failure.getMessage();
    }

    private ByteBuffer settingsLetter(int bytes) {
        Configuration configuration = Configuration.load(settings);
        return ByteBuffer.allocate(bytes).putInt(2).putLong(configuration.get(Settings.BUFFER_SIZE));
    }

    @ParameterizedTest
    @ValueSource(ints = {Integer.MAX_VALUE, -1, Integer.MIN_VALUE, 5})
    void aLengthThatIsNotThereIsNeverAllocated(int length) throws Exception {
        String message = failureAfter(control -> control.allGather(settingsLetter(16 + 4).putInt(length).array()));
        assertTrue(message.contains("the message of rank 1 about its settings cannot be read: the name of a host "
                + "of " + length + " bytes where 4 of 20 are left"), message);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 3, 11, 13})
    void aLetterThatEndsEarlyNamesItsRank(int bytes) throws Exception {
        byte[] whole = settingsLetter(16).array();
        String message = failureAfter(control -> control.allGather(Arrays.copyOf(whole, bytes)));
        assertTrue(message.contains("the message of rank 1 about its settings cannot be read: a number of "), message);
    }

    @Test
    void aGroupHasNoNegativeNumberOfChannels() throws Exception {
        String message = failureAfter(control -> control.allGather(settingsLetter(16).putInt(0, -7).array()));
        assertTrue(message.contains("its number of channels is -7, where 1 to "), message);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 7, 9})
    void theCommunicatorsNumberIsChecked(int bytes) throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            try (ControlPlane control = ControlPlane.join("file:" + directory.resolve("group"), rank, 2, TIMEOUT)) {
                if (rank == 0) {
                    control.allGather(new byte[bytes]);
                } else {
                    EngineTrace.number(control);
                }
            }
            return null;
        });
        assertNull(thrown.get(0));
        assertTrue(
                String.valueOf(thrown.get(1))
                        .contains("the message of rank 0 about the communicator's number cannot be read"),
                String.valueOf(thrown.get(1)));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 3, 4, 5, 19, 23})
    void theTransportsOfARankAreChecked(int bytes) throws Exception {
        byte[] whole = ByteBuffer.allocate(32).putInt(1).putShort((short) 1).put((byte) 'h').array();
        whole[15] = Byte.MAX_VALUE; // the message announces many transports and contains none
        String message = failureAfter(control -> {
            Agreement.reach(control, Configuration.load(settings));
            EngineTrace.number(control);
            control.allGather(Arrays.copyOf(whole, bytes));
        });
        assertTrue(
                message.contains(
                        "the transport information of rank 1 cannot be read: it ends after " + bytes + " bytes"),
                message);
    }
}
