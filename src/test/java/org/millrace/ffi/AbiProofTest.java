package org.millrace.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.CCompiler;

/**
 * Proves that the generated classes and the recorded layouts agree with {@code headers/}, compiled by this machine's C
 * compiler: every struct, every field, every constant, in both directions.
 */
class AbiProofTest {
    private static final Path HEADERS = Path.of("headers");
    private static final Path LAYOUTS_ONLY = Path.of("jextract", "layouts.list");
    private static final String REMEDY = "each declaration of headers/ must be named in jextract/*.includes and be"
            + " generated (mvn -Pjextract -Djextract.update); a struct without a use in Java is in layouts.txt instead";

    /** Tables that only the plugin's C code uses. {@link NcclHeadersTest} compares these tables with NCCL's tables. */
    private static final Pattern OF_C_ALONE = Pattern.compile("(ncclCollNet|ncclNetSGE)_v\\d+_t(\\..*)?");

    private static HeaderScan declared;

    @BeforeAll
    static void read() throws Exception {
        declared = HeaderScan.of(HEADERS);
        declared.groups.keySet().removeIf(OF_C_ALONE.asMatchPredicate());
        declared.functionPointers.keySet().removeIf(OF_C_ALONE.asMatchPredicate());
    }

    @Test
    void theCompilerAgreesWithEveryLayoutAndConstant(@TempDir Path directory) throws Exception {
        AbiProbe probe = new AbiProbe(UnaryOperator.identity());
        SortedMap<String, Layout> layouts = layouts();
        layouts.forEach(probe::group);
        SortedMap<String, Number> constants = union(Bindings::constants);
        constants.forEach(probe::constant);
        for (var scalar : union(Bindings::scalarTypes).entrySet()) {
            probe.size(scalar.getKey(), scalar.getValue().byteSize(), scalar.getValue().byteAlignment());
        }
        String includes = Bindings.all()
                .stream()
                .map(part -> "#include \"" + part.header() + "\"\n")
                .collect(Collectors.joining());
        Path source = Files.writeString(directory.resolve("abi.c"), probe.source(includes));
        Path program = directory.resolve("abi");
        CCompiler.c(List.of("-std=gnu11", "-w", "-I", HEADERS.toString(), "-o", program.toString(), source.toString()));
        assertSame(probe.expected(), CCompiler.answers(program), "Java", "the C compiler");
        System.out.println("ABI proof: " + layouts.size() + " structs, " + probe.fields() + " fields, "
                + constants.size() + " constants");
    }

    @Test
    void everyStructOfTheHeadersIsProvenWithAllItsFields() throws Exception {
        SortedMap<String, List<String>> proven = new TreeMap<>();
        layouts().forEach((name, layout) -> proven.put(name, layout.fieldNames()));
        assertSame(declared.groups, proven, "headers/", "the proof");
    }

    @Test
    void aGeneratedStructIsNotRecordedToo() throws Exception {
        Set<String> both = new TreeSet<>(union(Bindings::groups).keySet());
        both.retainAll(Layout.recorded().keySet());
        assertEquals(Set.of(), both, "delete these from layouts.txt");
    }

    @Test
    void everyConstantOfTheHeadersIsGenerated() throws Exception {
        assertSame(names(declared.constants), names(union(Bindings::constants)), "headers/", "the generated classes");
    }

    @Test
    void everyFunctionOfTheHeadersIsGenerated() throws Exception {
        assertSame(parameters(declared.functions), union(Bindings::functions), "headers/", "the generated classes");
    }

    /** Structs of which Java uses only the layout have no function pointers that Java code could call. */
    @Test
    void everyFunctionPointerOfAGeneratedStructIsGenerated() throws Exception {
        Set<String> without = new TreeSet<>(Files.readAllLines(LAYOUTS_ONLY));
        assertTrue(union(Bindings::groups).keySet().containsAll(without), LAYOUTS_ONLY + ": " + without);
        without.addAll(Layout.recorded().keySet());
        SortedMap<String, HeaderScan.Function> pointers = new TreeMap<>(declared.functionPointers);
        pointers.keySet().removeIf(name -> without.contains(name.replaceFirst("\\..*", "")));
        assertSame(parameters(pointers), union(Bindings::functionPointers), "headers/", "the generated classes");
    }

    @Test
    void everyPointerTypeOfTheHeadersIsGenerated() throws Exception {
        assertSame(names(declared.pointerTypes), names(union(Bindings::scalarTypes)), "headers/",
                "the generated classes");
    }

    /**
     * Compares a hash of jextract's inputs with the hash in the repository, and applies this project's changes to the
     * generated classes once more. The test does not need jextract.
     */
    @Test
    void theGeneratedClassesAreOfTheseHeadersAndIncludes() throws Exception {
        Process check = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Djextract.inputs=true", "jextract/Regenerate.java").redirectErrorStream(true).start();
        String output = new String(check.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, check.waitFor(), output);
    }

    /** Returns the layouts of all structs and unions, both from generated classes and from the recorded layouts. */
    static SortedMap<String, Layout> layouts() throws Exception {
        HeaderScan headers = HeaderScan.of(HEADERS);
        SortedMap<String, Layout> layouts = new TreeMap<>(Layout.recorded());
        // jextract's layouts ignore an alignment attribute of the struct, and use the alignment of the members.
        union(Bindings::groups).forEach((name, group) -> layouts.put(name,
                Layout.of(group, Math.max(group.byteAlignment(), headers.alignments.getOrDefault(name, 1L)))));
        return layouts;
    }

    private interface Part<T> {
        SortedMap<String, T> of(Bindings bindings) throws ReflectiveOperationException;
    }

    private static <T> SortedMap<String, T> union(Part<T> part) throws Exception {
        SortedMap<String, T> union = new TreeMap<>();
        for (Bindings each : Bindings.all()) {
            union.putAll(part.of(each));
        }
        return union;
    }

    private static Map<String, Integer> parameters(SortedMap<String, HeaderScan.Function> functions) {
        return functions.entrySet()
                .stream()
                .collect(Collectors.toMap(Map.Entry::getKey, function -> function.getValue().parameters()));
    }

    private static Map<String, String> names(SortedMap<String, ?> map) {
        return map.keySet().stream().collect(Collectors.toMap(name -> name, name -> "yes"));
    }

    private static <T> void assertSame(Map<String, T> left, Map<String, T> right, String leftName, String rightName) {
        Set<String> names = new TreeSet<>(left.keySet());
        names.addAll(right.keySet());
        List<String> differences = new ArrayList<>();
        for (String name : names) {
            if (!left.containsKey(name) || !left.get(name).equals(right.get(name))) {
                differences.add(
                        name + ": " + leftName + " says " + left.get(name) + ", " + rightName + " " + right.get(name));
            }
        }
        assertEquals(List.of(), differences, REMEDY);
    }
}
