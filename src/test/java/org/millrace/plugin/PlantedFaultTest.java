package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Faults that can be planted. */
class PlantedFaultTest {

    private static final Path PAGE = Path.of("src", "site", "markdown", "without-a-gpu.md");

    static Set<String> names() throws IOException {
        return PlantedFault.names();
    }

    @ParameterizedTest
    @MethodSource("names")
    void eachFaultFitsTheSourcesAndCompiles(String fault) throws Exception {
        assertTrue(Files.isDirectory(PlantedFault.compile(fault)));
    }

    @Test
    void thePageListsTheFaults() throws IOException {
        Set<String> listed = Pattern.compile("(?m)^\\| `([a-z0-9-]+)` \\|")
                .matcher(Files.readString(PAGE))
                .results()
                .map(row -> row.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(new TreeSet<>(names()), listed);
    }
}
