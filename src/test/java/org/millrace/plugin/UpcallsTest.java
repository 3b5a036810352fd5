package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.millrace.ffi.plugin.ncclNetProperties_v11_t;
import org.millrace.ffi.plugin.ncclNetProperties_v12_t;
import org.millrace.ffi.plugin.ncclNetProperties_v9_t;

/** The Java half and the C half of the shim list the same functions with the same arguments. */
class UpcallsTest {

    private static final String HEADER = read();

    private static String read() {
        try {
            return Files.readString(Path.of("src/main/c/upcalls.h"));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    /** Returns each function's name and, for each argument, whether it is an {@code int}. */
    private static Map<String, List<Boolean>> functionsInC() {
        Map<String, List<Boolean>> functions = new LinkedHashMap<>();
        Pattern.compile("ncclResult_t \\(\\*(\\w+)\\)\\(([^;]*)\\);")
                .matcher(HEADER.substring(0, HEADER.indexOf("typedef ncclResult_t")))
                .results()
                .forEach(match -> functions.put(match.group(1),
                        Arrays.stream(match.group(2).split(","))
                                .map(argument -> argument.strip().matches("int \\w+"))
                                .toList()));
        return functions;
    }

    @Test
    void theFunctionsHaveTheSameNamesAndOrder() {
        assertEquals(List.copyOf(functionsInC().keySet()),
                Arrays.stream(Upcalls.FUNCTIONS).map(Upcalls::nameInC).toList());
    }

    /**
     * In the class PluginTables, a switch has a case for each function. The case calls the method with the function's
     * name, and must read each argument with the type that C passes.
     */
    @Test
    void argumentsAreReadAsTheyArePassed() throws IOException {
        String tables = Files.readString(Path.of("src/main/java/org/millrace/plugin/PluginTables.java"));
        Map<String, List<Boolean>> inC = functionsInC();
        for (Upcalls.Function function : Upcalls.FUNCTIONS) {
            String name = Upcalls.nameInC(function);
            Matcher called =
                    Pattern.compile("case " + function.name() + " ->\\s+\\w+\\.(\\w+)\\(([^;]*)\\);").matcher(tables);
            assertTrue(called.find(), () -> "no case of " + function);
            assertEquals(name, called.group(1));
            int last = -1;
            for (MatchResult read : Pattern.compile("(word|number)\\(a, (\\d+)\\)")
                    .matcher(called.group(2))
                    .results()
                    .toList()) {
                int index = Integer.parseInt(read.group(2));
                assertTrue(index > last && index < inC.get(name).size(), () -> name + ", argument " + index);
                assertEquals(inC.get(name).get(index), read.group(1).equals("number"),
                        () -> name + ", argument " + index);
                last = index;
            }
        }
    }

    @Test
    void theInterfaceHasTheSameNumber() {
        var matcher = Pattern.compile("#define MILLRACE_PLUGIN_INTERFACE (\\d+)").matcher(HEADER);
        matcher.find();
        assertEquals(Integer.parseInt(matcher.group(1)), Upcalls.VERSION);
    }

    /**
     * NetProperties writes the properties of versions 9 to 12 with the layout of v9. The fields must therefore have
     * equal offsets in these versions.
     */
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
