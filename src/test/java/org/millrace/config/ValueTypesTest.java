package org.millrace.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.config.Setting.ValueType;

class ValueTypesTest {

    private static final ValueTypes.SizeType SIZES = new ValueTypes.SizeType(0, 1L << 40, 1);
    private static final ValueTypes.DurationType TIMES =
            new ValueTypes.DurationType(Duration.ofNanos(1000), Duration.ofHours(2));

    @ParameterizedTest
    @CsvSource({"0,0", "8,8", "1023,1023", "64K,65536", "64KiB,65536", "64 k,65536", "4M,4194304", "1G,1073741824",
            "1T,1099511627776", "16B,16"})
    void sizesAreRead(String text, long bytes) {
        assertEquals(bytes, SIZES.parse(text));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "K", "-1", "1.5M", "4X", "4MB", "0x10", "2T", "9223372036854775807K",
                    "99999999999999999999"})
    void otherSizesAreRefused(String text) {
        assertThrows(IllegalArgumentException.class, () -> SIZES.parse(text));
    }

    @ParameterizedTest
    @CsvSource({"0,0", "1000,1000", "1024,1K", "1536,1536", "67108864,64M", "3221225472,3G"})
    void sizesAreWrittenShort(long bytes, String text) {
        assertEquals(text, SIZES.format(bytes));
        assertEquals(bytes, SIZES.parse(text));
    }

    @Test
    void sizesMustBePowersOfTwo() {
        ValueType<Long> powers = ValueTypes.powersOfTwo(256, 1 << 30);
        assertEquals(1 << 20, powers.parse("1M"));
        for (String refused : List.of("0", "128", "1000", "3K", "2G")) {
            assertThrows(IllegalArgumentException.class, () -> powers.parse(refused), refused);
        }
        assertEquals("1M", powers.format(1L << 20));
        assertEquals("a number of bytes from 256 to 1G, with K, M or G for 2^10, 2^20 or 2^30 (as in 4M); only powers"
                + " of two", powers.allowed());
    }

    @Test
    void sizesMustBeMultiples() {
        ValueTypes.SizeType pages = new ValueTypes.SizeType(4096, 1 << 20, 4096);
        assertEquals(8192L, pages.parse("8K"));
        assertThrows(IllegalArgumentException.class, () -> pages.parse("6K"));
        assertThrows(IllegalArgumentException.class, () -> pages.parse("0"));
    }

    @ParameterizedTest
    @CsvSource({"100us,100000", "500ms,500000000", "30s,30000000000", "10m,600000000000", "2h,7200000000000",
            "30 s,30000000000"})
    void timesAreReadAndWritten(String text, long nanos) {
        assertEquals(Duration.ofNanos(nanos), TIMES.parse(text));
        assertEquals(text.replace(" ", ""), TIMES.format(Duration.ofNanos(nanos)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "30", "s", "-1s", "1.5s", "1d", "3h", "0s", "9999999999999999h"})
    void otherTimesAreRefused(String text) {
        assertThrows(IllegalArgumentException.class, () -> TIMES.parse(text));
    }

    @Test
    void integersHaveARange() {
        assertEquals(16, ValueTypes.integers(1, 16).parse("16"));
        assertThrows(IllegalArgumentException.class, () -> ValueTypes.integers(1, 16).parse("17"));
        assertThrows(IllegalArgumentException.class, () -> ValueTypes.integers(1, 16).parse("0"));
        assertThrows(IllegalArgumentException.class, () -> ValueTypes.integers(1, 16).parse("four"));
    }

    @ParameterizedTest
    @CsvSource({"1,true", "TRUE,true", "yes,true", "on,true", "0,false", "false,false", "No,false", "off,false"})
    void booleansAreRead(String text, boolean value) {
        assertEquals(value, ValueTypes.booleans().parse(text));
    }

    @Test
    void otherBooleansAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> ValueTypes.booleans().parse("2"));
    }

    @Test
    void choicesListsAndOptionals() {
        assertEquals(Settings.LogLevel.TRACE, ValueTypes.choices(Settings.LogLevel.class).parse("trace"));
        assertEquals("VERSION, WARN, INFO, ABORT, TRACE", ValueTypes.choices(Settings.LogLevel.class).allowed());
        assertThrows(IllegalArgumentException.class, () -> ValueTypes.choices(Settings.LogLevel.class).parse("loud"));
        ValueType<List<Integer>> list = ValueTypes.lists(ValueTypes.integers(0, 9));
        assertEquals(List.of(1, 2, 3), list.parse("1, 2,,3"));
        assertEquals("1,2,3", list.format(List.of(1, 2, 3)));
        assertThrows(IllegalArgumentException.class, () -> list.parse("1,10"));
        assertEquals(Optional.of(3), ValueTypes.optional(ValueTypes.integers(0, 9)).parse("3"));
        assertEquals("unset", ValueTypes.optional(ValueTypes.integers(0, 9)).format(Optional.empty()));
    }
}
