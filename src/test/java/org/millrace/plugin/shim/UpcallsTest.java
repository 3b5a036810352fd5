package org.millrace.plugin.shim;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.millrace.ffi.plugin.ncclNetProperties_v11_t;
import org.millrace.ffi.plugin.ncclNetProperties_v12_t;
import org.millrace.ffi.plugin.ncclNetProperties_v9_t;

/** Java's and C's halves of the shim say the same. */
class UpcallsTest {

    private static final String HEADER = read();

    private static String read() {
        try {
            return Files.readString(Path.of("src/main/c/upcalls.h"));
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    @Test
    void theFunctionsHaveTheSameNamesOrderAndArguments() {
        List<String> inC = Pattern.compile("ncclResult_t \\(\\*(\\w+)\\)\\(([^;]*)\\);")
                .matcher(HEADER.substring(0, HEADER.indexOf("typedef ncclResult_t")))
                .results()
                .map(match -> match.group(1) + " "
                        + match.group(2)
                                .lines()
                                .map(String::strip)
                                .reduce("", (a, b) -> a + " " + b)
                                .strip()
                                .split(",").length)
                .toList();
        List<String> inJava = Arrays.stream(Upcalls.Function.values())
                .map(function -> function.nameInC() + " " + function.arguments())
                .toList();
        assertEquals(inC, inJava);
    }

    @Test
    void theInterfaceHasTheSameNumber() {
        var matcher = Pattern.compile("#define MILLRACE_PLUGIN_INTERFACE (\\d+)").matcher(HEADER);
        matcher.find();
        assertEquals(Integer.parseInt(matcher.group(1)), Upcalls.VERSION);
    }

    /** NetProperties fills the head of all of them by the layout of v9. */
    @Test
    void thePropertiesOfVersions9To12BeginAlike() {
        assertEquals(ncclNetProperties_v9_t.vProps$offset(), ncclNetProperties_v11_t.vProps$offset());
        assertEquals(ncclNetProperties_v9_t.vProps$offset(), ncclNetProperties_v12_t.vProps$offset());
        assertEquals(ncclNetProperties_v9_t.maxCollBytes$offset(), ncclNetProperties_v11_t.maxCollBytes$offset());
        assertEquals(ncclNetProperties_v9_t.speed$offset(), ncclNetProperties_v12_t.speed$offset());
        assertEquals(ncclNetProperties_v9_t.latency$offset(), ncclNetProperties_v12_t.latency$offset());
        assertEquals(ncclNetProperties_v9_t.netDeviceVersion$offset(),
                ncclNetProperties_v12_t.netDeviceVersion$offset());
    }
}
