package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.millrace.config.Settings;

/**
 * The page {@code seeds.md} says what the code does: its classes and tests exist, nothing is partial without a reason,
 * every variable of the seeds and every setting has its row, and each row's variable is read or said to mean nothing.
 */
class SeedsPageTest {

    private static final Path PAGE = Path.of("src/site/markdown/development/seeds.md");
    /** Where the documents lie beside the repository; not everywhere. */
    private static final Path SEEDS = Path.of("../shared/seeds");
    /** NCCL's macros and constants, which the seeds name beside variables. */
    private static final Pattern VARIABLE =
            Pattern.compile("export (NCCL_[A-Z0-9_]+)|`(NCCL_[A-Z0-9_]+)(?:=1)?`|^(NCCL_[A-Z0-9_]+)=\\d");
    private static final Pattern LITERAL = Pattern.compile("\"((?:NCCL|MILLRACE)_[A-Z0-9_]*[A-Z0-9])[\"=]");
    private static final Pattern QUOTED = Pattern.compile("`([^`]+)`");
    /** What the seeds name, written down here as the documents are no part of the repository. */
    private static final Set<String> OF_THE_SEEDS = Set.of("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_PROXY_TRACE",
            "NCCL_PROXY_IDLE_THRESHOLD", "NCCL_PROXY_IDLE_SLEEP_US", "NCCL_NET_MAX_RECVS", "NCCL_WORK_FIFO_BYTES",
            "NCCL_NET_DEVICE_UNPACK_ENABLED", "NCCL_NET_DEVICE_UNPACK_THRESHOLD", "NCCL_SHM_USE_CUDA_MEMCPY",
            "NCCL_SHM_MEMCPY_MODE", "NCCL_SHM_LOCALITY", "NCCL_P2P_USE_CUDA_MEMCPY", "NCCL_MY_TRANSPORT_ENABLE");
    private static final List<String> EFFECTS = List.of("works", "NCCL's", "set", "refused", "meaningless");

    /** Cells by row: of mechanisms six, of variables four. */
    private static final List<List<String>> mechanisms = new ArrayList<>();
    private static final Map<String, List<String>> variables = new HashMap<>();
    private static final Set<String> files = new HashSet<>();
    /** Variables that the code names. */
    private static final Set<String> named = new HashSet<>();

    @BeforeAll
    static void read() throws IOException {
        for (String line : Files.readAllLines(PAGE)) {
            if (line.startsWith("| ") && !line.startsWith("| ---")) {
                List<String> cells =
                        Stream.of(line.substring(1, line.length() - 1).split("\\|", -1)).map(String::strip).toList();
                if (cells.size() == 4 && !cells.getFirst().equals("variable")) {
                    String name = quoted(cells.getFirst()).getFirst();
                    assertEquals(null, variables.put(name, cells), name + " has two rows");
                } else if (cells.size() == 6 && !cells.getFirst().equals("mechanism")) {
                    mechanisms.add(cells);
                } else {
                    assertTrue(cells.getFirst().equals("variable") || cells.getFirst().equals("mechanism"), line);
                }
            }
        }
        for (String root : List.of("src", "bench/src")) {
            try (Stream<Path> sources = Files.walk(Path.of(root))) {
                for (Path source : (Iterable<Path>) sources
                        .filter(path -> path.toString().endsWith(".java"))::iterator) {
                    files.add(source.getFileName().toString().replace(".java", ""));
                    if (source.startsWith("src/main/java")) {
                        LITERAL.matcher(Files.readString(source)).results().forEach(found -> named.add(found.group(1)));
                    }
                }
            }
        }
    }

    private static List<String> quoted(String cell) {
        return QUOTED.matcher(cell).results().map(found -> found.group(1)).toList();
    }

    @Test
    void everyMechanismHasItsClassItsTestAndItsCommand() {
        assertTrue(mechanisms.size() > 40, mechanisms.size() + " rows");
        for (List<String> row : mechanisms) {
            List<String> tests = quoted(row.get(3));
            assertTrue(!quoted(row.get(2)).isEmpty() && !tests.isEmpty(), row.toString());
            tests.forEach(test -> assertTrue(test.endsWith("Test") && files.contains(test), test + " in " + row));
            assertTrue(quoted(row.get(4)).getFirst()
                    .matches("(MILLRACE_\\S+ )?(millrace|mvn|bench/gpu/|java -jar bench/).*"), row.toString());
            assertTrue(Set.of("whole", "partial", "not here").contains(row.get(1)), row.toString());
            assertEquals(row.get(1).equals("whole"), row.get(5).isEmpty(), "a reason, or none, for " + row);
        }
    }

    @Test
    void everySettingThatIsReadHasItsRow() {
        Set<String> missing = new TreeSet<>(OF_THE_SEEDS);
        Settings.all().forEach(setting -> missing.add(setting.name()));
        missing.addAll(named);
        missing.removeAll(variables.keySet());
        assertEquals(Set.of(), missing);
    }

    @Test
    void everyRowsVariableIsReadOrMeansNothing() {
        variables.forEach((name, cells) -> {
            List<String> effects = cells.subList(1, 4);
            effects.forEach(cell -> {
                assertTrue(EFFECTS.stream().anyMatch(cell::startsWith), name + ": " + cell);
                assertTrue(
                        cell.startsWith("works") || cell.startsWith("NCCL's") || cell.startsWith("set ")
                                || cell.startsWith("set,") || cell.contains(":") || cell.startsWith("refused but"),
                        name + " does not say why: " + cell);
            });
            boolean meaningless = effects.stream().allMatch(cell -> cell.startsWith("meaningless"));
            assertEquals(!meaningless, named.contains(name), name);
        });
    }

    /** The list above is that of the documents, where they are. */
    @Test
    void theSeedsNameNoOtherVariable() throws IOException {
        assumeTrue(Files.isDirectory(SEEDS), "the documents are not here");
        Set<String> found = new HashSet<>();
        try (Stream<Path> documents = Files.list(SEEDS)) {
            for (Path document : (Iterable<Path>) documents::iterator) {
                for (String line : Files.readAllLines(document)) {
                    VARIABLE.matcher(line)
                            .results()
                            .forEach(match -> found.add(Stream.of(match.group(1), match.group(2), match.group(3))
                                    .filter(Objects::nonNull)
                                    .collect(Collectors.joining())));
                }
            }
        }
        found.removeAll(Set.of("NCCL_STEPS", "NCCL_NET_DEVICE_PACK", "NCCL_NET_DEVICE_RDMA", "NCCL_NET_DEVICE_COMPRESS",
                "NCCL_NET_DEVICE_UNPACK_MAX_QUEUE_DEPTH")); // NCCL's constants
        found.add("NCCL_MY_TRANSPORT_ENABLE"); // "MY_TRANSPORT_ENABLE" in the argument of a macro
        assertEquals(OF_THE_SEEDS, found);
    }
}
