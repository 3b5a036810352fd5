package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.MillraceException;

/** Layouts for combinations of a kernel's headers and a loaded NCCL release. Some combinations are refused. */
class DeviceLayoutTest {

    @ParameterizedTest
    @CsvSource({"22809, 22809, true, V28", "22903, 22907, true, V29_2", "22907, 22907, true, V29_7",
            "22907, 23007, false, V29_7", "23003, 23004, true, V30", "23003, 23007, true, V30"})
    void kernelsGetTheLayoutOfTheirHeaders(int compiledWith, int loaded, boolean gin,
            NcclDeviceCommunicator.DeviceLayout expected) {
        assertEquals(expected, NcclDeviceCommunicator.DeviceLayout.of(compiledWith, loaded, gin));
    }

    @ParameterizedTest
    @CsvSource({"22809, 22907, false", "23007, 23004, false", "22907, 23004, true", "22903, 23007, true"})
    void incompatibleHeadersAreRefused(int compiledWith, int loaded, boolean gin) {
        String refused = assertThrows(MillraceException.class,
                () -> NcclDeviceCommunicator.DeviceLayout.of(compiledWith, loaded, gin)).getMessage();
        assertTrue(refused.contains(gin ? "cannot use GIN with" : "cannot run with")
                && refused.endsWith("compile them with the headers of that release"), refused);
    }

    @Test
    void unknownHeadersAreRefused() {
        assertTrue(
                assertThrows(MillraceException.class, () -> NcclDeviceCommunicator.DeviceLayout.of(23100, 23100, true))
                        .getMessage()
                        .contains("is not known here"));
    }
}
