package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The plugin writes nothing outside the structures that NCCL allocates, in any version of its tables. */
@Tag("slow")
public class CallerStructuresTest {

    /**
     * The properties structure of GIN v15 has one of two sizes, depending on the release of NCCL. The shim has a table
     * of releases and sizes. The sizes were found by inspection of libnccl.
     */
    @ParameterizedTest
    @CsvSource({"23206, 2", "23207, 8"})
    void canariesSurviveInEveryTable(int version, int bytes) throws Exception {
        var outcome = host("-DNCCL_CODE=" + version).run(inspected("{23206,2},{23207,8},").toAbsolutePath(), bytes);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(List.of(), outcome.warnings());
        assertTrue(outcome.endsWith("OK\n"), outcome.output());
    }

    @ParameterizedTest
    @CsvSource({"-DNCCL_CODE=23206, NCCL 2.32.6", "-DWITHOUT_VERSION, an NCCL of unknown version"})
    void ginOfAnUninspectedReleaseFailsAtInitWithOneWarning(String definition, String name) throws Exception {
        var outcome = host(definition).run(HostProgram.library(), 0);
        assertEquals(0, outcome.exit(), outcome.output());
        assertEquals(1, outcome.warnings().size(), outcome.output());
        assertTrue(outcome.logLine(2).startsWith("NET/Millrace: this plugin does not serve GIN for " + name + ": "),
                outcome.output());
    }

    private static HostProgram host(String definition) throws Exception {
        return HostProgram.compile("properties_host", "-rdynamic", definition).with("MILLRACE_GIN", "host");
    }

    /** {@return a shim with the given table of NCCL releases and sizes of GIN v15's properties structure} */
    public static Path inspected(String releases) throws Exception {
        return HostProgram.compileShim("libnccl-net-" + releases.replaceAll("\\D+", "-") + ".so",
                "-DMILLRACE_GIN_V15_RELEASES=" + releases);
    }
}
