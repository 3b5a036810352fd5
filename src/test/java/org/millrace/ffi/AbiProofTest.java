package org.millrace.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.GroupLayout;
import java.lang.foreign.PaddingLayout;
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
 * Proves that the generated classes match this machine's C compiler for {@code headers/}: every struct, every field,
 * every constant, in both directions.
 */
class AbiProofTest {
    private static final Path HEADERS = Path.of("headers");
    private static final String REMEDY = "what headers/ declares must be named in jextract/*.includes, and then be"
            + " generated (mvn -Pjextract -Djextract.update)";

    /** Tables that the plugin's shim fills in itself. {@link NcclHeadersTest} compares them with NCCL's. */
    private static final Pattern OF_C_ALONE = Pattern.compile("(ncclCollNet|ncclNetSGE)_v\\d+_t(\\..*)?");

    private static List<Bindings> bindings;
    private static HeaderScan declared;

    @BeforeAll
    static void read() throws Exception {
        bindings = Bindings.all();
        declared = HeaderScan.of(HEADERS);
        declared.groups.keySet().removeIf(OF_C_ALONE.asMatchPredicate());
        declared.functionPointers.keySet().removeIf(OF_C_ALONE.asMatchPredicate());
    }

    @Test
    void theCompilerAgreesWithEveryLayoutAndConstant(@TempDir Path directory) throws Exception {
        AbiProbe probe = new AbiProbe(UnaryOperator.identity());
        int structs = 0;
        int constants = 0;
        for (Bindings part : bindings) {
            for (Map.Entry<String, GroupLayout> group : part.groups().entrySet()) {
                probe.group(group.getKey(), group.getValue(), alignment(group.getKey(), group.getValue()));
                structs++;
            }
            for (Map.Entry<String, Number> constant : part.constants().entrySet()) {
                probe.constant(constant.getKey(), constant.getValue());
                constants++;
            }
        }
        for (var scalar : union(Bindings::scalarTypes).entrySet()) {
            probe.type(scalar.getKey(), scalar.getValue(), scalar.getValue().byteAlignment());
        }
        String includes =
                bindings.stream().map(part -> "#include \"" + part.header() + "\"\n").collect(Collectors.joining());
        Path source = Files.writeString(directory.resolve("abi.c"), probe.source(includes));
        Path program = directory.resolve("abi");
        CCompiler.c(List.of("-std=gnu11", "-w", "-I", HEADERS.toString(), "-o", program.toString(), source.toString()));
        assertSame(probe.expected(), CCompiler.answers(program), "Java", "the C compiler");
        System.out.println(
                "ABI proof: " + structs + " structs, " + probe.fields() + " fields, " + constants + " constants");
    }

    @Test
    void everyStructOfTheHeadersIsGeneratedWithAllItsFields() throws Exception {
        SortedMap<String, List<String>> generated = new TreeMap<>();
        for (var group : union(Bindings::groups).entrySet()) {
            generated.put(group.getKey(),
                    group.getValue()
                            .memberLayouts()
                            .stream()
                            .filter(member -> !(member instanceof PaddingLayout))
                            .map(member -> member.name().orElseThrow())
                            .toList());
        }
        assertSame(declared.groups, generated, "headers/", "the generated classes");
    }

    @Test
    void everyConstantOfTheHeadersIsGenerated() throws Exception {
        assertSame(names(declared.constants), names(union(Bindings::constants)), "headers/", "the generated classes");
    }

    @Test
    void everyFunctionOfTheHeadersIsGenerated() throws Exception {
        assertSame(parameters(declared.functions), union(Bindings::functions), "headers/", "the generated classes");
    }

    @Test
    void everyFunctionPointerOfTheHeadersIsGenerated() throws Exception {
        assertSame(parameters(declared.functionPointers), union(Bindings::functionPointers), "headers/",
                "the generated classes");
    }

    @Test
    void everyPointerTypeOfTheHeadersIsGenerated() throws Exception {
        assertSame(names(declared.pointerTypes), names(union(Bindings::scalarTypes)), "headers/",
                "the generated classes");
    }

    /**
     * Returns the expected alignment. Layouts have their members' alignment. jextract does not transfer a larger
     * alignment from a declaration.
     */
    private static long alignment(String name, GroupLayout layout) {
        return Math.max(layout.byteAlignment(), declared.alignments.getOrDefault(name, 1L));
    }

    private interface Part<T> {
        SortedMap<String, T> of(Bindings bindings) throws ReflectiveOperationException;
    }

    private static <T> SortedMap<String, T> union(Part<T> part) throws ReflectiveOperationException {
        SortedMap<String, T> union = new TreeMap<>();
        for (Bindings each : bindings) {
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
