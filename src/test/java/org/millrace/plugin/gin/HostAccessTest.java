package org.millrace.plugin.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HostAccessTest {

    private static final List<String> MAPPINGS = List.of("1000-3000 rw-s 00000000 00:05 7  /dev/nvidia-uvm",
            "3000-5000 rw-p 00000000 00:00 0", "5000-6000 ---p 00000000 00:00 0", "6000-7000 r--p 00000000 00:00 0",
            "9000-a000 rw-p 00000000 00:00 0 ", "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]");

    @ParameterizedTest
    @CsvSource({"1000, 1000, true", "1800, 3800, true", "1800, 3801, false", "4fff, 1, true", "4fff, 2, false",
            "5000, 1, false", "6000, 100, false", "8fff, 2, false", "9fff, 1, true", "9fff, 2, false", "0, 1, false"})
    void onlyWhatMayBeReadAndWrittenWithoutGaps(String address, String bytes, boolean possible) {
        assertEquals(possible,
                CudaGinDevice.HostAccess.isPossible(Long.parseLong(address, 16), Long.parseLong(bytes, 16), MAPPINGS));
    }

    @Test
    void thisProcess() {
        try (Arena arena = Arena.ofConfined()) {
            assertTrue(CudaGinDevice.HostAccess.isPossible(arena.allocate(1 << 20).address(), 1 << 20));
        }
        assertFalse(CudaGinDevice.HostAccess.isPossible(0, 1));
    }
}
